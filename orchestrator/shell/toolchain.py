"""Find compilers and emulators on this machine."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from orchestrator.errors import ToolchainError
from orchestrator.shell import process
from orchestrator.shell.cache import cache_folder, program_digest
from orchestrator.shell.distribution import pip_install
from orchestrator.shell.process import compiler_environment
from orchestrator.shell.stamp import State, state_of
from orchestrator.targets.cores import Toolchain

if TYPE_CHECKING:
    from orchestrator.targets.cores import Target

# `c++` last: it is one of the others on most systems, under a name that says nothing.
_HOST_COMPILERS = ("g++", "clang++", "c++")
# Seconds, chosen by hand: `--version` of a program of 185 MB on a cold disk; and for
# all of compiler_rt on a slow machine.
_PROBE_TIMEOUT_S = 60.0
_BUILD_TIMEOUT_S = 300.0

_INSTALL_HINTS = {
    "arm-none-eabi-g++": "apt-get install gcc-arm-none-eabi",
    "g++": 'apt-get install g++, or use toolchain = "zig"',
    "riscv64-unknown-elf-g++": "apt-get install gcc-riscv64-unknown-elf",
    "aarch64-linux-gnu-g++": "apt-get install g++-aarch64-linux-gnu",
    "arm-linux-gnueabihf-g++": "apt-get install g++-arm-linux-gnueabihf",
    "x86_64-linux-gnu-g++": "apt-get install g++-x86-64-linux-gnu",
    "qemu-system-arm": "apt-get install qemu-system-arm",
    "qemu-system-riscv32": "apt-get install qemu-system-misc",
    "qemu-system-riscv64": "apt-get install qemu-system-misc",
    "qemu-aarch64-static": "apt-get install qemu-user-static",
    "qemu-arm-static": "apt-get install qemu-user-static",
    "qemu-x86_64-static": "apt-get install qemu-user-static",
}
"""How to install the system's programs, by program."""


def install_hint(program: str) -> str:
    """How to install a program."""
    if program == "zig":
        return pip_install("zig")
    return _INSTALL_HINTS.get(program, f"install {program}")


class Toolchains(Protocol):
    """Compilers that builds can use."""

    def name_for_host(self) -> str:
        """Name of the toolchain for programs that run here."""

    def find(self, target: Target, *, trust_cache: bool) -> Toolchain:
        """See `find_toolchain`. Raises ToolchainError."""

    def builtins(self, toolchain: Toolchain, target: Target) -> bytes:
        """The object that `needs_builtins` requires. Raises ToolchainError."""


class InstalledToolchains:
    """The compilers of this machine.

    Args:
        cache: Folder of the cache that knows them; None for `cache_folder`.
    """

    def __init__(self, cache: Path | None = None) -> None:
        self._cache = cache

    def name_for_host(self) -> str:
        """The system's compiler where there is one, else zig."""
        # A shared profile names its toolchain: without one the choice depends on the
        # machine, and so does the lock (docs/targets.md).
        found = any(shutil.which(n) for n in _HOST_COMPILERS)
        return "gnu" if found else "zig"

    def find(self, target: Target, *, trust_cache: bool) -> Toolchain:
        """See `Toolchains`."""
        return find_toolchain(target, trust_cache=trust_cache, cache=self._cache)

    def builtins(self, toolchain: Toolchain, target: Target) -> bytes:
        """See `Toolchains`."""
        found = with_builtins(toolchain, target, cache=self._cache)
        return Path(found.builtins).read_bytes()


class KnownToolchains:
    """Compilers, each looked for once, until one of its files changes.

    Args:
        toolchains: Where they are looked for.
    """

    def __init__(self, toolchains: Toolchains) -> None:
        self._toolchains = toolchains
        self._found: dict[tuple[str, str, bool], tuple[Toolchain, list[State]]] = {}
        self.name_for_host = toolchains.name_for_host
        self.builtins = toolchains.builtins

    def find(self, target: Target, *, trust_cache: bool) -> Toolchain:
        """See `Toolchains`."""
        key = (target.toolchain, target.cpu.gnu_prefix, trust_cache)
        known = self._found.get(key)
        # `watch` and commands for many products live for hours: a compiler that was
        # updated meanwhile is found.
        if known is not None and known[1] == [state_of(f) for f in known[0].files]:
            return known[0]
        found = self._toolchains.find(target, trust_cache=trust_cache)
        self._found[key] = (found, [state_of(f) for f in found.files])
        return found


def find_toolchain(
    target: Target, *, trust_cache: bool = True, cache: Path | None = None
) -> Toolchain:
    """Find the toolchain that a target names.

    Args:
        target: What is built for.
        trust_cache: As for `program_digest`.
        cache: Likewise.

    Raises:
        ToolchainError: It is not installed, or does not work; or the product is for
            the host, and that is not Linux (`unsupported-system`).
    """
    if target.cpu.is_host and sys.platform != "linux":
        raise ToolchainError.of(
            "unsupported-system",
            "products for the host need Linux",
            found=sys.platform,
            hint="build for a board that has an emulator; on Windows, use WSL 2",
        )
    digest = partial(program_digest, trust_cache=trust_cache, cache=cache)
    if target.toolchain == "zig":
        return _zig(digest)
    return _gnu(target.cpu.gnu_prefix, digest)


def zig_program() -> Path | None:
    """The zig executable of the ziglang package; None if it is not installed."""
    spec = find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        return None
    program = Path(spec.submodule_search_locations[0]) / "zig"
    return program if program.is_file() else None


