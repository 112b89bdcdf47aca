"""Runs programs in ExecuTorch's own runtime; answers a line for each.

    python upstream.py

Reads stems of files on the standard input, a line each: STEM.pte and STEM.npz. Answers
with a line of JSON: what failed, and how many microseconds of processor time the run
took. Writes outputs into STEM.upstream.npz. Needs nothing of ours.
"""
# mypy: ignore-errors

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from importlib import import_module
from pathlib import Path

import numpy as np
import torch
from executorch.runtime import Runtime


def answer(stem: str) -> dict[str, object]:
    """Run a program."""
    arrays = np.load(f"{stem}.npz")
    inputs = []
    while f"in{len(inputs)}" in arrays:
        array = arrays[f"in{len(inputs)}"]
        inputs.append(torch.from_numpy(np.array(array)))
    try:
        program = Runtime.get().load_program(Path(f"{stem}.pte").read_bytes())
        method = program.load_method("forward")
        start = time.process_time()
        found = method.execute(inputs)
        took = time.process_time() - start
    except RuntimeError as error:
        return {"failed": str(error).splitlines()[0][:200]}
    outputs = {f"out{i}": np.asarray(value) for i, value in enumerate(found)}
    np.savez(f"{stem}.upstream.npz", **outputs)
    return {"failed": "", "microseconds": took * 1e6}


def main() -> None:
    """Answer line by line."""
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    torch.set_num_threads(1)
    answers = sys.stdout
    for name in ("executorch.kernels.quantized",):
        with contextlib.suppress(ImportError):
            import_module(name)
    with contextlib.redirect_stdout(sys.stderr):
        for line in sys.stdin:
            print(json.dumps(answer(line.strip())), file=answers, flush=True)


if __name__ == "__main__":
    main()
