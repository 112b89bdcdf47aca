"""The folders and files of the C++ sources of runtime and kernels."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from orchestrator.shell.distribution import PACKAGE_FOLDER, checkout

_SUFFIXES = {".cpp", ".h", ".yaml"}
# What estimates and passes read: a change of them changes what `check` says, so they count as
# sources of the tool.
_TABLES = (
    *("memory/code_sizes.json", "build/speeds.json", "method/passes/inventory.csv"),
    "targets/uart_drivers.toml",
)


@cache
def native_root() -> Path:
    """Folder of runtime/ and kernels/: inside an installed package, else beside it."""
    return checkout() or PACKAGE_FOLDER / "_native"


def library_names() -> tuple[str, ...]:
    """Names of the kernel libraries that come with Orchestrator."""
    folder = native_root() / "kernels"
    return tuple(sorted(p.parent.name for p in folder.glob("*/functions.yaml")))


def library_file(name: str) -> Path:
    """The functions.yaml of a kernel library."""
    return native_root() / "kernels" / name / "functions.yaml"


def licence() -> Path:
    """The licence of the sources."""
    return native_root() / "LICENSE"


def native_files() -> tuple[str, ...]:
    """Every source, header and list of runtime and kernels, relative to the root."""
    root = native_root()
    return tuple(
        sorted(
            path.relative_to(root).as_posix()
            for top in ("runtime", "kernels")
            for path in (root / top).rglob("*")
            if path.suffix in _SUFFIXES
        )
    )


def package_files() -> tuple[Path, ...]:
    """Every file of the package that decides what outputs are like."""
    pages = (PACKAGE_FOLDER / "report" / "page").rglob("*.*")
    boards = PACKAGE_FOLDER.rglob("board_files/*.toml")
    templates = (PACKAGE_FOLDER / "emit").rglob("templates/*.jinja")
    tables = (PACKAGE_FOLDER / name for name in _TABLES)
    return tuple(sorted((*PACKAGE_FOLDER.rglob("*.py"), *pages, *boards, *templates, *tables)))
