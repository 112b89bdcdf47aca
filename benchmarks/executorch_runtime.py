"""ExecuTorch's runtime in its Python package: times of loading and running.

Runs in the interpreter that has the package `executorch`, so it needs nothing of ours:

    python executorch_runtime.py MODEL...

Prints JSON: of each model, nanoseconds of processor time of `load_method` and of one
`execute`. The inputs are ones of the method's own sizes.
"""

# mypy: ignore-errors
# torch is not there when the project is checked.

from __future__ import annotations

import argparse
import json
import os
import time

CALLS = 200
"""Runs that are timed together, as one is over too soon."""


def main() -> None:
    """Time programs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("models", nargs="+", metavar="MODEL")
    models = parser.parse_args().models
    # Its kernels would start threads, which costs more than it saves here.
    os.environ["OMP_NUM_THREADS"] = "1"
    import torch  # noqa: PLC0415

    torch.set_num_threads(1)
    # The first warms the caches.
    _times(models[0])
    print(json.dumps([_times(model) for model in models]))


def _times(model: str) -> dict[str, float]:
    import torch  # noqa: PLC0415
    from executorch.runtime import Runtime  # noqa: PLC0415

    program = Runtime.get().load_program(model)
    start = time.process_time()
    method = program.load_method("forward")
    load = time.process_time() - start
    meta = method.metadata
    infos = [meta.input_tensor_meta(i) for i in range(meta.num_inputs())]
    inputs = [torch.ones(info.sizes()) for info in infos]
    for _ in range(CALLS):
        method.execute(inputs)
    start = time.process_time()
    for _ in range(CALLS):
        method.execute(inputs)
    run = (time.process_time() - start) / CALLS
    return {"load": load * 1e9, "run": run * 1e9}


if __name__ == "__main__":
    main()
