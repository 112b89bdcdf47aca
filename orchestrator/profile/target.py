"""`[target]`: what is built for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, Self, TypeVar

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    InstanceOf,
    StrictBool,
    StrictStr,
    WithJsonSchema,
)

from orchestrator.errors import Diagnostic, did_you_mean, nearest
from orchestrator.profile.choices import Image, Optimize, Via
from orchestrator.profile.fields import ReadFrom, WaitStates, bad_value, choice, problem, shown
from orchestrator.profile.paths import Facts
from orchestrator.profile.table import BrokenValueError, Table
from orchestrator.targets.boards import UF2_SECTOR_BYTES, Board, boards_of
from orchestrator.targets.cores import BOARDS, CPUS, FLOAT_ABIS, TOOLCHAINS

SUFFIX: Final = ".toml"
"""By which a profile's `board` is known to be a path."""


class OwnBoard(str):
    """The path of a board's file, as a profile writes it, and what the file says."""

    __slots__ = ("board",)

    board: Board

    def __new__(cls, written: str, board: Board) -> Self:
        """Make a string with the board that it names."""
        self = super().__new__(cls, str(written))
        self.board = board
        return self

    def __reduce__(self) -> tuple[type[OwnBoard], tuple[str, Board]]:
        """What makes a copy (a hook of pickle)."""
        return OwnBoard, (str(self), self.board)

    def __repr__(self) -> str:
        """All that it says: what a build is made of is compared by this text."""
        # The path alone is not enough: a changed board file would make no stage run
        # again.
        return f"OwnBoard({str(self)!r}, {self.board!r})"


_ISAS: Final = tuple(dict.fromkeys(isa for cpu in CPUS.values() for isa in cpu.isas))


def _board_named(value: str) -> str:
    """The hint for a board that is named as a core."""
    if value not in BOARDS:
        return ""
    return f'write cpu = "{BOARDS[value].cpu}" and board = "{value}"'


def _choices_by_cpu(schema: dict[str, Any]) -> None:
    """Restrict isa, board, toolchain and float ABI to those of the cpu."""
    # Editors then offer what fits the core; the rules below say the same with a hint.
    schema["allOf"] = [
        {
            "if": {"properties": {"cpu": {"const": name}}, "required": ["cpu"]},
            "then": {
                "properties": {
                    "isa": {"enum": list(cpu.isas)},
                    "board": {"anyOf": [{"enum": boards}, _BOARD_PATH]} if boards else False,
                    "toolchain": {"enum": list(cpu.toolchains)},
                    "float_abi": {"enum": list(cpu.float_abis)},
                }
            },
        }
        for name, cpu in CPUS.items()
        for boards in [list(boards_of(name, BOARDS))]
    ]


def _read_board(value: str) -> str:
    """A board that comes with the package, or the path of a file, which was read."""
    if isinstance(value, OwnBoard):
        return value
    if value in BOARDS:
        return str(value)
    if value.endswith(SUFFIX):
        raise bad_value(
            value,
            expected="a path relative to the profile, with / between folders",
            hint="write the path as seen from the folder of the profile",
        )
    message = f"{{key}} cannot be {shown(value)}"
    expected = f"{', '.join(BOARDS)}, or the path of a file in TOML"
    core = nearest(value, CPUS)
    hint = did_you_mean(value, BOARDS) if value not in CPUS else ""
    if not hint and core:
        hint = f'write cpu = "{core}": it is a core, not a board'
    hint = hint or 'describe your own: board = "my-board.toml"'
    raise problem("unknown-board", message, expected=expected, hint=hint)


_BOARD_PATH: Final = {"type": "string", "pattern": r"^[^/\\][^\\]*\.toml$"}
_BoardName = Annotated[
    str,
    ReadFrom(InstanceOf[str], _read_board),
    WithJsonSchema(
        {
            "type": "string",
            "title": "board, or path of a board file",
            "anyOf": [{"enum": list(BOARDS)}, _BOARD_PATH],
        }
    ),
]


