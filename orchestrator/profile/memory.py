"""`[memory]`: memories of the board, and where planned tensors lie."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import combinations, permutations
from typing import Annotated, Final

from pydantic import Field, StrictStr

from orchestrator.errors import Diagnostic, SourceSpan, did_you_mean
from orchestrator.planner.policy import Fuse, Fusing, Planner, Recompute
from orchestrator.profile.choices import RegionKind
from orchestrator.profile.fields import (
    ADDRESS_END,
    Address,
    Alignment,
    ModelName,
    Size,
    choice,
    key_text,
    matching,
    shown,
)
from orchestrator.profile.models import ModelTable
from orchestrator.profile.paths import Facts
from orchestrator.profile.source_map import FindSpan, KeyPath
from orchestrator.profile.table import BrokenValueError, Table, sound
from orchestrator.profile.target import TargetTable, image_problems
from orchestrator.targets.boards import (
    ARENA_ALIGNMENT,
    NO_PLACES,
    Board,
    Concurrency,
    Places,
    Region,
)

_PERCENT: Final = "([0-9]{1,3}) ?%"
_REGIONS: Final[KeyPath] = ("memory", "regions")


class RegionTable(Table):
    """A memory of the board; any number of them: docs/targets.md.

    With an `origin` in one of them, they are all memories of a board of your own;
    without, they limit what is used of the board's.
    """

    name: ModelName = Field(
        description="Name of the memory; without `origin`, that of one of the board's.",
        examples=["dtcm"],
    )
    size_bytes: Size = Field(
        alias="size",
        description="Size of the memory, or of the part that may be used.",
        examples=["256 KiB"],
    )
    origin: Address | None = Field(
        default=None,
        description="First address. Default: that of the board's memory.",
        examples=[0x20000000],
    )
    kind: Annotated[RegionKind, *choice(RegionKind)] | None = Field(
        default=None,
        description="`flash`: code and constants. `ram`: everything that changes. "
        "Default: `ram`; without `origin`, that of the board's memory.",
        examples=["ram"],
    )


_Section = Annotated[
    StrictStr,
    *matching(
        "section",
        r"\.?[A-Za-z_][\w.$]*",
        expected="letters, digits and _ . $, no digit first",
        hint='name it as your linker script does, such as ".itcm"',
    ),
]


class SectionsTable(Table):
    """Names of sections in the library, for your own linker script: docs/runtime.md.

    `NAME` stands for sections `NAME.*`, one for each function, constant or arena.
    """

    weights: _Section | None = Field(
        default=None,
        description="Of programs and weights. Default: `.rodata.orch_model_*`.",
        examples=[".qspi_rodata"],
    )
    code: _Section | None = Field(
        default=None, description="Of functions. Default: `.text.*`.", examples=[".itcm"]
    )
    arenas: _Section | None = Field(
        default=None, description="Of arenas. Default: `.bss.orch_arena*`.", examples=[".bss.dtcm"]
    )

    @property
    def names(self) -> dict[str, str]:
        """Names that the profile gives, by key."""
        return {key: name for key, name in self if name is not None}


class MemoryTable(Table):
    """Memories of the board, and where planned tensors lie in them: docs/memory.md."""

    planner: Annotated[Planner, *choice(Planner)] = Field(
        default=Planner.BEST,
        description="`best`: the smallest plan that any planner finds. `greedy`: only "
        "the fast planners. `keep`: the offsets in the program. `separate`: memory of "
        "its own for every value, to look for faults.",
        examples=["best"],
    )
    fuse: Annotated[Fuse, *choice(Fuse)] = Field(
        default=Fuse.OFF,
        description="Whether operators of prelinked models run row by row, "
        "interleaved, with outputs over inputs: docs/memory.md. `smallest`: wherever "
        "that takes less memory. `auto`: as far as `max_slowdown` allows. "
        "`off`: never.",
        examples=["auto"],
    )
    max_slowdown: Annotated[
        StrictStr,
        *matching(
            "percentage",
            _PERCENT,
            expected='a whole number of percent, such as "10 %"',
            hint='write max_slowdown = "10 %"',
        ),
    ] = Field(
        default="10 %",
        description='How much slower a run may become with `fuse = "auto"`, and '
        "how much of that through `recompute`, with `smallest` as well: an estimate "
        "from the loops of kernels.",
        examples=["10 %"],
    )
    recompute: Annotated[Recompute, *choice(Recompute)] = Field(
        default=Recompute.OFF,
        description="What models by rows may compute a second time instead of keeping "
        "it. `skips`: images that are read again much later, as in a U-Net, where "
        "the arena gets smaller and `max_slowdown` allows it. Requires `fuse`. "
        "`off`: nothing.",
        examples=["skips"],
    )
    concurrency: Annotated[Concurrency, *choice(Concurrency)] = Field(
        default=Concurrency.PARALLEL,
        description="`parallel`: every method has its arenas for itself. `sequential`: "
        "methods never run at the same time, and their arenas overlap: inputs and "
        "outputs of a method are lost when another one runs.",
        examples=["sequential"],
    )
    alignment: Alignment = Field(
        default=ARENA_ALIGNMENT,
        description="Of arenas, in bytes: a line of the cache, so that maintaining it "
        "touches nothing else. Arenas begin at multiples and are as long as one.",
        examples=[32],
    )
    weights: ModelName | None = Field(
        default=None,
        description="Memory of the board, a flash, for programs and weights: an "
        "external one that is mapped, say. Default: the first that they fit.",
        examples=["qspi"],
    )
    code: ModelName | None = Field(
        default=None,
        description="Memory of the board for code. Of a RAM, such as an ITCM, the "
        "start-up of `firmware.elf` copies it there. Default: the first flash.",
        examples=["itcm"],
    )
    sections: SectionsTable = Field(
        default=SectionsTable(), description="Names of sections in the library."
    )
    regions: tuple[RegionTable, ...] = Field(default=(), description="Memories of the board.")

    @property
    def fusing(self) -> Fusing | None:
        """How far operators run by rows; None if they do not."""
        if self.fuse is Fuse.OFF:
            return None
        part = int(self.max_slowdown.rstrip("% ")) / 100
        return Fusing(
            max_slowdown=part if self.fuse is Fuse.AUTO else None,
            max_again=part if self.recompute is Recompute.SKIPS else 0,
        )

    @property
    def places(self) -> Places:
        """Memories for weights and code."""
        return Places(weights=self.weights, code=self.code)


def with_regions(board: Board, regions: Sequence[RegionTable], places: Places = NO_PLACES) -> Board:
    """A board with the memories that a profile describes.

    If one of them has an origin, they replace the memories of the board, in their
    order; otherwise they limit the board's memories. The emulator is kept if it has
    memory at all these addresses and starts at the first flash.

    Args:
        board: What the profile names.
        regions: Known to fit it.
        places: Memories for weights and code; among those that it then has.
    """
    known = {r.name: r for r in board.regions}
    chosen = {c.name: _described(c, known.get(c.name)) for c in regions}
    # Either every memory is one of the board's, made smaller, or the list is the whole
    # map: a mixture would leave it open whether a memory of the board that is not named
    # exists.
    limits = all(c.origin is None for c in regions)
    if limits:
        regions_now = tuple(chosen.get(r.name, r) for r in board.regions)
    else:
        regions_now = tuple(chosen.values())
    first, start = (
        next((r.origin for r in found if r.kind == "flash"), None)
        for found in (regions_now, board.regions)
    )
    # QEMU has the board's memories and nothing else, and starts at its first flash:
    # firmware for another map would run into nothing.
    there = first == start and all(any(r.is_within(k) for k in board.regions) for r in regions_now)
    return replace(
        board,
        regions=regions_now,
        emulator=board.emulator if there else (),
        is_own=board.is_own or any(c.origin is not None for c in regions),
        places=places,
        whole=board.regions if limits and regions else (),
    )


def _described(choice: RegionTable, known: Region | None) -> Region:
    if choice.origin is None and known is not None:
        return replace(known, size_bytes=choice.size_bytes)
    return Region(
        name=choice.name,
        origin=choice.origin or 0,
        size_bytes=choice.size_bytes,
        kind=choice.kind or "ram",
    )


def memory_problems(
    memory: MemoryTable,
    target: TargetTable,
    models: Callable[[], Iterable[ModelTable]],
    facts: Facts,
) -> Iterator[Diagnostic]:
    """Problems of `[[memory.regions]]`, and of models and images that need memories.

    Args:
        memory: The table.
        target: Target of the profile; with an invalid cpu or board it has no memories.
        models: Returns the models of the profile, which may be broken.
        facts: Further facts.
    """
    yield from _section_problems(memory, facts)
    yield from _recompute_problems(memory, facts)
    board = target.described_board
    if board is None:
        yield from _no_board(memory, models, target.cpu, facts)
        yield from image_problems(target, None, facts)
        return
    # Memories that are wrong make every arena and pin wrong as well: what follows from
    # them is not told.
    problems = [
        *duplicates(memory.regions, facts.span),
        *_against_board(memory.regions, board, facts),
    ]
    yield from problems
    if problems:
        return
    full = with_regions(board, memory.regions)
    if memory.regions and full.regions != board.regions:
        yield from whole_map(memory.regions, full, facts.span)
    yield from _pins(models(), full, facts)
    yield from _places(memory, full, facts)
    yield from image_problems(target, full, facts)


def _recompute_problems(memory: MemoryTable, facts: Facts) -> Iterator[Diagnostic]:
    """Nothing is computed again in a plan of whole tensors."""
    with suppress(BrokenValueError):
        if memory.recompute is not Recompute.OFF and memory.fuse is Fuse.OFF:
            yield Diagnostic.of(
                "bad-value",
                "memory.recompute requires memory.fuse",
                where=facts.span("memory", "recompute"),
                found=f'recompute = "{memory.recompute}", fuse = "off"',
                expected='fuse = "auto" or "smallest"',
                hint="set fuse, or remove recompute",
            )


def _section_problems(memory: MemoryTable, facts: Facts) -> Iterator[Diagnostic]:
    """Sections that a linker script would take for each other."""
    with suppress(BrokenValueError):
        named = memory.sections.names
        # Linker scripts match `.name.*`: `.itcm` would take `.itcm.data` too.
        for (first, short), (second, long) in permutations(named.items(), 2):
            if not f"{long}.".startswith(f"{short}."):
                continue
            if short == long and second < first:
                continue  # found the other way round
            where: KeyPath = ("memory", "sections", second)
            other: KeyPath = ("memory", "sections", first)
            yield Diagnostic.of(
                "bad-value",
                f"{key_text(where)} is part of {key_text(other)}",
                where=facts.span(*where),
                found=f"{long}.*, which {short}.* includes",
                expected="names of which none begins with another",
                hint="choose another name",
            )


def _no_board(
    memory: MemoryTable, models: Callable[[], Iterable[ModelTable]], cpu: str, facts: Facts
) -> Iterator[Diagnostic]:
    places = [_REGIONS] if memory.regions else [where for where, _ in _named(models())]
    places += [where for where, _, _ in _placed(memory)]
    for where in places[:1]:
        yield Diagnostic.of(
            "bad-region",
            f"{cpu} has no memories to choose from",
            where=facts.span(*where),
            found=key_text(where),
            expected="a cpu that has a board",
            hint="remove it, or build for a board",
        )


def duplicates(
    regions: Iterable[RegionTable], span: FindSpan, where: KeyPath = _REGIONS
) -> Iterator[Diagnostic]:
    """Problems of memories of the same name; `where` is the key path of the array."""
    first: dict[str, int] = {}
    for index, region in sound(regions):
        with suppress(BrokenValueError):
            name = region.name
            place = first.setdefault(name, index)
            if place != index:
                other: KeyPath = (*where, place)
                there = span(*other, "name")
                yield Diagnostic.of(
                    "duplicate-region",
                    f"two memories are named {shown(name)}",
                    where=span(*where, index, "name"),
                    found=f"{key_text(other)} is {shown(name)} too, {there}",
                    expected="a unique name for each memory",
                    hint="rename one of them",
                )


def _against_board(
    regions: Iterable[RegionTable], board: Board, facts: Facts
) -> Iterator[Diagnostic]:
    for index, region in sound(regions):
        with suppress(BrokenValueError):
            yield from _region_problems(region, (*_REGIONS, index), board, facts)


def beyond_the_end(choice: RegionTable, where: KeyPath, span: FindSpan) -> Iterator[Diagnostic]:
    """The problem of a memory that ends after the last address."""
    if choice.origin is not None and choice.origin + choice.size_bytes > ADDRESS_END:
        yield _problem(
            span(*where, "size"),
            f"memory {shown(choice.name)} ends after the last address",
            found=f"{choice.size_bytes} bytes from {choice.origin:#x}",
            expected=f"at most {ADDRESS_END - choice.origin} bytes",
            hint="correct origin or size",
        )


def _region_problems(
    choice: RegionTable, where: KeyPath, board: Board, facts: Facts
) -> Iterator[Diagnostic]:
    """Problems of a memory without origin: it must be the board's, and no larger."""
    known = {r.name: r for r in board.regions}
    region = known.get(choice.name)
    if choice.origin is not None:
        yield from beyond_the_end(choice, where, facts.span)
    elif region is None:
        yield Diagnostic.of(
            "unknown-region",
            f"{board.name} has no memory {shown(choice.name)}",
            where=facts.span(*where, "name"),
            known=", ".join(f"{r.name} ({r.kind})" for r in board.regions),
            hint=did_you_mean(choice.name, known) or "add its origin, if the board is your own",
        )
    elif choice.size_bytes > region.size_bytes:
        yield _problem(
            facts.span(*where, "size"),
            f"{shown(choice.name)} of {board.name} is smaller",
            found=f"{choice.size_bytes} bytes",
            expected=f"at most {region.size_bytes} bytes",
            hint="make it smaller, or add its origin, if the board is your own",
        )
    elif choice.kind not in (None, region.kind):
        yield _problem(
            facts.span(*where, "kind"),
            f"{shown(choice.name)} of {board.name} has another kind",
            found=str(choice.kind),
            expected=region.kind,
            hint="leave it out",
        )


