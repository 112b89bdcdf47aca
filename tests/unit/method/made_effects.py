"""Methods as their memory sees them, made by hand, and a machine that runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.method.effects import Effect, MethodEffects
from orchestrator.method.replan.layout import Replanned, replan
from orchestrator.planner import plan_blocks
from orchestrator.program.values import TensorValue
from tests.unit.method.methods import tensor

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from orchestrator.program.values import Value


def effects_of(
    places: Iterable[tuple[int, int]],
    instructions: Iterable[Effect],
    *,
    inputs: tuple[int, ...] = (),
    outputs: tuple[int, ...] = (),
    moved: tuple[int, ...] = (),
    state: Collection[int] = (),
    dynamic: Collection[int] = (),
    is_known: bool = True,
) -> MethodEffects:
    """A method; each tensor is (offset, bytes) in arena 1."""
    return MethodEffects(
        values=tuple(
            tensor((size,), at, state=n in state, dynamic=n in dynamic)
            for n, (at, size) in enumerate(places)
        ),
        at=tuple(instructions),
        inputs=inputs,
        outputs=outputs,
        moved=moved,
        is_known=is_known,
    )


def arena_bytes(values: Iterable[Value]) -> tuple[int, int]:
    """Just what the tensors need."""
    ends = (
        v.allocation.offset_bytes + v.size_bytes
        for v in values
        if isinstance(v, TensorValue) and v.allocation is not None
    )
    return 0, max(ends, default=0)


def replanned(method: MethodEffects, *, slack: int = 0) -> Replanned:
    """The method replanned; its arena has so many bytes more than it needs."""
    _, size = arena_bytes(method.values)
    sizes = (0, size + slack)
    return replan(method, sizes, file_bytes=sizes, fixed=(), plan=plan_blocks)


def offsets(values: Iterable[Value]) -> list[int]:
    """Where the tensors lie."""
    return [
        v.allocation.offset_bytes
        for v in values
        if isinstance(v, TensorValue) and v.allocation is not None
    ]


class Machine:
    """Runs a method on bytes that are names of who wrote them; None is unwritten.

    It knows nothing of pieces or groups: it is what they are measured by.
    """

    def __init__(self, method: MethodEffects, values: Sequence[Value]) -> None:
        self._method = method
        self._places = offsets(values)
        self._values = method.values
        self._memory: list[tuple[int, ...] | None] = [None] * 4096

    def _size(self, value: int) -> int:
        found = self._values[value]
        assert isinstance(found, TensorValue)
        # What changes its size is half as large as it can be.
        return found.size_bytes // 2 if found.is_dynamic else found.size_bytes

    def forget(self, kept: Iterable[int]) -> None:
        """What a run leaves to the next means nothing, but for state."""
        bytes_of = {
            self._places[value] + byte for value in kept for byte in range(self._size(value))
        }
        for at in range(len(self._memory)):
            if at not in bytes_of:
                self._memory[at] = None

    def write(self, moment: int, values: Iterable[int]) -> None:
        """Write all items that the tensors have."""
        for value in values:
            at = self._places[value]
            for byte in range(self._size(value)):
                self._memory[at + byte] = (moment, value, byte)

    def read(self, values: Iterable[int]) -> list[tuple[int, ...] | None]:
        """What the tensors hold."""
        return [
            self._memory[self._places[value] + byte]
            for value in values
            for byte in range(self._size(value))
        ]

    def step(self, moment: int, effect: Effect) -> list[tuple[int, ...] | None]:
        """Run an instruction; what it looked at."""
        found = self.read(effect.reads)
        self.write(moment, effect.updates)
        self.write(moment, (*effect.fills, *effect.scratch))
        return found


def run_alike(method: MethodEffects, values: Sequence[Value], choices: Sequence[int]) -> None:
    """Run a method with both plans along one way; what is read must be the same."""
    one, other = Machine(method, method.values), Machine(method, values)
    state = [
        n for n, v in enumerate(method.values) if isinstance(v, TensorValue) and v.is_mutable_state
    ]
    for machine in (one, other):
        machine.write(-1, state)
    for run in range(2):
        for machine in (one, other):
            machine.forget(state)
            machine.write(-2 - run, method.inputs)
        at, moment = 0, 1000 * run
        ways = iter(choices)
        while at < len(method.at) and moment < 1000 * run + 40:
            effect = method.at[at]
            _same(one.step(moment, effect), other.step(moment, effect))
            following = effect.next
            at = following[next(ways, 0) % len(following)]
            moment += 1
        if at < len(method.at):
            return
        ends = (*method.outputs, *state)
        _same(one.read(ends), other.read(ends))


def _same(one: Sequence[tuple[int, ...] | None], other: Sequence[tuple[int, ...] | None]) -> None:
    for was, now in zip(one, other, strict=True):
        # What nothing has written in this run may be anything.
        assert was is None or was == now
