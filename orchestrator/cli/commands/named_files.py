"""Files that a command line names; commands without a profile need nothing of the build."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

from orchestrator.catalog import read_library
from orchestrator.cli.outputs import would_overwrite
from orchestrator.core.kernel import Kernel
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.errors import Diagnostic, ModelError, SourceSpan, UsageError
from orchestrator.program.program import Program
from orchestrator.program.reader import read_program
from orchestrator.shell.depfile import write_depfile
from orchestrator.shell.distribution import extra_needed
from orchestrator.shell.files import (
    MOST_TEXT_BYTES,
    lazy_file,
    read_file,
    read_text_file,
    reason_of,
)
from orchestrator.shell.output_file import ANY, lost
from orchestrator.shell.sources import library_file, library_names


def read_model(path: Path) -> Program:
    """The program in a file. Raises ModelError."""
    return read_program(read_bytes(path), file=str(path))


def read_bytes(path: Path) -> Bytes:
    """The bytes of a program's file. Raises ModelError."""
    try:
        # Large files are read where they are needed: most commands use none of the
        # weights.
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


def read_text(path: Path, *, wanted: str, most_bytes: int = MOST_TEXT_BYTES) -> str:
    """The text of a file in UTF-8, with or without a byte order mark.

    Args:
        path: The file.
        wanted: What the file should be: `a table of scratch sizes (CSV)`.
        most_bytes: A larger file is an error.

    Raises:
        UsageError: It cannot be read.
    """
    try:
        # Editors and PowerShell on Windows write a byte order mark.
        return read_text_file(path, encoding="utf-8-sig", most_bytes=most_bytes)
    except (OSError, UnicodeDecodeError) as error:
        decoding = isinstance(error, UnicodeDecodeError)
        raise UsageError.of(
            "not-utf8" if decoding else "unreadable-file",
            f"{path} cannot be read",
            where=SourceSpan(file=str(path)),
            found=getattr(error, "strerror", None) or reason_of(error),
            hint=f"name {wanted}",
        ) from error


def cryptography_needed() -> AbstractContextManager[None]:
    """Says how to install what signs, if it is missing. Raises ToolchainError."""
    return extra_needed("provenance", "to sign, and to check signatures")


def read_named(path: Path, *, wanted: str) -> bytes:
    """The bytes of a file that a command line names. Raises UsageError."""
    try:
        return read_file(path)
    except OSError as error:
        raise UsageError.of(
            "unreadable-file",
            f"{path} cannot be read",
            found=error.strerror or str(error),
            hint=f"name {wanted}",
        ) from error


# The options `--depfile` and `--depfile-target`, which several commands have.


def depfile_problems(args: Namespace) -> list[Diagnostic]:
    """Problems of `--depfile-target` without `--depfile`."""
    if args.depfile_target is None or args.depfile is not None:
        return []
    return [
        Diagnostic.of(
            "usage",
            "--depfile-target requires --depfile",
            found=f"--depfile-target {args.depfile_target}",
            hint="name the file to write with --depfile FILE",
        )
    ]


def write_dependencies(depfile: Path, *, target: str, inputs: Iterable[str]) -> None:
    """Write a depfile.

    Raises:
        UsageError: `bad-depfile`: a path has a character that depfiles cannot hold.
            `would-overwrite`: the depfile has the path of one.
    """
    inputs = tuple(inputs)
    # Inputs are known only after the build; `outputs` has looked at the rest before it.
    if found := lost(str(depfile), (ANY,), inputs):
        raise UsageError(would_overwrite("--depfile", str(depfile), found))
    try:
        write_depfile(str(depfile), target=target, inputs=inputs)
    except ValueError as error:
        raise UsageError.of(
            "bad-depfile",
            "a depfile cannot hold the path of a file",
            found=ascii(error.args[0]),
            expected="a path without tabs and line ends",
            hint="rename the file or its folder, or build without --depfile",
        ) from error
