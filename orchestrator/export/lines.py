"""Functions of int16 numbers as few of their values. Needs PyTorch."""

from __future__ import annotations

from typing import Any, Final

import torch

_BITS: Final = 16
_FEWEST: Final = 6
_MOST: Final = 12
"""Of tables: bits of the number of steps. The largest has 8 KiB."""
_MOST_ERROR: Final = 1


def lines_of(values: Any) -> Any:
    """Every 2^n-th value, so that lines between them are within a step of the others.

    Args:
        values: Int16 [65536]: the function of -32768 to 32767.

    Returns:
        Int16 [2^k + 1], of the fewest steps that do, the last one repeating the highest
        value's line; None if 4096 steps are not enough.

    Source: kernels/cortex_m_int16/op_quantized_activation.cpp has what is on a line.
    """
    exact = values.to(torch.int64)
    for bits in range(_FEWEST, _MOST + 1):
        shift = _BITS - bits
        entries = exact[:: 1 << shift]
        # The last line ends behind the highest number, where its line leads to.
        highest, before = int(exact[-1]), int(entries[-1])
        end = before + round((highest - before) * (1 << shift) / ((1 << shift) - 1))
        end = max(-(1 << (_BITS - 1)), min((1 << (_BITS - 1)) - 1, end))
        entries = torch.cat([entries, torch.tensor([end])])
        if int((_on_lines(entries, shift) - exact).abs().max()) <= _MOST_ERROR:
            return entries.to(torch.int16)
    return None


def _on_lines(entries: Any, shift: int) -> Any:
    """What the kernel gives for all numbers."""
    at = torch.arange(1 << _BITS)
    first, rest = at >> shift, at & ((1 << shift) - 1)
    step = entries[first + 1] - entries[first]
    return entries[first] + ((step * rest + (1 << shift >> 1)) >> shift)
