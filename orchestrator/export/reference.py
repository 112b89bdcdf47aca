"""The process that runs programs in ExecuTorch's own runtime: REQUEST.json FOLDER.

The request is a list of `{"program": path, "method": name, "inputs": [...]}`, calls in
order; methods keep their state. An input is `{"kind": "tensor", "file": path, "view":
dtype}`, with a view for bit patterns, or `{"kind": "number", "value": ...}`. Writes
`RUN.OUTPUT.npy` into the folder, and `result.json` last: per call its outputs, in the
same form, or an object with the error that ended the run.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any


def main(request_file: str, folder: str) -> None:
    """Carry out the request; failures are in the result."""
    requests = json.loads(Path(request_file).read_text(encoding="utf-8"))
    result: Any
    try:
        result = _run(requests, Path(folder))
    except ImportError as error:
        result = {"error": f"{error.name or error} is not installed"}
    except Exception as error:  # noqa: BLE001  # whatever the runtime refuses
        lines = str(error).strip().splitlines() or [type(error).__name__]
        result = {"error": lines[0]}
    (Path(folder) / "result.json").write_text(json.dumps(result), encoding="utf-8")


def _run(requests: list[dict[str, Any]], folder: Path) -> list[list[dict[str, Any]]]:
    import torch  # noqa: PLC0415
    from executorch.runtime import Runtime  # noqa: PLC0415

    # A library that is loaded for its side effect; wheels without it have an operator
    # less.
    with suppress(ImportError, OSError):  # programs without quantized operators run
        import executorch.kernels.quantized  # noqa: F401, PLC0415  # registers kernels
    programs: dict[str, Any] = {}
    methods: dict[tuple[str, str], Any] = {}
    found = []
    for number, call in enumerate(requests):
        path, name = call["program"], call["method"]
        if path not in programs:
            programs[path] = Runtime.get().load_program(Path(path).read_bytes())
        # Loading a method again would begin its state anew.
        if (path, name) not in methods:
            methods[path, name] = programs[path].load_method(name)
        inputs = [_value(item) for item in call["inputs"]]
        outputs = methods[path, name].execute(inputs)
        entries = []
        for index, value in enumerate(outputs):
            if isinstance(value, torch.Tensor):
                file = f"{number}.{index}.npy"
                _save(value, folder / file)
                entries.append({"kind": "tensor", "file": file})
            else:
                entries.append({"kind": "number", "value": value})
        found.append(entries)
    return found


def _value(item: dict[str, Any]) -> Any:
    import numpy as np  # noqa: PLC0415
    import torch  # noqa: PLC0415

    if item["kind"] == "number":
        return item["value"]
    array = np.load(item["file"])
    if not item["view"]:
        return torch.from_numpy(array)
    # Older versions of torch.from_numpy take no uint16 and uint32.
    signed = array.view({2: np.int16, 4: np.int32}[array.itemsize])
    return torch.from_numpy(signed).view(getattr(torch, item["view"]))


def _save(value: Any, path: Path) -> None:
    import numpy as np  # noqa: PLC0415
    import torch  # noqa: PLC0415

    patterns = {torch.bfloat16: torch.uint16, torch.complex32: torch.uint32}
    tensor = value.detach().contiguous()
    if tensor.dtype in patterns:
        tensor = tensor.view(patterns[tensor.dtype])
    np.save(path, tensor.numpy())


if __name__ == "__main__":
    main(*sys.argv[1:])
