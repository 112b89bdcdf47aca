"""The QEMU plugin that counts instructions, compiled when it is first needed."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from orchestrator.errors import ToolchainError
from orchestrator.shell import process
from orchestrator.shell.cache import cache_folder, file_digest
from orchestrator.shell.distribution import pip_install
from orchestrator.shell.process import compiler_environment
from orchestrator.shell.sources import native_root
from orchestrator.shell.toolchain import zig_program

SOURCE = "runtime/tools/count_instructions.c"
PLUGIN = "count_instructions.so"
"""Name of the compiled plugin where an emulator loads it."""
# Seconds, chosen by hand: `zig cc` builds parts of its own libraries at its first use.
_COMPILE_TIMEOUT_S = 120.0
# The plugin is called for every block that the emulator executes: unoptimized it would
# be most of a profile's time.
_FLAGS = ("-O2", "-fPIC", "-shared")


def counting_plugin(cache: Path | None = None) -> Path:
    """The plugin, compiled for this machine and kept in the cache.

    It needs no headers of QEMU: it declares the few functions that it uses.

    Args:
        cache: Folder of the cache; None for `cache_folder`.

    Raises:
        ToolchainError: There is no C compiler (`no-c-compiler`), or it cannot compile
            the plugin (`plugin-failed`).
    """
    source = native_root() / SOURCE
    folder = (cache or cache_folder()) / "qemu"
    # By the source's digest: an update of Orchestrator compiles it anew.
    built = folder / f"count_instructions-{file_digest(source)[:16]}.so"
    if built.is_file():
        return built
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / f".{built.stem}.{os.getpid()}.so"
    command = (*_compiler(), *_FLAGS, str(source), "-o", str(temporary))
    env = {**compiler_environment(), "ZIG_GLOBAL_CACHE_DIR": str(folder / "zig-cache")}
    done = process.run(command, cwd=folder, env=env, timeout_s=_COMPILE_TIMEOUT_S)
    if done.status != 0 or not temporary.is_file():
        raise ToolchainError.of(
            "plugin-failed",
            "the QEMU plugin that counts instructions does not compile",
            command=" ".join(command),
            found=done.stderr.strip()[-2000:] or f"status {done.status}",
            hint="install a working C compiler for this machine, such as gcc",
        )
    # Several runs may compile it at once; the last one wins with the same file.
    temporary.replace(built)
    return built


def _compiler() -> tuple[str, ...]:
    """A C compiler for this machine: the system's, else zig's."""
    for name in ("gcc", "cc", "clang"):
        if found := shutil.which(name):
            return (found,)
    zig = zig_program()
    if zig is None:
        raise ToolchainError.of(
            "no-c-compiler",
            "no C compiler for the QEMU plugin that counts instructions",
            expected="gcc, cc or clang on the PATH, or ziglang",
            hint=f"apt-get install gcc, or {pip_install('zig')}",
        )
    # QEMU, which loads the plugin, defines its undefined symbols.
    return (str(zig), "cc", "-Wl,-z,undefs")
