"""Tensors that are read in another order than their items were written in."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.core.layout import layout_of
from orchestrator.method.effects import effects_of_method
from orchestrator.method.places import Place, place_of, tensor_of
from orchestrator.program.program import Method
from orchestrator.program.values import TensorValue


@dataclass(frozen=True, slots=True, kw_only=True)
class ReorderedRead:
    """An instruction that reads a tensor whose memory holds another one.

    Args:
        instruction: Index of the instruction.
        read: The tensor that it reads.
        written: The tensor that was written there.
    """

    instruction: int
    read: TensorValue
    written: TensorValue


def reordered_reads(method: Method) -> tuple[ReorderedRead, ...]:
    """Reads of views whose items lie in another order than those of their base.

    An exporter may give a view the memory of its base. If the base is not contiguous,
    as an image in channels-last, the items then are in the wrong places. Each pair of
    tensors is reported once.
    """
    places = {i: p for i, v in enumerate(method.values) if (p := place_of(v, i))}
    effects = effects_of_method(method, {})
    last: dict[Place, int] = {places[i]: i for i in effects.inputs if i in places}
    found: dict[tuple[int, int], ReorderedRead] = {}
    for number, effect in enumerate(effects.at):
        for index in effect.reads:
            source = last.get(places[index]) if index in places else None
            if source is None or (source, index) in found:
                continue
            one, other = (tensor_of(method.values[i]) for i in (source, index))
            if one.dtype == other.dtype and _layout(one) != _layout(other):
                found[source, index] = ReorderedRead(instruction=number, read=other, written=one)
        for index in (*effect.writes, *effect.replaces):
            if index not in places or index in effect.views:
                continue
            here = places[index]
            for place in [p for p in last if p.overlaps(here)]:
                del last[place]
            last[here] = index
    return tuple(found.values())


def _layout(tensor: TensorValue) -> list[tuple[int, int]]:
    return layout_of(tensor.sizes, tensor.dim_order)
