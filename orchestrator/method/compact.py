"""The layout of the tables of prelinked methods: compact or not, and their parts."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.program.values import TensorValue

# Programs have indices of 32 bits, which a loader uses in place.
WIDE = 4
"""Bytes of a value index in tables with the layout of programs."""
_BYTE = 0xFF
_HALF_WORD = 0xFFFF
# Loops over five dimensions are compiled only for products with volumes (`ORCH_VOLUMES` in
# kernels/util/planes.h).
_IMAGE_RANK = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class TableLayout:
    """The layout of the tables of all methods of a product.

    Args:
        index_bytes: Bytes of a value index: 1 or 2 in compact tables, which have no
            loader beside them; else `WIDE`.
        dynamic_sizes: Tensors may change their sizes.
        control_flow: There may be moves and jumps.
        initial_bytes: Bytes may be written before the first call.
        initial_zeros: Some of these may be zeros, which are in no table.
        volumes: Tensors may have more than four dimensions.
        prepared_calls: There are prepared calls.
        kernel_calls: There may be other instructions.
        steps: Methods by rows have their calls as steps.
        given_rows: Rows of inputs come from the caller.

    Source: runtime/include/orch/index.h and method.h.
    """

    index_bytes: int = WIDE
    dynamic_sizes: bool = True
    control_flow: bool = True
    initial_bytes: bool = True
    initial_zeros: bool = True
    volumes: bool = True
    prepared_calls: bool = False
    kernel_calls: bool = True
    steps: bool = False
    given_rows: bool = False

    @property
    def compact(self) -> bool:
        """Whether all methods are prelinked and fit compact tables."""
        return self.index_bytes != WIDE


WIDE_TABLES = TableLayout()


def instruction_bytes(pointer_bytes: int, *, layout: TableLayout = WIDE_TABLES) -> int:
    """Size of an instruction on the device."""
    if layout.compact and not layout.kernel_calls:
        return pointer_bytes
    # `Instruction` in runtime/include/orch/method.h: 12 bytes on a 32-bit core, 8 in compact
    # tables.
    return (1 if layout.compact else 2) * pointer_bytes + max(4, pointer_bytes)


def table_layout(
    models: Collection[str], linked: Mapping[str, Sequence[LinkedMethod]]
) -> TableLayout:
    """The layout of a product's tables.

    They are compact unless a program is loaded, whose indices are used in place, or a
    method does not fit.

    Args:
        models: Names of all models.
        linked: By name of a prelinked model: its methods.
    """
    methods = [m for of_model in linked.values() for m in of_model]
    steps = any(m.by_rows for m in methods)
    given = any(border.rows for m in methods for border in m.borders)
    calls = [
        i if isinstance(i, LinkedCall) else None
        for m in methods
        if not m.by_rows
        for i in m.instructions
    ]
    prepared = [call is not None and call.prepared is not None for call in calls]
    if not methods or set(models) != set(linked) or not all(map(_fits, methods)):
        return replace(WIDE_TABLES, prepared_calls=any(prepared), steps=steps, given_rows=given)
    # The largest index is 254: 255 stands for None in a list of tensors (`kNoValue`).
    small = all(m.slots <= _BYTE for m in methods)
    return TableLayout(
        index_bytes=1 if small else 2,
        dynamic_sizes=any(m.dynamic_words for m in methods),
        control_flow=None in calls,
        initial_bytes=any(m.has_initial_bytes for m in methods),
        initial_zeros=any(m.has_initial_zeros for m in methods),
        volumes=any(
            isinstance(value, TensorValue) and len(value.sizes) > _IMAGE_RANK
            for method in methods
            for value in method.values
        ),
        prepared_calls=any(prepared),
        kernel_calls=not all(prepared),
        steps=steps,
        given_rows=given,
    )


def _fits(method: LinkedMethod) -> bool:
    """Whether counts and indices fit, and dim orders, which follow constant sizes."""
    counts = [
        len(i.args) for i in method.instructions if isinstance(i, LinkedCall) and i.prepared is None
    ]
    return (
        max(method.slots, len(method.instructions), sum(counts)) <= _HALF_WORD
        and max(counts, default=0) <= _BYTE
        and not any(
            isinstance(value, TensorValue) and value.is_dynamic and not value.is_contiguous
            for value in method.values
        )
    )
