"""Outputs of programs in ExecuTorch's own runtime, where that is installed."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orchestrator.running.new_scenario import NewCall, reference_input
from orchestrator.running.npy import Array, read_npy, write_npy
from orchestrator.running.product import Port
from orchestrator.running.values import RunValue
from orchestrator.shell.files import read_own_json
from orchestrator.shell.process import Processes, interpreter, python_environment

# Seconds, as the default of `orchestrator run`.
_TIMEOUT_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What ExecuTorch's runtime made of calls.

    Args:
        outputs: Per call; None if it did not carry them out.
        problem: Why not; "" if it did.
    """

    outputs: tuple[tuple[RunValue, ...], ...] | None = None
    problem: str = ""


def reference_outputs(
    calls: Sequence[NewCall],
    *,
    programs: Mapping[str, bytes],
    inputs: Mapping[tuple[str, str], Sequence[Port]],
    processes: Processes,
) -> Reference:
    """Run calls in ExecuTorch's runtime.

    Args:
        calls: In order.
        programs: By name of the model.
        inputs: Ports by model and method.
        processes: Runs the interpreter that has the runtime.
    """
    with tempfile.TemporaryDirectory(prefix="orchestrator-reference-") as name:
        folder = Path(name)
        request = _write_request(calls, programs, inputs, folder)
        if request is None:
            return Reference(problem="ExecuTorch's Python API takes no lists")
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        done = processes.run(
            [
                *(interpreter(), "-B", "-m", "orchestrator.export.reference"),
                *(str(folder / "request.json"), name),
            ],
            cwd=folder,
            env=python_environment(),
            timeout_s=_TIMEOUT_S,
        )
        result: Any = read_own_json(folder / "result.json")
        if result is None:
            lines = done.stderr.strip().splitlines() or [f"status {done.status}"]
            return Reference(problem=f"ExecuTorch ended with: {lines[-1]}")
        if isinstance(result, dict):
            return Reference(problem=_in_words(str(result["error"])))
        return Reference(
            outputs=tuple(tuple(_value(e, folder) for e in entries) for entries in result)
        )


def _in_words(error: str) -> str:
    # ExecuTorch's Python API raises RuntimeError with the number of its Error inside a
    # text.
    code = re.search(r"error: 0x:?([0-9a-f]+)", error)  # 1.5 writes the colon
    if code is None:
        return error
    reason = _REASONS.get(int(code[1], 16), f"cannot run the program: 0x{code[1]}")
    return f"ExecuTorch's Python package {reason}"


_REASONS = {
    0x14: "has no kernel for an operator of the program",
    0x20: "has no backend for a delegate of the program",
    0x24: "cannot read the data of the program",
}
"""By code; source: ExecuTorch `runtime/core/error.h`, `Error`."""


def _write_request(
    calls: Sequence[NewCall],
    programs: Mapping[str, bytes],
    inputs: Mapping[tuple[str, str], Sequence[Port]],
    folder: Path,
) -> list[dict[str, object]] | None:
    """The request, with its files written; None if the runtime takes no such input."""
    for model, data in programs.items():
        (folder / f"{model}.pte").write_bytes(data)
    request: list[dict[str, object]] = []
    for number, call in enumerate(calls):
        items = []
        ports = inputs[call.model, call.method]
        for index, (value, port) in enumerate(zip(call.inputs, ports, strict=True)):
            item = reference_input(value, port)
            if item is None:
                return None
            if isinstance(value, Array):
                path = folder / f"in.{number}.{index}.npy"
                path.write_bytes(write_npy(value))
                item["file"] = str(path)
            items.append(item)
        program = str(folder / f"{call.model}.pte")
        request.append({"program": program, "method": call.method, "inputs": items})
    return request


def _value(entry: dict[str, Any], folder: Path) -> RunValue:
    if entry["kind"] == "tensor":
        data = (folder / entry["file"]).read_bytes()
        return read_npy(data, file=entry["file"])
    value: bool | float = entry["value"]
    return value
