"""Inputs and outputs as the profile wants them: kept after a run, or quantized.

Either begins with a place of its own for the input or output, behind all others, where
no byte of another tensor was or will be: `replan/proof.py` proves that the method then
computes the same. In this place floats can become int8 at once, as nothing else sees
their bytes, and the call that quantizes or dequantizes becomes a copy, which is removed
as copies are (`aliases.py`), with the same proof.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from orchestrator.core.border import Border, IoDtype, IoPort, Quantization, border_of, with_border
from orchestrator.core.dtype import ScalarType
from orchestrator.method.effects import effects_of_linked
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.aliases import shared_places
from orchestrator.method.passes.arguments import facts_of
from orchestrator.method.passes.dataflow import Dataflow, without
from orchestrator.method.passes.views import View, pair
from orchestrator.method.places import offset_of, placed
from orchestrator.method.replan.proof import problems_of
from orchestrator.program.caller import lacks_memory
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import DoubleValue, IntValue, TensorValue, Value

_NAMESPACES: Final = ("cortex_m", "quantized_decomposed")
_QUANTIZE: Final = frozenset(f"{n}::quantize_per_tensor.out" for n in _NAMESPACES)
_DEQUANTIZE: Final = frozenset(f"{n}::dequantize_per_tensor.out" for n in _NAMESPACES)
_FIRST_PARAMETER: Final = 1
"""Position of scale; zero point, least and largest number follow."""


_LOWEST: Final = -128
_HIGHEST: Final = 127


@dataclass(frozen=True, slots=True)
class BorderError(Exception):
    """An input or output cannot be as the profile says.

    Args:
        port: Which one.
        method: Name of the method.
        found: Why.
        hint: What to do.
        wish: What it cannot do; "" if the port says so.
    """

    port: IoPort
    method: str
    found: str
    hint: str
    wish: str = ""


def keep_inputs(method: LinkedMethod) -> LinkedMethod:
    """Let runs leave the inputs as they are that the profile says `reuse = false` of.

    Raises:
        BorderError: A run writes to such an input.
    """
    for port in method.io.ports:
        if port.reuse or port.index >= len(method.inputs):
            continue
        border = Border(is_input=True, index=port.index, is_kept=True)
        value = method.values[method.inputs[port.index]]
        if not lacks_memory(value):  # the caller's memory stays as it is anyway
            end = _End(method, port)
            method = end.apart()
            end.need_unwritten()
        method = replace(method, borders=(*method.borders, border))
    return method


def quantized_io(method: LinkedMethod) -> LinkedMethod:
    """Remove the calls that quantize inputs and dequantize outputs.

    Raises:
        BorderError: An input or output that the profile names cannot be int8.
    """
    for port in _wanted(method):
        value = method.values[_slots(method, port)[port.index]]
        known = border_of(method.borders, port.index, is_input=port.is_input)
        border = known or Border(is_input=port.is_input, index=port.index)
        if _is(value, ScalarType.Char) and port.dtype is not None:
            border = replace(border, is_unsigned=port.dtype is IoDtype.UINT8)
            if border.is_unsigned and lacks_memory(value):
                raise BorderError(
                    port,
                    method.name,
                    "it lies in memory of the caller, which a run does not change",
                    "subtract 128 in the application, or export the model with memory"
                    " planned for inputs",
                )
        elif _is(value, ScalarType.Float):
            changed, quantization = _End(method, port).quantized()
            border = replace(
                border, quantization=quantization, is_unsigned=port.dtype is IoDtype.UINT8
            )
            method = changed
        else:
            raise BorderError(
                port,
                method.name,
                f"it is {_described(value)}",
                "only tensors of float32, or of int8 already, can be int8",
            )
        method = replace(method, borders=with_border(method.borders, border))
    return method


def _slots(method: LinkedMethod, port: IoPort) -> tuple[int, ...]:
    return method.inputs if port.is_input else method.outputs


def _wanted(method: LinkedMethod) -> Iterator[IoPort]:
    """Inputs and outputs that the caller has as integers."""
    for is_input, slots in ((True, method.inputs), (False, method.outputs)):
        for index, slot in enumerate(slots):
            port = method.io.port(index, is_input=is_input)
            if port.dtype in (IoDtype.INT8, IoDtype.UINT8):
                yield port
            elif port.dtype is None and method.io.quantized:
                is_float = _is(method.values[slot], ScalarType.Float)
                yield from [port] if is_float else []


def _is(value: Value, dtype: ScalarType) -> bool:
    return isinstance(value, TensorValue) and value.dtype is dtype


def _described(value: Value) -> str:
    if isinstance(value, TensorValue):
        return f"a tensor of {value.dtype.name}"
    return f"no tensor but {type(value).__name__.removesuffix('Value')}"


class _End:
    """An input or output of a method, with the tensors that show its bytes."""

    def __init__(self, method: LinkedMethod, port: IoPort) -> None:
        self._method = method
        self._port = port
        self._index = _slots(method, port)[port.index]
        self._flow = Dataflow(method)
        self._need_place()
        self._members = self._shown()

    def _error(self, found: str, hint: str) -> BorderError:
        return BorderError(self._port, self._method.name, found, hint)

    def _need_place(self) -> None:
        value = self._method.values[self._index]
        hint = "leave it as it is, or export the model with a plain tensor there"
        if not isinstance(value, TensorValue):
            raise self._error(f"it is {_described(value)}", hint)
        if lacks_memory(value):
            raise self._error(
                "it lies in memory of the caller",
                "export the model with memory planned for inputs and outputs",
            )
        if value.is_dynamic:
            raise self._error("its sizes may change", hint)
        if self._index in self._flow.moved:
            raise self._error("the program moves other memory there", hint)
        # Inputs with `reuse = false` count as returned, too, without being outputs.
        both = self._method.received & self._method.returned - {*self._method.kept}
        if self._index in both:
            raise self._error("it is input and output at once", hint)
        place = value.allocation
        if place is None or value.is_state or place.memory_id == SHARED_ID:
            raise self._error("it is a constant, or state of the method", hint)

    def _shown(self) -> frozenset[int]:
        """The tensor, its views, and others through which its bytes are read."""
        method, places = self._method, self._method.places
        found = {self._index}
        if self._index not in places:
            raise self._error("it is empty", "leave it as it is")
        place = places[self._index]
        if self._port.is_input:
            found |= {v for v in self._flow.input_followers(place, places) if places[v] == place}
        grown = True
        # A view of a view, in whatever order the program has them.
        while grown:
            before = len(found)
            for call, effect in zip(method.instructions, self._flow.at, strict=True):
                if isinstance(call, LinkedCall) and effect.views:
                    pair = {call.args[0], call.args[-1]}
                    found |= set() if found.isdisjoint(pair) else pair
            grown = len(found) > before
        return frozenset(found)

    def apart(self) -> LinkedMethod:
        """The method whose tensor has a place of its own behind all others."""
        method = self._method
        space = method.places[self._index].space
        begin = min(method.places[member].begin for member in self._members)
        # All members move by the same distance: a view lies at some offset in the tensor that it
        # shows.
        distance = method.behind(space, begin) - begin
        moved = method.with_values(
            {
                member: placed(value, space[1], offset_of(value) + distance)
                for member in self._members
                for value in [method.values[member]]
            }
        )
        # Bytes that something else reads or writes are found by the proof, not here.
        if problems_of(effects_of_linked(method), moved.values, moved.arena_bytes):
            raise self._error(
                "other tensors of the program share its memory",
                "leave it as it is, or export the model without views of it",
            )
        return moved

    def need_unwritten(self) -> None:
        """Raise an error if an instruction writes to the tensor."""
        for number, effect in enumerate(self._flow.at):
            if not self._members.isdisjoint({*effect.writes} - {*effect.views}):
                raise self._error(
                    f"{self._call_text(number)} writes to it",
                    "copy the input in the application, and leave reuse out",
                )

    def quantized(self) -> tuple[LinkedMethod, Quantization]:
        """The method with int8 numbers there, and what they stand for."""
        calls = self._calls()
        found = {self._quantization(number) for number in calls}
        # A net with branches may quantize an input in each of them. That is one tensor of int8 only
        # if all have the same numbers.
        if len(found) > 1:
            raise self._error(
                f"{len(found)} calls quantize it, each with another scale", "leave it as float32"
            )
        (quantization,) = found
        copies = [(number, self._copy(number)) for number in calls]
        method = self.apart()
        method = method.with_values(
            {
                member: replace(method.tensor(member), dtype=ScalarType.Char)
                for member in self._members
            }
        )
        flow = Dataflow(method)
        for number, view in copies:
            changed = shared_places(method, flow, number, (view,))
            if changed is None:
                raise self._error(
                    "its int8 numbers share memory with other tensors of the program",
                    "leave it as float32",
                )
            method = method.with_values(changed)
            flow.drop(number)
            flow.move({tensor: method.places[tensor] for tensor in changed})
        return without(method, {*calls}), quantization

    def _calls(self) -> list[int]:
        """The calls that quantize or dequantize; nothing else touches the tensor."""
        port, found = self._port, []
        wanted = _QUANTIZE if port.is_input else _DEQUANTIZE
        for number, effect in enumerate(self._flow.at):
            here = self._members.intersection(effect.touches)
            call = self._method.instructions[number]
            # Views of the tensor move no byte, and int8 lies in them as floats did.
            if not here or (effect.views and self._members.issuperset(effect.views)):
                continue
            is_end = (
                isinstance(call, LinkedCall)
                and str(call.operator) in wanted
                and call.args[0 if port.is_input else -1] in here
                and len(here) == 1
            )
            if not is_end:
                verb = "reads" if port.is_input else "touches"
                raise self._error(
                    f"{self._call_text(number)} {verb} it",
                    "leave it as float32, or export the model so that only one call"
                    f" {'quantizes' if port.is_input else 'dequantizes'} there",
                )
            found.append(number)
        if not found or (len(found) > 1 and not port.is_input):
            verb = "quantizes" if port.is_input else "dequantizes"
            what = "it" if port.is_input else "there"
            count = f"{len(found)} calls" if found else "no call"
            raise self._error(
                f"{count} of the program {verb.removesuffix('s') if found else verb} {what}",
                "leave it as float32",
            )
        return found

    def _quantization(self, number: int) -> Quantization:
        call, method = self._method.call(number), self._method
        first = _FIRST_PARAMETER
        values = [method.values[index] for index in call.args[first : first + 4]]
        if not method.written.isdisjoint(call.args[first : first + 4]):
            values = []
        match values:
            case [DoubleValue(s), IntValue(z), IntValue(low), IntValue(high)]:
                if min(z, low) >= _LOWEST and max(z, high) <= _HIGHEST:
                    return Quantization(scale=s, zero_point=z, low=low, high=high)
                raise self._error("its numbers are not int8", "leave it as float32")
        raise self._error("its scale changes at run time", "leave it as float32")

    def _copy(self, number: int) -> View:
        """The call as one that copies the tensor once it is int8."""
        call = self._method.call(number)
        source, target = call.args[0], call.args[-1]
        inner = target if self._port.is_input else source
        one, other = self._method.tensor(source), self._method.tensor(target)
        if not _is(self._method.values[inner], ScalarType.Char):
            raise self._error(
                f"the program quantizes it as {_described(self._method.values[inner])}",
                "leave it as float32, or quantize the model to int8",
            )
        is_alike = one.sizes == other.sizes
        view = (
            pair(source, facts_of(one).layout, target, facts_of(other).layout) if is_alike else None
        )
        # Once both are int8, the call only copies; it can go if no item changes its place.
        if view is None or view.read != view.written:
            raise self._error(
                f"{self._call_text(number)} changes its dim order",
                "export the model with the same dim order on both sides",
            )
        return view

    def _call_text(self, number: int) -> str:
        call = self._method.instructions[number]
        name = call.operator if isinstance(call, LinkedCall) else type(call).__name__
        return f"instruction {self._method.origins[number]}, {name},"
