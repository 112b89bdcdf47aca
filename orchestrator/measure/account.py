"""Every byte of the firmware to exactly one contributor."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.errors import CompileError, Diagnostic
from orchestrator.measure.owner import PADDING, STACK, Owner, Owners, demangle
from orchestrator.measure.size import RegionUse, SizePart, SizeSection

if TYPE_CHECKING:
    from orchestrator.measure.elf import ElfSection, ElfSymbol
    from orchestrator.measure.link_map import MapPiece, MapSection
    from orchestrator.measure.size import ContributorKind
    from orchestrator.targets.cores import Board, Region

_STACK_SECTION: Final = ".stack"
"""In the generated linker script."""
# Bytes. ALIGN(16) of models in templates/firmware.ld.jinja is the largest that a script
# has besides the arenas', whose sections have that alignment themselves.
_LEAST_ALIGNMENT: Final = 16
"""Scripts align ends of sections to this at most, whatever the section itself needs."""


_Share: TypeAlias = "tuple[str, ContributorKind, str, tuple[str, ...]]"
"""Section, kind and name of the owner, operators."""
_Span: TypeAlias = tuple[int, int, Owner]
"""First address, first address after it, and whose they are."""


@dataclass(frozen=True, slots=True)
class Extent:
    """Addresses of a section, from `begin` to before `end`, that have one owner."""

    begin: int
    end: int
    owner: Owner
    section: str


@dataclass(slots=True)
class Account:
    """Where every byte went.

    Args:
        sections: By address.
        regions: In the board's order.
        extents: All bytes of all sections, by address.
        flash_bytes: By section ("" for gaps between sections), owner's kind and name,
            and the operators that alone need the bytes.
        ram_bytes: Likewise.
    """

    sections: list[SizeSection] = field(default_factory=list)
    regions: list[RegionUse] = field(default_factory=list)
    extents: list[Extent] = field(default_factory=list)
    flash_bytes: Counter[_Share] = field(default_factory=Counter)
    ram_bytes: Counter[_Share] = field(default_factory=Counter)

    def add(
        self, owner: Owner, size_bytes: int, *, in_flash: bool, in_ram: bool, section: str = ""
    ) -> None:
        """Count bytes of an owner."""
        key = (section, owner.kind, owner.name, owner.operators)
        for counts, counted in ((self.flash_bytes, in_flash), (self.ram_bytes, in_ram)):
            if counted and size_bytes:
                counts[key] += size_bytes

    def parts(self) -> Iterable[SizePart]:
        """Every byte, as it was counted; in the order of sections."""
        for share in dict.fromkeys((*self.flash_bytes, *self.ram_bytes)):
            section, kind, name, operators = share
            yield SizePart(
                section=section,
                kind=kind,
                contributor=name,
                operators=operators,
                flash_bytes=self.flash_bytes[share],
                ram_bytes=self.ram_bytes[share],
            )

    def extent_at(self, address: int) -> Extent | None:
        """Whose byte it is; None if it is in no section or padding."""
        index = bisect_right(self.extents, address, key=lambda e: e.begin) - 1
        if index < 0 or address >= self.extents[index].end:
            return None
        extent = self.extents[index]
        return None if extent.owner == PADDING else extent


def account(
    map_sections: Mapping[ElfSection, MapSection],
    symbols: Sequence[ElfSymbol],
    owners: Owners,
    board: Board | None,
) -> Account:
    """Divide all sections among their owners.

    Bytes between two input sections, and between two sections of one memory, are
    padding.

    Raises:
        CompileError: A section lies in no memory of the board (`no-region`).
    """
    result = Account()
    # States of methods lie in .bss of the API's object. They are told apart by symbols,
    # as a map lists whole input sections.
    variables = [
        (symbol, owner)
        for symbol in symbols
        if not symbol.is_function
        and (owner := owners.of_variable(demangle(symbol.name))) is not None
    ]
    uses = {r.name: list[tuple[int, int]]() for r in board.regions} if board else {}
    for section, in_map in map_sections.items():
        described = _describe(section, board)
        result.sections.append(described)
        if described.region:
            uses[described.region].append((section.address, section.end))
        if described.load_region and section.load_address is not None:
            # .data, and code that the start-up copies, take flash where they are stored
            # and RAM where they run: both regions are that much fuller.
            load_end = section.load_address + section.size_bytes
            uses[described.load_region].append((section.load_address, load_end))
        for begin, end, owner in _divide(section, in_map, variables, owners):
            result.extents.append(Extent(begin, end, owner, section.name))
            result.add(
                owner,
                end - begin,
                in_flash=described.in_flash,
                in_ram=described.in_ram,
                section=section.name,
            )
    for region in board.regions if board else ():
        result.regions.append(_use(region, uses[region.name], result))
    if board is None:
        _pad_host(list(map_sections), result)
    return result


def _describe(section: ElfSection, board: Board | None) -> SizeSection:
    region = load = ""
    in_flash, in_ram = section.load_address is not None, section.writable
    if board is not None:
        here = there = _region(board, section.address, section)
        if section.load_address is not None:
            there = _region(board, section.load_address, section)
        region, load = here.name, there.name if there is not here else ""
        in_flash, in_ram = (kind in (here.kind, there.kind) for kind in ("flash", "ram"))
    return SizeSection(
        name=section.name,
        address=section.address,
        size_bytes=section.size_bytes,
        region=region,
        load_region=load,
        in_flash=in_flash,
        in_ram=in_ram,
    )


def _region(board: Board, address: int, section: ElfSection) -> Region:
    for region in board.regions:
        if region.origin <= address < region.origin + region.size_bytes:
            return region
    raise CompileError(
        Diagnostic(
            code="no-region",
            message=f"section {section.name} lies in no memory of {board.name}",
            notes=(
                ("found", f"{section.size_bytes} bytes at {address:#x}"),
                *(
                    ("region", f"{r.name}: {r.size_bytes} bytes at {r.origin:#x}")
                    for r in board.regions
                ),
            ),
            hint="place it with the linker script",
        )
    )


def _divide(
    section: ElfSection,
    in_map: MapSection,
    variables: Sequence[tuple[ElfSymbol, Owner]],
    owners: Owners,
) -> Iterable[_Span]:
    # No input section has these bytes: the script moves its own position.
    if section.name == _STACK_SECTION:
        yield section.address, section.end, STACK
        return
    bound = max(section.align_bytes, _LEAST_ALIGNMENT)
    cursor = section.address

    def gap(end: int) -> Iterable[_Span]:
        if cursor < end:
            # As much as alignment cannot explain is something the map does not list.
            is_padding = end - cursor < bound
            owner = PADDING if is_padding else Owners.unlisted(section.name)
            yield cursor, end, owner

    # Maps are in the order of linking, which is by address except for merged and folded
    # sections.
    for piece in sorted(in_map.pieces, key=lambda p: (p.address, p.end)):
        yield from gap(piece.address)
        for begin, end, owner in _split(piece, variables, owners):
            if end > cursor:  # pieces that were folded share their bytes
                yield max(begin, cursor), end, owner
                cursor = end
    yield from gap(section.end)


def _split(
    piece: MapPiece, variables: Sequence[tuple[ElfSymbol, Owner]], owners: Owners
) -> Iterable[_Span]:
    """A piece, with the variables in it that count on their own cut out."""
    owner = owners.of_piece(piece.section, piece.file)
    cursor = piece.address
    first, end = (
        bisect_left(variables, address, key=lambda found: found[0].address)
        for address in (piece.address, piece.end)
    )
    for symbol, own in variables[first:end]:
        if symbol.address < cursor:
            continue  # lies over the one before
        if cursor < symbol.address:
            yield cursor, symbol.address, owner
        cursor = min(symbol.address + symbol.size_bytes, piece.end)
        yield symbol.address, cursor, Owner(own.kind, own.name, owner.object)
    if cursor < piece.end:
        yield cursor, piece.end, owner


def _use(region: Region, uses: list[tuple[int, int]], result: Account) -> RegionUse:
    """How full a region is; gaps between its sections become padding."""
    begin = cursor = min((b for b, _ in uses), default=region.origin)
    for use_begin, use_end in sorted(uses):
        gap = max(0, use_begin - cursor)
        is_flash = region.kind == "flash"
        result.add(PADDING, gap, in_flash=is_flash, in_ram=not is_flash)
        cursor = max(cursor, use_end)
    return RegionUse(
        name=region.name, kind=region.kind, size_bytes=region.size_bytes, used_bytes=cursor - begin
    )


def _pad_host(sections: list[ElfSection], result: Account) -> None:
    """Gaps for alignment between sections; rests of pages cost no file and no RAM."""
    for before, after in pairwise(sections):
        gap = after.address - before.end
        # On hosts a new segment begins on another page: such a gap is addresses only.
        if 0 < gap < after.align_bytes:
            result.add(PADDING, gap, in_flash=after.load_address is not None, in_ram=after.writable)
