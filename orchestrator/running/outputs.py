"""Outputs of a run as files."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from orchestrator.running.npy import Array, write_npy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.running.protocol import CallResult
    from orchestrator.running.values import RunValue


def output_files(results: Sequence[CallResult]) -> tuple[tuple[str, bytes], ...]:
    """(file name, content) of every output that has a content.

    Output 0 of call 0 is `out0.npy`, that of call 1 `run1.out0.npy`. Numbers and truth
    values are arrays without dimensions, strings are text files (`out0.txt`).
    """
    files = []
    for number, result in enumerate(results):
        prefix = f"run{number}." if number else ""
        for index, value in enumerate(result.outputs):
            if isinstance(value, str):
                files.append((f"{prefix}out{index}.txt", value.encode()))
            elif (item := _as_array(value)) is not None:
                files.append((f"{prefix}out{index}.npy", write_npy(item)))
    return tuple(files)


def _as_array(value: RunValue) -> Array | None:
    match value:
        case Array():
            return value
        case bool():  # before int, of which it is one
            return Array(dtype="|b1", shape=(), data=bytes([value]))
        case int():
            return Array(dtype="<i8", shape=(), data=struct.pack("<q", value))
        case float():
            return Array(dtype="<f8", shape=(), data=struct.pack("<d", value))
    return None
