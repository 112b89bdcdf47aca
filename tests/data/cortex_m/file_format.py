"""Calls with the results to expect, in the format of ../kernels/reference_format.py."""
# mypy: ignore-errors
# (torch and the modules beside this are not there when the project is checked)

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import numpy as np

CODES = {"uint8": 0, "int8": 1, "int16": 2, "int32": 3, "float32": 6}


@dataclass(frozen=True)
class Stored:
    """An array whose memory has a dim order of its own."""

    array: Any
    order: tuple[int, ...]


class Calls:
    """Collects calls."""

    def __init__(self) -> None:
        """Begin without any."""
        self.calls: list[bytes] = []
        self.counts: dict[str, int] = {}

    def add(self, name: str, args: list[Any], out: Any) -> None:
        """Add a call: arguments in the order of the schema, then the output."""
        full = f"cortex_m::{name}.out"
        data = struct.pack("<B", len(full)) + full.encode()
        data += struct.pack("<ddB", 0.0, 0.0, len(args) + 1)
        data += b"".join(_argument(arg) for arg in args)
        self.calls.append(data + b"\x06" + _tensor(out))
        self.counts[full] = self.counts.get(full, 0) + 1

    def file(self) -> bytes:
        """Everything collected."""
        return b"ORCHREF1" + struct.pack("<I", len(self.calls)) + b"".join(self.calls)


def _argument(value: Any) -> bytes:
    if value is None:
        return b"\x00"
    if isinstance(value, np.ndarray | Stored):
        return b"\x01" + _tensor(value)
    if isinstance(value, bool):
        return struct.pack("<BB", 4, value)
    if isinstance(value, int | np.integer):
        return struct.pack("<Bq", 2, int(value))
    if isinstance(value, float):
        return struct.pack("<Bd", 3, value)
    items = [int(item) for item in value]
    return struct.pack(f"<BI{len(items)}q", 5, len(items), *items)


def _tensor(value: Any) -> bytes:
    stored = value if isinstance(value, Stored) else None
    array = stored.array if stored else value
    order = stored.order if stored else tuple(range(array.ndim))
    dense = np.ascontiguousarray(array.transpose(order))
    rank = array.ndim
    head = struct.pack(f"<BB{rank}i{rank}B", CODES[array.dtype.name], rank, *array.shape, *order)
    return head + dense.tobytes()
