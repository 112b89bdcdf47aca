"""The files of a profile's kernel libraries and delegates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.catalog import LibraryText
from orchestrator.emit.compile import LibraryOptions
from orchestrator.errors import Diagnostic, ProfileError, SourceSpan
from orchestrator.profile.delegates import DelegateTable
from orchestrator.profile.kernels import CustomTable
from orchestrator.profile.source_map import KeyPath
from orchestrator.profile.tables import Profile
from orchestrator.selection.resolution import DelegateCode
from orchestrator.shell import sources
from orchestrator.shell.files import MOST_LIST_BYTES
from orchestrator.shell.input_files import InputFiles
from orchestrator.shell.library_files import LibraryFiles, find_library

# Decode the text files that a profile names.


def decoded(data: bytes, *, file: str) -> str:
    """Text of a file in UTF-8.

    Raises:
        ProfileError: It is not UTF-8.
    """
    try:
        # Editors on Windows put a byte order mark in front.
        return data.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise ProfileError.of(
            "not-utf8",
            f'"{file}" is not UTF-8 text',
            where=SourceSpan(file=file, line=line),
            found=f"byte 0x{data[error.start]:02x} at {error.start}",
            expected="YAML in UTF-8",
            hint="save the file as UTF-8",
        ) from error


# Always copied: kernels of each library include its headers.
_SHARED = "util"
"""Folder of kernels/ with code that libraries share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Libraries:
    """Where the files of a profile's libraries are.

    In paths, a custom library appears as if it were a folder of kernels/, like
    those that come with Orchestrator: `kernels/my_ops/op_fancy.cpp`. Delegates appear
    as folders named after their backends: `delegates/MyBackend/run.cpp`.

    Args:
        custom: Files of custom libraries by name.
        delegates: Files of delegates by backend.
    """

    custom: Mapping[str, LibraryFiles]
    delegates: Mapping[str, LibraryFiles]

    def functions(self, library: str) -> str:
        """Path of a library's functions.yaml."""
        custom = self.custom.get(library)
        return f"kernels/{library}/{custom.functions if custom else 'functions.yaml'}"

    def folders(self) -> Mapping[str, str]:
        """Absolute folders behind `kernels/<custom library>`, `delegates/<backend>`."""
        return {
            f"{kind}/{name}": str(found.root)
            for kind, of_kind in (("kernels", self.custom), ("delegates", self.delegates))
            for name, found in of_kind.items()
        }


def find_libraries(profile: Profile) -> Libraries:
    """Find all libraries and delegates.

    Raises:
        ProfileError: A pattern of sources matches nothing.
    """
    custom, delegates = {}, {}
    problems: list[Diagnostic] = []
    for index, library in enumerate(profile.kernels.custom):
        custom[library.name] = found = _find(library, library.functions.path)
        where: KeyPath = ("kernels", "custom", index)
        problems += _unmatched(profile, where, library, found)
    for index, delegate in enumerate(profile.delegates):
        delegates[delegate.backend] = found = _find(delegate, None)
        problems += _unmatched(profile, ("delegates", index), delegate, found)
    ProfileError.raise_if(problems)
    return Libraries(custom=custom, delegates=delegates)


def native_paths(profile: Profile, libraries: Libraries, files: InputFiles) -> Mapping[str, Path]:
    """Files of the runtime and of the profile's libraries; paths as in `Libraries`."""
    root = sources.native_root()
    wanted = {_SHARED, *profile.kernels.libraries}
    paths = {
        name: root / name
        for name in files.native_files()
        if not name.startswith("kernels/") or name.split("/")[1] in wanted
    }
    for library in profile.kernels.custom:
        found = libraries.custom[library.name]
        paths |= {f"kernels/{library.name}/{n}": p for n, p in found.files.items()}
        paths[libraries.functions(library.name)] = library.functions.path
    for backend, found in libraries.delegates.items():
        paths |= {f"delegates/{backend}/{n}": p for n, p in found.files.items()}
    return paths


def library_text(
    profile: Profile, libraries: Libraries, name: str, files: InputFiles
) -> LibraryText:
    """A library's functions.yaml.

    Raises:
        ProfileError: It cannot be read, or is not UTF-8.
    """
    found = libraries.custom.get(name)
    if found is None:
        data = files.read(sources.library_file(name), most_bytes=MOST_LIST_BYTES)
        file = f"kernels/{name}/functions.yaml"
        return LibraryText(name=name, file=file, text=data.decode())
    (path,) = (c.functions.path for c in profile.kernels.custom if c.name == name)
    return LibraryText(
        name=name,
        file=str(path),
        text=_text(name, path, files),
        folder=found.folder,
        sources=found.sources,
        files=frozenset(found.files),
    )


def _text(library: str, path: Path, files: InputFiles) -> str:
    try:
        return decoded(files.read(path, most_bytes=MOST_LIST_BYTES), file=str(path))
    except OSError as error:
        raise ProfileError.of(
            "unreadable-file",
            f"the list of the kernel library {library} cannot be read",
            where=SourceSpan(file=str(path)),
            found=error.strerror or str(error),
            hint="name a functions.yaml that you may read",
        ) from error


def library_options(profile: Profile, libraries: Libraries) -> Mapping[str, LibraryOptions]:
    """How the sources of custom libraries are compiled, by library."""
    tables = {table.name: table for table in profile.kernels.custom}
    return _options(profile, ("kernels", "custom"), tables, libraries.custom)


def delegate_codes(profile: Profile, libraries: Libraries) -> tuple[DelegateCode, ...]:
    """Delegates of the profile, linked or not."""
    return tuple(
        DelegateCode(
            backend=delegate.backend,
            namespace=delegate.namespace,
            state_bytes=delegate.state_bytes,
            named_data=delegate.named_data,
            sources=libraries.delegates[delegate.backend].sources,
        )
        for delegate in profile.delegates
    )


def delegate_options(profile: Profile, libraries: Libraries) -> Mapping[str, LibraryOptions]:
    """How the sources of delegates are compiled, by backend."""
    tables = {table.backend: table for table in profile.delegates}
    return _options(profile, ("delegates",), tables, libraries.delegates)


def _options(
    profile: Profile,
    where: KeyPath,
    tables: Mapping[str, CustomTable | DelegateTable],
    files: Mapping[str, LibraryFiles],
) -> dict[str, LibraryOptions]:
    return {
        name: LibraryOptions(
            include=files[name].include,
            defines=table.defines,
            exports=tuple(
                (symbol, profile.span(*where, index, "exports")) for symbol in table.exports
            ),
        )
        for index, (name, table) in enumerate(tables.items())
    }


def _find(entry: CustomTable | DelegateTable, functions: Path | None) -> LibraryFiles:
    return find_library(
        functions,
        sources=[source.path for source in entry.sources],
        include=[folder.path for folder in entry.include],
    )


def _unmatched(
    profile: Profile, where: KeyPath, entry: CustomTable | DelegateTable, found: LibraryFiles
) -> list[Diagnostic]:
    return [
        Diagnostic.of(
            "missing-file",
            f'no source matches "{entry.sources[at].written}"',
            where=profile.span(*where, "sources", at),
            found=f"nothing at {entry.sources[at].path}",
            hint="check the pattern; it is relative to the folder of the profile that has it",
        )
        for at in found.unmatched
    ]
