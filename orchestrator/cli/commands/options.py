"""Options of commands that build: the build folder, jobs, and the lock."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from orchestrator.build import BuildOptions, ExportChoice, Project, load
from orchestrator.build.project import piped_name
from orchestrator.catalog import read_library
from orchestrator.cli.command_table import COMMANDS
from orchestrator.cli.outputs import would_overwrite
from orchestrator.core.kernel import Kernel
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.errors import Diagnostic, ModelError, SourceSpan, UsageError
from orchestrator.program.program import Program
from orchestrator.program.reader import read_program
from orchestrator.shell.depfile import write_depfile
from orchestrator.shell.files import MOST_TEXT_BYTES, lazy_file, read_text_file, reason_of
from orchestrator.shell.output_file import ANY, lost
from orchestrator.shell.sources import library_file, library_names


def build_options(args: Namespace) -> BuildOptions:
    """The build options of a command line; those that the command lacks are as not given.

    Raises:
        UsageError: Two of its options contradict each other.
    """
    options = {one.long_name for one in COMMANDS[args.command].options if one.is_given(args)}
    for option, other in _CONTRADICTIONS:
        if {option, other} <= options:
            raise UsageError.of(
                "usage",
                f"argument {option}: not allowed with argument {other}",
                hint="leave one of them out",
            )
    given = vars(args).get
    return BuildOptions(
        out=given("out"),
        jobs=given("jobs"),
        locked=bool(given("locked") or given("frozen")),
        frozen=bool(given("frozen")),
        lock=given("lock_file"),
        write_lock=not given("no_lock"),
        export=ExportChoice(deny_float=bool(given("deny_float"))),
    )


def project_of(args: Namespace) -> Project:
    """The profile that a command line names, with its build options.

    Raises:
        OrchestratorError: The options contradict each other, or the profile is wrong.
    """
    options = options_of(build_options(args), args.profile)
    return Project(load(args.profile), options)


def options_of(options: BuildOptions, profile: Path) -> BuildOptions:
    """The options for a profile: one from a pipe has no lock unless one is named.

    Raises:
        UsageError: A lock is needed.
    """
    if piped_name(profile) is None or options.lock is not None:
        return options
    if options.locked:
        raise no_place_for_lock()
    return replace(options, write_lock=False)


def no_place_for_lock() -> UsageError:
    """A profile from a pipe has no lock beside it."""
    return UsageError.of(
        "usage",
        "a profile from a pipe has no lock beside it",
        hint="name the lock with --lock FILE",
    )


_CONTRADICTIONS = (
    ("--no-lock", "--lock"),
    ("--no-build", "--lock"),
    ("--no-build", "--locked"),
    ("--no-build", "--frozen"),
)
"""Besides those that the parser checks."""


# Read files that a command line names, without a profile.


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


# Text files that a command line names.


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
