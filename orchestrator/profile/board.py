"""A file that describes a board: one that comes with the package, or the user's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from orchestrator.profile.fields import Address, Size, WaitStates, choice, only, shown
from orchestrator.profile.memory import RegionTable, beyond_the_end, duplicates, whole_map
from orchestrator.profile.table import Table
from orchestrator.profile.target import OwnBoard
from orchestrator.targets.boards import DEFAULT_STACK, Board, board_of
from orchestrator.targets.cores import CPUS
from orchestrator.targets.uarts import DEFAULT_BAUD, drivers, needs_clock


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


_Word = Annotated[StrictInt, _integer(0, 0xFFFFFFFF, "write a number of 32 bits")]
_Hertz = Annotated[StrictInt, _integer(0, 1_000_000_000, "write the clock in Hz")]
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
    fixed = table.uart and drivers()[table.uart.driver].get("baud")
    if table.uart and fixed and table.uart.baud != fixed:
        yield Diagnostic.of(
            "bad-value",
            f"{table.uart.driver} has {fixed:,} bits per second",
            where=document.span("uart", "baud"),
            found=f"{table.uart.baud:,}",
            hint="leave baud out",
        )
    if table.uart and not table.uart.clock and needs_clock(table.uart.driver):
        yield Diagnostic.of(
            "bad-value",
            f"the baud rate of {table.uart.driver} comes from a clock",
            where=document.span("uart"),
            expected="clock, in Hz",
            hint="write the clock of the UART as it is after reset",
        )
    uart = board.uart.settings if board.uart else ()
    # The driver's have the divisor of the baud rate.
    places = ((one, "settings") for one in board.settings), ((one, "uart") for one in uart)
    for one, key in chain(*places):
        if one.value & ~one.mask:
            yield Diagnostic.of(
                "bad-value",
                f"the register 0x{one.address:08X} has no room for 0x{one.value:X}",
                where=document.span(key),
                expected=f"the bits 0x{one.mask:X}",
                hint="write another mask, a higher baud or a lower clock",
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
