"""The files of a custom kernel library, in folders of its owner's choice."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from orchestrator.shell.build_folder import WORK

SOURCES = frozenset({".cpp", ".cc", ".cxx", ".c", ".S"})
# .inc, .inl, .ipp and .def are included by name and have no other sign of being
# sources: a copy without them does not compile.
HEADERS = frozenset({".h", ".hh", ".hpp", ".hxx", ".inc", ".inl", ".ipp", ".def"})

NATIVE_SUFFIXES = (*sorted(SOURCES), *sorted(HEADERS))


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryFiles:
    """The files of a kernel library.

    Paths are POSIX, relative to the innermost folder that holds all of them, so that
    includes between them work in a copy.

    Args:
        root: This folder.
        functions: The functions.yaml; "" for a delegate, which has none.
        files: Sources and headers, each with its path on this machine.
        sources: Files to compile with any kernel of the library; sorted.
        include: Folders of headers, that of `functions` first if there is one.
        unmatched: Indices of the patterns that match nothing.
    """

    root: Path
    functions: str
    files: Mapping[str, Path]
    sources: tuple[str, ...]
    include: tuple[str, ...]
    unmatched: tuple[int, ...]

    @property
    def folder(self) -> str:
        """Folder of `functions`, "" for the root."""
        parent = PurePosixPath(self.functions).parent.as_posix()
        return "" if parent == "." else parent


def find_library(
    functions: Path | None, *, sources: Sequence[Path], include: Sequence[Path]
) -> LibraryFiles:
    """Find every file that a kernel library or delegate may need.

    These are all sources and headers in the folder of its functions.yaml and below,
    the sources that match a pattern with the headers beside them, and the headers in
    the include folders and below. Folders whose name begins with a dot, and build
    folders, are passed over.

    Args:
        functions: Its functions.yaml; None for a delegate.
        sources: Files, or patterns with `*` and `**`.
        include: Folders.
    """
    home = [_absolute(functions).parent] if functions else []
    matches = [sorted(_matching(_absolute(source))) for source in sources]
    compiled = {path for found in matches for path in found}
    folders = [*home, *map(_absolute, include)]
    files = set(compiled)
    for folder in home:
        files.update(p for p in _walk(folder) if p.suffix in SOURCES | HEADERS)
    for folder in folders[len(home) :]:
        files.update(p for p in _walk(folder) if p.suffix in HEADERS)
    for folder in {path.parent for path in compiled}:
        files.update(p for p in _files(folder) if p.suffix in HEADERS)
    parts = [*folders, *(path.parent for path in files)]
    # One root for all: `#include "../common/x.h"` means the same in the copy, whose
    # folders lie as the originals do.
    root = Path(os.path.commonpath(parts or [Path.cwd()]))

    def relative(path: Path) -> str:
        return path.relative_to(root).as_posix()

    return LibraryFiles(
        root=root,
        functions=relative(home[0] / functions.name) if functions else "",
        files={relative(path): path for path in sorted(files)},
        sources=tuple(sorted(map(relative, compiled))),
        include=tuple(dict.fromkeys(map(relative, folders))),
        unmatched=tuple(i for i, found in enumerate(matches) if not found),
    )


def _absolute(path: Path) -> Path:
    """The path without `..`; links are kept, as users see their folders with them."""
    return Path(os.path.abspath(path))  # noqa: PTH100  # resolve() follows links


def _matching(pattern: Path) -> Iterable[Path]:
    if "*" not in str(pattern):
        return [pattern] if pattern.is_file() else []
    parts = pattern.parts
    first = next(i for i, part in enumerate(parts) if "*" in part)
    # Only * is special in a profile's patterns, so other glob characters are escaped.
    names = (p.replace("[", "[[]").replace("?", "[?]") for p in parts[first:])
    found = Path(*parts[:first]).glob("/".join(names))
    return (p for p in found if p.suffix in SOURCES and p.is_file())


def _walk(folder: Path) -> Iterator[Path]:
    """Files of a folder and of those below it."""
    for path, folders, names in os.walk(folder):
        if WORK in folders:  # a build folder, which holds copies
            folders.clear()
            continue
        # In place, as os.walk reads this list; sorted, so that no order of a file
        # system gets into outputs.
        folders[:] = sorted(f for f in folders if not f.startswith("."))
        yield from (Path(path, name) for name in names)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if path.is_file())
