"""The folder where a product is compiled, and the ninja that does it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from orchestrator.shell.files import remove_others, write_if_changed
from orchestrator.targets.toolchain import TOOLCHAIN_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from orchestrator.core.lazy_bytes import Bytes
    from orchestrator.shell.launcher import Launcher
    from orchestrator.shell.reporter import Reporter


class CompileFolder(Protocol):
    """Compiles the files that are laid out in it."""

    def compile(self, files: Mapping[str, Bytes], *, whole: Iterable[str]) -> str:
        """Write files and run ninja on `build.ninja`, which is one of them.

        Args:
            files: Bytes by POSIX path relative to the folder.
            whole: Folders in it from which all other files are removed.

        Returns:
            Output of ninja and the compilers, warnings included.

        Raises:
            CompileError: A step failed.
            MemoryPlanError: A memory of the board overflowed at link time.
        """

    def read(self, name: str) -> bytes:
        """Bytes of a file in the folder. Raises OSError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NinjaFolder:
    """A folder of this machine.

    Args:
        path: Where it is.
        jobs: Steps at a time; None lets ninja choose.
        reporter: Gets every step.
        folder_lock: Descriptor of the lock on the build folder, see `run_ninja`.
        launcher: Starts the compiler; None for none.
    """

    path: Path
    jobs: int | None
    reporter: Reporter
    folder_lock: int
    launcher: Launcher | None = None

    def compile(self, files: Mapping[str, Bytes], *, whole: Iterable[str]) -> str:
        """See `CompileFolder`; a file that keeps its bytes keeps its time.

        Sources are copied: the lock names the bytes that are compiled, and the copies'
        times say when these bytes changed; times in a checkout do not.
        """
        from orchestrator.shell import ninja  # noqa: PLC0415  # only real builds

        environment = {}
        if self.launcher is not None:
            text = self.launcher.ninja_text(bytes(files["build.ninja"]).decode())
            files = {**files, "build.ninja": text.encode()}
            environment = self.launcher.environment(bytes(files[TOOLCHAIN_FILE]))
        paths = {self.path / name: data for name, data in files.items()}
        for path, data in paths.items():
            write_if_changed(path, data)
        for folder in whole:
            # The compiler would still find a header of an earlier build.
            remove_others(self.path / folder, keep=paths)
        return ninja.run_ninja(
            self.path,
            jobs=self.jobs,
            reporter=self.reporter,
            folder_lock=self.folder_lock,
            environment=environment,
        )

    def read(self, name: str) -> bytes:
        """See `CompileFolder`."""
        return (self.path / name).read_bytes()
