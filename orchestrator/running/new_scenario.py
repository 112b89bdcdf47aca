"""A scenario for a product that has none yet: random inputs, and files of them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import numpy as np

from orchestrator.core.dtype import COMPLEX, FLOATING, ScalarType
from orchestrator.program.values import ValueKind
from orchestrator.running.compare import Tolerance
from orchestrator.running.npy import Array, dtype_name, write_npy
from orchestrator.running.product import Port
from orchestrator.running.values import (
    NPY_DTYPES,
    PATTERNS,
    ListValue,
    OtherValue,
    RunValue,
    fixed_value,
    kind_of,
)

_BYTE_DTYPES = frozenset({ScalarType.Char, ScalarType.Byte})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCall:
    """A call of a scenario.

    Args:
        model: Name of the model.
        method: Name of the method.
        inputs: One per input.
        outputs: What is expected; None if nothing is.
    """

    model: str
    method: str
    inputs: tuple[RunValue, ...]
    outputs: tuple[RunValue, ...] | None = None


def random_input(  # noqa: PLR0911  # one per kind
    port: Port, random: np.random.Generator
) -> RunValue | None:
    """A value for an input; None if no file can hold it.

    Floats are in [-1, 1), bytes anywhere, wider integers 0 or 1: they are often
    indices. A tensor of dynamic sizes has the largest ones.
    """
    if port.is_fixed:
        return fixed_value(port)
    match port.kind:
        case ValueKind.TENSOR:
            return _random_array(port, random)
        # Values that most methods take, as nothing is known of what the number means.
        case ValueKind.INT:
            return 1
        case ValueKind.DOUBLE:
            return 0.5
        case ValueKind.BOOL:
            return True
        case ValueKind.NONE:
            return OtherValue(ValueKind.NONE)
        case ValueKind.TENSOR_LIST:
            items = [random_input(item, random) for item in port.items]
            found = tuple(item for item in items if item is not None)
            return ListValue(port.kind, found) if len(found) == len(items) else None
    return None


def _random_array(port: Port, random: np.random.Generator) -> Array | None:
    dtype = port.dtype
    if dtype is None or dtype not in NPY_DTYPES:
        return None
    stored, shape = np.dtype(NPY_DTYPES[dtype]), port.sizes
    values: Any
    if dtype is ScalarType.BFloat16:
        # A bfloat16 is the upper half of a float32; NumPy has none.
        floats = np.asarray(random.uniform(-1, 1, shape)).astype("<f4")
        values = (floats.view("<u4") >> 16).astype(stored)
    elif dtype is ScalarType.ComplexHalf:
        halves = random.uniform(-1, 1, (*shape, 2)).astype("<f2")
        values = halves.view(stored).reshape(shape)
    elif dtype in COMPLEX:
        values = random.uniform(-1, 1, shape) + 1j * random.uniform(-1, 1, shape)
    elif dtype in FLOATING:
        values = random.uniform(-1, 1, shape)
    # Quantized inputs and pixels have all numbers of a byte.
    elif dtype in _BYTE_DTYPES:
        limits = np.iinfo(stored)
        values = random.integers(limits.min, limits.max + 1, shape)
    else:
        # Wider integers are often indices, and 0 and 1 are in every table of two rows.
        values = random.integers(0, 2, shape)
    return Array.of(np.asarray(values).astype(stored))


def scenario_files(
    name: str, calls: Sequence[NewCall], tolerance: Tolerance, description: str
) -> dict[str, bytes]:
    """`NAME.json`, and below `NAME/` its arrays, by relative path.

    Args:
        name: Of the scenario.
        calls: In order.
        tolerance: For all outputs.
        description: One line.
    """
    files: dict[str, bytes] = {}
    several = len({call.model for call in calls}) > 1
    runs = []
    for number, call in enumerate(calls):
        start = f"{name}/{call.model}.{call.method}"
        if any((c.model, c.method) == (call.model, call.method) for c in calls[:number]):
            start += f".run{number}"
        run: dict[str, object] = {"model": call.model} if several else {}
        run |= {"method": call.method, "inputs": _entries(call.inputs, f"{start}.in", files)}
        if call.outputs is not None:
            run["outputs"] = _entries(call.outputs, f"{start}.out", files)
        runs.append(run)
    document = {
        "description": description,
        "tolerance": {"atol": tolerance.atol, "rtol": tolerance.rtol},
        "runs": runs,
    }
    text = json.dumps(document, indent=1, ensure_ascii=False)
    # Shapes on one line.
    text = re.sub(r"\[[\d,\s]+\]", lambda m: " ".join(m[0].split()), text)
    text = re.sub(r"\[ ([\d, ]+) \]", r"[\1]", text)
    return {f"{name}.json": f"{text}\n".encode(), **files}


def _entries(
    values: Sequence[RunValue], start: str, files: dict[str, bytes]
) -> list[dict[str, object]]:
    return [_entry(v, f"{start}{number}", files) for number, v in enumerate(values)]


def _entry(value: RunValue, name: str, files: dict[str, bytes]) -> dict[str, object]:
    match value:
        case Array():
            files[f"{name}.npy"] = write_npy(value)
            stored = {"dtype": dtype_name(value.dtype), "shape": list(value.shape)}
            return {"kind": "tensor", "file": f"{name}.npy", **stored}
        case ListValue(kind=ValueKind.TENSOR_LIST, items=items):
            found = _entries(items, f"{name}.item", files)
            return {"kind": value.kind.label, "items": found}
        case ListValue():
            return {"kind": value.kind.label, "value": list(value.items)}
        case OtherValue():
            return {"kind": value.kind.label}
        case bool() | int() | float() | str():
            return {"kind": kind_of(value).label, "value": value}
    assert_never(value)


def reference_input(value: RunValue, port: Port) -> dict[str, object] | None:
    """An input for ExecuTorch's runtime without its file; None if it takes no such.

    Tensors whose dtype NumPy lacks have it as `view`.
    """
    match value:
        case Array():
            view = "" if port.dtype is None else PATTERNS.get(port.dtype, ("",))[0]
            return {"kind": "tensor", "view": view}
        case bool() | int() | float():
            return {"kind": "number", "value": value}
        case OtherValue():
            return {"kind": "number", "value": None}
    return None
