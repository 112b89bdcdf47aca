"""Targets as data: cores, their instruction sets, compiler flags and boards.

Adding a core or board means adding a row here; no code branches on their names.

Sources: the compilers' manuals; QEMU `hw/arm/mps2.c`, `mps2-tz.c` for memory maps.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

TOOLCHAINS = ("gnu", "zig")


@dataclass(frozen=True, slots=True, kw_only=True)
class Isa:
    """An instruction set variant of a core, the same flags for gcc and clang.

    Args:
        name: As the profile writes it.
        machine_flags: Select core, FPU and float ABI.
    """

    name: str
    machine_flags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """A core that firmware can be built for.

    Args:
        name: As the profile writes it.
        platform: Folder under runtime/platform/ by toolchain.
        isas: Instruction set variants by name.
        default_isa: Variant if the profile names none.
        pointer_bytes: Size of a pointer.
        float_abi: For reports: hard, softfp or soft.
        toolchains: Those that can build for it; the first is the default.
        default_board: Board if the profile names none; None for hosts.
        gnu_prefix: Of the GNU programs, "arm-none-eabi-".
        clang_triple: For clang and lld.
        zig_target: For compiler_rt: (target, cpu) as zig names them, by ISA.
        freestanding: Toolchains that build without a C library.
    """

    name: str
    platform: Mapping[str, str]
    isas: Mapping[str, Isa]
    default_isa: str
    pointer_bytes: int
    float_abi: str
    toolchains: tuple[str, ...]
    default_board: str | None
    gnu_prefix: str
    clang_triple: str
    zig_target: Mapping[str, tuple[str, str]]
    freestanding: frozenset[str]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """An emulated board.

    Args:
        name: As the profile writes it.
        cpu: Its core.
        regions: Memories, the preferred one of each kind first.
        stack_bytes: Reserved for the stack.
        emulator: Program and arguments; the firmware's path follows `-kernel`.
    """

    name: str
    cpu: str
    regions: tuple[Region, ...]
    stack_bytes: int
    emulator: tuple[str, ...]


KIB = 1024
MIB = 1024 * KIB


_Named = TypeVar("_Named", "Cpu", "Board")


def _host() -> Cpu:
    return Cpu(
        name="host",
        platform=MappingProxyType({"gnu": "posix", "zig": "linux"}),
        isas=MappingProxyType({"scalar": Isa(name="scalar", machine_flags=())}),
        default_isa="scalar",
        pointer_bytes=8,
        float_abi="hard",
        toolchains=TOOLCHAINS,
        default_board=None,
        gnu_prefix="",
        clang_triple="{machine}-linux-none",
        zig_target=MappingProxyType({"scalar": ("{machine}-freestanding", "baseline")}),
        freestanding=frozenset({"zig"}),
    )


def _cortex_m(
    name: str,
    *,
    triple: str,
    isas: Mapping[str, tuple[tuple[str, ...], str]],
    board: str,
) -> Cpu:
    """A Cortex-M core.

    Args:
        name: Of the core.
        triple: For clang.
        isas: By name, the default first: (machine flags, zig's name of the cpu).
        board: Default board.
    """
    zig_triple = "thumb-freestanding-" + triple.rsplit("-", 1)[1]
    return Cpu(
        name=name,
        platform=MappingProxyType(dict.fromkeys(TOOLCHAINS, "cortex_m")),
        isas=MappingProxyType(
            {
                isa: Isa(name=isa, machine_flags=("-mthumb", *flags))
                for isa, (flags, _) in isas.items()
            }
        ),
        default_isa=next(iter(isas)),
        pointer_bytes=4,
        float_abi="hard" if triple.endswith("hf") else "soft",
        toolchains=("zig", "gnu"),
        default_board=board,
        gnu_prefix="arm-none-eabi-",
        clang_triple=triple,
        zig_target=MappingProxyType(
            {isa: (zig_triple, cpu) for isa, (_, cpu) in isas.items()}
        ),
        freestanding=frozenset(TOOLCHAINS),
    )


def _by_name(items: tuple[_Named, ...]) -> Mapping[str, _Named]:
    return MappingProxyType({item.name: item for item in items})


CPUS: Mapping[str, Cpu] = _by_name(
    (
        _host(),
        _cortex_m(
            "cortex-m4",
            triple="thumbv7em-none-eabihf",
            isas={
                "dsp": (
                    ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"),
                    "cortex_m4+vfp4d16sp",
                )
            },
            board="mps2-an386",
        ),
        _cortex_m(
            "cortex-m55",
            triple="thumbv8.1m.main-none-eabihf",
            isas={
                "mve": (
                    ("-mcpu=cortex-m55", "-mfloat-abi=hard"),
                    "cortex_m55+mve_fp+fp_armv8d16",
                ),
                "dsp": (
                    ("-mcpu=cortex-m55+nomve", "-mfloat-abi=hard"),
                    "cortex_m55-mve-mve_fp+fp_armv8d16",
                ),
            },
            board="mps3-an547",
        ),
    )
)

_QEMU_ARM = ("qemu-system-arm", "-nographic", "-monitor", "none", "-serial", "none")

BOARDS: Mapping[str, Board] = _by_name(
    (
        Board(
            name="mps2-an386",
            cpu="cortex-m4",
            regions=(
                Region(name="flash", origin=0, size_bytes=4 * MIB, kind="flash"),
                Region(name="sram", origin=0x20000000, size_bytes=4 * MIB, kind="ram"),
                Region(
                    name="psram", origin=0x21000000, size_bytes=16 * MIB, kind="ram"
                ),
            ),
            stack_bytes=4 * KIB,
            emulator=(*_QEMU_ARM, "-M", "mps2-an386"),
        ),
        Board(
            name="mps3-an547",
            cpu="cortex-m55",
            # Secure aliases: the board starts in secure state.
            regions=(
                Region(
                    name="itcm", origin=0x10000000, size_bytes=512 * KIB, kind="flash"
                ),
                Region(
                    name="code_sram",
                    origin=0x11000000,
                    size_bytes=2 * MIB,
                    kind="flash",
                ),
                Region(
                    name="dtcm", origin=0x30000000, size_bytes=512 * KIB, kind="ram"
                ),
                Region(name="sram", origin=0x31000000, size_bytes=4 * MIB, kind="ram"),
            ),
            stack_bytes=4 * KIB,
            emulator=(*_QEMU_ARM, "-M", "mps3-an547"),
        ),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a profile's `[target]` comes down to.

    Args:
        cpu: The core.
        isa: Its instruction set variant.
        board: Where firmware runs; None for hosts.
        toolchain: `gnu` or `zig`.
        optimize: `size`, `speed` or `debug`.
    """

    cpu: Cpu
    isa: Isa
    board: Board | None
    toolchain: str
    optimize: str

    @property
    def platform(self) -> str:
        """Folder under runtime/platform/."""
        return self.cpu.platform[self.toolchain]

    @property
    def freestanding(self) -> bool:
        """Built without a C library."""
        return self.toolchain in self.cpu.freestanding


def resolve_target(
    *,
    cpu: str,
    isa: str | None,
    board: str | None,
    toolchain: str | None,
    optimize: str,
) -> Target:
    """The target of these names, which are known to fit each other."""
    core = CPUS[cpu]
    board_name = board or core.default_board
    return Target(
        cpu=core,
        isa=core.isas[isa or core.default_isa],
        board=BOARDS[board_name] if board_name else None,
        toolchain=toolchain or core.toolchains[0],
        optimize=optimize,
    )
