"""Functions of an object or executable: their code, and what it refers to.

Source: ELF gABI, chapter 4; ELF for the Arm Architecture (AAELF32) and RISC-V ELF
psABI: relocations and mapping symbols.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.measure import riscv, thumb
from orchestrator.measure.elf import (
    ARM,
    FUNCTION,
    LAST_INDEX,
    LOCAL,
    OBJECT,
    RISCV,
    UNDEFINED,
    ElfFile,
)
from orchestrator.measure.steps import Kind, Span, Step

if TYPE_CHECKING:
    from orchestrator.measure.elf import Relocation, Symbol


class _Machine(NamedTuple):
    """How the code of a machine is read.

    Args:
        steps: Its instructions that matter.
        mark: The letter of mapping symbols at instructions.
        branches: Types of relocations of calls and branches.
        notes: Types of relocations that refer to nothing.
        has_labels: Relocations of code may refer to labels in the same code, since
            linkers make it shorter.
    """

    steps: Callable[[bytes, Sequence[Span]], Iterator[Step]]
    mark: str
    branches: frozenset[int]
    notes: frozenset[int] = frozenset()
    has_labels: bool = False


def _riscv(steps: Callable[[bytes, Sequence[Span]], Iterator[Step]]) -> _Machine:
    return _Machine(
        steps,
        mark="x",
        # R_RISCV_BRANCH, _JAL, _CALL, _CALL_PLT, _RVC_BRANCH, _RVC_JUMP
        branches=frozenset({16, 17, 18, 19, 44, 45}),
        notes=frozenset({43, 51}),  # R_RISCV_ALIGN, _RELAX
        has_labels=True,
    )


_MACHINES: Final[Mapping[tuple[int, int], _Machine]] = MappingProxyType(
    {
        # R_ARM_THM_CALL, _JUMP24, _JUMP19, _JUMP11, _JUMP8
        (ARM, 32): _Machine(thumb.steps, "t", frozenset({10, 30, 51, 102, 103})),
        (RISCV, 32): _riscv(riscv.steps_32),
        (RISCV, 64): _riscv(riscv.steps_64),
    }
)
"""By machine and its bits."""


@dataclass(slots=True)
class Function:
    """One function, or a section of data.

    Args:
        names: That it is known by. Those of what only its own file knows begin with
            the path of that.
        is_data: Not a function.
        frame_bytes: It takes on the stack by its instructions: never too few.
        is_bounded: Whether its instructions determine that.
        calls: Names of functions it calls.
        tails: Names of functions it goes to when its own frame is gone.
        takes: Names of functions and data it knows the address of.
        calls_pointer: It calls an address in a register.
    """

    names: tuple[str, ...]
    is_data: bool = False
    frame_bytes: int = 0
    is_bounded: bool = True
    calls: set[str] = field(default_factory=set)
    tails: set[str] = field(default_factory=set)
    takes: set[str] = field(default_factory=set)
    calls_pointer: bool = False


def plain(name: str) -> str:
    """The symbol in one of the names of a function."""
    return name.rpartition(":")[2]


class _Link(NamedTuple):
    """What a relocation makes of a place."""

    names: tuple[str, ...]
    is_branch: bool


class CodeFile:
    """The functions of one file.

    Args:
        data: Bytes of a little-endian ELF file for Cortex-M or RISC-V.
        path: Makes the names of what is local to the file unique.

    Raises:
        ValueError: Not such a file, or a damaged one; also LookupError.
    """

    def __init__(self, data: bytes, path: str) -> None:
        self._elf = ElfFile(data)
        machine = _MACHINES.get((self._elf.machine, self._elf.bits))
        if machine is None:
            raise ValueError("a file for another machine")
        self._machine = machine
        self._path = path
        self._functions: dict[int, dict[int, tuple[str, ...]]] = {}
        self._sizes: dict[tuple[int, int], int] = {}
        self._data: dict[int, tuple[str, ...]] = {}
        self._marks: dict[int, list[tuple[int, str]]] = {}
        self._name()

    def functions(self) -> Iterator[Function]:
        """All functions, and in an object all sections of data that refer to some.

        They come in the order in which the compiler wrote them.
        """
        links = self._links()
        for index in sorted({*self._functions, *links}):
            if index in self._functions:
                yield from self._code(index, links.get(index, {}))
            else:
                takes = {n for link in links[index].values() for n in link.names}
                yield Function(self._data_names(index), is_data=True, takes=takes)

    def _code(self, index: int, links: dict[int, _Link]) -> Iterator[Function]:
        places = self._functions[index]
        starts = sorted(places)
        found = [Function(places[start]) for start in starts]

        def number(offset: int) -> int:
            # What is before the first function counts as part of it.
            return max(bisect_right(starts, offset) - 1, 0)

        def at(offset: int) -> Function:
            return found[number(offset)]

        for step in self._machine.steps(self._code_bytes(index), self._spans(index)):
            start = starts[number(step.offset)]
            size = self._sizes[index, start]
            if 0 < size <= step.offset - start:
                continue  # what linkers fill gaps with
            here = at(step.offset)
            if step.offset in links:
                ends = here.calls if step.kind is Kind.CALL else here.tails
                ends.update(links[step.offset].names)
            else:
                end = step.offset + step.value
                # libgcc's assembler calls parts of itself: what they take on the
                # stack is among what the instructions of the function take.
                is_part = end not in places and at(end) is here
                if step.kind is not Kind.CALL or not is_part:
                    _note(step, here, at(end), is_object=self._elf.kind == OBJECT)
        for offset, link in links.items():
            if not link.is_branch:
                at(offset).takes.update(link.names)
        yield from found

    def _spans(self, index: int) -> list[Span]:
        """Where instructions are: mapping symbols say `$t` or `$x` code, `$d` data."""
        # Older assemblers for RISC-V write none.
        marks = sorted(self._marks.get(index, [(0, "x")]))
        ends = [offset for offset, _ in marks[1:]]
        ends.append(len(self._code_bytes(index)))
        return [
            Span(begin, end)
            for (begin, what), end in zip(marks, ends, strict=False)
            if what == self._machine.mark
        ]

    def _links(self) -> dict[int, dict[int, _Link]]:
        """Relocations by section and offset."""
        found: dict[int, dict[int, _Link]] = {}
        if self._elf.kind != OBJECT:
            return found
        for place in self._elf.relocations():
            if place.kind in self._machine.notes or self._is_label(place):
                continue
            is_branch = place.kind in self._machine.branches
            link = _Link(self._targets(place.symbol), is_branch)
            found.setdefault(place.section, {})[place.offset] = link
        return found

    def _is_label(self, place: Relocation) -> bool:
        """Whether a place refers to a label in the code that it is in itself."""
        symbol = place.symbol
        return (
            self._machine.has_labels and symbol.section == place.section and symbol.kind != FUNCTION
        )

    def _targets(self, symbol: Symbol) -> tuple[str, ...]:
        """Names of what a symbol stands for."""
        if symbol.section >= LAST_INDEX:
            return ()
        if symbol.section == UNDEFINED:
            return (symbol.name,)
        places = self._functions.get(symbol.section)
        if places is None:
            return self._data_names(symbol.section)[:1]
        if symbol.kind == FUNCTION:
            return places[self._offset(symbol)][:1]
        # A section or a label in it: with a function per section it is that one.
        return tuple(names[0] for _, names in sorted(places.items()))

    def _data_names(self, index: int) -> tuple[str, ...]:
        return (f"{self._path}#{index}", *self._data.get(index, ()))

    def _code_bytes(self, index: int) -> bytes:
        return self._elf.contents(self._elf.sections[index])

    def _offset(self, symbol: Symbol) -> int:
        """Where a symbol is in its section, without the mark of Thumb code."""
        value = symbol.value & ~1 if symbol.kind == FUNCTION else symbol.value
        return value - self._elf.sections[symbol.section].address

    def _name(self) -> None:
        """Collect functions, data and marks; names that others know come first."""
        for symbol in sorted(self._elf.symbols, key=lambda s: (_is_local(s), s.name)):
            if not symbol.is_defined:
                continue
            if symbol.kind == FUNCTION:
                places = self._functions.setdefault(symbol.section, {})
                offset = self._offset(symbol)
                place = symbol.section, offset
                self._sizes[place] = max(symbol.size_bytes, self._sizes.get(place, 0))
                name = symbol.name
                if _is_local(symbol):
                    name = f"{self._path}:{symbol.section}.{offset}:{name}"
                places[offset] = (*places.get(offset, ()), name)
            elif symbol.name[:2] in (f"${self._machine.mark}", "$d"):
                mark = self._offset(symbol), symbol.name[1]
                self._marks.setdefault(symbol.section, []).append(mark)
            elif not _is_local(symbol):
                known = self._data.get(symbol.section, ())
                self._data[symbol.section] = (*known, symbol.name)


def _is_local(symbol: Symbol) -> bool:
    """No other file knows it.

    Linkers make local what other objects, but no other file, may know: that is hidden.
    """
    return symbol.binding == LOCAL and symbol.visibility == 0


def _note(step: Step, here: Function, there: Function, *, is_object: bool) -> None:
    """Take an instruction without relocation into account.

    Our objects have no tables of jumps. Those of the toolchain, read from the linked
    firmware, have some, and call nothing by a pointer.
    """
    match step.kind:
        case Kind.GROW:
            here.frame_bytes += step.value
        case Kind.UNKNOWN_GROW:
            here.is_bounded = False
        case Kind.CALL_POINTER:
            here.calls_pointer = True
        # Our objects have no tables of jumps on RISC-V (`-fno-jump-tables`,
        # targets/cores.py): what jumps by a register is a tail call. Those of the
        # toolchain do have them.
        case Kind.JUMP_POINTER:
            here.calls_pointer = here.calls_pointer or is_object
        case Kind.CALL:
            here.calls.add(there.names[0])
        case Kind.BRANCH if there is not here:
            here.tails.add(there.names[0])