class TargetTable(Table):
    """Target of the build. `orchestrator targets` lists all targets."""

    model_config = ConfigDict(json_schema_extra=_choices_by_cpu)

    cpu: Annotated[StrictStr, *choice(CPUS, "unknown-cpu", elsewhere=_board_named)] = Field(
        description="Core the product runs on; `host` is the machine that builds.",
        examples=["cortex-m55"],
    )
    # `isa_problems` checks it against the cpu.
    isa: Annotated[StrictStr, choice(_ISAS)[1]] = Field(
        default_factory=str,
        description="Instruction set variant; each cpu has its own. "
        "Default: the first the cpu has.",
        examples=["mve"],
    )
    board: _BoardName | None = Field(
        default=None,
        description="Board that gives memory map, linker script and emulator: one of "
        "`orchestrator targets`, or the path of a file that describes yours. None for "
        "programs of `host` and Linux. Default: that of the cpu.",
        examples=["mps3-an547"],
    )
    toolchain: Annotated[StrictStr, *choice(TOOLCHAINS, "unknown-toolchain")] | None = Field(
        default=None,
        description="`zig`: clang and lld of the PyPI package ziglang. "
        "`gnu`: gcc of the system. "
        "Default: `zig`; on `host` the compiler of the system if there is one.",
        examples=["zig"],
    )
    unaligned: StrictBool = Field(
        default_factory=lambda: True,
        description="Whether code may load words from any address. `false` for "
        "products that make that a fault (`CCR.UNALIGN_TRP`). "
        "Default: `true` where the cpu can do it.",
        examples=[True],
    )
    # `float_abi_problems` checks it against the cpu.
    float_abi: Annotated[StrictStr, *choice(FLOAT_ABIS)] | None = Field(
        default=None,
        description="How functions take floats: `hard` in registers of the FPU, "
        "`softfp` in others, though the FPU computes: programs that link the library "
        "need the same. Default: `hard` where the cpu has an FPU, otherwise `soft`.",
        examples=["hard"],
    )
    flash_wait_states: WaitStates | None = Field(
        default=None,
        description="Cycles that the flash lets the core wait after a taken branch, "
        "for the estimate of cycles of `run --profile`; the firmware does not depend "
        "on it. Default: those of the board.",
        examples=[0],
    )
    data_wait_states: WaitStates | None = Field(
        default=None,
        description="Cycles that the memory of tensors lets the core wait at each load and "
        "store, for the same estimate. Default: those of the board.",
        examples=[0],
    )
    via: Annotated[Via, *choice(Via)] = Field(
        default=Via.SEMIHOSTING,
        description="How the firmware that the build makes reaches the host, for `run`, `test` and"
        " `evaluate`: `semihosting` through a debugger or emulator, or the `uart` of the board.",
        examples=["uart"],
    )
    images: tuple[Annotated[Image, *choice(Image)], ...] = Field(
        default=(),
        description="Further files of the firmware: `hex` (Intel HEX), `bin` (its bytes alone) "
        "and `uf2`, for programmers, drives and boot loaders: docs/targets.md.",
        examples=[["hex", "uf2"]],
    )
    nonsecure_entries: StrictBool = Field(
        default=False,
        description="Whether the build writes functions with which the non-secure side "
        "of TrustZone calls the models: docs/runtime.md.",
        examples=[True],
    )
    optimize: Annotated[Optimize, *choice(Optimize)] = Field(
        default=Optimize.SIZE, description="What the compiler optimizes for.", examples=["size"]
    )

    def with_defaults(self) -> Self:
        """The table with the defaults of the cpu."""
        cpu = CPUS[self.cpu]
        board = self.described_board
        # On a host the default depends on its compilers: the build decides.
        toolchain = None if cpu.is_host else cpu.toolchains[0]
        return self.model_copy(
            update={
                "isa": self.isa or cpu.default_isa,
                "board": self.board or cpu.default_board,
                "toolchain": self.toolchain or toolchain,
                **{
                    key: getattr(self if key in self.written_keys or not board else board, key)
                    for key in ("flash_wait_states", "data_wait_states")
                },
            }
        )

    @property
    def described_board(self) -> Board | None:
        """The board, or the default one of the cpu; None if it has none."""
        name = self.board or CPUS[self.cpu].default_board
        if isinstance(name, OwnBoard):
            return name.board
        return BOARDS[name] if name else None


