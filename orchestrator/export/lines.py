"""Functions of int16 numbers as few of their values. Needs PyTorch, ExecuTorch."""

from __future__ import annotations

from typing import Any, Final

import torch
from executorch.backends.cortex_m.passes.passes_utils import quantize_multiplier_aot

_BITS: Final = 16
_LEAST: Final = -(1 << (_BITS - 1))
_MOST: Final = (1 << (_BITS - 1)) - 1
# 64 to 4,096 lines between 65 to 4,097 values, as docs/export.md says: kernels take the
# number of bits from the size of the table.
_FEWEST_STEPS: Final = 6
_MOST_STEPS: Final = 12
"""Most steps of a table, as a power of two. The largest has 8 KiB."""
# In steps of the output; tests/interop and tests/qemu/test_int16.py compare all 65,536
# items.
_MOST_ERROR: Final = 1
_MOST_AT_LIMITS: Final = 8
"""Where a line ends at a limit of int16 that the function reaches before."""
# 2**14: the largest power of two of which int16 has room for both signs beside the
# rounding.
_ONE_BITS: Final = 14

ONE: Final = torch.tensor([1 << _ONE_BITS], dtype=torch.int16)
"""What numbers are multiplied by that only get another scale."""


def factor_of(values: Any) -> tuple[int, int] | None:
    """Multiplier and shift that give a function as products with `ONE`.

    Args:
        values: Int16 [65536]: the function of -32768 to 32767.

    Returns:
        None if the function is not its argument times a number, within a step.
    """
    exact = values.to(torch.int64)
    every = torch.arange(_LEAST, _MOST + 1)
    inside = ((exact > _LEAST + 1) & (exact < _MOST)).nonzero().flatten()
    if len(inside) < 2:  # noqa: PLR2004  # a line has two ends
        return None
    first, last = int(inside[0]), int(inside[-1])
    rise = float(exact[last] - exact[first])
    if first == last or rise == 0:
        return None
    slope = rise / (last - first)
    # By the slope between the ends, where the output is not at a limit: then compared
    # for all items, so that nothing depends on how it was guessed.
    multiplier, shift = quantize_multiplier_aot(slope / (1 << _ONE_BITS))
    if not -31 <= shift <= 0:  # noqa: PLR2004  # those of kernels
        return None
    bits = 31 - shift
    found = (every.double() * (multiplier * 2.0 ** (_ONE_BITS - bits))).round()
    found = found.clamp(_LEAST, _MOST).to(torch.int64)
    if int((found - exact).abs().max()) > _MOST_ERROR:
        return None
    return int(multiplier), int(shift)


def lines_of(values: Any) -> Any:
    """Every 2^n-th value, so that lines between them are within a step of the others.

    Args:
        values: Int16 [65536]: the function of -32768 to 32767.

    Returns:
        Int16 [2^k + 1], of the fewest steps that do; None if 4096 steps are not enough.

    Source: kernels/cortex_m_int16/op_quantized_activation.cpp has what is on a line.
    """
    exact = values.to(torch.int64)
    for bits in range(_FEWEST_STEPS, _MOST_STEPS + 1):
        # Powers of two: the kernel finds the line by the upper bits of the number.
        shift = _BITS - bits
        entries = exact[:: 1 << shift]
        # The last line ends behind the highest number, where it leads to.
        highest, before = int(exact[-1]), int(entries[-1])
        # 32767 is one short of the end of the last line, which no number reaches.
        end = before + round((highest - before) * (1 << shift) / ((1 << shift) - 1))
        entries = torch.cat([entries, torch.tensor([max(_LEAST, min(_MOST, end))])])
        # A bend at a limit lies between two entries, where no line can follow it.
        ends = entries.abs() >= _MOST
        is_at_limit = (ends[1:] != ends[:-1]).repeat_interleave(1 << shift)
        bound = torch.where(is_at_limit, _MOST_AT_LIMITS, _MOST_ERROR)
        if bool(((_on_lines(entries, shift) - exact).abs() <= bound).all()):
            return entries.to(torch.int16)
    return None


def _on_lines(entries: Any, shift: int) -> Any:
    """What the kernel gives for all numbers."""
    at = torch.arange(1 << _BITS)
    first, rest = at >> shift, at & ((1 << shift) - 1)
    step = entries[first + 1] - entries[first]
    return entries[first] + ((step * rest + (1 << shift >> 1)) >> shift)
