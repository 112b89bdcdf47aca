"""Kernels for bands of few pixels, where they save enough.

They have the tensors and the header of the kernels that they replace. Both may be
linked then, so that a few calls alone do not pay for one. Where memory is scarce, some
compute fewer pixels at once, in less scratch memory, or go without.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.packing.headers import kernel_of
from orchestrator.method.passes.packing.words import TILE
from orchestrator.method.rows.costs import (
    Core,
    costs_of,
    few_cost,
    few_matrix_cost,
    narrow_saves,
    row_of_windows_cost,
)
from orchestrator.method.rows.network import Cost, Few
from orchestrator.method.steps import header_of

_ENOUGH: Final = 200
"""A kernel has to save one part in so many of a run."""
_PIXELS: Final = "packed_conv2d"
"""The kernel that has another one, for few pixels in little scratch memory."""
_CHANNELS, _DEPTH = 13, 15
_MATRIX: Final = "packed_matrix"
"""The kernel that has another one, without scratch memory, for tensors of one row.

Their items are whole words. Rows of images may lie anywhere.
"""
_ITEMS, _ALL_ITEMS = 1, 2
_TAP_BYTES: Final = 4
"""Of scratch memory for each tap of its two pixels."""
_WINDOWS: Final = "packed_depthwise_3x3"
"""The kernel that has others for one row, or parts of it, and for two rows."""
_ROWS_OUT, _COLUMNS_IN, _COLUMNS_OUT, _STRIDE, _PADDING = 1, 6, 7, 9, 10
_BATCH, _AT_ONCE = 12, 15
_WINDOW: Final = 3
_COLUMN_BYTES: Final = 32
"""Of scratch memory for each column of inputs."""
_MOST_COLUMNS: Final = 20
"""Of inputs, where a row is computed in parts."""
_ROWS: Final = {1: "packed_depthwise_row", 2: "packed_depthwise_row_by_two"}
"""By stride: the kernel for one row of windows."""
_BOTH: Final = "packed_depthwise_two_rows"
"""The kernel for one row or two, if windows move by one."""
_KERNELS: Final = (
    (_BOTH, _WINDOWS),
    (_ROWS[1], _BOTH),
    (_ROWS[1], _WINDOWS),
    (_ROWS[2], _WINDOWS),
    ("packed_conv2d_two", "packed_conv2d"),
    *(
        (f"packed_pixels{vectors}_band", f"packed_pixels{vectors}")
        for vectors in ("", "_2", "_3", "_4")
    ),
    ("packed_depthwise_strips_band", "packed_depthwise_strips"),
)
"""Kernels for bands, and what each of them replaces, in order."""


def wide_kernel(call: LinkedCall) -> LinkedCall:
    """The call with the kernel that the one for narrow bands replaced, if it is one."""
    function = call.function.removesuffix("_few")
    name = kernel_of(function)
    return replace(call, function=function.replace(name, dict(_KERNELS).get(name, name)))


def few_of(method: LinkedMethod, call: LinkedCall, core: Core, rows: int) -> Few | None:
    """How calls are in little scratch memory, if there is a kernel for that.

    Args:
        method: Its method.
        call: A prepared call.
        core: What it runs on.
        rows: Of its output.
    """
    header, name = header_of(method, call), kernel_of(call.function)
    if header is None:
        return None
    if name == _PIXELS and not header[_CHANNELS] % TILE:
        cost = few_cost(header, core, rows)
        return Few(scratch_bytes=_TAP_BYTES * header[_DEPTH], costs=(cost,))
    if name == _MATRIX and header[_ITEMS] == header[_ALL_ITEMS] and rows == 1:
        (pairs,) = costs_of(method, call, core, rows)
        cost = few_matrix_cost(pairs, core)
        return Few(scratch_bytes=0, costs=(cost,), whole=True)
    if name == _WINDOWS and _has_inputs(header):
        columns = (_at_once(header) - 1) * header[_STRIDE] + _WINDOW
        cost = Cost(few=(row_of_windows_cost(header, _at_once(header)),))
        return Few(scratch_bytes=_COLUMN_BYTES * columns, costs=(cost,), one_row=True)
    return None


def _at_once(header: tuple[int, ...]) -> int:
    """Outputs of a row that are computed at once: parts are as equal as they can be."""
    columns = header[_COLUMNS_OUT]
    most = (_MOST_COLUMNS - _WINDOW) // header[_STRIDE] + 1
    return -(-columns // -(-columns // most))


def _has_inputs(header: tuple[int, ...]) -> bool:
    """Whether some windows side by side always have inputs, as the kernel wants."""
    padding, columns = header[_PADDING], header[_COLUMNS_OUT]
    last = (columns - 1) * header[_STRIDE] - padding
    return padding < _WINDOW and last < header[_COLUMNS_IN] and header[_BATCH] == 1


def with_few_pixels(call: LinkedCall) -> LinkedCall:
    """The call with that kernel."""
    if _WINDOWS not in call.function:
        return replace(call, function=f"{call.function}_few")
    header = [*call.form.header]
    header[_AT_ONCE] = _at_once(call.form.header)
    return replace(
        call,
        function=call.function.replace(_WINDOWS, _ROWS[header[_STRIDE]]),
        prepared=replace(call.form, header=tuple(header)),
    )


def with_narrow_kernels(method: LinkedMethod, whole_cost: int) -> LinkedMethod:
    """The method with kernels for narrow bands.

    Args:
        method: By rows.
        whole_cost: Instructions of a run, about.
    """
    calls = [method.call(number) for number in range(len(method.instructions))]
    for narrow, wide in _KERNELS:
        saved = [_saved(method, call, wide, narrow) for call in calls]
        is_linked = any(kernel_of(call.function) == narrow for call in calls)
        if is_linked or _ENOUGH * sum(s for s in saved if s) >= whole_cost:
            calls = [
                call if s is None else replace(call, function=call.function.replace(wide, narrow))
                for call, s in zip(calls, saved, strict=True)
            ]
    return replace(method, instructions=tuple(calls))


def _saved(method: LinkedMethod, call: LinkedCall, wide: str, narrow: str) -> int | None:
    """Instructions that another kernel saves; None if it cannot take a call."""
    header = header_of(method, call)
    if kernel_of(call.function) != wide or header is None:
        return None
    header = call.form.header or header
    if wide == _WINDOWS:
        is_both = narrow == _BOTH and header[_STRIDE] == 1
        is_one = narrow == _ROWS[header[_STRIDE]] and header[_ROWS_OUT] == 1
        if not (is_both or is_one) or not _has_inputs(header):
            return None
    return narrow_saves(wide, header)
