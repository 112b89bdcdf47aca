"""Memories of a profile against each other and the board, and who asks for them."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, did_you_mean
from orchestrator.profile.explain import key_text
from orchestrator.profile.fields import parse_size, shown
from orchestrator.profile.parsed import array_of, table_of, text_of
from orchestrator.profile.region_tables import (
    ADDRESS_END,
    RegionKind,
    is_address,
)
from orchestrator.targets.boards import BOARDS, Board, with_regions
from orchestrator.targets.cores import CPUS
from orchestrator.targets.regions import RegionChoice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from orchestrator.profile.checked import KeyPath
    from orchestrator.profile.document import Document
    from orchestrator.targets.boards import Region

_REGIONS: KeyPath = ("memory", "regions")


def check_regions(document: Document) -> Iterator[Diagnostic]:
    """Every problem of `[[memory.regions]]`, and of models that name a memory.

    A profile whose cpu or board is wrong has other problems.
    """
    cpu = CPUS.get(text_of(document, "target", "cpu") or "")
    if cpu is None:
        return
    board = BOARDS.get(text_of(document, "target", "board") or cpu.default_board or "")
    entries = array_of(document, *_REGIONS)
    if board is None:
        yield from _no_board(document, cpu.name)
        return
    choices = _choices(document)
    problems = [
        *_duplicates(document),
        *_against_board(document, choices, board),
    ]
    yield from problems
    if problems or len(choices) != len(entries):
        return
    full = with_regions(board, tuple(choices.values()))
    if choices and full.regions != board.regions:
        yield from _whole_map(document, full)
    yield from _pins(document, full)


def _no_board(document: Document, cpu: str) -> Iterator[Diagnostic]:
    if CPUS[cpu].default_board:
        return  # the board is unknown, which is reported
    named = [_REGIONS] if array_of(document, *_REGIONS) else []
    named += [where for where, _ in _named(document)]
    for where in named[:1]:
        yield Diagnostic(
            code="bad-region",
            message=f"{cpu} has no memories to choose from",
            where=document.span(*where),
            notes=(("found", key_text(where)), ("expected", "a cpu that has a board")),
            hint="remove it, or build for a board",
        )


def _choices(document: Document) -> dict[int, RegionChoice]:
    """Entries that are of the right types, by place."""
    found = {}
    for index, entry in enumerate(array_of(document, *_REGIONS)):
        if not isinstance(entry, dict):
            continue
        name, size, kind = (entry.get(key) for key in ("name", "size", "kind"))
        origin = entry.get("origin")
        if (
            isinstance(name, str)
            and isinstance(size, str)
            and (size_bytes := parse_size(size))
            and (origin is None or is_address(origin))
            and (kind is None or kind in set(RegionKind))
        ):
            found[index] = RegionChoice(
                name=name, size_bytes=size_bytes, origin=origin, kind=kind
            )
    return found


def _duplicates(document: Document) -> Iterator[Diagnostic]:
    first: dict[str, int] = {}
    for index in range(len(array_of(document, *_REGIONS))):
        name = text_of(document, *_REGIONS, index, "name")
        if name is None:
            continue
        if name in first:
            other: KeyPath = (*_REGIONS, first[name])
            span = document.span(*other, "name")
            yield Diagnostic(
                code="duplicate-region",
                message=f"two memories are named {shown(name)}",
                where=document.span(*_REGIONS, index, "name"),
                notes=(
                    ("found", f"{key_text(other)} is {shown(name)} too, {span}"),
                    ("expected", "a name of its own for each memory"),
                ),
                hint="rename one of them",
            )
        first.setdefault(name, index)


def _against_board(
    document: Document, choices: Mapping[int, RegionChoice], board: Board
) -> Iterator[Diagnostic]:
    """Memories without an origin must be the board's, and no larger."""
    known = {r.name: r for r in board.regions}
    for index, choice in choices.items():
        where: KeyPath = (*_REGIONS, index)
        region = known.get(choice.name)
        if choice.origin is not None:
            if choice.origin + choice.size_bytes > ADDRESS_END:
                yield _problem(
                    document,
                    (*where, "size"),
                    f"memory {shown(choice.name)} ends behind the last address",
                    found=f"{choice.size_bytes} bytes from {choice.origin:#x}",
                    expected=f"at most {ADDRESS_END - choice.origin} bytes",
                    hint="correct origin or size",
                )
        elif region is None:
            yield Diagnostic(
                code="unknown-region",
                message=f"{board.name} has no memory {shown(choice.name)}",
                where=document.span(*where, "name"),
                notes=(("known", _list(board)),),
                hint=did_you_mean(choice.name, known)
                or "add its origin, if the board is one of your own",
            )
        elif choice.size_bytes > region.size_bytes:
            yield _problem(
                document,
                (*where, "size"),
                f"{shown(choice.name)} of {board.name} is smaller",
                found=f"{choice.size_bytes} bytes",
                expected=f"at most {region.size_bytes} bytes",
                hint="make it smaller, or add its origin, if the board is your own",
            )
        elif choice.kind not in (None, region.kind):
            yield _problem(
                document,
                (*where, "kind"),
                f"{shown(choice.name)} of {board.name} is of another kind",
                found=str(choice.kind),
                expected=region.kind,
                hint="leave it out",
            )


