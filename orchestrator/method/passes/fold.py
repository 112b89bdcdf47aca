"""Remove calls whose results the build has computed.

A tensor that a call writes becomes a constant; a number that it returns becomes the
initial value of its slot.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.core.lazy_bytes import Bytes, part_of, settled
from orchestrator.method.linked import LinkedCall, LinkedMethod, read_by, written_by
from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.dataflow import Dataflow, without
from orchestrator.method.passes.joining import Site, at_each_call
from orchestrator.method.passes.proof import Dropped, is_same
from orchestrator.method.passes.views import items_in_order, moves_items, views_of
from orchestrator.method.places import Place
from orchestrator.program.values import Value

if TYPE_CHECKING:
    from orchestrator.method.passes.views import View

Contents: TypeAlias = "dict[int, Bytes]"
"""By value index: items of tensors, in memory order."""

ComputeOutputs: TypeAlias = "Callable[[Folding, LinkedCall], Contents | None]"
ComputeNumber: TypeAlias = "Callable[[Folding, LinkedCall], Value | None]"

SMALL_BYTES: Final = 32
"""Least flash of a call with its arguments and the value that it writes."""


def folded(
    method: LinkedMethod,
    outputs_of: ComputeOutputs,
    *,
    may_grow: bool,
    number_of: ComputeNumber | None = None,
) -> LinkedMethod:
    """Remove calls whose results the build can compute.

    Args:
        method: The method.
        outputs_of: Computes all outputs of a call; None keeps the call.
        may_grow: Whether constants may take more bytes than before. If not, they may
            grow by as many bytes as the removed calls took.
        number_of: Computes the number that a call returns, or returns None.

    Returns:
        The method; results of earlier calls are constants for later ones.
    """
    state = Folding(method, Dataflow(method), method.written)
    for index, call in enumerate(method.instructions):
        if not isinstance(call, LinkedCall) or index in state.flow.dropped:
            continue
        number = number_of(state, call) if number_of else None
        if number is not None and _is_only_source(state, index):
            state.drop(index, call.outs)
            state.method = state.method.with_values(dict.fromkeys(call.outs, number))
        elif outputs := _with_items(outputs_of(state, call)):
            if may_grow:
                state.fold(index, outputs)
            else:
                state = _folded_within_flash(state, index, outputs, outputs_of)
    return without(state.method, state.flow.dropped)


def _with_items(outputs: Contents | None) -> Contents:
    """Outputs without those that have no items, and no place in memory."""
    return {o: data for o, data in (outputs or {}).items() if len(data)}


@dataclass(slots=True)
class Folding:
    """A method while calls are folded; those that are dropped are still in it.

    Args:
        method: The method.
        flow: Its dataflow.
        written: Values that instructions still write.
    """

    method: LinkedMethod
    flow: Dataflow
    written: frozenset[int]

    def drop(self, index: int, outs: Iterable[int]) -> None:
        """Note that nothing writes some values any more."""
        self.flow.drop(index)
        self.written = self.written.difference(outs)

    def constant_bytes(self) -> int:
        """Bytes of the constants in use; equal ones count once."""
        used = {*self.flow.outputs}
        for effect in self.flow.at:
            used.update(effect.touches)
        return sum(map(len, {d for v, d in self.method.data if v in used}))

    def fold(self, index: int, outputs: Contents) -> Contents:
        """Remove a call if `is_same` proves that nothing else changes.

        Returns:
            Tensors that became constants; empty if the call stays.
        """
        call, places = self.method.call(index), self.method.places
        shown = _shown(self.flow, index, outputs, places)
        changed = {
            v: replace(self.method.tensor(v), allocation=None, data_buffer_index=1) for v in shown
        }
        leaves = Dropped(
            outs=tuple(places[out] for out in call.outs if out in places),
            constants=tuple(
                (Place(("constant", v), 0, len(items)), places[v]) for v, items in shown.items()
            ),
        )
        if not shown or not is_same(self.method, self.flow, changed, {index: leaves}):
            return {}
        self.drop(index, shown)
        self.method = self.method.with_values(changed, shown)
        return shown


def _folded_within_flash(
    state: Folding, index: int, outputs: Contents, outputs_of: ComputeOutputs
) -> Folding:
    """Remove a call, and calls that depend on it, if flash does not grow."""
    trial = replace(state, flow=state.flow.copy())
    shown = trial.fold(index, outputs)
    if not shown:
        return state
    # A call that goes makes room for so much.
    most = state.constant_bytes() + SMALL_BYTES
    later = index
    while trial.constant_bytes() > most:
        # A result may be larger than its inputs; folding its readers, too, may leave
        # only small results, or make a constant unused.
        more: Contents = {}
        while not more:
            later += 1
            if later == len(state.method.instructions):
                return state
            call = state.method.instructions[later]
            if isinstance(call, LinkedCall) and shown.keys() & trial.flow.at[later].touches:
                found = _with_items(outputs_of(trial, call))
                more = trial.fold(later, found) if found else {}
        shown |= more
        most += SMALL_BYTES
    return trial


def _shown(flow: Dataflow, index: int, outputs: Contents, places: Mapping[int, Place]) -> Contents:
    """Items of all tensors through which a call's outputs are read.

    Empty if such a tensor has bytes that the call does not write.
    """
    shown: Contents = {}
    for out, content in outputs.items():
        where = places[out]
        for v in sorted({out, *flow.followers(index, where, places)}):
            # A reader that sees more than the call wrote would need the rest as a constant, too.
            if not where.holds(places[v]):
                return {}
            begin = places[v].begin - where.begin
            size_bytes = places[v].end - places[v].begin
            shown[v] = part_of(content, begin, size_bytes)
    return shown


def _is_only_source(state: Folding, index: int) -> bool:
    """Whether every reader of a call's result, a number, gets what this call returned.

    Nothing else writes the slot, the method does not return or take it, and every path
    to a reader leads through the call.
    """
    method = state.method
    (slot,) = method.call(index).outs
    if slot in method.named((*method.inputs, *method.outputs)):
        return False
    readers = set()
    for at, instruction in enumerate(method.instructions):
        if at in state.flow.dropped or at == index:
            continue
        if slot in written_by(instruction):
            return False
        if slot in method.named(read_by(instruction)):
            readers.add(at)
    return readers.isdisjoint(_reached_around(state.flow, index))


def _reached_around(flow: Dataflow, index: int) -> set[int]:
    """Instructions that a run can reach without running a given one."""
    seen: set[int] = set()
    ahead = [0]
    while ahead:
        at = ahead.pop()
        if at not in seen and at != index and at < len(flow.at):
            seen.add(at)
            ahead += flow.at[at].next
    return seen


# Transposes that cancel each other, or that weights can take.
#
# Two calls that move items cancel if all items come back to their place. Where an int8 matrix
# product reads items in another order, its constant weights get that order: sums of integers do
# not depend on it. Sums of floats do, and stay.

_LINEAR: Final = "orch::cortex_m::quantized_linear_out"
_INDEX_BYTES: Final = 4


def may_be_transposed(call: LinkedCall) -> bool:
    """Whether a call may move items."""
    return moves_items(call.operator)


def fold_transposes(method: LinkedMethod, context: Context) -> LinkedMethod:
    """Remove transposes that others undo, or that weights can take."""
    return at_each_call(method, _transposes_folded, grows=context.plans)


def _transposes_folded(site: Site) -> Site | None:
    if site.call.function == _LINEAR:
        return _with_other_weights(site)
    return _cancelled(site) if may_be_transposed(site.call) else None


def _cancelled(site: Site) -> Site | None:
    """The method without a call and the one that it undoes."""
    second = _transpose(site)
    found = site.producer(second.source) if second else None
    first = _transpose(found) if found else None
    if second is None or found is None or first is None:
        return None
    if _order(second, _order(first, None)) != _order(None, None, prod(first.sizes)):
        return None
    # A copy then, which may lie where it is: it only goes.
    args = tuple(first.source if a == second.source else a for a in site.call.args)
    places = tuple(at for at, a in enumerate(args) if a == first.source)
    read = replace(site.call, args=args, in_place=places)
    joined = site.reads_earlier((found.number,), read, first.source)
    if joined is None:
        return None
    return joined.without_copy(items_in_order(joined.method, first.source, second.target))


def _with_other_weights(site: Site) -> Site | None:
    """The method where a matrix product reads what was transposed before."""
    arguments = site.arguments
    found = site.producer(arguments.index("input"))
    first = _transpose(found) if found else None
    if found is None or first is None:
        return None
    x, weights = arguments.tensor("input"), arguments.tensor("weights")
    outputs, depth = weights.sizes
    given, index = bytes(arguments.constant("weights")), arguments.index("weights")
    need(weights.is_contiguous)
    # Others need the weights as they are: they would be there two times.
    need(site.has_one_user(index))
    order = _order(first, None)
    need(x.numel == len(order))
    need(
        all(
            order[start + k] == start + order[k]
            # Each row of the product has to be read in one order, or weights could not have it for
            # all rows.
            for start in range(0, len(order), depth)
            for k in range(depth)
        )
    )
    moved = bytearray(outputs * depth)
    for k in range(depth):
        moved[order[k] :: depth] = given[k::depth]
    source = arguments.tensor_at(first.source)
    site, slots = site.with_slots(
        (replace(x, allocation=source.allocation), None), (weights, settled(bytes(moved)))
    )
    names = ("input", "weights")
    new = replace(site.call, args=arguments.replaced(dict(zip(names, slots, strict=True))))
    return site.reads_earlier((found.number,), new, slots[0])


def _transpose(site: Site) -> View | None:
    """The view of a call that moves all items of a tensor to other places."""
    views = views_of(site.method, site.call)
    if views is None or len(views) != 1 or site.call.outs != (views[0].target,):
        return None
    (view,) = views
    source, size = site.arguments.tensor_at(view.source), prod(view.sizes)
    # A block is a copy, which `alias_copies` takes out.
    if view.is_block or source.numel != size or source.allocation is None:
        return None
    order = _order(view, None)
    return view if sorted(order) == list(range(size)) else None


def _order(view: View | None, given: array[int] | None, size: int = 0) -> array[int]:
    """Which item lies at each place after a view, of items in an order before."""
    size = size or (prod(view.sizes) if view else 0)
    before = array("I", range(size)) if given is None else given
    if view is None:
        return before
    target = bytearray(size * _INDEX_BYTES)
    view.moved(before.tobytes(), target, _INDEX_BYTES)
    return array("I", bytes(target))
