"""A program that starts the compiler, and remembers what it made: ccache."""

from __future__ import annotations

import hashlib
import shlex
from dataclasses import dataclass
from pathlib import Path
from shutil import which
from typing import Final

from orchestrator.errors import ToolchainError
from orchestrator.shell.settings import LAUNCHER, STORAGE, Settings, read_settings

_REASONS: Final = {
    "sccache": "sccache changes what some compilers write, so locks would not hold",
    **dict.fromkeys(
        ("distcc", "icecc"), "debug information names other files when it is compiled elsewhere"
    ),
}


@dataclass(frozen=True, slots=True)
class Launcher:
    """A ccache.

    Args:
        program: Its absolute path.
        storage: Its remote storage, as it writes it; "" for none.
    """

    program: str
    storage: str = ""

    def ninja_text(self, text: str) -> str:
        """The text of a ninja file whose compile steps start with the launcher.

        Args:
            text: Of the file that is published, which does not name the launcher.
        """
        # Twice: the shell that ninja starts reads the command, and ninja reads `$`
        # before it.
        quoted = shlex.quote(self.program).replace("$", "$$")
        return text.replace("\ncxx = ", f"\ncxx = {quoted} ", 1)

    def environment(self, toolchain: bytes) -> dict[str, str]:
        """Variables for it, with which it uses the cache of this machine only.

        Args:
            toolchain: Names the compiler exactly. ccache itself would look at the
                program's time, which changes with each installation, or read it whole.
        """
        digest = hashlib.sha256(toolchain).hexdigest()
        # The user's file of settings may name a storage as well.
        # ccache's manual: `compiler_check = string:value` uses the value in place of
        # the compiler's size and time.
        return {"CCACHE_COMPILERCHECK": f"string:{digest}", STORAGE: ""}

    def taking(self) -> dict[str, str]:
        """More variables: take objects from the storage, which anyone may have made.

        They do not get into the cache of this machine.
        """
        return {STORAGE: self.storage, "CCACHE_REMOTE_ONLY": "1"}

    def giving(self) -> dict[str, str] | None:
        """More variables: compile, and fill the storage; None if that is not wanted."""
        # An attribute of ccache's syntax: `redis://host|read-only`.
        if "|read-only" in self.storage:
            return None
        return {STORAGE: self.storage, "CCACHE_RECACHE": "1"}


def compiler_launcher(settings: Settings | None = None) -> Launcher | None:
    """The one that settings name, if they do.

    Args:
        settings: Those of the product; None where none is concerned.

    Raises:
        ToolchainError: It is not installed, or is not ccache.
    """
    settings = settings or read_settings()
    name = settings.launcher
    if not name:
        return None
    kind = Path(name).name
    if kind != "ccache":
        raise _unusable(name, _REASONS.get(kind, "its objects may differ from the compiler's"))
    program = which(name)
    if program is None:
        raise _unusable(name, "it is not installed")
    return Launcher(str(Path(program).absolute()), settings.storage)


def _unusable(name: str, reason: str) -> ToolchainError:
    return ToolchainError.of(
        "launcher-unusable",
        f"compiler launcher {name} cannot be used",
        reason=reason,
        hint=f"install ccache, or unset {LAUNCHER}",
    )
