"""The public header's check that a program's target fits the library's.

Linkers silently accept objects for a core with more instructions, and the
program then hangs or faults. Macros of its compiler reveal that earlier, and the check
says what to do. Programs for a core with all features of the library's are fine.

Sources are compiled with the program: their float ABI is the program's, and where it
has no FPU the compiler calls functions in its place.

Source: Arm C Language Extensions, 5 "Feature test macros".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.targets.cores import Cpu, Target

_OTHER_INSTRUCTIONS = {
    "thumbv6m": (),
    # No check of the exact architecture: a program for a larger core is fine (decision
    # 0016). gcc with -march=armv8.1-m.main defines the macros of Armv8-M, so the last
    # row says no more than the one before.
    "thumbv7m": (("__ARM_ARCH_ISA_THUMB < 2", "without Thumb-2"),),
    "thumbv7em": (
        ("__ARM_ARCH_ISA_THUMB < 2", "without Thumb-2"),
        ("!defined(__ARM_FEATURE_DSP)", "without the DSP instructions"),
    ),
    "thumbv8m.base": (("__ARM_ARCH < 8", "for a core older than Armv8-M"),),
    "thumbv8m.main": (
        ("__ARM_ARCH < 8", "for a core older than Armv8-M"),
        ("__ARM_ARCH_ISA_THUMB < 2", "without Thumb-2"),
    ),
    "thumbv8.1m.main": (
        ("__ARM_ARCH < 8", "for a core older than Armv8.1-M"),
        ("__ARM_ARCH_ISA_THUMB < 2", "without Thumb-2"),
    ),
}
"""By architecture: conditions for missing features, and what is missing."""
# ACLE: bit 1 is half, bit 2 single, bit 3 double precision.
_SINGLE, _DOUBLE = 4, 8  # bits of __ARM_FP
_SELECT_CORE = ("-mthumb", "-mcpu=", "-march=")


def target_check(profile: str, target: Target, *, has_library: bool = True) -> str:
    """Directives that fail compilation for a core that cannot run the code.

    Args:
        profile: Name of the product.
        target: What it is built for.
        has_library: It is a library; otherwise sources, compiled with the program.
    """
    isa = f" (isa {target.isa.name})" if len(target.cpu.isas) > 1 else ""
    flags = " ".join(
        flag for flag in target.isa.machine_flags if has_library or flag.startswith(_SELECT_CORE)
    )
    does = f"; compile with {flags}" if flags else ""
    head = f"lib{profile}.a is built" if has_library else f"{profile} is made"
    head += f" for {target.cpu.name}{isa}"
    conditions = [*_incompatible(target), *(_other_code(target) if has_library else ())]
    cases = "".join(
        f"{'#elif' if number else '#if'} {condition}\n"
        f'#error "{head}, but this program is compiled {what}{does}"\n'
        for number, (condition, what) in enumerate(conditions)
    )
    subject = "library needs" if has_library else "sources need"
    return (
        f"/* What the {subject} of the program's core. ORCH_ANY_TARGET leaves the\n"
        " * check out, for tools that only read this file. */\n"
        "#if defined(__GNUC__) && !defined(ORCH_ANY_TARGET)\n"
        # __GNUC__: gcc and clang predefine these macros, as do Arm's compilers; others
        # pass.
        f"{cases}#endif\n#endif"
    )


_MACHINES = {
    "x86_64": "__x86_64__",
    "aarch64": "__aarch64__",
    "armv7a": "__arm__",
    "riscv32": "__riscv",
    "riscv64": "__riscv",
}
"""Macro of an architecture, by the first part of clang's triple."""
_EXTENSIONS = {
    "m": ("__riscv_mul", "multiplications"),
    "a": ("__riscv_atomic", "atomic instructions"),
    "c": ("__riscv_compressed", "compressed instructions"),
}
"""Extensions of RISC-V: macro, and what is missing without. The float ABI says which
of "f" and "d" there are."""
_FLOAT_ABIS = {"f": "single", "d": "double"}


def _other_machine(cpu: Cpu) -> Iterator[tuple[str, str]]:
    """Checks of machines other than Cortex-M."""
    if macro := _machine_macro(cpu):
        yield f"!defined({macro})", "for another architecture"
    what = f"for a machine without {8 * cpu.pointer_bytes}-bit pointers"
    yield f"__SIZEOF_POINTER__ != {cpu.pointer_bytes}", what
    yield "__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__", "big-endian"


def _machine_macro(cpu: Cpu) -> str:
    return _MACHINES.get(cpu.clang_triple.partition("-")[0], "")


def _incompatible(target: Target) -> Iterator[tuple[str, str]]:
    """Conditions under which nothing for the target can run, each with the reason."""
    cpu = target.cpu
    if not cpu.is_arm:
        yield from _other_machine(cpu)
        return
    yield "!defined(__arm__) || __ARM_ARCH_PROFILE != 'M'", "for another architecture"
    yield "defined(__ARM_BIG_ENDIAN)", "big-endian"
    incompatible = dict(_OTHER_INSTRUCTIONS[cpu.clang_triple.partition("-")[0]])
    if target.isa.name != "scalar":
        incompatible["!defined(__ARM_FEATURE_DSP)"] = "without the DSP instructions"
    if target.isa.name == "mve":
        # ACLE: bit 0 for integers, bit 1 for floats; kernels use both.
        has_none = "!defined(__ARM_FEATURE_MVE) || (__ARM_FEATURE_MVE & 3) != 3"
        incompatible[has_none] = "without MVE"
    yield from incompatible.items()


def _other_code(target: Target) -> Iterator[tuple[str, str]]:
    """Further conditions under which compiled code cannot run."""
    cpu, flags = target.cpu, target.isa.machine_flags
    macro = _machine_macro(cpu)
    if cpu.is_arm or macro == "__arm__":
        is_hard = cpu.float_abi == "hard"
        what = f"{'without' if is_hard else 'with'} -mfloat-abi=hard"
        if len(cpu.float_abis) > 1:
            what += " (target.float_abi in the profile)"
        yield f"{'!' * is_hard}defined(__ARM_PCS_VFP)", what
    if cpu.is_arm and cpu.float_abi != "soft":
        single = any("-sp-" in flag for flag in flags)
        bit, what = (_SINGLE, "an FPU") if single else (_DOUBLE, "an FPU for double")
        yield f"(__ARM_FP & {bit}) == 0", f"without {what}"
    if macro == "__riscv":
        options = dict(flag.split("=") for flag in flags if "=" in flag)
        # RISC-V's own abbreviation (unprivileged specification, naming of extensions).
        letters = options["-march"].replace("g", "imafd")
        for letter, (name, lacks) in _EXTENSIONS.items():
            if letter in letters[len("rv32") :]:
                yield f"!defined({name})", f"without {lacks}"
        abi = options["-mabi"]
        name = _FLOAT_ABIS.get(abi[-1], "soft")
        yield f"!defined(__riscv_float_abi_{name})", f"without -mabi={abi}"