def isa_problems(target: TargetTable, facts: Facts) -> Iterator[Diagnostic]:
    """The problem of an ISA that the cpu does not have."""
    try:
        cpu = CPUS[target.cpu]
    except BrokenValueError:
        cpu = None
    isas = tuple(cpu.isas) if cpu else _ISAS
    if target.isa and target.isa not in isas:
        yield Diagnostic.of(
            "unknown-isa",
            f"{cpu.name} has no isa {shown(target.isa)}"
            if cpu
            else f"target.isa cannot be {shown(target.isa)}",
            where=facts.span("target", "isa"),
            expected=", ".join(isas),
            hint=did_you_mean(target.isa, isas) or "leave it out for the default of the cpu",
        )


def board_problems(target: TargetTable, facts: Facts) -> Iterator[Diagnostic]:
    """The problem of a board with another cpu."""
    board = target.described_board
    if target.board is None or board is None or target.cpu in board.cpus:
        return
    default = CPUS[target.cpu].default_board
    boards = boards_of(target.cpu, BOARDS)
    yield Diagnostic.of(
        "board-mismatch",
        f"target.board cannot be {shown(target.board)} with {target.cpu}",
        where=facts.span("target", "board"),
        found=f"{target.board} has a {board.cpu}",
        expected=", ".join(boards) or f"no board for {target.cpu}",
        hint=f'write board = "{default}", or change the cpu'
        if default
        else "leave board out, or change the cpu",
    )


def toolchain_problems(target: TargetTable, facts: Facts) -> Iterator[Diagnostic]:
    """The problem of a toolchain that cannot build for the cpu."""
    cpu = CPUS[target.cpu]
    if target.toolchain is not None and target.toolchain not in cpu.toolchains:
        yield Diagnostic.of(
            "toolchain-mismatch",
            f"the toolchain {shown(target.toolchain)} cannot build for {cpu.name}",
            where=facts.span("target", "toolchain"),
            expected=", ".join(cpu.toolchains),
            hint=f'write toolchain = "{cpu.toolchains[0]}"',
        )


def unaligned_problems(target: TargetTable, facts: Facts) -> Iterator[Diagnostic]:
    """The problem of choosing `unaligned` where the cpu has no choice."""
    cpu = CPUS[target.cpu]
    if cpu.has_unaligned or "unaligned" not in target.written_keys:
        return
    if cpu.is_arm and not target.unaligned:
        return  # already the case
    yield Diagnostic.of(
        "unaligned-mismatch",
        f"target.unaligned cannot be chosen with {cpu.name}",
        where=facts.span("target", "unaligned"),
        found="the core loads words from aligned addresses only"
        if cpu.is_arm
        else "the key is for Cortex-M",
        hint="leave it out",
    )


def float_abi_problems(target: TargetTable, facts: Facts) -> Iterator[Diagnostic]:
    """The problem of a float ABI that the cpu does not have."""
    known = CPUS[target.cpu].float_abis
    if target.float_abi not in (None, *known):
        yield Diagnostic.of(
            "float-abi-mismatch",
            f"target.float_abi cannot be {shown(target.float_abi)} with {target.cpu}",
            where=facts.span("target", "float_abi"),
            expected=", ".join(known),
            hint="leave it out for the default of the cpu",
        )


def via_problems(target: TargetTable, facts: Facts) -> Iterator[Diagnostic]:
    """The problem of a board without UART."""
    board = target.described_board
    if target.via is Via.UART and (board is None or board.uart is None):
        boards = [b.name for b in BOARDS.values() if b.uart and target.cpu in b.cpus]
        yield Diagnostic.of(
            "no-uart",
            f"nothing is known of a UART of {board.name if board else target.cpu}",
            where=facts.span("target", "via"),
            **({"known": ", ".join(boards)} if boards else {}),
            hint="describe it in a board file: docs/targets.md" if board else "leave it out",
        )


