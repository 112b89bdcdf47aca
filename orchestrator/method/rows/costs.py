"""What prepared calls cost, in instructions: estimates from products and calls."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.method.access import Access
from orchestrator.method.rows.bands import TRANSPOSED, has_independent_pixels
from orchestrator.method.rows.members import number_at
from orchestrator.method.steps import HEADER, header_of
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedCall, LinkedMethod

_SETUP: Final = MappingProxyType({"scalar": 200, "dsp": 250, "mve": 400})
_ITEM: Final = 10
"""Instructions per item, about; of products by instruction set."""
_PRODUCT: Final = MappingProxyType({"scalar": 5.0, "dsp": 0.85, "mve": 0.18})
_COLUMN: Final = 200
"""Instructions that kernels with vectors take to begin a column of pixels."""
_DEPTHWISE_PRODUCT: Final = 1.6
"""Per byte of the weights of a `packed_depthwise_3x3`."""
_DEPTHWISE_SETUP: Final = 170
"""Instructions that expand the weights of a channel there."""
_DEPTHWISE_CHANNELS: Final = 13
"""Which word of its header says how many."""
_COLUMNS_OUT: Final = 7
"""Which word of most headers says how many columns there are."""
_TILE: Final = 3
"""Pixels that DSP instructions compute at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Of a call.

    Args:
        work: Instructions for all rows.
        setup: Of each call, beside those for its rows.
        together: Rows that are computed at once: fewer cost as much.
    """

    work: int
    setup: int
    together: int = 1


def cost_of(method: LinkedMethod, call: LinkedCall, isa: str, rows: int) -> Cost:
    """What a call costs.

    Args:
        method: Its method.
        call: A prepared call.
        isa: Instruction set of the core.
        rows: Of its output.
    """
    assert call.prepared is not None  # noqa: S101  # as its argument says
    setup, together = _SETUP[isa], 1
    header, weights = header_of(method, call), _weight_bytes(method, call)
    if not weights:
        return Cost(work=_ITEM * _items(method, call), setup=setup)
    product, pixels = _PRODUCT[isa], _pixels(call, header)
    if header is not None and isa == "mve":
        together = 2  # pixels of a column
        if not call.function.endswith("_strips"):
            setup += _COLUMN * header[_COLUMNS_OUT]
    elif header is not None and call.function.endswith("packed_depthwise_3x3"):
        product, together = _DEPTHWISE_PRODUCT, 2
        setup += _DEPTHWISE_SETUP * header[_DEPTHWISE_CHANNELS]
    elif isa == "dsp" and has_independent_pixels(method, call):
        # Those of a tile that is not full; a whole image has one such tile.
        setup += round(product * weights * (-(pixels // rows) % _TILE))
    return Cost(work=round(product * weights * pixels), setup=setup, together=together)


def _items(method: LinkedMethod, call: LinkedCall) -> int:
    """Of what it writes."""
    written = (Access.FILLS, Access.UPDATES)
    return sum(
        value.numel
        for index, access in zip(call.args, call.accesses, strict=True)
        if access in written and isinstance(value := method.values[index], TensorValue)
    )


def _weight_bytes(method: LinkedMethod, call: LinkedCall) -> int:
    """Of a call that multiplies with constants; else 0."""
    assert call.prepared is not None  # noqa: S101  # callers know
    places, data = dict(call.prepared.memory), dict(method.data)
    position = places.get("weights")
    if position is None:  # they may lie behind the header
        position = places.get(HEADER)
    return 0 if position is None else len(data.get(call.args[position], b""))


def _pixels(call: LinkedCall, header: tuple[int, ...] | None) -> int:
    """How often each weight is used."""
    assert call.prepared is not None  # noqa: S101  # callers know
    if header is not None:
        is_matrix = call.function.endswith("packed_matrix")
        return header[0] if is_matrix else header[1] * header[_COLUMNS_OUT]
    image = "in" if call.prepared.struct == TRANSPOSED else "out"
    numbers = call.prepared.numbers
    sides = (number_at(numbers, f"sizes.{image}.{n}") for n in ("height", "width"))
    return prod(sides)
