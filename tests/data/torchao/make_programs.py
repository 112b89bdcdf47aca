"""Write the programs of `models.py`, and what torchao's modules give.

    python -m tests.data.torchao.make_programs [FOLDER]

Needs PyTorch, torchao and ExecuTorch, at the versions of the extra `export`.
"""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

from orchestrator.export.request import Request
from orchestrator.export.source import load_source
from orchestrator.export.worker import SEED, main

HERE = Path(__file__).parent
NAMES = {"groups": "portable", "rows": "portable", "image": "cortex-m"}
"""Models, and how they are lowered."""


def write(name: str, to: Path) -> None:
    """The program of a model, its inputs and its outputs."""
    file = str(HERE / "models.py")
    request = Request(
        file=file, function=name, folder=str(HERE), lowering=NAMES[name], cpu="host", isa="scalar"
    )
    with tempfile.TemporaryDirectory() as folder:
        at = Path(folder) / "request.json"
        at.write_text(request.text())
        main(str(at), folder)
        for part in ("model.pte", "in0.npy"):
            shutil.copyfile(Path(folder) / part, to / f"{name}.{part}")
    torch.manual_seed(SEED)
    source = load_source(file, name).methods["forward"]
    with torch.no_grad():
        np.save(to / f"{name}.out0.npy", source.module(*source.inputs).numpy())


if __name__ == "__main__":
    for model in NAMES:
        write(model, Path(sys.argv[1]) if sys.argv[1:] else HERE)