def image_problems(target: TargetTable, board: Board | None, facts: Facts) -> Iterator[Diagnostic]:
    """The problem of images that a board, with the memories of the profile, does not take."""
    where = facts.span("target", "images")
    if target.images and board is None:
        yield Diagnostic.of(
            "no-images",
            f"programs of {target.cpu} have no images",
            where=where,
            expected="a cpu that has a board",
            hint="leave images out: an operating system loads firmware.elf",
        )
    if board is None or Image.UF2 not in target.images:
        return
    start = board.image_start
    if board.uf2_family is None:
        yield Diagnostic.of(
            "no-uf2-family",
            f"no UF2 family is known of {board.name}",
            where=where,
            known=", ".join(b.name for b in BOARDS.values() if b.uf2_family),
            hint="write uf2_family into a board file, or leave uf2 out: docs/targets.md",
        )
    elif start < board.uf2_start:
        yield Diagnostic.of(
            "bad-uf2-start",
            f"firmware for {board.name} begins where its UF2 boot loader lies",
            where=where,
            found=f"{start:#010x}",
            expected=f"{board.uf2_start:#010x} or behind it",
            hint="describe the memory behind the boot loader in [[memory.regions]]",
        )
    elif start % UF2_SECTOR_BYTES:
        yield Diagnostic.of(
            "bad-uf2-start",
            f"a UF2 file for {board.name} would erase what lies in front of the firmware",
            where=where,
            found=f"{start:#010x}",
            expected=f"a multiple of {UF2_SECTOR_BYTES}, which are erased at once",
            hint="write what lies in front as boot into a board file: docs/targets.md",
        )


def nonsecure_problems(target: TargetTable, facts: Facts) -> Iterator[Diagnostic]:
    """The problem of entry functions for a core without TrustZone."""
    cpu = CPUS[target.cpu]
    if target.nonsecure_entries and not cpu.has_trustzone:
        with_it = ", ".join(name for name, c in CPUS.items() if c.has_trustzone)
        yield Diagnostic.of(
            "nonsecure-mismatch",
            f"{cpu.name} has no non-secure side",
            where=facts.span("target", "nonsecure_entries"),
            expected=with_it,
            hint="leave it out",
        )


# `[matrix]`: the targets that one profile is built for.

AXES: Final = (("cpus", "cpu"), ("toolchains", "toolchain"), ("optimize", "optimize"))
"""Keys of a matrix, each with the key of `[target]` that takes one of its values."""

_Item = TypeVar("_Item")


def _without_repetition(items: tuple[_Item, ...]) -> tuple[_Item, ...]:
    for index, item in enumerate(items):
        if item in items[:index]:
            raise problem(
                "bad-value",
                f"{{key}} has {shown(item)} twice",
                hint="each value gives products of its own: leave one out",
            )
    return items


class MatrixTable(Table):
    """Targets of all profiles: each profile gives a product for every combination.

    Names of products get a suffix for each key that has several values. A profile that
    sets a key of `[target]` itself keeps it: that axis does not apply to it.
    """

    cpus: Annotated[
        tuple[Annotated[StrictStr, *choice(CPUS, "unknown-cpu")], ...],
        AfterValidator(_without_repetition),
    ] = Field(
        default=(),
        description="Cores: `cpu` of `[target]`.",
        examples=[["cortex-m4", "cortex-m55"]],
    )
    toolchains: Annotated[
        tuple[Annotated[StrictStr, *choice(TOOLCHAINS, "unknown-toolchain")], ...],
        AfterValidator(_without_repetition),
    ] = Field(
        default=(), description="Compilers: `toolchain` of `[target]`.", examples=[["zig", "gnu"]]
    )
    optimize: Annotated[
        tuple[Annotated[Optimize, *choice(Optimize)], ...], AfterValidator(_without_repetition)
    ] = Field(
        default=(),
        description="What compilers optimize for: `optimize` of `[target]`.",
        examples=[["size", "speed"]],
    )

    def axis(self, key: str) -> Sequence[str]:
        """The values of one of `AXES`."""
        return tuple(map(str, getattr(self, key)))


class ProfileMatrixTable(MatrixTable):
    """Which targets of the workspace's matrix the product has: docs/workspaces.md.

    Has no effect outside of a workspace. Each key takes some of the values that
    `orchestrator.toml` has; a key that is left out takes all.
    """

    enable: StrictBool = Field(
        default=True,
        description="Whether the workspace's matrix applies to this profile.",
        examples=[False],
    )
