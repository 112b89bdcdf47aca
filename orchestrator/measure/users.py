"""Which operators need a piece of code: what their kernels reach, and nothing else.

An input section is an operator's if the relocations of the objects lead to it from the
operator's kernel, and no way leads to it from what every firmware has. The kernel
table is where the two meet: its references count for neither.

Sections of one name in one object count as one, also in all objects if the linker
merges equal items of theirs. A reference into a section that the linker took out of
another object (an inline function) leads to that one. So doubt always makes bytes
shared, never an operator's own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.errors import CompileError
from orchestrator.measure.elf import LOCAL, SECTION, ElfFile
from orchestrator.measure.owner import is_merged, mangled_start
from orchestrator.measure.size import ContributorKind as Kind
from orchestrator.measure.size import SizeOperator
from orchestrator.method.linked import LinkedCall, LinkedMethod

if TYPE_CHECKING:
    from orchestrator.core.operator import OperatorName
    from orchestrator.measure.link_map import MapSection
    from orchestrator.measure.owner import Owners
    from orchestrator.selection.resolution import Resolution

Node = tuple[str, str]
"""Object, as `Owner.object` has it, and name of an input section."""

_DIVIDED: Final = frozenset({Kind.KERNEL, Kind.RUNTIME})
"""What can be an operator's: the objects of all others hold what every product has."""


def size_operators(
    resolution: Resolution, linked: Iterable[LinkedMethod] = ()
) -> tuple[SizeOperator, ...]:
    """The operators of a product, and who needs them.

    Args:
        resolution: Names operators and kernels.
        linked: Methods of prelinked models; passes chose kernels for their calls.
    """
    chosen: dict[OperatorName, set[str]] = {}
    for method in linked:
        for call in method.instructions:
            if isinstance(call, LinkedCall):
                chosen.setdefault(call.operator, set()).add(call.function)
    found = []
    for operator in resolution.operators:
        origins = [o for binding in operator.bindings for o in binding.origins]
        functions = {binding.kernel.function for binding in operator.bindings}
        functions |= chosen.get(operator.name, set())
        found.append(
            SizeOperator(
                name=str(operator.name),
                functions=tuple(sorted(functions)),
                models=tuple(sorted({o.source for o in origins if o.method})),
                keys=tuple(sorted({o.source for o in origins if not o.method})),
            )
        )
    return tuple(found)


def users_of(
    maps: Iterable[MapSection],
    objects: Mapping[str, bytes],
    operators: Iterable[SizeOperator],
    owners: Owners,
) -> dict[Node, tuple[str, ...]]:
    """The operators that need an input section, if nothing else does.

    Args:
        maps: The linker's map: what is linked.
        objects: Bytes of all objects by path, `obj/runtime/src/model.cpp.o`; empty if
            they are not there, then nothing is any operator's.
        operators: With the functions of their kernels.
        owners: Of the linked pieces.

    Raises:
        CompileError: An object is damaged (`object-unreadable`).
    """
    if not objects:
        return {}
    pieces = {
        (owner.object, piece.section): owner.kind
        for section in maps
        for piece in section.pieces
        for owner in [owners.of_piece(piece.section, piece.file)]
        if owner.object
    }
    found = [(owners.reported(p), read_object(d, path=p)) for p, d in sorted(objects.items())]
    graph = _Graph(pieces, found)
    kernels = {
        operator.name: {n for f in operator.functions for n in graph.functions(f)}
        for operator in operators
    }
    # Tables of prelinked methods name kernels, and all products have tables.
    always = graph.reach(
        (node for node, kind in pieces.items() if kind not in _DIVIDED),
        without=frozenset().union(*kernels.values()),
    )
    users: dict[Node, list[str]] = {}
    for name, roots in kernels.items():
        for node in graph.reach(roots) - always:
            users.setdefault(node, []).append(name)
    return {node: tuple(sorted(names)) for node, names in users.items()}


class _Graph:
    """Linked sections, and which refers to which.

    Args:
        pieces: What each of them is.
        objects: With their names, as `Owner.object` has them; several may have one name.
    """

    def __init__(
        self, pieces: Mapping[Node, Kind], objects: Sequence[tuple[str, ObjectFile]]
    ) -> None:
        self._by_symbol: dict[str, set[Node]] = {}
        for name, found in objects:
            for symbol, section in found.defined.items():
                if (name, section) in pieces:
                    self._by_symbol.setdefault(symbol, set()).add((name, section))
        by_section: dict[str, list[Node]] = {}
        for node in pieces:
            by_section.setdefault(node[1], []).append(node)
        self._edges: dict[Node, set[Node]] = {}
        for name, found in objects:
            for section, references in found.references.items():
                node = (name, section)
                if pieces.get(node, Kind.KERNEL_TABLE) is Kind.KERNEL_TABLE:
                    continue  # it leads nowhere
                ends = self._edges.setdefault(node, set())
                for reference in references:
                    here = (name, reference.section)
                    if here in pieces and not is_merged(reference.section):
                        ends.add(here)
                    else:  # defined elsewhere, or the linker kept another copy
                        ends |= self._by_symbol.get(reference.symbol, set())
                        ends.update(by_section.get(reference.section, ()))

    def functions(self, name: str) -> set[Node]:
        """Where functions of a qualified C++ name are."""
        start = mangled_start(name)
        return {
            node
            for symbol, nodes in self._by_symbol.items()
            if symbol == name or symbol.startswith(start)
            for node in nodes
        }

    def reach(self, roots: Iterable[Node], without: Collection[Node] = frozenset()) -> set[Node]:
        """The roots and all they lead to, but nothing of `without` or behind it alone."""
        found: set[Node] = set()
        queue = list(roots)
        while queue:
            node = queue.pop()
            if node not in found and node not in without:
                found.add(node)
                queue += self._edges.get(node, ())
        return found


class Reference(NamedTuple):
    """What a relocation refers to.

    Args:
        section: Of the same object; "" if it is defined elsewhere.
        symbol: Name that other objects know it by; "" for what is local.
    """

    section: str
    symbol: str


class ObjectFile(NamedTuple):
    """Sections of an object that its symbols are in, and that refer to which others.

    Sections of one name count as one. A symbol that other objects do not know is left out.
    """

    defined: dict[str, str]
    references: dict[str, set[Reference]]


def read_object(data: bytes, *, path: str) -> ObjectFile:
    """Symbols and references of an object file.

    Raises:
        CompileError: Not a little-endian ELF object, or a damaged one
            (`object-unreadable`).
    """
    try:
        return _read(ElfFile(data))
    except (LookupError, ValueError) as error:
        raise CompileError.of(
            "object-unreadable",
            f"{path} cannot be read",
            found=f"{len(data)} bytes, {error or type(error).__name__}",
            expected="a little-endian ELF object",
            hint="delete the build folder and build again",
        ) from error


def _read(elf: ElfFile) -> ObjectFile:
    ends = {
        symbol: Reference(
            elf.sections[symbol.section].name if symbol.is_defined else "",
            symbol.name if symbol.binding != LOCAL and symbol.kind != SECTION else "",
        )
        for symbol in elf.symbols
    }
    references: dict[str, set[Reference]] = {}
    for place in elf.relocations():
        section = elf.sections[place.section].name
        references.setdefault(section, set()).add(ends[place.symbol])
    defined = {end.symbol: end.section for end in ends.values() if end.symbol and end.section}
    return ObjectFile(defined, references)
