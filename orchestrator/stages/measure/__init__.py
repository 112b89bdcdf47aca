"""Stage `measure`: what a built firmware costs, and whose bytes they are.

From the ELF come sections and symbols, from the linker's map which input file each
byte of a section came from, from the compiler's `.su` files the stack frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.core.size import (
    Contributor,
    ContributorKind,
    SizeReport,
    SizeSymbol,
    SizeTarget,
    SizeTotals,
)
from orchestrator.stages.measure.account import account
from orchestrator.stages.measure.budget import check_budget
from orchestrator.stages.measure.demangle import demangle
from orchestrator.stages.measure.elf import read_elf
from orchestrator.stages.measure.link_map import read_map
from orchestrator.stages.measure.owner import Owners, source_of
from orchestrator.stages.measure.report import read_report, report_json
from orchestrator.stages.measure.stack import estimate_stack
from orchestrator.stages.measure.table import diff_table, size_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from orchestrator.core.memory import MemoryPlan
    from orchestrator.stages.measure.account import Account
    from orchestrator.stages.measure.elf import ElfSymbol
    from orchestrator.targets import Target

__all__ = [
    "check_budget",
    "diff_table",
    "measure",
    "read_report",
    "report_json",
    "size_table",
]

_KINDS = {kind: place for place, kind in enumerate(ContributorKind)}


def measure(  # what a build leaves behind
    *,
    profile: str,
    target: Target,
    elf: bytes,
    map_text: str,
    stack_usage: Mapping[str, str],
    memory: MemoryPlan,
) -> SizeReport:
    """Measure a linked firmware.

    Args:
        profile: Name of the profile.
        target: What was built for.
        elf: Bytes of firmware.elf.
        map_text: The map its linker wrote (GNU ld or lld).
        stack_usage: Texts of the `.su` files by the object next to them, relative to
            ninja's folder: `obj/runtime/src/executor.cpp.o`.
        memory: The plan it was built from; names models, methods and arenas.

    Raises:
        CompileError: ELF or map cannot be read (`elf-unreadable`, `map-unreadable`),
            do not belong together (`map-mismatch`), or the ELF does not fit the board
            (`no-region`).
    """
    image = read_elf(elf)
    map_sections = read_map(map_text, image.sections)
    owners = Owners(profile, stack_usage, memory)
    accounts = account(map_sections, image.symbols, owners, target.board)
    contributors = _contributors(accounts)
    symbols = _symbols(image.symbols, accounts)
    totals = _totals(contributors)
    return SizeReport(
        profile=profile,
        target=SizeTarget(
            cpu=target.cpu.name,
            isa=target.isa.name,
            board=target.board.name if target.board else "",
            toolchain=target.toolchain,
            optimize=str(target.optimize),
        ),
        totals=totals,
        regions=tuple(accounts.regions),
        sections=tuple(accounts.sections),
        contributors=contributors,
        symbols=symbols,
        stack=estimate_stack(
            {source_of(path): text for path, text in stack_usage.items()},
            symbols,
            reserve_bytes=totals.stack_bytes,
        ),
    )


def _contributors(accounts: Account) -> tuple[Contributor, ...]:
    flash, ram = accounts.flash_bytes, accounts.ram_bytes
    found = (
        Contributor(
            kind=kind,
            name=name,
            flash_bytes=flash.get((kind, name), 0),
            ram_bytes=ram.get((kind, name), 0),
        )
        for kind, name in {**flash, **ram}
    )
    return tuple(
        sorted(
            found,
            key=lambda c: (_KINDS[c.kind], -c.flash_bytes - c.ram_bytes, c.name),
        )
    )


def _totals(contributors: tuple[Contributor, ...]) -> SizeTotals:
    def ram_of(kind: ContributorKind) -> int:
        return sum(c.ram_bytes for c in contributors if c.kind is kind)

    ram = sum(c.ram_bytes for c in contributors)
    arenas = ram_of(ContributorKind.ARENA)
    states = ram_of(ContributorKind.METHOD_STATE)
    stack = ram_of(ContributorKind.STACK)
    return SizeTotals(
        flash_bytes=sum(c.flash_bytes for c in contributors),
        model_bytes=sum(
            c.flash_bytes for c in contributors if c.kind is ContributorKind.MODEL
        ),
        ram_bytes=ram,
        arena_bytes=arenas,
        state_bytes=states,
        data_bytes=ram - arenas - states - stack,
        stack_bytes=stack,
    )


def _symbols(symbols: Iterable[ElfSymbol], accounts: Account) -> tuple[SizeSymbol, ...]:
    """Functions and objects, symbols of the same bytes as one."""
    places: dict[tuple[int, int, bool], list[ElfSymbol]] = {}
    for symbol in symbols:
        place = (symbol.address, symbol.size_bytes, symbol.is_function)
        places.setdefault(place, []).append(symbol)
    found = []
    for (address, size_bytes, is_function), same in places.items():
        extent = accounts.extent_at(address)
        if extent is None:
            continue  # a symbol of the linker script, or a damaged one
        # The name to show: global before local, then the shortest.
        same.sort(key=lambda s: (s.is_local, len(s.name), s.name))
        owner = extent.owner
        found.append(
            SizeSymbol(
                name=demangle(same[0].name),
                symbol=same[0].name,
                aliases=tuple(sorted({s.name for s in same[1:]} - {same[0].name})),
                is_function=is_function,
                address=address,
                size_bytes=size_bytes,
                section=extent.section,
                object=owner.object,
                kind=owner.kind,
                contributor=owner.name,
            )
        )
    return tuple(sorted(found, key=lambda s: (-s.size_bytes, s.name, s.address)))
