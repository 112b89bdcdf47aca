"""Move tensors that the profile pins to a memory out of their arena."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.method.effects import effects_of_method
from orchestrator.method.places import offset_of, placed
from orchestrator.method.replan.flow import flow_of
from orchestrator.method.replan.proof import PlanProofError, problems_of
from orchestrator.planner.blocks import aligned
from orchestrator.program.program import Method, Program
from orchestrator.program.shared import SHARED_ID
from orchestrator.program.values import TensorValue
from orchestrator.targets.regions import Pins, TensorKind, TensorPin

if TYPE_CHECKING:
    from orchestrator.method.replan.flow import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class PinProblem:
    """Why a tensor cannot lie where the profile wants it.

    Args:
        pin: Index among the model's pins.
        method: Method of the tensor.
        found: The reason.
    """

    pin: int
    method: str
    found: str


def with_pinned(
    program: Program, pins: Pins, schemas: Mapping[OperatorName, OpSchema]
) -> tuple[Program, tuple[PinProblem, ...]]:
    """The decoded program with pinned tensors in arenas of their own.

    Tensors whose bytes are read through a pinned one, or vice versa, move with
    it. There is one new arena for each memory (`Pins.tensor_arenas`). The program's
    bytes stay those of the file.

    Args:
        program: With scratch tensors of the right size.
        pins: Pins of the model.
        schemas: Of the operators that have a kernel.

    Returns:
        The program, and the pins that are impossible.

    Raises:
        PlanProofError: The new places are wrong.
    """
    if not pins.tensors:
        return program, ()
    ids = pins.tensor_arenas(free_memory_id(program))
    problems: list[PinProblem] = []
    methods = []
    for method in program.methods:
        mover = _Mover(method, schemas, is_shared=bool(program.sharers))
        for number, pin in enumerate(pins.tensors):
            if pin.method in (None, method.name):
                found = mover.move(pin, ids[pin.region])
                if found:
                    problem = PinProblem(pin=number, method=method.name, found=found)
                    problems.append(problem)
        methods.append(mover.moved())
    names = [m.name for m in program.methods]
    for number, pin in enumerate(pins.tensors):
        if pin.method not in (None, *names):
            found = f"the model has the methods {', '.join(names)}"
            problem = PinProblem(pin=number, method=pin.method or "", found=found)
            problems.append(problem)
    return replace(program, methods=tuple(methods)), tuple(problems)


def free_memory_id(program: Program) -> int:
    """Lowest free memory id for new arenas: no method uses or could share it."""
    return max(SHARED_ID + 1, *(len(m.arena_bytes) for m in program.methods))


class _Mover:
    def __init__(
        self, method: Method, schemas: Mapping[OperatorName, OpSchema], *, is_shared: bool
    ) -> None:
        self._method = method
        self._effects = effects_of_method(method, schemas)
        self._is_shared = is_shared
        self._flows: dict[int, Flow] = {}
        self._taken: dict[int, int] = {}
        self._values = list(method.values)
        self._sizes = list(method.arena_bytes)

    def move(self, pin: TensorPin, memory_id: int) -> str:
        """Move a tensor to an arena, or return why that is impossible."""
        index = self._index(pin)
        value = None if index is None else self._method.values[index]
        if index is None or not isinstance(value, TensorValue):
            return f"{pin.text} is no tensor" if value else f"there is no {pin.text}"
        if value.allocation is None:
            return "it is a constant, or lies in memory of the caller"
        if self._is_shared:
            return "methods of the program share state, whose arenas cannot change"
        flow = self._flow(value.allocation.memory_id)
        if not flow.is_clear:
            return "the writers of its arena are unknown (docs/memory.md)"
        if index not in self._taken:
            groups = [g.members for g in flow.groups if index in g.members]
            self._place(groups[0] if groups else (index,), memory_id)
        same = self._taken[index] == memory_id
        return "" if same else "it shares bytes with a tensor for another memory"

    def _index(self, pin: TensorPin) -> int | None:
        method = self._method
        known: Sequence[int] = range(len(method.values))
        if pin.kind is not TensorKind.VALUE:
            is_input = pin.kind is TensorKind.INPUT
            known = method.inputs if is_input else method.outputs
        return known[pin.index] if pin.index < len(known) else None

    def _flow(self, memory_id: int) -> Flow:
        if memory_id not in self._flows:
            self._flows[memory_id] = flow_of(self._effects, memory_id)
        return self._flows[memory_id]

    def _place(self, members: Sequence[int], memory_id: int) -> None:
        """Append tensors to an arena, with their present distances."""
        self._sizes += [0] * (memory_id + 1 - len(self._sizes))
        begins = {}
        for index in members:
            begins[index] = offset_of(self._method.values[index])
            self._taken[index] = memory_id
        low = min(begins.values())
        to = aligned(self._sizes[memory_id], like=low)
        for index, begin in begins.items():
            offset = to + begin - low
            value = placed(self._method.values[index], memory_id, offset)
            self._values[index] = value
            end = offset + value.size_bytes
            self._sizes[memory_id] = max(self._sizes[memory_id], end)

    def moved(self) -> Method:
        """The method with all moved tensors."""
        if not self._taken:
            return self._method
        values, sizes = tuple(self._values), tuple(self._sizes)
        if problems := problems_of(self._effects, values, sizes):
            raise PlanProofError("; ".join(problems))
        return replace(self._method, values=values, arena_bytes=sizes)
