"""ExecuTorch's own runtime, in the interpreter that has the package `executorch`.

    python run_programs.py FOLDER

Reads FOLDER/steps.json, a list of `{"program": path, "calls": [{"method": ...,
"inputs": [path of .npy | number, ...]}]}`, and writes FOLDER/answers.json: per step
the outputs of all calls, tensors as [dtype, sizes, bytes in hex], or a text that says
why the program does not run there. Needs nothing of ours.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

# Of another interpreter: nothing that checks this one knows them.
torch: Any = importlib.import_module("torch")
Runtime: Any = importlib.import_module("executorch.runtime").Runtime


def tensor_of(value: object) -> object:
    """An input as the runtime takes it."""
    if isinstance(value, str):
        array = np.load(value)
        if array.dtype.kind == "V":
            return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
        return torch.from_numpy(array)
    return value


def facts_of(value: object) -> object:
    """An output as JSON."""
    if isinstance(value, torch.Tensor):
        flat = value.contiguous().reshape(-1).view(torch.uint8)
        return [str(value.dtype), list(value.shape), bytes(flat.tolist()).hex()]
    return repr(value)


def answer(step: dict[str, Any]) -> object:
    """Outputs of all calls of a step, in order."""
    data = Path(step["program"]).read_bytes()
    try:
        program = Runtime.get().load_program(data)
        methods: dict[str, Any] = {}
        found = []
        for call in step["calls"]:
            name = call["method"]
            if name not in methods:
                methods[name] = program.load_method(name)
            inputs = [tensor_of(value) for value in call["inputs"]]
            found.append([facts_of(v) for v in methods[name].execute(inputs)])
    except RuntimeError as error:
        return f"does not run: {error}"
    return found


def main() -> None:
    """Carry out every step."""
    folder = Path(sys.argv[1]).resolve()
    steps = json.loads((folder / "steps.json").read_text(encoding="utf-8"))
    answers = [answer(step) for step in steps]
    (folder / "answers.json").write_text(json.dumps(answers), encoding="utf-8")


if __name__ == "__main__":
    main()
