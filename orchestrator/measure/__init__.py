"""What a built firmware costs: flash, RAM and stack, and what each byte is for.

In: the ELF with sections and symbols, the linker's map with the input file of each
byte, the compiler's `.su` files with frame sizes, and the objects, whose relocations
show which code an operator needs. Out: a `SizeReport`, as JSON, tables and differences.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from orchestrator.measure.account import account
from orchestrator.measure.budget import check_budget
from orchestrator.measure.call_graph import read_calls
from orchestrator.measure.dtypes import compare_dtypes
from orchestrator.measure.elf import read_firmware
from orchestrator.measure.groups import By, changed_rows
from orchestrator.measure.link_map import read_map
from orchestrator.measure.owner import Owners, demangle
from orchestrator.measure.size import (
    Contributor,
    ContributorKind,
    SizePart,
    SizeReport,
    SizeSymbol,
    SizeTarget,
    SizeTotals,
    read_report,
    report_json,
)
from orchestrator.measure.stack import CalledKernels, firmware_stack, size_methods
from orchestrator.measure.table import (
    diff_document,
    diff_table,
    dtype_notice,
    group_document,
    group_table,
    size_summary,
    size_table,
)
from orchestrator.measure.users import size_operators, users_of
from orchestrator.memory.plan import MemoryPlan
from orchestrator.method.linked import LinkedMethod

if TYPE_CHECKING:
    from orchestrator.measure.account import Account
    from orchestrator.measure.elf import ElfSymbol
    from orchestrator.selection.resolution import Resolution
    from orchestrator.targets.cores import Target

__all__ = [
    "By",
    "changed_rows",
    "check_budget",
    "compare_dtypes",
    "diff_document",
    "diff_table",
    "dtype_notice",
    "group_document",
    "group_table",
    "measure",
    "read_report",
    "report_json",
    "size_summary",
    "size_table",
]

_KINDS = {kind: place for place, kind in enumerate(ContributorKind)}


def measure(
    *,
    profile: str,
    target: Target,
    elf: bytes,
    map_text: str,
    stack_usage: Mapping[str, str],
    memory: MemoryPlan,
    objects: Mapping[str, bytes],
    resolution: Resolution,
    linked: Iterable[LinkedMethod] = (),
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
        objects: Bytes of the objects, by path likewise; without them no code is known
            to be an operator's.
        resolution: Names operators and kernels.
        linked: Methods of prelinked models; passes chose kernels for their calls.

    Raises:
        CompileError: ELF, map or an object cannot be read (`elf-unreadable`,
            `map-unreadable`, `object-unreadable`), ELF and map do not belong together
            (`map-mismatch`), or the ELF does not fit the board (`no-region`).
    """
    firmware = read_firmware(elf)
    map_sections = read_map(map_text, firmware.sections)
    linked = tuple(linked)
    operators = size_operators(resolution, linked)
    # Owners are made twice: who uses a section is found over owners of objects, and
    # those that divide the bytes then know the users.
    owners = Owners(profile, stack_usage, memory)
    users = users_of(map_sections.values(), objects, operators, owners)
    owners = Owners(profile, stack_usage, memory, users)
    accounts = account(map_sections, firmware.symbols, owners, target.board)
    parts = tuple(accounts.parts())
    contributors = _contributors(parts)
    symbols = _symbols(firmware.symbols, accounts)
    totals = _totals(contributors)
    graph = read_calls(objects, stack_usage, elf) if target.board and objects else None
    kernels = CalledKernels(resolution, linked)
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
        stack=firmware_stack(graph, kernels, reserve_bytes=totals.stack_bytes) if graph else None,
        parts=parts,
        operators=operators,
        missing=tuple(map(str, resolution.missing)),
        methods=size_methods(profile, memory, graph, kernels),
    )


def _contributors(parts: Iterable[SizePart]) -> tuple[Contributor, ...]:
    costs: dict[tuple[ContributorKind, str], list[SizePart]] = {}
    for part in parts:
        costs.setdefault((part.kind, part.contributor), []).append(part)
    found = (
        Contributor(
            kind=kind,
            name=name,
            flash_bytes=sum(p.flash_bytes for p in same),
            ram_bytes=sum(p.ram_bytes for p in same),
        )
        for (kind, name), same in costs.items()
    )
    return tuple(
        sorted(found, key=lambda c: (_KINDS[c.kind], -c.flash_bytes - c.ram_bytes, c.name))
    )


def _totals(contributors: tuple[Contributor, ...]) -> SizeTotals:
    kinds = {kind: [c for c in contributors if c.kind is kind] for kind in ContributorKind}
    ram = {kind: sum(c.ram_bytes for c in parts) for kind, parts in kinds.items()}
    arenas, states = ram.pop(ContributorKind.ARENA), ram.pop(ContributorKind.METHOD_STATE)
    stack = ram.pop(ContributorKind.STACK)
    data = sum(ram.values())
    return SizeTotals(
        flash_bytes=sum(c.flash_bytes for c in contributors),
        model_bytes=sum(c.flash_bytes for c in kinds[ContributorKind.MODEL]),
        ram_bytes=arenas + states + stack + data,
        arena_bytes=arenas,
        state_bytes=states,
        data_bytes=data,
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