def _zig(digest: Callable[[Path], str]) -> Toolchain:
    program = zig_program()
    if program is None:
        raise _missing("zig", "the Python package ziglang")
    probe = _ask(program, "version")
    clang = re.search(r"clang version ([\d.]+)", _ask(program, "clang", "--version"))
    version = f"ziglang {probe.strip()}"
    if clang:
        version += f" (clang {clang[1]})"
    zig = str(program)
    return Toolchain(
        name="zig",
        version=version,
        compiler=(zig, "clang"),
        archiver=(zig, "ar"),
        linker=(zig, "ld.lld"),
        programs=(("zig", digest(program)),),
        files=(zig,),
    )


def _gnu(prefix: str, digest: Callable[[Path], str]) -> Toolchain:
    names = (f"{prefix}g++",) if prefix else _HOST_COMPILERS
    compiler = next((p for n in names if (p := shutil.which(n))), None)
    if compiler is None:
        raise _missing(names[0], f"no {' or '.join(names)} on the PATH")
    driver = Path(compiler)
    # `g++` may be clang, as on macOS.
    is_clang = "clang" in _ask(driver, "--version")
    archiver = shutil.which(f"{prefix}ar")
    if archiver is None:
        raise _missing(f"{prefix}ar", "binutils is incomplete")
    programs = {"compiler": driver, "ar": Path(archiver)}
    # gcc's driver only starts them: they make the bytes. clang compiles and assembles
    # in one program.
    for role in () if is_clang else ("cc1plus", "as", "ld"):
        found = Path(_ask(driver, f"-print-prog-name={role}").strip())
        located = shutil.which(str(found))
        if located is None:
            raise _missing(f"{prefix}g++", f"its program {role} is missing")
        programs[role] = Path(located)
    # gcc answers `-dumpversion` with its major number alone since 7, and clang 14 takes
    # `-dumpfullversion` only beside the other one.
    version = _ask(driver, "-dumpfullversion", "-dumpversion").strip()
    return Toolchain(
        name="gnu",
        version=f"{'clang' if is_clang else 'gcc'} {version}",
        compiler=(compiler,),
        archiver=(archiver,),
        linker=(compiler,),
        programs=tuple((role, digest(path)) for role, path in sorted(programs.items())),
        files=tuple(str(path.absolute()) for path in programs.values()),
    )


def with_builtins(toolchain: Toolchain, target: Target, *, cache: Path | None = None) -> Toolchain:
    """Build the toolchain's support functions for the target's core.

    zig ships them as source: they are built once per core and kept in the cache.

    Raises:
        ToolchainError: They cannot be built.
    """
    if not toolchain.needs_builtins:
        return toolchain
    zig = Path(toolchain.compiler[0])
    triple, cpu = target.isa.zig_target
    if target.cpu.has_unaligned and not target.unaligned:
        cpu += "+strict_align"
    triple = triple.format(machine=platform.machine())
    identity = f"{dict(toolchain.programs)['zig']}|{triple}|{cpu}"
    # By zig's digest: one that was replaced under the same version is another one.
    key = hashlib.sha256(identity.encode()).hexdigest()[:16]
    folder = (cache or cache_folder()) / "compiler_rt"
    built = folder / f"{target.cpu.name}-{target.isa.name}-{key}.o"
    if not built.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        # Workers of a fleet may build it at once: each writes its own, and the rename
        # is atomic.
        temporary = folder / f".{built.stem}.{os.getpid()}.o"
        command = (
            *(str(zig), "build-obj", str(zig.parent / "lib" / "compiler_rt.zig")),
            # A section for each function, so that a product links only those that it
            # calls.
            *("-target", triple, f"-mcpu={cpu}", "-O", "ReleaseSmall"),
            *("-ffunction-sections", "-fdata-sections", "-fstrip"),
            *("--cache-dir", str(folder / "zig-cache")),
            *("--global-cache-dir", str(folder / "zig-cache")),
            f"-femit-bin={temporary}",
        )
        done = process.run(
            command, cwd=folder, env=compiler_environment(), timeout_s=_BUILD_TIMEOUT_S
        )
        if done.status != 0 or not temporary.is_file():
            raise ToolchainError.of(
                "builtins-failed",
                f"zig cannot build its support functions for {target.cpu.name}",
                found=done.stderr.strip()[-2000:],
                hint="reinstall the Python package ziglang",
            )
        temporary.replace(built)
    return replace(toolchain, builtins=str(built))


def _ask(program: Path, *arguments: str) -> str:
    done = process.run(
        (str(program), *arguments),
        cwd=Path.cwd(),
        env=compiler_environment(),
        timeout_s=_PROBE_TIMEOUT_S,
    )
    if done.status != 0:
        raise ToolchainError.of(
            "toolchain-broken",
            f"{program.name} does not work",
            command=" ".join((str(program), *arguments)),
            found=done.stderr.strip()[-500:] or f"status {done.status}",
            hint=f"reinstall it: {install_hint(program.name)}",
        )
    return done.stdout


def _missing(name: str, found: str, code: str = "toolchain-missing") -> ToolchainError:
    return ToolchainError.of(
        code,
        f"{name} is not installed",
        found=found,
        hint=f"{install_hint(name)}; `orchestrator doctor` lists what is there",
    )


def program_beside(name: str) -> str | None:
    """The path of a program: on the PATH, or installed with this one by pip."""
    return shutil.which(name) or shutil.which(name, path=str(Path(sys.executable).parent))


def find_emulator(command: tuple[str, ...]) -> tuple[str, ...]:
    """An emulator's command with its program's absolute path.

    Raises:
        ToolchainError: It is not installed (`no-emulator`).
    """
    program = shutil.which(command[0])
    if program is None:
        raise _missing(command[0], "not on the PATH", "no-emulator")
    return (program, *command[1:])
