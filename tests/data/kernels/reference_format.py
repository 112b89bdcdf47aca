"""The file of reference calls: its format, and numbers to call operators with.

Format, little-endian: "ORCHREF1", u32 count of calls; per call:

    u8 length, operator name, f64 atol, f64 rtol, u8 count of arguments, arguments

An argument is a u8 kind and: 0 None; 1 input tensor; 2 i64 Int; 3 f64 Double;
4 u8 Bool; 5 u32 count and i64 items (IntList); 6 output tensor, with the result to
expect; 7 u32 length and a string; 8 u32 count and input tensors, each after a u8 that
is 0 for None (then none follows) and else 1; 9 u32 count and output tensors; 10 u32
count and f64 items (DoubleList); 12 u32 count and u8 items (BoolList). A
tensor is u8 dtype code, u8 rank, i32 sizes, u8 dim order, and its items in memory
order.
"""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import torch

CODES = {
    torch.uint8: 0,
    torch.int8: 1,
    torch.int16: 2,
    torch.int32: 3,
    torch.int64: 4,
    torch.float16: 5,
    torch.float32: 6,
    torch.float64: 7,
    torch.complex32: 8,
    torch.complex64: 9,
    torch.complex128: 10,
    torch.bool: 11,
    torch.bfloat16: 15,
    torch.uint16: 27,
    torch.uint32: 28,
    torch.uint64: 29,
}
INTEGRAL = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
FLOATING = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
REAL = INTEGRAL + FLOATING
COMPLEX = [torch.complex32, torch.complex64, torch.complex128]
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]

# Relative distance of neighbouring numbers, at most.
EPSILON = {
    torch.float16: 2.0**-10,
    torch.bfloat16: 2.0**-7,
    torch.float32: 2.0**-23,
    torch.float64: 2.0**-52,
}

LAST = {3: (0, 2, 1), 4: (0, 2, 3, 1)}  # channels last


class Out:
    """A result to expect."""

    def __init__(self, tensor: torch.Tensor, order: tuple[int, ...] = ()) -> None:
        """Remember a tensor and the dim order its memory has in the call."""
        self.tensor = tensor
        self.order = order or tuple(range(tensor.dim()))


class In(Out):
    """An input with a dim order of its own."""


class Writer:
    """Collects calls."""

    def __init__(self) -> None:
        """Begin without calls."""
        self.calls: list[bytes] = []
        self.counts: dict[str, int] = {}

    def call(
        self,
        name: str,
        args: list[Any],
        outs: list[Out],
        *,
        ulps: float = 0,
        scale: float = 0,
        outs_are_list: bool = False,
        tolerance: tuple[float, float] | None = None,
    ) -> None:
        """Add a call.

        Args:
            name: Operator, `aten::add.out`.
            args: Inputs in schema order; an `Out` is one that is written.
            outs: Outputs, which follow the inputs.
            ulps: Errors allowed, in steps of the last place of the result.
            scale: Size of the terms that a result is summed from: an error of `ulps`
                steps at this size is allowed too, for halves steps of Float, in which
                they are summed.
            outs_are_list: Whether the outputs are one argument, a list.
            tolerance: Absolute and relative error, in place of `ulps` and `scale`.
        """
        written = [a for a in (*args, *outs) if type(a) is Out]
        dtype = written[0].tensor.dtype
        step = EPSILON.get(dtype, 0.0)
        fine = min(step, EPSILON[torch.float32])
        data = struct.pack("<B", len(name)) + name.encode()
        count = len(args) + (1 if outs_are_list else len(outs))
        atol, rtol = tolerance or (ulps * fine * scale, ulps * step)
        data += struct.pack("<ddB", atol, rtol, count)
        for arg in args:
            data += self._argument(arg)
        if outs_are_list:
            data += struct.pack("<BI", 9, len(outs))
        for out in outs:
            data += (b"" if outs_are_list else b"\x06") + self._tensor(out)
        self.calls.append(data)
        self.counts[name] = self.counts.get(name, 0) + 1

    def file(self) -> bytes:
        """Everything collected, as it is stored."""
        return b"ORCHREF1" + struct.pack("<I", len(self.calls)) + b"".join(self.calls)

    def _argument(self, value: Any) -> bytes:
        if value is None:
            return b"\x00"
        if isinstance(value, torch.Tensor):
            value = In(value)
        if isinstance(value, Out):
            kind = b"\x01" if isinstance(value, In) else b"\x06"
            return kind + self._tensor(value)
        if isinstance(value, str):
            return struct.pack("<BI", 7, len(value)) + value.encode()
        for number, code, form in ((bool, 4, "B"), (int, 2, "q"), (float, 3, "d")):
            if isinstance(value, number):
                return struct.pack(f"<B{form}", code, value)
        return self._list(value)

    def _list(self, value: Any) -> bytes:
        if any(isinstance(item, torch.Tensor | In | None) for item in value):
            data = struct.pack("<BI", 8, len(value))
            for item in value:
                given = In(item) if isinstance(item, torch.Tensor) else item
                data += b"\x00" if given is None else b"\x01" + self._tensor(given)
            return data
        if any(isinstance(item, bool) for item in value):
            return struct.pack(f"<BI{len(value)}B", 12, len(value), *value)
        if any(isinstance(item, float) for item in value):
            return struct.pack(f"<BI{len(value)}d", 10, len(value), *value)
        return struct.pack(f"<BI{len(value)}q", 5, len(value), *value)

    @staticmethod
    def _tensor(item: Out) -> bytes:
        tensor, order = item.tensor.detach(), item.order
        dense = tensor.permute(order).contiguous() if order else tensor.contiguous()
        if tensor.dtype == torch.bfloat16:
            dense = dense.view(torch.int16)
        if tensor.is_complex():
            dense = torch.view_as_real(dense.resolve_conj())
        rank = tensor.dim()
        head = struct.pack(f"<BB{rank}i{rank}B", CODES[tensor.dtype], rank, *tensor.shape, *order)
        return head + dense.numpy().tobytes()


rng = np.random.default_rng(20240601)


def rand(dtype: torch.dtype, *shape: int, low: int = -8, high: int = 9) -> torch.Tensor:
    """Random numbers: normal for floats, whole numbers in [low, high) else."""
    if dtype in EPSILON:
        return torch.from_numpy(rng.standard_normal(shape)).to(dtype)
    if dtype == torch.bool:
        return torch.from_numpy(rng.integers(0, 2, shape)).to(dtype)
    if dtype in (torch.uint8, *UNSIGNED):
        low = 0
    return torch.from_numpy(rng.integers(low, high, shape)).to(dtype)


def wide(dtype: torch.dtype, *shape: int) -> torch.Tensor:
    """Whole numbers over the whole range of the dtype, so that sums wrap around."""
    if dtype in EPSILON or dtype == torch.bool:
        return rand(dtype, *shape)
    info = torch.iinfo(dtype)
    return torch.from_numpy(
        rng.integers(info.min, info.max, shape, dtype=str(dtype).split(".")[1], endpoint=True)
    )
