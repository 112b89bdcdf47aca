"""A file that describes a board: one that comes with the package, or the user's own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    StrictInt,
    StrictStr,
    Tag,
    ValidationError,
)

from orchestrator.errors import Diagnostic, ProfileError, SourceSpan
from orchestrator.profile.choices import RegionKind
from orchestrator.profile.document import Document, read_document
from orchestrator.profile.explain import explain
from orchestrator.profile.fields import ADDRESS_END, Address, Size, WaitStates, choice, only, shown
from orchestrator.profile.memory import RegionTable, beyond_the_end, duplicates, whole_map
from orchestrator.profile.table import Table
from orchestrator.profile.target import OwnBoard
from orchestrator.targets.boards import DEFAULT_STACK, Board, board_of
from orchestrator.targets.cores import CPUS
from orchestrator.targets.uarts import (
    DEFAULT_BAUD,
    Setting,
    Uart,
    drivers,
    needs_clock,
    reached_baud,
)


class BoardRegionTable(RegionTable):
    """A memory of the board; the preferred one of each kind first."""

    origin: Address = Field(description="First address.", examples=[0x20000000])
    kind: Annotated[RegionKind, *choice(RegionKind)] = Field(
        description="`flash`: code and constants. `ram`: everything that changes.", examples=["ram"]
    )
    use: StrictStr = Field(default="", description="What it is, for readers.", examples=["DTCM"])


class QemuTable(Table):
    """The emulator of the board."""

    system: Literal["arm", "riscv32", "riscv64"] = Field(
        description="Which QEMU: `arm` is `qemu-system-arm`.", examples=["arm"]
    )
    machine: StrictStr = Field(description="Its name of the board.", examples=["mps2-an386"])
    options: tuple[StrictStr, ...] = Field(
        default=(), description="Further arguments.", examples=[["-bios", "none"]]
    )


def _integer(low: int, high: int, hint: str) -> AfterValidator:
    """A validator of integers in a range, both ends included."""
    accepts = range(low, high + 1).__contains__
    return only(accepts, expected=f"an integer from {low:,} to {high:,}", hint=hint)


_LEAST_CLOCKS = 16
"""For a bit: they sample it so often. Source: the manuals named in uart_drivers.toml."""
_MOST_OFF = 0.025
"""How wrong a baud rate may be: the last of ten bits is off by a quarter, and the other end may
be off by as much."""
_Word = Annotated[StrictInt, _integer(0, 0xFFFFFFFF, "write a number of 32 bits")]
_Hertz = Annotated[StrictInt, _integer(0, 1_000_000_000, "write the clock in Hz")]
_Bytes = Annotated[
    StrictStr,
    only(
        re.compile(r"\s*([0-9A-Fa-f]{2}\s*)*", re.ASCII).fullmatch,
        expected="bytes of two hexadecimal digits each",
        hint="`xxd -p FILE` writes them",
    ),
]
_Baud = Annotated[StrictInt, _integer(300, 4_000_000, "write bits per second")]


def _tag(row: object) -> str:
    return "wait" if isinstance(row, list) and row[-1:] == ["wait"] else "write"


_Settings = tuple[
    Annotated[
        Annotated[tuple[Address, _Word, _Word], Tag("write")]
        | Annotated[tuple[Address, _Word, _Word, Literal["wait"]], Tag("wait")],
        Discriminator(_tag),
    ],
    ...,
]


class UartTable(Table):
    """A UART of the board, for firmware that is reached over it."""

    driver: Annotated[StrictStr, *choice(drivers(), "unknown-uart")] = Field(
        description="What its registers are like.", examples=["stm32-usart"]
    )
    base: Address = Field(description="Address of its registers.", examples=[0x40011000])
    clock: _Hertz = Field(
        default=0, description="Of the UART, in Hz, as it is after reset.", examples=[16000000]
    )
    baud: _Baud = Field(default=DEFAULT_BAUD, description="Bits per second.", examples=[115200])
    settings: _Settings = Field(
        default=(),
        description="Registers that are written first, for clocks and pins: address, mask of the"
        ' bits, and what they become; with `"wait"`, bits that are waited for.',
        examples=[[[0x40023844, 0x10, 0x10]]],
    )


class ProbeTable(Table):
    """What programs of debug probes call the board."""

    pyocd: StrictStr = Field(default="", description="Target of pyOCD.", examples=["stm32f405rg"])
    openocd: tuple[StrictStr, ...] = Field(
        default=(),
        description="Configuration files of OpenOCD.",
        examples=[["interface/stlink.cfg", "target/stm32f4x.cfg"]],
    )
    jlink: StrictStr = Field(default="", description="Device of J-Link.", examples=["STM32F405RG"])


class BoardTable(Table):
    """A board."""

    description: StrictStr = Field(default="", description="What it is, for readers.")
    source: StrictStr = Field(default="", description="Where the numbers are from, for readers.")
    cpu: Annotated[StrictStr, *choice(CPUS, "unknown-cpu")] = Field(
        description="Its core.", examples=["cortex-m4"]
    )
    also_runs: tuple[Annotated[StrictStr, *choice(CPUS, "unknown-cpu")], ...] = Field(
        default=(), description="Cores whose code its core runs as well."
    )
    stack: Size = Field(
        default=DEFAULT_STACK,
        validate_default=True,
        description="Reserved for the stack in the first RAM.",
        examples=["4 KiB"],
    )
    flash_wait_states: WaitStates | None = Field(
        default=None,
        description="Cycles that the flash lets the core wait after a taken branch, at "
        "its full clock: for estimates of cycles. Default: unknown.",
        examples=[5],
    )
    data_wait_states: WaitStates | None = Field(
        default=None,
        description="Cycles that the memory of tensors lets the core wait at each load and "
        "store, likewise. Default: unknown.",
        examples=[1],
    )
    settings: _Settings = Field(
        default=(),
        description="Registers that start-up writes before anything else, such as those of a "
        "watchdog that runs after reset; as those of `uart`.",
        examples=[[[0x400E1854, 0x8000, 0x8000]]],
    )
    tried: StrictStr = Field(
        default="",
        description="The hardware that firmware was tried on. Default: none.",
        examples=["Pico 2"],
    )
    qemu: QemuTable | None = Field(default=None, description="What emulates it.")
    uart: UartTable | None = Field(
        default=None, description="Over which firmware may speak to the host."
    )
    probe: ProbeTable | None = Field(
        default=None, description="What programs of debug probes call it."
    )
    uf2_family: _Word | None = Field(
        default=None,
        description="Number of the device in UF2 files: uf2families.json of microsoft/uf2.",
        examples=[0xE48BFF56],
    )
    uf2_start: Address = Field(
        default=0,
        description="First address that its UF2 boot loader leaves to firmware.",
        examples=[0x2000],
    )
    boot: _Bytes = Field(
        default="",
        description="What images have in front of the first flash, in hexadecimal digits: a boot"
        " loader that is not built.",
    )
    regions: tuple[BoardRegionTable, ...] = Field(description="Its memories.")


def read_board(
    path: Path, written: str, *, text_of: Callable[[Path], str], named_by: SourceSpan | None = None
) -> OwnBoard:
    """Read a file that describes a board.

    Args:
        path: Of the file.
        written: Its path as the profile writes it.
        text_of: Reads a file's text; raises `OSError` or `UnicodeDecodeError`.
        named_by: Where the profile names it.

    Raises:
        ProfileError: With every problem, in the order of the file.
    """
    document = read_document(path, text_of=text_of, named_by=named_by, what="board file")
    try:
        table = BoardTable.model_validate(document.data)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        found = explain(errors, document.span, BoardTable)
        raise ProfileError(sorted(found, key=_line)) from error
    # Boards of the package are made by the same function: a copy of such a file is the
    # same board, except that it counts as the user's own.
    board = replace(board_of(PurePosixPath(written).stem, document.data), is_own=True)
    problems = sorted(_problems(table, board, document), key=_line)
    ProfileError.raise_if(problems)
    return OwnBoard(written, board)


def _line(problem: Diagnostic) -> int:
    return problem.where.line if problem.where else 0


def _problems(table: BoardTable, board: Board, document: Document) -> Iterator[Diagnostic]:
    where = ("regions",)
    yield from chain.from_iterable(
        beyond_the_end(region, (*where, index), document.span)
        for index, region in enumerate(table.regions)
    )
    yield from duplicates(table.regions, document.span, where)
    yield from whole_map(table.regions, board, document.span, where)
    yield from _register_problems(board.settings, 0, (), document.span("settings"))
    if table.uart and board.uart:
        yield from _uart_problems(table.uart, board.uart, table.regions, document)
    flash = next((r for r in board.regions if r.kind == "flash"), None)
    if flash and board.boot:
        start = board.image_start
        if start < 0 or any(r.origin < flash.origin and start < r.end for r in board.regions):
            yield Diagnostic.of(
                "bad-value",
                f"there is no room for boot in front of {shown(flash.name)}",
                where=document.span("boot"),
                found=f"{len(board.boot)} bytes in front of {flash.origin:#010x}",
                expected="addresses from 0 on, and no memory there",
                hint="correct boot or origin",
            )
    for cpu in (table.cpu, *table.also_runs):
        # The host and Linux cores: their programs are loaded by an operating system,
        # which places them.
        if CPUS[cpu].default_board is None:
            yield Diagnostic.of(
                "bad-value",
                f"a board cannot have the cpu {shown(cpu)}",
                where=document.span("cpu"),
                expected="a core that firmware runs on without Linux",
                hint="`orchestrator targets` lists the cores",
            )


def _uart_problems(
    table: UartTable, uart: Uart, regions: Sequence[BoardRegionTable], document: Document
) -> Iterator[Diagnostic]:
    fixed = drivers()[table.driver].get("baud")
    if fixed and table.baud != fixed:
        yield Diagnostic.of(
            "bad-value",
            f"{table.driver} has {fixed:,} bits per second",
            where=document.span("uart", "baud"),
            found=f"{table.baud:,}",
            hint="leave baud out",
        )
    if needs_clock(table.driver):
        yield from _clock_problems(table, document)
    yield from _register_problems(uart.settings, table.base, regions, document.span("uart"))


def _register_problems(
    settings: Sequence[Setting],
    base: int,
    regions: Sequence[BoardRegionTable],
    where: SourceSpan | None,
) -> Iterator[Diagnostic]:
    for one in settings:
        # A driver's have the divisor of the baud rate.
        if one.value & ~one.mask:
            yield Diagnostic.of(
                "bad-value",
                f"the register 0x{one.address:08X} has no room for 0x{one.value:X}",
                where=where,
                expected=f"the bits 0x{one.mask:X}",
                hint="write another mask, a higher baud or a lower clock",
            )
    for address in (base, *(one.address for one in settings)):
        memories = [r.name for r in regions if 0 <= address - r.origin < r.size_bytes]
        if memories or address % 4 or address >= ADDRESS_END:
            yield Diagnostic.of(
                "bad-value",
                f"no register is at {address:#x}",
                where=where,
                **({"found": f"the memory {memories[0]}"} if memories else {}),
                expected="the address of a word, outside of memories",
                hint="write it as in the manual of the chip",
            )
            return


def _clock_problems(table: UartTable, document: Document) -> Iterator[Diagnostic]:
    if not table.clock:
        yield Diagnostic.of(
            "bad-value",
            f"the baud rate of {table.driver} comes from a clock",
            where=document.span("uart"),
            expected="clock, in Hz",
            hint="write the clock of the UART as it is after reset",
        )
        return
    reached = reached_baud(table.model_dump(exclude={"settings"}))
    if table.clock // table.baud < _LEAST_CLOCKS or abs(reached / table.baud - 1) > _MOST_OFF:
        yield Diagnostic.of(
            "bad-value",
            f"{table.driver} does not reach {table.baud:,} bits per second",
            where=document.span("uart", "baud" if "baud" in table.model_fields_set else "clock"),
            found=f"{reached:,.0f} with a clock of {table.clock:,} Hz",
            expected=f"{_MOST_OFF:.1%} off at most, and {_LEAST_CLOCKS} clocks for a bit",
            hint="write a lower baud",
        )
