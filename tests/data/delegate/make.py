"""Makes inline.pte: the program of examples/delegate, with its bytes for delegates
inside the flatbuffer. Inputs and outputs are those of the example.

Needs torch and executorch: python make.py
"""

from __future__ import annotations

from pathlib import Path
from runpy import run_path

HERE = Path(__file__).parent

if __name__ == "__main__":
    example = run_path(str(HERE.parents[2] / "examples" / "delegate" / "export.py"))
    data = example["export"](*example["example"](), in_segments=False)
    (HERE / "inline.pte").write_bytes(data)
