"""Kernel libraries and delegates of a profile: what files they have."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from orchestrator.build.decoding import decoded
from orchestrator.catalog import LibraryText
from orchestrator.emit.compile import LibraryOptions
from orchestrator.errors import Diagnostic, ProfileError, SourceSpan
from orchestrator.selection.resolution import DelegateCode
from orchestrator.shell import sources
from orchestrator.shell.library_files import LibraryFiles, find_library

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from orchestrator.profile import CustomTable, DelegateTable, KeyPath, Profile
    from orchestrator.program.program import Program

_SHARED = "util"
"""Folder of kernels/ with what libraries share."""


class Libraries:
    """Finds the files of all libraries a profile uses.

    In every path a custom library stands as if it were a folder of kernels/, like
    those that come with Orchestrator: `kernels/my_ops/op_fancy.cpp`. Delegates stand
    in folders named after their backends: `delegates/MyBackend/run.cpp`.

    Raises:
        ProfileError: A pattern of sources matches nothing.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._custom: dict[str, LibraryFiles] = {}
        self._delegates: dict[str, LibraryFiles] = {}
        problems: list[Diagnostic] = []
        for index, library in enumerate(profile.kernels.custom):
            found = _find(library, library.functions.path)
            self._custom[library.name] = found
            where: KeyPath = ("kernels", "custom", index)
            problems += _unmatched(profile, where, library, found)
        for index, delegate in enumerate(profile.delegates):
            found = _find(delegate, None)
            self._delegates[delegate.backend] = found
            problems += _unmatched(profile, ("delegates", index), delegate, found)
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
        for backend, found in self._delegates.items():
            files |= {f"delegates/{backend}/{n}": p for n, p in found.files.items()}
        return files

    def functions(self, library: str) -> str:
        """Path of a library's functions.yaml."""
        custom = self._custom.get(library)
        return f"kernels/{library}/{custom.functions if custom else 'functions.yaml'}"

    def text_of(self, library: str, *, read: Callable[[Path], bytes]) -> LibraryText:
        """A library's functions.yaml.

        Raises:
            ProfileError: It cannot be read, or is not UTF-8.
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
            text=self._text(library, path, read),
            folder=found.folder,
            sources=found.sources,
            files=frozenset(found.files),
        )

    def _text(self, library: str, path: Path, read: Callable[[Path], bytes]) -> str:
        try:
            return decoded(read(path), file=str(path))
        except OSError as error:
            raise ProfileError(
                Diagnostic(
                    code="unreadable-file",
                    message=f"the list of the kernel library {library} cannot be read",
                    where=SourceSpan(file=str(path)),
                    notes=(("found", error.strerror or str(error)),),
                    hint="name a functions.yaml that you may read",
                )
            ) from error

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

    @cached_property
    def delegates(self) -> tuple[DelegateCode, ...]:
        """Delegates of the profile, linked or not."""
        return tuple(
            DelegateCode(
                backend=delegate.backend,
                namespace=delegate.namespace,
                state_bytes=delegate.state_bytes,
                sources=self._delegates[delegate.backend].sources,
            )
            for delegate in self._profile.delegates
        )

    @cached_property
    def delegate_options(self) -> Mapping[str, LibraryOptions]:
        """How the sources of delegates are compiled, by backend."""
        return {
            delegate.backend: LibraryOptions(
                include=self._delegates[delegate.backend].include,
                defines=delegate.defines,
            )
            for delegate in self._profile.delegates
        }

    @property
    def delegate_identities(self) -> Mapping[str, str]:
        """What decides about each delegate besides its files' contents."""
        options = self.delegate_options
        return {c.backend: repr((c, options[c.backend])) for c in self.delegates}

    def delegate_states(self, programs: Iterable[Program]) -> dict[str, int]:
        """State bytes of the delegates that some program needs, by backend."""
        needed = {d.backend for p in programs for m in p.methods for d in m.delegates}
        return {
            code.backend: code.state_bytes
            for code in self.delegates
            if code.backend in needed
        }

    def folders(self) -> Mapping[str, str]:
        """Absolute folders behind `kernels/<custom library>`, `delegates/<backend>`."""
        return {
            f"{kind}/{name}": str(found.root)
            for kind, of_kind in (
                ("kernels", self._custom),
                ("delegates", self._delegates),
            )
            for name, found in of_kind.items()
        }


def _find(entry: CustomTable | DelegateTable, functions: Path | None) -> LibraryFiles:
    return find_library(
        functions,
        sources=[source.path for source in entry.sources],
        include=[folder.path for folder in entry.include],
    )


def _unmatched(
    profile: Profile,
    where: KeyPath,
    entry: CustomTable | DelegateTable,
    found: LibraryFiles,
) -> list[Diagnostic]:
    return [
        Diagnostic(
            code="missing-file",
            message=f'no source matches "{entry.sources[at].written}"',
            where=profile.span(*where, "sources", at),
            notes=(("found", f"nothing at {entry.sources[at].path}"),),
            hint="check the pattern; it is sought from the folder of the"
            " profile that has it",
        )
        for at in found.unmatched
    ]
