"""Targets as data: cores, their instruction sets and compiler flags.

Adding a core means adding a row here; no code branches on their names. Boards are in
`boards.py`.

Source: the compilers' manuals.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.targets.boards import BOARDS, Board, Region, with_regions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.targets.regions import RegionChoice

__all__ = [
    "BOARDS",
    "CPUS",
    "TOOLCHAINS",
    "Board",
    "Cpu",
    "Isa",
    "Region",
    "Target",
    "resolve_target",
]

TOOLCHAINS = ("gnu", "zig")

ISA_LEVELS: Mapping[str, int] = MappingProxyType({"scalar": 0, "dsp": 1, "mve": 2})
"""Instruction set variants, each with those before it; `ORCH_ISA` in kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isa:
    """An instruction set variant of a core, the same flags for gcc and clang.

    Args:
        name: As the profile writes it.
        machine_flags: Select core, FPU and float ABI.
    """

    name: str
    machine_flags: tuple[str, ...]

    @property
    def level(self) -> int:
        """Value of the macro ORCH_ISA: the most that kernels may use."""
        return ISA_LEVELS[self.name]


_ALIGNED_ONLY = ("thumbv6m-", "thumbv8m.base-")
"""Architectures on which an unaligned access is a fault."""


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

    @property
    def is_arm(self) -> bool:
        """Whether it runs 32-bit Arm code."""
        return self.clang_triple.startswith("thumb")

    @property
    def has_unaligned(self) -> bool:
        """Whether words load from any address, unless firmware makes that fault."""
        return self.is_arm and not self.clang_triple.startswith(_ALIGNED_ONLY)


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


_SP_V4 = ("-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
_SP_V5 = ("-mfpu=fpv5-sp-d16", "-mfloat-abi=hard")
_DP_V5 = ("-mfpu=fpv5-d16", "-mfloat-abi=hard")
_AUTO_FPU = ("-mfloat-abi=hard",)
_NO_FPU = ("-mfloat-abi=soft",)


def _core(cpu: str, fpu: tuple[str, ...]) -> tuple[str, ...]:
    return (f"-mcpu={cpu}", *fpu)


def _march(extensions: str) -> tuple[str, ...]:
    """Flags for a core that older compilers do not know by name."""
    return (f"-march=armv8.1-m.main{extensions}", *_AUTO_FPU)


CPUS: Mapping[str, Cpu] = MappingProxyType(
    {
        cpu.name: cpu
        for cpu in (
            _host(),
            _cortex_m(
                "cortex-m0plus",
                triple="thumbv6m-none-eabi",
                isas={"scalar": (_core("cortex-m0plus", _NO_FPU), "cortex_m0plus")},
                board="mps2-an385",
            ),
            _cortex_m(
                "cortex-m3",
                triple="thumbv7m-none-eabi",
                isas={"scalar": (_core("cortex-m3", _NO_FPU), "cortex_m3")},
                board="mps2-an385",
            ),
            # Compilers have no target for an Armv7E-M core without DSP instructions:
            # there, `scalar` only chooses the variant of a kernel.
            _cortex_m(
                "cortex-m4",
                triple="thumbv7em-none-eabihf",
                isas={
                    "dsp": (_core("cortex-m4", _SP_V4), "cortex_m4+vfp4d16sp"),
                    "scalar": (_core("cortex-m4", _SP_V4), "cortex_m4+vfp4d16sp"),
                },
                board="mps2-an386",
            ),
            _cortex_m(
                "cortex-m7",
                triple="thumbv7em-none-eabihf",
                isas={
                    "dsp": (_core("cortex-m7", _DP_V5), "cortex_m7+fp_armv8d16"),
                    "scalar": (_core("cortex-m7", _DP_V5), "cortex_m7+fp_armv8d16"),
                },
                board="mps2-an500",
            ),
            _cortex_m(
                "cortex-m23",
                triple="thumbv8m.base-none-eabi",
                isas={"scalar": (_core("cortex-m23", _NO_FPU), "cortex_m23")},
                board="generic-m23",
            ),
            _cortex_m(
                "cortex-m33",
                triple="thumbv8m.main-none-eabihf",
                isas={
                    "dsp": (_core("cortex-m33", _SP_V5), "cortex_m33+fp_armv8d16sp"),
                    "scalar": (
                        _core("cortex-m33+nodsp", _SP_V5),
                        "cortex_m33-dsp+fp_armv8d16sp",
                    ),
                },
                board="mps2-an505",
            ),
            _cortex_m(
                "cortex-m35p",
                triple="thumbv8m.main-none-eabihf",
                isas={
                    "dsp": (_core("cortex-m35p", _SP_V5), "cortex_m35p+fp_armv8d16sp"),
                    "scalar": (
                        _core("cortex-m35p+nodsp", _SP_V5),
                        "cortex_m35p-dsp+fp_armv8d16sp",
                    ),
                },
                board="generic-m35p",
            ),
            _cortex_m(
                "cortex-m55",
                triple="thumbv8.1m.main-none-eabihf",
                isas={
                    "mve": (
                        _core("cortex-m55", _AUTO_FPU),
                        "cortex_m55+mve_fp+fp_armv8d16",
                    ),
                    "dsp": (
                        _core("cortex-m55+nomve", _AUTO_FPU),
                        "cortex_m55-mve-mve_fp+fp_armv8d16",
                    ),
                    "scalar": (
                        _core("cortex-m55+nomve+nodsp", _AUTO_FPU),
                        "cortex_m55-mve-mve_fp-dsp+fp_armv8d16",
                    ),
                },
                board="mps3-an547",
            ),
            _cortex_m(
                "cortex-m85",
                triple="thumbv8.1m.main-none-eabihf",
                isas={
                    "mve": (
                        _march("+mve.fp+fp.dp"),
                        "cortex_m85+mve_fp+fp_armv8d16",
                    ),
                    "dsp": (
                        _march("+dsp+fp.dp"),
                        "cortex_m85-mve-mve_fp+fp_armv8d16",
                    ),
                    "scalar": (
                        _march("+fp.dp"),
                        "cortex_m85-mve-mve_fp-dsp+fp_armv8d16",
                    ),
                },
                board="generic-m85",
            ),
        )
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A profile's `[target]`, resolved.

    Args:
        cpu: The core.
        isa: Its instruction set variant.
        board: Where firmware runs; None for hosts.
        toolchain: `gnu` or `zig`.
        optimize: `size`, `speed` or `debug`.
        unaligned: Words may be loaded from any address.
    """

    cpu: Cpu
    isa: Isa
    board: Board | None
    toolchain: str
    optimize: str
    unaligned: bool = True

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
    unaligned: bool = True,
    regions: Sequence[RegionChoice] = (),
) -> Target:
    """The target of these names, which are known to fit each other."""
    core = CPUS[cpu]
    variant = core.isas[isa or core.default_isa]
    if core.has_unaligned and not unaligned:
        flags = (*variant.machine_flags, "-mno-unaligned-access")
        variant = replace(variant, machine_flags=flags)
    board_name = board or core.default_board
    return Target(
        cpu=core,
        isa=variant,
        board=with_regions(BOARDS[board_name], regions) if board_name else None,
        toolchain=toolchain or core.toolchains[0],
        optimize=optimize,
        unaligned=unaligned and core.has_unaligned,
    )
