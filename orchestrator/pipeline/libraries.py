"""Kernel libraries of a profile: those that come with Orchestrator, and its own."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from orchestrator.catalog import LibraryText
from orchestrator.errors import Diagnostic, ProfileError
from orchestrator.pipeline.decoding import decoded
from orchestrator.shell import sources
from orchestrator.shell.library_files import LibraryFiles, find_library
from orchestrator.stages.compile import LibraryOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from orchestrator.profile import Profile

_SHARED = "util"
"""Folder of kernels/ with what libraries share."""


class Libraries:
    """Finds the files of all libraries a profile uses.

    In every path a custom library stands as if it were a folder of kernels/, like
    those that come with Orchestrator: `kernels/my_ops/op_fancy.cpp`.

    Raises:
        ProfileError: A pattern of sources matches nothing.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._custom: dict[str, LibraryFiles] = {}
        problems = []
        for index, library in enumerate(profile.kernels.custom):
            found = find_library(
                library.functions.path,
                sources=[source.path for source in library.sources],
                include=[folder.path for folder in library.include],
            )
            self._custom[library.name] = found
            problems += [
                Diagnostic(
                    code="missing-file",
                    message=f'no source matches "{library.sources[at].written}"',
                    where=profile.span("kernels", "custom", index, "sources", at),
                    notes=(("found", f"nothing at {library.sources[at].path}"),),
                    hint="check the pattern; it is sought from the folder of the"
                    " profile that has it",
                )
                for at in found.unmatched
            ]
        if problems:
            raise ProfileError(problems)

    @cached_property
    def native_files(self) -> Mapping[str, Path]:
        """Every file of runtime and of the profile's libraries, by path."""
        root = sources.native_root()
        wanted = {_SHARED, *self._profile.kernels.libraries}
        files = {
            name: root / name
            for name in sources.native_files()
            if not name.startswith("kernels/") or name.split("/")[1] in wanted
        }
        for library in self._profile.kernels.custom:
            found = self._custom[library.name]
            files |= {f"kernels/{library.name}/{n}": p for n, p in found.files.items()}
            files[self.functions(library.name)] = library.functions.path
        return files

    def functions(self, library: str) -> str:
        """Path of a library's functions.yaml."""
        custom = self._custom.get(library)
        return f"kernels/{library}/{custom.functions if custom else 'functions.yaml'}"

    def text_of(self, library: str, *, read: Callable[[Path], bytes]) -> LibraryText:
        """A library's functions.yaml.

        Raises:
            ProfileError: It is not UTF-8.
        """
        found = self._custom.get(library)
        if found is None:
            return LibraryText(
                name=library,
                file=f"kernels/{library}/functions.yaml",
                text=read(sources.library_file(library)).decode(),
            )
        (path,) = (
            c.functions.path for c in self._profile.kernels.custom if c.name == library
        )
        return LibraryText(
            name=library,
            file=str(path),
            text=decoded(read(path), file=str(path)),
            folder=found.folder,
            sources=found.sources,
            files=frozenset(found.files),
        )

    def identity(self, library: str) -> str:
        """What decides about its kernels besides its functions.yaml; "" for ours."""
        found = self._custom.get(library)
        return repr((found.folder, found.sources, [*found.files])) if found else ""

    @cached_property
    def options(self) -> Mapping[str, LibraryOptions]:
        """How the sources of custom libraries are compiled, by library."""
        return {
            library.name: LibraryOptions(
                include=self._custom[library.name].include, defines=library.defines
            )
            for library in self._profile.kernels.custom
        }

    def folders(self) -> Mapping[str, str]:
        """Absolute folders that stand behind `kernels/<custom library>`."""
        return {
            f"kernels/{name}": str(found.root) for name, found in self._custom.items()
        }
