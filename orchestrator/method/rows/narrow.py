"""Kernels for bands of few pixels, where they save enough.

They have the tensors and the header of the kernels that they replace. Both may be
linked then, so that a few calls alone do not pay for one. Another kernel takes no more
than two pixels at once where memory is scarce.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.packing.words import TILE
from orchestrator.method.rows.costs import few_cost, narrow_saves
from orchestrator.method.rows.network import Few
from orchestrator.method.steps import header_of

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedInstruction, LinkedMethod
    from orchestrator.method.rows.costs import Core

_ENOUGH: Final = 200
"""A kernel has to save one part in so many of a run."""
_FEW: Final = "packed_conv2d"
"""The kernel that has another one, for few pixels in little scratch memory."""
_CHANNELS, _DEPTH = 13, 15
_BYTES: Final = 4
"""Of scratch memory for each tap of its two pixels."""
_KERNELS: Final = {
    "packed_depthwise_3x3": "packed_depthwise_row",
    "packed_conv2d": "packed_conv2d_two",
    **{
        f"packed_pixels{vectors}": f"packed_pixels{vectors}_band"
        for vectors in ("", "_2", "_3", "_4")
    },
    "packed_depthwise_strips": "packed_depthwise_strips_band",
}
"""By kernel: the one for bands."""


def few_of(method: LinkedMethod, call: LinkedCall, core: Core, rows: int) -> Few | None:
    """How bands of a call are in little scratch memory, if there is a kernel for that.

    Args:
        method: Its method.
        call: A prepared call.
        core: What it runs on.
        rows: Of its output.
    """
    header = header_of(method, call)
    name = call.function.rpartition("::")[2].removeprefix("limited_")
    if name != _FEW or header is None or header[_CHANNELS] % TILE:
        return None
    cost = few_cost(header, core, rows)
    return Few(scratch_bytes=_BYTES * header[_DEPTH], costs=(cost,))


def with_few_pixels(call: LinkedCall) -> LinkedCall:
    """The call with that kernel."""
    return replace(call, function=f"{call.function}_few")


def with_narrow_kernels(method: LinkedMethod, whole_cost: int) -> LinkedMethod:
    """The method with kernels for narrow bands.

    Args:
        method: By rows.
        whole_cost: Instructions of a run, about.
    """
    calls = method.instructions
    for wide, narrow in _KERNELS.items():
        saved = [_saved(method, call, wide) for call in calls]
        if _ENOUGH * sum(s for s in saved if s) >= whole_cost:
            calls = tuple(
                call if s is None else _with_kernel(call, wide, narrow)
                for call, s in zip(calls, saved, strict=True)
            )
    return replace(method, instructions=calls)


def _saved(method: LinkedMethod, call: LinkedInstruction, wide: str) -> int | None:
    """Instructions that another kernel saves; None if it cannot take a call."""
    assert isinstance(call, LinkedCall)  # noqa: S101  # methods by rows have no others
    name = call.function.rpartition("::")[2].removeprefix("limited_")
    header = header_of(method, call)
    if name != wide or header is None or call.prepared is None:
        return None
    return narrow_saves(name, call.prepared.header or header)


def _with_kernel(call: LinkedInstruction, wide: str, narrow: str) -> LinkedInstruction:
    assert isinstance(call, LinkedCall)  # noqa: S101  # the same
    return replace(call, function=call.function.replace(wide, narrow))