def _whole_map(document: Document, board: Board) -> Iterator[Diagnostic]:
    """Both kinds are there, and nothing is twice."""
    for kind in RegionKind:
        if not any(r.kind == kind for r in board.regions):
            yield _problem(
                document,
                _REGIONS,
                f"no memory is of kind {kind}",
                found=", ".join(f"{r.name} ({r.kind})" for r in board.regions),
                expected="flash for code and constants, ram for everything else",
                hint=f'add a memory with kind = "{kind}"',
            )
    for a, b in combinations(board.regions, 2):
        if a.origin < b.end and b.origin < a.end:
            index = [
                text_of(document, *_REGIONS, i, "name")
                for i in range(len(array_of(document, *_REGIONS)))
            ].index(b.name)
            yield Diagnostic(
                code="overlapping-regions",
                message=f"memories {shown(a.name)} and {shown(b.name)} overlap",
                where=document.span(*_REGIONS, index),
                notes=(
                    ("found", f"{_range(a)} and {_range(b)}"),
                    ("expected", "memories that have no address in common"),
                ),
                hint="correct origin or size of one of them",
            )


def _named(document: Document) -> Iterator[tuple[KeyPath, str]]:
    """Memories that models name, and where."""
    for index in range(len(array_of(document, "models"))):
        where: KeyPath = ("models", index)
        name = text_of(document, *where, "region")
        if name is not None:
            yield (*where, "region"), name
        for key, value in table_of(document, *where, "regions").items():
            if isinstance(value, str):
                yield (*where, "regions", key), value
        for number in range(len(array_of(document, *where, "tensors"))):
            tensor = (*where, "tensors", number)
            name = text_of(document, *tensor, "region")
            if name is not None:
                yield (*tensor, "region"), name


def _pins(document: Document, board: Board) -> Iterator[Diagnostic]:
    ram = [r.name for r in board.regions if r.kind == RegionKind.RAM]
    for where, name in _named(document):
        if name in ram:
            continue
        is_flash = any(r.name == name for r in board.regions)
        yield Diagnostic(
            code="unknown-region",
            message=f"arenas cannot lie in {shown(name)}, which is flash"
            if is_flash
            else f"there is no memory {shown(name)}",
            where=document.span(*where),
            notes=(("known", ", ".join(ram)),),
            hint=did_you_mean(name, ram) or "name one of these",
        )


def _problem(
    document: Document,
    where: KeyPath,
    message: str,
    *,
    found: str,
    expected: str,
    hint: str,
) -> Diagnostic:
    return Diagnostic(
        code="bad-region",
        message=message,
        where=document.span(*where),
        notes=(("found", found), ("expected", expected)),
        hint=hint,
    )


def _list(board: Board) -> str:
    return ", ".join(f"{r.name} ({r.kind})" for r in board.regions)


def _range(region: Region) -> str:
    return f"{region.name} {region.origin:#x} to {region.end - 1:#x}"
