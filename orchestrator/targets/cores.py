"""Targets as data: cores, their instruction sets and compiler flags.

Adding a core means adding a row here; no code branches on their names. Boards are in
`boards.py`.

Source: the compilers' manuals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from orchestrator.targets.boards import BOARDS, Board, Region

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

FLOAT_ABIS = ("hard", "softfp", "soft")

# Kernels ask `ORCH_ISA >= 1`: a core with MVE has the DSP instructions as well. The
# numbers are in runtime/include and docs/targets.md.
ISA_LEVELS: Mapping[str, int] = MappingProxyType({"scalar": 0, "dsp": 1, "mve": 2})
"""Instruction set variants, each with those before it; `ORCH_ISA` in kernels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Isa:
    """An instruction set variant of a core, the same flags for gcc and clang.

    Args:
        name: As the profile writes it.
        machine_flags: Select core, FPU and float ABI.
        zig_target: For compiler_rt: target and cpu as zig names them.
    """

    name: str
    machine_flags: tuple[str, ...]
    zig_target: tuple[str, str]

    @property
    def level(self) -> int:
        """Value of the macro ORCH_ISA: the most that kernels may use."""
        return ISA_LEVELS[self.name]


# Armv6-M and Armv8-M Baseline (Armv6-M Architecture Reference Manual, A3.2.1). On the
# others CCR.UNALIGN_TRP decides, which firmware may set: `unaligned = false`.
_ALIGNED_ONLY = ("thumbv6m-", "thumbv8m.base-")
"""Architectures on which an unaligned access is a fault."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cpu:
    """A core that firmware can be built for.

    Args:
        name: As the profile writes it.
        isas: Instruction set variants by name, the default first.
        clang_triple: For clang and lld.
        gnu_prefix: Of the GNU programs, "arm-none-eabi-".
        platform: Folder under runtime/platform/; "" for programs of Linux.
        pointer_bytes: Size of a pointer.
        float_abi: For reports: hard, softfp or soft.
        toolchains: Those that can build for it; the first is the default.
        default_board: Board if the profile names none; None for programs of Linux.
        machine: Of programs for another machine: that machine, as `uname -m` says.
    """

    name: str
    isas: Mapping[str, Isa]
    clang_triple: str
    gnu_prefix: str = ""
    platform: str = ""
    pointer_bytes: int = 8
    float_abi: str = "hard"
    toolchains: tuple[str, ...] = ("zig", "gnu")
    default_board: str | None = None
    machine: str = ""

    @property
    def default_isa(self) -> str:
        """Variant if the profile names none."""
        return next(iter(self.isas))

    @property
    def emulator(self) -> tuple[str, ...]:
        """What runs programs for another machine on this one."""
        # `uname -m` says armv7l where QEMU says arm; the other machines have one name.
        return (f"qemu-{self.machine.removesuffix('v7l')}-static",) if self.machine else ()

    @property
    def is_host(self) -> bool:
        """Whether programs are for the machine that builds them."""
        return "{machine}" in self.clang_triple

    @property
    def is_arm(self) -> bool:
        """Whether it is a Cortex-M."""
        return self.clang_triple.startswith("thumb")

    @property
    def has_float_modes(self) -> bool:
        """Whether firmware may have set an FPU that kernels use to other bits.

        Operating systems give programs an FPU as it is after reset.
        """
        # Start-up code, an RTOS or another library may set flush-to-zero or another
        # rounding, with which kernels give other bits: `..._prepare` then returns
        # WrongFloatMode (tests/qemu/test_float_modes.py).
        return self.default_board is not None and self.float_abi != "soft"

    @property
    def has_unaligned(self) -> bool:
        """Whether words load from any address, unless firmware makes that fault."""
        return self.is_arm and not self.clang_triple.startswith(_ALIGNED_ONLY)

    @property
    def float_abis(self) -> tuple[str, ...]:
        """How functions can take floats, the default first.

        Not softfp for Armv8.1-M: zig cannot build its support functions for that.
        """
        flags = self.isas[self.default_isa].machine_flags
        has_both = self.is_arm and any(flag.startswith("-mfpu=") for flag in flags)
        return ("hard", "softfp") if has_both else (self.float_abi,)

    @property
    def has_trustzone(self) -> bool:
        """Whether the core may have a secure and a non-secure side."""
        return self.clang_triple.startswith("thumbv8")


def _isas(zig: str, isas: Mapping[str, tuple[tuple[str, ...], str]]) -> Mapping[str, Isa]:
    """Variants of zig's target, by name: (machine flags, zig's name of the cpu)."""
    return MappingProxyType(
        {
            name: Isa(name=name, machine_flags=flags, zig_target=(zig, cpu))
            for name, (flags, cpu) in isas.items()
        }
    )


def _cortex_m(
    name: str, *, triple: str, isas: Mapping[str, tuple[tuple[str, ...], str]], board: str
) -> Cpu:
    """A Cortex-M core.

    Args:
        name: Of the core.
        triple: For clang.
        isas: By name, the default first: (machine flags, zig's name of the cpu).
        board: Default board.
    """
    return Cpu(
        name=name,
        platform="cortex_m",
        isas=_isas(
            f"thumb-freestanding-{triple.rsplit('-', 1)[1]}",
            {isa: (("-mthumb", *flags), cpu) for isa, (flags, cpu) in isas.items()},
        ),
        pointer_bytes=4,
        float_abi="hard" if triple.endswith("hf") else "soft",
        default_board=board,
        gnu_prefix="arm-none-eabi-",
        clang_triple=triple,
    )


def _riscv(name: str, *, abi: str, zig_cpu: str, board: str, flags: tuple[str, ...] = ()) -> Cpu:
    """A RISC-V core, named as compilers name its instructions.

    Args:
        name: Of the core.
        abi: What functions pass in which registers.
        zig_cpu: Zig's name of the core.
        board: Default board.
        flags: Further machine flags.
    """
    # 32 or 64: names begin as those of the RISC-V specification.
    bits = name.removeprefix("rv")[:2]
    # Nothing sets the global pointer, by which small data is found otherwise. Without
    # tables of jumps, a jump to an address in a register is a call: stack use is known.
    machine = (
        *(f"-march={name}", f"-mabi={abi}"),
        *("-msmall-data-limit=0", "-fno-jump-tables"),
        *flags,
    )
    return Cpu(
        name=name,
        platform="riscv",
        isas=_isas(f"riscv{bits}-freestanding-none", {"scalar": (machine, zig_cpu)}),
        pointer_bytes=int(bits) // 8,
        float_abi="hard" if abi.endswith(("f", "d")) else "soft",
        default_board=board,
        # One GNU toolchain for both widths: Debian has no riscv32 package, -march and
        # -mabi choose.
        gnu_prefix="riscv64-unknown-elf-",
        clang_triple=f"riscv{bits}-none-elf",
    )


# FPv4-SP: single precision with fused multiply-add, Cortex-M4. FPv5-SP: M33 and M35P.
# FPv5 with doubles: M7. d16: M profiles have 16 double registers.
_SP_V4 = ("-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
_SP_V5 = ("-mfpu=fpv5-sp-d16", "-mfloat-abi=hard")
_DP_V5 = ("-mfpu=fpv5-d16", "-mfloat-abi=hard")
# No -mfpu: `auto`, gcc's default, takes the FPU from -mcpu or -march with their
# extensions, which say more (`+mve.fp`, `+nomve`) than names of FPUs can.
_AUTO_FPU = ("-mfloat-abi=hard",)
_NO_FPU = ("-mfloat-abi=soft",)
_ARMV7A = ("-march=armv7-a+fp", "-mfpu=vfpv3-d16", "-mfloat-abi=hard", "-marm")


def _core(cpu: str, fpu: tuple[str, ...]) -> tuple[str, ...]:
    return (f"-mcpu={cpu}", *fpu)


def _march(extensions: str) -> tuple[str, ...]:
    """Flags for a core that older compilers do not know by name."""
    # gcc 12 and clang 14 know no -mcpu=cortex-m85.
    return (f"-march=armv8.1-m.main{extensions}", *_AUTO_FPU)


CPUS: Mapping[str, Cpu] = MappingProxyType(
    {
        cpu.name: cpu
        for cpu in (
            Cpu(
                name="host",
                isas=_isas("{machine}-freestanding", {"scalar": ((), "baseline")}),
                # {machine} is what `uname -m` says where the build runs: the row stays
                # data, and a lock for `host` names no machine.
                clang_triple="{machine}-linux-none",
                toolchains=TOOLCHAINS,
            ),
            Cpu(
                name="x86-64",
                machine="x86_64",
                isas=_isas("x86_64-freestanding", {"scalar": (("-march=x86-64",), "baseline")}),
                gnu_prefix="x86_64-linux-gnu-",
                clang_triple="x86_64-linux-none",
            ),
            Cpu(
                name="aarch64",
                machine="aarch64",
                isas=_isas("aarch64-freestanding", {"scalar": (("-march=armv8-a",), "baseline")}),
                gnu_prefix="aarch64-linux-gnu-",
                clang_triple="aarch64-linux-none",
            ),
            # Without NEON, whose floats lose subnormals.
            Cpu(
                name="armv7a",
                machine="armv7l",
                isas=_isas("arm-freestanding-eabihf", {"scalar": (_ARMV7A, "generic+v7a+vfp3d16")}),
                gnu_prefix="arm-linux-gnueabihf-",
                clang_triple="armv7a-linux-eabihf",
                pointer_bytes=4,
            ),
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
                    # In Armv8-M the DSP extension is optional, so that compilers have a
                    # name for a core without it.
                    "scalar": (_core("cortex-m33+nodsp", _SP_V5), "cortex_m33-dsp+fp_armv8d16sp"),
                },
                board="mps2-an505",
            ),
            _cortex_m(
                "cortex-m35p",
                triple="thumbv8m.main-none-eabihf",
                isas={
                    "dsp": (_core("cortex-m35p", _SP_V5), "cortex_m35p+fp_armv8d16sp"),
                    "scalar": (_core("cortex-m35p+nodsp", _SP_V5), "cortex_m35p-dsp+fp_armv8d16sp"),
                },
                board="generic-m35p",
            ),
            _cortex_m(
                "cortex-m55",
                triple="thumbv8.1m.main-none-eabihf",
                isas={
                    "mve": (_core("cortex-m55", _AUTO_FPU), "cortex_m55+mve_fp+fp_armv8d16"),
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
                    "mve": (_march("+mve.fp+fp.dp"), "cortex_m85+mve_fp+fp_armv8d16"),
                    "dsp": (_march("+dsp+fp.dp"), "cortex_m85-mve-mve_fp+fp_armv8d16"),
                    "scalar": (_march("+fp.dp"), "cortex_m85-mve-mve_fp-dsp+fp_armv8d16"),
                },
                board="generic-m85",
            ),
            _riscv("rv32imc", abi="ilp32", zig_cpu="generic_rv32+m+c", board="virt-rv32"),
            _riscv("rv32imac", abi="ilp32", zig_cpu="generic_rv32+m+a+c", board="virt-rv32"),
            _riscv("rv32imafc", abi="ilp32f", zig_cpu="generic_rv32+m+a+f+c", board="virt-rv32"),
            # The default code model reaches no memory from 2 GiB on.
            _riscv(
                "rv64gc",
                abi="lp64d",
                zig_cpu="generic_rv64+m+a+f+d+c",
                board="virt-rv64",
                # medlow reaches the first and the last 2 GiB only, and QEMU's virt
                # machine has its RAM from 2 GiB on (RISC-V ELF psABI, code models).
                flags=("-mcmodel=medany",),
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
        via: How the runner reaches the host: `semihosting` or `uart`.
    """

    cpu: Cpu
    isa: Isa
    board: Board | None
    toolchain: str
    optimize: str
    unaligned: bool = True
    via: str = "semihosting"

    @property
    def platforms(self) -> tuple[str, ...]:
        """Folders under runtime/platform/."""
        if self.cpu.platform:
            return (self.cpu.platform, self.via)
        return ("linux" if self.toolchain == "zig" else "posix",)

    @property
    def freestanding(self) -> bool:
        """Built without a C library."""
        return self.toolchain == "zig" or bool(self.cpu.platform)


def _with_softfp(core: Cpu) -> Cpu:
    """A core with an FPU whose functions take floats as those without one do."""

    def changed(isa: Isa) -> Isa:
        flags = (f.replace("-abi=hard", "-abi=softfp") for f in isa.machine_flags)
        # Flags, zig's triple and clang's all have to say it: objects that differ in the
        # float ABI do not link.
        triple, cpu = isa.zig_target
        zig_target = (triple.removesuffix("hf"), cpu)
        return replace(isa, machine_flags=tuple(flags), zig_target=zig_target)

    return replace(
        core,
        isas={name: changed(isa) for name, isa in core.isas.items()},
        float_abi="softfp",
        clang_triple=core.clang_triple.removesuffix("hf"),
    )


def resolve_target(
    *,
    cpu: str,
    isa: str | None,
    board: str | Board | None,
    toolchain: str | None,
    optimize: str,
    unaligned: bool = True,
    float_abi: str | None = None,
    via: str = "semihosting",
) -> Target:
    """The target of these names, which are known to fit each other."""
    core = CPUS[cpu]
    if float_abi == "softfp":
        core = _with_softfp(core)
    variant = core.isas[isa or core.default_isa]
    if core.has_unaligned and not unaligned:
        # The same word in gcc and clang. zig's own support functions take
        # `+strict_align` instead (shell/toolchain.py).
        flags = (*variant.machine_flags, "-mno-unaligned-access")
        variant = replace(variant, machine_flags=flags)
    chosen = board or core.default_board or None
    if isinstance(chosen, str):
        chosen = BOARDS[chosen]
    return Target(
        cpu=core,
        isa=variant,
        board=chosen,
        toolchain=toolchain or core.toolchains[0],
        optimize=optimize,
        unaligned=unaligned and core.has_unaligned,
        via=via,
    )


# A compiler and its companions, as found on this machine.

TOOLCHAIN_FILE = "toolchain.txt"
"""File in ninja's folder on which all steps depend: the toolchain's identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolchain:
    """Programs of a toolchain.

    Args:
        name: `gnu` or `zig`.
        version: "gcc 12.2.0" or "ziglang 0.17.0 (clang 22.1.8)": in the lock file.
        compiler: Command that compiles C++ and assembly; absolute.
        archiver: Command that makes static libraries.
        linker: Command that links firmware; the compiler's driver for gnu.
        programs: (role, digest of the program's file) sorted; in the lock file.
        files: Absolute paths of these programs' files; a build depends on them.
        builtins: Object with the compiler's support functions, if the linker does not
            bring them; absolute, or "".
    """

    name: str
    version: str
    compiler: tuple[str, ...]
    archiver: tuple[str, ...]
    linker: tuple[str, ...]
    programs: tuple[tuple[str, str], ...]
    files: tuple[str, ...] = ()
    builtins: str = ""

    @property
    def needs_builtins(self) -> bool:
        """Whether firmware links an object with the compiler's support functions."""
        return self.name == "zig"
