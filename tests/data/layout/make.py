"""Writes the programs of `nets.py`, and what quantized PyTorch gives for an example.

    cd tests/data/layout && PYTHONPATH=../../.. /path/to/executorch/python make.py
    cd tests/data/islands &&
        PYTHONPATH=.:../../.. /path/to/executorch/python ../layout/make.py

They were made with ExecuTorch 1.5.1 and PyTorch 2.13 for cores without DSP. Scales and
outputs are those of PyTorch on one thread; `docs/export.md` says what is set for that.
"""

# mypy: ignore-errors
# PyTorch is not there when the project is checked.

import json
import sys
from pathlib import Path

import numpy as np
import torch

from orchestrator.export import worker
from orchestrator.export.request import Request
from orchestrator.profile.lowering import Quantize

HERE = Path.cwd()
sys.path.insert(0, str(HERE))
import nets  # noqa: E402  # of this folder


def main() -> None:
    torch.set_num_threads(1)
    runs = []
    for name in nets.NETS:
        request = Request(
            file=str(HERE / "nets.py"),
            function=name,
            folder=str(HERE),
            lowering="cortex-m",
            cpu="cortex-m3",
            isa="scalar",
            quantize=Quantize(),
        )
        result = worker._once(request)  # noqa: SLF001  # what a build calls
        (HERE / f"{name}.pte").write_bytes(result["program"])
        run = {"model": name, "method": "forward", "inputs": [], "outputs": []}
        for kind, key in (("in", "inputs"), ("out", "outputs")):
            for at, value in enumerate(result["values"][kind]):
                array = value.detach().contiguous().numpy()
                file = f"{name}.{kind}{at}.npy"
                np.save(HERE / file, array)
                run[key].append({"kind": "tensor", "file": file})
        runs.append(run)
    # What is a lot for an output depends on its range: the test looks at that.
    document = {"tolerance": {"atol": 0, "rtol": 0}, "runs": runs}
    text = json.dumps(document, indent=1) + "\n"
    (HERE / "scenario.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
