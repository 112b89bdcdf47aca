"""Boards as data: memory maps, and emulators where there are any.

Each is a file in TOML, named after the board: those in `board_files/` come with the
package, and profiles name others by their path (`profile/board.py`). To add a board,
add a file; no code branches on names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final

from orchestrator.core.spelling import parse_size
from orchestrator.targets.uarts import Setting, Uart, settings_of, uart_of

# Memories of the user's own board, and which arenas and tensors go to each.

# That of tensors in it (core/layout.py): offsets are multiples of 16, so addresses are
# if the arena begins at one. [memory] alignment asks for more, for lines of a data
# cache.
ARENA_ALIGNMENT = 16
"""Alignment of arenas in bytes, unless the profile wants more; as in runtime/include/orch."""


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
        """These pins, with the arenas of pinned tensors among `by_id`."""
        added = ((i, name) for name, i in self.tensor_arenas(first).items())
        return replace(self, by_id=tuple(sorted((*self.by_id, *added))))


NO_PINS = Pins()
"""Leaves everything to the build."""


# Chosen by hand. Methods take a few hundred bytes, and the build compares what a board
# reserves with the computed worst case: too little is an error, not a crash.
DEFAULT_STACK: Final = "4 KiB"
"""For the stack, where a board's file says nothing."""


UF2_SECTOR_BYTES: Final = 4096
"""What the RP2040's boot ROM erases at once: UF2 files begin with a sector, and fill it.

Source: virtual_disk.c of pico-bootrom: it goes by numbers of blocks, not by addresses, so
picotool's elf2uf2.cpp fills sectors as well.
"""


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
        description: What it is, in a few words.
        flash_wait_states: Cycles that the core waits for flash after a taken branch;
            None if they are unknown.
        data_wait_states: Cycles that each load and store waits, likewise.
        settings: Registers that start-up writes before anything else.
        tried: The hardware that firmware was tried on; empty: none yet.
        uart: Over which the runner may speak to the host; None: it has none.
        probes: By program for debug probes: what it calls this board.
        uf2_family: Number of the device in UF2 files; None: it has none.
        uf2_start: First address that its UF2 boot loader leaves to firmware.
        boot: Bytes that images have in front of the first flash.
        is_own: A profile, or a file that it names, describes its memories.
        places: Memories of it that the profile chose for weights and code.
        whole: Its memories before the profile limited them; empty if it did not.
    """

    name: str
    cpu: str
    also_runs: tuple[str, ...] = ()
    regions: tuple[Region, ...]
    stack_bytes: int
    emulator: tuple[str, ...]
    description: str = ""
    flash_wait_states: int | None = None
    data_wait_states: int | None = None
    settings: tuple[Setting, ...] = ()
    tried: str = ""
    uart: Uart | None = None
    probes: tuple[tuple[str, tuple[str, ...]], ...] = ()
    uf2_family: int | None = None
    uf2_start: int = 0
    boot: bytes = b""
    is_own: bool = False
    places: Places = NO_PLACES
    whole: tuple[Region, ...] = ()

    @property
    def tried_on(self) -> str:
        """What firmware for it ran on: hardware, `QEMU`, or nothing yet, which is empty."""
        return self.tried or ("QEMU" if self.emulator else "")

    @property
    def code_region(self) -> Region:
        """The memory that code runs in, but for vectors and start-up."""
        return next(
            r
            for r in self.regions
            # Regions are ordered: the first flash is where the core fetches its vector
            # table from.
            if r.name == self.places.code or (self.places.code is None and r.kind == "flash")
        )

    @property
    def image_start(self) -> int:
        """The address at which images begin."""
        return next(r.origin for r in self.regions if r.kind == "flash") - len(self.boot)

    @property
    def copies_code(self) -> bool:
        """Whether the start-up copies the code out of the flash."""
        return self.code_region.kind == "ram"

    @property
    def cpus(self) -> tuple[str, ...]:
        """Cores whose firmware it runs, its own first."""
        return (self.cpu, *self.also_runs)


def boards_of(cpu: str, boards: Mapping[str, Board]) -> tuple[str, ...]:
    """Names of the boards that run firmware of a core, in their order."""
    return tuple(b.name for b in boards.values() if cpu in b.cpus)


def board_of(name: str, data: Mapping[str, Any]) -> Board:
    """A board from the values of its file.

    Args:
        name: Of the board.
        data: As TOML parses it; known to be valid.
    """
    qemu = data.get("qemu")
    return Board(
        name=name,
        cpu=str(data["cpu"]),
        also_runs=tuple(map(str, data.get("also_runs", ()))),
        regions=tuple(
            Region(
                name=str(region["name"]),
                origin=region["origin"],
                size_bytes=parse_size(region["size"]) or 0,
                kind=str(region["kind"]),
            )
            for region in data["regions"]
        ),
        stack_bytes=parse_size(data.get("stack", DEFAULT_STACK)) or 0,
        emulator=_qemu(qemu) if qemu else (),
        description=str(data.get("description", "")),
        flash_wait_states=data.get("flash_wait_states"),
        data_wait_states=data.get("data_wait_states"),
        settings=settings_of(data),
        tried=str(data.get("tried", "")),
        uart=uart_of(data["uart"]) if "uart" in data else None,
        probes=tuple(
            (name, (part,) if isinstance(part, str) else tuple(part))
            for name, part in data.get("probe", {}).items()
        ),
        uf2_family=data.get("uf2_family"),
        uf2_start=data.get("uf2_start", 0),
        boot=bytes.fromhex(data.get("boot", "")),
    )


NO_SERIAL: Final = ("-serial", "none")
"""QEMU's arguments for a board whose serial port nothing reads."""


def _qemu(data: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        f"qemu-system-{data['system']}",
        # The firmware talks by semihosting. A monitor or serial port on the standard
        # streams would mix its bytes with the runner's protocol
        # (docs/runner-protocol.md).
        *("-nographic", "-monitor", "none", *NO_SERIAL),
        *("-M", str(data["machine"]), *map(str, data.get("options", ()))),
    )


class _ShippedBoards(Mapping[str, Board]):
    """Boards by name, sorted; the file of one is read when it is first asked for."""

    def __getitem__(self, name: str) -> Board:
        if name not in _names():
            raise KeyError(name)
        return _shipped(name)

    def __iter__(self) -> Iterator[str]:
        return iter(_names())

    def __len__(self) -> int:
        return len(_names())


_FOLDER: Final = Path(__file__).parent / "board_files"


# Once per process: `targets`, the JSON schema and every message about an unknown board
# ask for the names.
@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.toml")))


# Not all 39 files at once: a command needs one board.
@cache
def _shipped(name: str) -> Board:
    import tomli  # noqa: PLC0415  # only commands that need a board

    text = (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    return board_of(name, tomli.loads(text))


BOARDS: Final[Mapping[str, Board]] = _ShippedBoards()
"""Boards that come with the package, by name."""
