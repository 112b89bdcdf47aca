"""Outputs of a run as files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from orchestrator.program.values import ValueKind
from orchestrator.running.npy import Array, write_npy
from orchestrator.running.values import ListValue, RunValue, kind_of

if TYPE_CHECKING:
    from orchestrator.running.protocol import CallResult


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
    import numpy as np  # noqa: PLC0415  # only for arrays

    match value:
        case Array():
            return value
        case bool() | int() | float():
            return Array.of(np.array(value, _DTYPES[kind_of(value)]))
        case ListValue():
            return Array.of(np.array(value.items, _DTYPES[value.kind]))
    return None


_DTYPES: Final = {
    ValueKind.INT: "<i8",
    ValueKind.DOUBLE: "<f8",
    ValueKind.BOOL: "|b1",
    ValueKind.INT_LIST: "<i8",
    ValueKind.DOUBLE_LIST: "<f8",
    ValueKind.BOOL_LIST: "|b1",
}
