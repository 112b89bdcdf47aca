"""Read files that a command line names, without a profile."""

from __future__ import annotations

from pathlib import Path

from orchestrator.catalog import read_library
from orchestrator.core.kernel import Kernel
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.errors import ModelError
from orchestrator.program.program import Program
from orchestrator.program.reader import read_program
from orchestrator.shell.files import lazy_file
from orchestrator.shell.sources import library_file, library_names


def read_model(path: Path) -> Program:
    """The program in a file. Raises ModelError."""
    return read_program(read_bytes(path), file=str(path))


def read_bytes(path: Path) -> Bytes:
    """The bytes of a program's file. Raises ModelError."""
    try:
        return lazy_file(path)
    except OSError as error:
        raise ModelError.of(
            "unreadable-model",
            f"{path} cannot be read",
            found=error.strerror or str(error),
            hint="name a .pte file",
        ) from error


def shipped_kernels() -> tuple[Kernel, ...]:
    """Kernels of all libraries that come with Orchestrator."""
    return tuple(
        kernel
        for name in library_names()
        for kernel in read_library(
            library_file(name).read_text(encoding="utf-8"), library=name, file=name
        )
    )