def whole_map(
    regions: Iterable[RegionTable], board: Board, span: FindSpan, where: KeyPath = _REGIONS
) -> Iterator[Diagnostic]:
    """Problems of a whole memory map: a missing kind, memories that overlap.

    Args:
        regions: As written.
        board: As it is with them.
        span: Where a key path was written.
        where: Key path of the array.
    """
    for kind in RegionKind:
        if not any(r.kind == kind for r in board.regions):
            yield _problem(
                span(*where),
                f"no memory is of kind {kind}",
                found=", ".join(f"{r.name} ({r.kind})" for r in board.regions),
                expected="flash for code and constants, ram for everything else",
                hint=f'add a memory with kind = "{kind}"',
            )
    places = {region.name: index for index, region in enumerate(regions)}
    for a, b in combinations(board.regions, 2):
        if a.origin < b.end and b.origin < a.end:
            yield Diagnostic.of(
                "overlapping-regions",
                f"memories {shown(a.name)} and {shown(b.name)} overlap",
                where=span(*where, places[b.name]),
                found=f"{_range(a)} and {_range(b)}",
                expected="memories that have no address in common",
                hint="correct origin or size of one of them",
            )


def _named(models: Iterable[ModelTable]) -> Iterator[tuple[KeyPath, str]]:
    """Memories that models name, and the key paths that name them."""
    for index, model in sound(models):
        where: KeyPath = ("models", index)
        with suppress(BrokenValueError):
            if model.region is not None:
                yield (*where, "region"), model.region
        with suppress(BrokenValueError):
            for key, name in model.regions.items():
                yield (*where, "regions", key), name
        with suppress(BrokenValueError):
            for number, tensor in sound(model.tensors):
                with suppress(BrokenValueError):
                    yield (*where, "tensors", number, "region"), tensor.region


