"""Boards as data: memory maps, and emulators where there are any.

To add a board, add a row; no code branches on names.

Sources: QEMU `hw/arm/mps2.c`, `mps2-tz.c`, `nrf51_soc.c`; Arm's default memory map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.targets.regions import RegionChoice

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """A memory of a board.

    Args:
        name: In linker script and reports.
        origin: First address.
        size_bytes: Length.
        kind: `flash` (code and constants) or `ram`.
    """

    name: str
    origin: int
    size_bytes: int
    kind: str

    @property
    def end(self) -> int:
        """The first address after it."""
        return self.origin + self.size_bytes

    def is_within(self, other: Region) -> bool:
        """Whether another memory has all of its addresses."""
        return other.origin <= self.origin and self.end <= other.end


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """A board, emulated or not.

    Args:
        name: As the profile writes it.
        cpu: Its core.
        also_runs: Cores whose code its core runs as well.
        regions: Memories, the preferred one of each kind first.
        stack_bytes: Reserved for the stack.
        emulator: Program and arguments; the firmware's path follows `-kernel`. Empty:
            firmware can be built, but not run.
        is_own: A profile describes its memories.
    """

    name: str
    cpu: str
    also_runs: tuple[str, ...] = ()
    regions: tuple[Region, ...]
    stack_bytes: int
    emulator: tuple[str, ...]
    is_own: bool = False

    @property
    def cpus(self) -> tuple[str, ...]:
        """Cores whose firmware it runs, its own first."""
        return (self.cpu, *self.also_runs)


def with_regions(board: Board, regions: Sequence[RegionChoice]) -> Board:
    """A board with the memories that a profile describes.

    If one of them has an origin, they replace the memories of the board, in their
    order; otherwise they limit the board's memories. The emulator is kept if it has
    memory at all these addresses and starts at the first flash.

    Args:
        board: What the profile names.
        regions: Known to fit it.
    """
    known = {r.name: r for r in board.regions}
    chosen = {c.name: _described(c, known.get(c.name)) for c in regions}
    if all(c.origin is None for c in regions):
        regions_now = tuple(chosen.get(r.name, r) for r in board.regions)
    else:
        regions_now = tuple(chosen.values())
    first, start = (
        next((r.origin for r in found if r.kind == "flash"), None)
        for found in (regions_now, board.regions)
    )
    there = first == start and all(
        any(r.is_within(k) for k in board.regions) for r in regions_now
    )
    return replace(
        board,
        regions=regions_now,
        emulator=board.emulator if there else (),
        is_own=board.is_own or any(c.origin is not None for c in regions),
    )


def _described(choice: RegionChoice, known: Region | None) -> Region:
    if choice.origin is None and known is not None:
        return replace(known, size_bytes=choice.size_bytes)
    return Region(
        name=choice.name,
        origin=choice.origin or 0,
        size_bytes=choice.size_bytes,
        kind=choice.kind or "ram",
    )


def boards_of(cpu: str, boards: Mapping[str, Board]) -> tuple[str, ...]:
    """Names of the boards that run firmware of a core, in their order."""
    return tuple(b.name for b in boards.values() if cpu in b.cpus)


def _flash(name: str, origin: int, size_bytes: int) -> Region:
    return Region(name=name, origin=origin, size_bytes=size_bytes, kind="flash")


def _ram(name: str, origin: int, size_bytes: int) -> Region:
    return Region(name=name, origin=origin, size_bytes=size_bytes, kind="ram")


def _emulated(
    name: str,
    cpu: str,
    *regions: Region,
    also_runs: tuple[str, ...] = (),
    stack_bytes: int = 4 * KIB,
) -> Board:
    """A board that QEMU emulates under this name."""
    return Board(
        name=name,
        cpu=cpu,
        also_runs=also_runs,
        regions=regions,
        stack_bytes=stack_bytes,
        emulator=(
            *("qemu-system-arm", "-nographic", "-monitor", "none", "-serial", "none"),
            *("-M", name),
        ),
    )


def _build_only(cpu: str) -> Board:
    """A board for a core without emulator, with a plausible memory map."""
    return Board(
        name=cpu.replace("cortex", "generic"),
        cpu=cpu,
        regions=(_flash("flash", 0, 4 * MIB), _ram("sram", 0x20000000, 4 * MIB)),
        stack_bytes=4 * KIB,
        emulator=(),
    )


BOARDS: Mapping[str, Board] = MappingProxyType(
    {
        board.name: board
        for board in (
            # Code for Armv6-M runs unchanged on an Armv7-M core; start-up makes it
            # fault on unaligned accesses, as an Armv6-M core would.
            _emulated(
                "mps2-an385",
                "cortex-m3",
                _flash("flash", 0, 4 * MIB),
                _ram("sram", 0x20000000, 4 * MIB),
                _ram("psram", 0x21000000, 16 * MIB),
                also_runs=("cortex-m0plus",),
            ),
            # An nRF51: a Cortex-M0, which has the instructions of a Cortex-M0+.
            _emulated(
                "microbit",
                "cortex-m0plus",
                _flash("flash", 0, 256 * KIB),
                _ram("sram", 0x20000000, 16 * KIB),
                stack_bytes=2 * KIB,
            ),
            _emulated(
                "mps2-an386",
                "cortex-m4",
                _flash("flash", 0, 4 * MIB),
                _ram("sram", 0x20000000, 4 * MIB),
                _ram("psram", 0x21000000, 16 * MIB),
            ),
            _emulated(
                "mps2-an500",
                "cortex-m7",
                _flash("flash", 0, 4 * MIB),
                _ram("sram", 0x20000000, 4 * MIB),
                _ram("psram", 0x60000000, 16 * MIB),
            ),
            # Secure aliases: these boards start in secure state.
            _emulated(
                "mps2-an505",
                "cortex-m33",
                _flash("flash", 0x10000000, 4 * MIB),
                _ram("sram", 0x38000000, 4 * MIB),
                _ram("psram", 0x80000000, 16 * MIB),
            ),
            _emulated(
                "mps3-an547",
                "cortex-m55",
                _flash("itcm", 0x10000000, 512 * KIB),
                _flash("code_sram", 0x11000000, 2 * MIB),
                _ram("dtcm", 0x30000000, 512 * KIB),
                _ram("sram", 0x31000000, 4 * MIB),
            ),
            _build_only("cortex-m23"),
            _build_only("cortex-m35p"),
            _build_only("cortex-m85"),
        )
    }
)
"""By name."""
