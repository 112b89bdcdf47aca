"""Calls that move whole rows of a tensor: slices, and other orders of dimensions."""

from __future__ import annotations

from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.preparing.form import Form
from orchestrator.method.passes.preparing.items import array
from orchestrator.method.passes.views import views_from

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.method.passes.arguments import Arguments
    from orchestrator.method.passes.preparing.form import Preparer

_ROW_DIMS: Final = 3
"""Dimensions that rows may have."""


def _moved(operator: str, out: int) -> Preparer:
    def prepare(arguments: Arguments, _isa: str) -> Form:
        (view,) = views_from(operator, arguments)
        tensor = arguments.tensor(out)
        need(arguments.tensor(0).dtype is tensor.dtype)
        need(prod(view.sizes) == tensor.numel)
        item = tensor.dtype.item_bytes
        # In the order in which the output lies in memory, which is filled.
        axes = sorted(
            zip(view.written, view.sizes, view.read, strict=True), reverse=True
        )
        loop: list[tuple[int, int]] = []
        for _, size, step in axes:
            if loop and loop[-1][1] == size * step:
                loop[-1] = loop[-1][0] * size, step
            else:
                loop.append((size, step))
        row = loop.pop() if loop else (1, 1)
        # Single items, far from each other, have loops of their own.
        need(row[1] == 1 and len(loop) <= _ROW_DIMS)
        loop = [(1, 0)] * (_ROW_DIMS - len(loop)) + loop
        return Form(
            function="orch::portable::move_rows",
            struct="orch::MoveRowsCall",
            memory=(("input", 0), ("out", out)),
            numbers=(
                ("first", view.first_read * item),
                ("sizes", array([size for size, _ in loop])),
                ("steps", array([step * item for _, step in loop])),
                ("row", row[0] * item),
            ),
        )

    return prepare


MOVES: Final[Mapping[str, Preparer]] = MappingProxyType(
    {
        "orch::portable::_clone_dim_order_out": _moved(
            "dim_order_ops::_clone_dim_order.out", 3
        ),
        "orch::portable::permute_copy_out": _moved("aten::permute_copy.out", 2),
        "orch::portable::select_copy_int_out": _moved("aten::select_copy.int_out", 3),
        "orch::portable::slice_copy_Tensor_out": _moved(
            "aten::slice_copy.Tensor_out", 5
        ),
        "orch::portable::transpose_copy_int_out": _moved(
            "aten::transpose_copy.int_out", 3
        ),
    }
)
