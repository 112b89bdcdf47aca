"""ExecuTorch's runtime in its Python package: times of loading and running.

Runs in the interpreter that has the package `executorch`, so it needs nothing of ours:

    python executorch_runtime.py MODEL REPETITIONS

Prints JSON: seconds of processor time of each `load_method` and `execute`. The inputs
are ones of the method's own sizes.
"""

# mypy: ignore-errors
# torch is not there when the project is checked.

from __future__ import annotations

import json
import os
import sys
import time

CALLS = 200
"""Runs that are timed together, as one is over too soon."""


def main() -> None:
    """Time a program."""
    model, repetitions = sys.argv[1], int(sys.argv[2])
    # Its kernels would start threads, which costs more than it saves here.
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch  # noqa: PLC0415
    from executorch.runtime import Runtime  # noqa: PLC0415

    torch.set_num_threads(1)
    loads, runs = [], []
    for _ in range(repetitions + 1):
        # A program keeps the methods it has loaded.
        program = Runtime.get().load_program(model)
        start = time.process_time()
        method = program.load_method("forward")
        loads.append(time.process_time() - start)
        meta = method.metadata
        infos = [meta.input_tensor_meta(i) for i in range(meta.num_inputs())]
        inputs = [torch.ones(info.sizes()) for info in infos]
        method.execute(inputs)
        start = time.process_time()
        for _ in range(CALLS):
            method.execute(inputs)
        runs.append((time.process_time() - start) / CALLS)
    # The first of each warms the caches.
    print(json.dumps({"load": loads[1:], "run": runs[1:]}))


if __name__ == "__main__":
    main()
