"""Outputs of a run as files."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from orchestrator.program.value_kind import ValueKind
from orchestrator.running.npy import Array, write_npy
from orchestrator.running.values import ListValue

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.running.protocol import CallResult
    from orchestrator.running.values import RunValue


def output_files(results: Sequence[CallResult]) -> tuple[tuple[str, bytes], ...]:
    """(file name, content) of every output that has a content.

    Output 0 of call 0 is `out0.npy`, that of call 1 `run1.out0.npy`. Numbers and truth
    values are arrays without dimensions, lists of them arrays with one, strings are
    text files (`out0.txt`). Tensors of a list have a file each, `out0.item1.npy`.
    """
    files: list[tuple[str, bytes]] = []
    for number, result in enumerate(results):
        prefix = f"run{number}." if number else ""
        for index, value in enumerate(result.outputs):
            files += _files(f"{prefix}out{index}", value)
    return tuple(files)


def _files(name: str, value: RunValue) -> Iterator[tuple[str, bytes]]:
    if isinstance(value, ListValue) and value.kind is ValueKind.TENSOR_LIST:
        for number, item in enumerate(value.items):
            yield from _files(f"{name}.item{number}", item)
    elif isinstance(value, str):
        yield f"{name}.txt", value.encode()
    elif (array := _as_array(value)) is not None:
        yield f"{name}.npy", write_npy(array)


def _as_array(value: RunValue) -> Array | None:
    match value:
        case Array():
            return value
        case bool():  # before int, of which it is one
            return Array(dtype="|b1", shape=(), data=bytes([value]))
        case int():
            return Array(dtype="<i8", shape=(), data=struct.pack("<q", value))
        case ListValue():
            dtype, code = _LISTS[value.kind]
            count = len(value.items)
            data = struct.pack(f"<{count}{code}", *value.items)
            return Array(dtype=dtype, shape=(count,), data=data)
        case float():
            return Array(dtype="<f8", shape=(), data=struct.pack("<d", value))
    return None


_LISTS: Final = {
    ValueKind.INT_LIST: ("<i8", "q"),
    ValueKind.DOUBLE_LIST: ("<f8", "d"),
    ValueKind.BOOL_LIST: ("|b1", "?"),
}
