"""Memories of the user's own board, and which arenas and tensors go to each."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

ARENA_ALIGNMENT = 16
"""Of arenas in bytes, unless the profile wants more; as in runtime/include/orch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Memories that the profile chose for what is the same in every product.

    Args:
        weights: For programs and weights; None: the first flash that has room.
        code: For code but the start-up's; None: the first flash.
    """

    weights: str | None = None
    code: str | None = None


NO_PLACES = Places()
"""Leaves both to the build."""


class Concurrency(StrEnum):
    """Whether methods of a product may run at the same time."""

    PARALLEL = "parallel"
    SEQUENTIAL = "sequential"


class TensorKind(StrEnum):
    """What the index of a pinned tensor counts."""

    INPUT = "input"
    OUTPUT = "output"
    VALUE = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorPin:
    """A tensor that the profile places in a chosen memory.

    Args:
        kind: What `index` counts.
        index: From 0 on.
        method: Whose tensor; None: that of every method.
        region: Name of the memory.
    """

    kind: TensorKind
    index: int
    method: str | None
    region: str

    @property
    def text(self) -> str:
        """As the profile names the tensor: `input 0`."""
        return f"{self.kind} {self.index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """Memories for the arenas of a model.

    Args:
        every: For all arenas; None leaves it to the build.
        by_id: (memory id, name), sorted: arenas that go to another one.
        tensors: Tensors that leave their arena for one in another memory, in the
            profile's order.
    """

    every: str | None = None
    by_id: tuple[tuple[int, str], ...] = ()
    tensors: tuple[TensorPin, ...] = ()

    def region(self, memory_id: int) -> str | None:
        """Name of the memory for an arena; None leaves it to the build."""
        return dict(self.by_id).get(memory_id, self.every)

    def tensor_arenas(self, first: int) -> dict[str, int]:
        """By memory: the id of the arena for tensors that are pinned to it.

        Args:
            first: Lowest memory id that may be used for them.
        """
        names = sorted({pin.region for pin in self.tensors})
        return {name: first + n for n, name in enumerate(names)}

    def with_tensor_arenas(self, first: int) -> Pins:
        """The same, with the arenas of pinned tensors among `by_id`."""
        added = ((i, name) for name, i in self.tensor_arenas(first).items())
        return replace(self, by_id=tuple(sorted((*self.by_id, *added))))


NO_PINS = Pins()
"""Leaves everything to the build."""