def _pins(models: Iterable[ModelTable], board: Board, facts: Facts) -> Iterator[Diagnostic]:
    """Problems of memories that models name but arenas cannot be in."""
    ram = [r.name for r in board.regions if r.kind == RegionKind.RAM]
    for where, name in _named(models):
        if name in ram:
            continue
        is_flash = any(r.name == name for r in board.regions)
        yield Diagnostic.of(
            "unknown-region",
            f"arenas cannot lie in {shown(name)}, which is flash"
            if is_flash
            else f"there is no memory {shown(name)}",
            where=facts.span(*where),
            known=", ".join(ram),
            hint=did_you_mean(name, ram) or "name one of these",
        )


def _placed(memory: MemoryTable) -> Iterator[tuple[KeyPath, str, tuple[RegionKind, ...]]]:
    """Memories of `[memory]` for weights and code: key path, name, kinds they take."""
    with suppress(BrokenValueError):
        if memory.weights is not None:
            yield ("memory", "weights"), memory.weights, (RegionKind.FLASH,)
    with suppress(BrokenValueError):
        if memory.code is not None:
            yield ("memory", "code"), memory.code, tuple(RegionKind)


def _places(memory: MemoryTable, board: Board, facts: Facts) -> Iterator[Diagnostic]:
    """Problems of memories that weights or code cannot be in."""
    for where, name, kinds in _placed(memory):
        known = [r.name for r in board.regions if r.kind in kinds]
        if name in known:
            continue
        is_ram = any(r.name == name for r in board.regions)
        yield Diagnostic.of(
            "unknown-region",
            f"weights cannot lie in {shown(name)}, which is ram"
            if is_ram
            else f"there is no memory {shown(name)}",
            where=facts.span(*where),
            known=", ".join(known),
            hint=(None if is_ram else did_you_mean(name, known)) or "name one of these",
        )


def _problem(
    where: SourceSpan, message: str, *, found: str, expected: str, hint: str
) -> Diagnostic:
    return Diagnostic.of(
        "bad-region", message, where=where, found=found, expected=expected, hint=hint
    )


def _range(region: Region) -> str:
    return f"{region.name} {region.origin:#x} to {region.end - 1:#x}"
