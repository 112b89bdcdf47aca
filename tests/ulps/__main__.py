"""Largest errors of the runtime's math functions, and of kernels that use them.

`python -m tests.ulps [--step N] [function ...]` compiles `ulps.cpp` and prints a line
per function: the largest error in units in the last place, and where. `--step 1` takes
every float: about a minute per function on two cores.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def main() -> None:
    """Compile the program, and run it."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.ulps", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--step", type=int, default=97)
    parser.add_argument("functions", nargs="*")
    args = parser.parse_args()
    program = _ROOT / "build" / "ulps"
    program.parent.mkdir(exist_ok=True)
    names = ("error", "math", "math_double", "tensor")
    sources = [_ROOT / "runtime" / "src" / f"{name}.cpp" for name in names]
    selected = program.with_name("ulps-selected") / "orch_selected"
    selected.mkdir(parents=True, exist_ok=True)
    for name in ("gelu", "rsqrt", "sigmoid"):
        sources.append(_ROOT / "kernels" / "portable" / f"op_{name}.cpp")
        (selected / f"op_{name}.h").write_text(
            '#pragma once\n#include "orch/scalar_type.h"\n'
            "namespace orch::selected {\n"
            f"inline constexpr DtypeSet aten_{name}_out =\n"
            "    dtype_set(ScalarType::Float);\n"
            "}  // namespace orch::selected\n",
            encoding="utf-8",
        )
    flags = ["-std=c++17", "-O2", "-ffp-contract=off", "-pthread"]
    folders = (_ROOT / "runtime" / "include", _ROOT / "kernels", selected.parent)
    flags += [f"-I{folder}" for folder in folders]
    sources.insert(0, Path(__file__).with_name("ulps.cpp"))
    compiler = os.environ.get("CXX", "g++")
    subprocess.run([compiler, *flags, *sources, "-o", program], check=True)
    subprocess.run([program, str(args.step), *args.functions], check=True)


if __name__ == "__main__":
    main()
