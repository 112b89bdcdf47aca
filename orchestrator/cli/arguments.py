"""The command line's arguments."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import orchestrator
from orchestrator.cli.argument_types import (
    byte_count,
    job_count,
    memory_size,
    prim_op_count,
)
from orchestrator.cli.manual import epilog
from orchestrator.cli.measuring_arguments import add_measuring
from orchestrator.cli.package_arguments import add_package
from orchestrator.cli.provenance_arguments import add_provenance, add_update
from orchestrator.cli.shared_arguments import (
    JOBS,
    PROFILE,
    WORKERS,
    CommandParser,
    add_lock_file,
    add_locking,
    add_out,
    add_workspace,
)
from orchestrator.targets.cores import BOARDS, CPUS, TOOLCHAINS

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = "operator, kernel function, source or symbol to look for"


class _CMakeFolder(argparse.Action):
    """Prints the folder of the CMake package; argparse would wrap a long path."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from orchestrator.shell.sources import native_root  # noqa: PLC0415

        sys.stdout.write(f"{native_root() / 'cmake'}\n")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    # No abbreviated options: a new option could break scripts that use them.
    top = CommandParser(
        prog="orchestrator",
        description=orchestrator.__doc__,
        epilog="`orchestrator help COMMAND` lists the arguments of a command, with"
        " examples and exit codes.",
        allow_abbrev=False,
    )
    top.add_argument(
        "--version",
        action="version",
        version=f"orchestrator {orchestrator.__version__}",
    )
    top.add_argument(
        "--cmakedir",
        action=_CMakeFolder,
        nargs=0,
        help="print the folder of the CMake package and exit",
    )
    _add_common(top, is_top=True)
    commands = top.add_subparsers(
        dest="command",
        metavar="COMMAND",
        title="commands",
        required=True,
        parser_class=CommandParser,
    )

    def command(
        name: str, text: str, *, profile: bool = True, workspace: bool = False
    ) -> CommandParser:
        sub: CommandParser = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=epilog(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        _add_common(sub)
        if profile:
            sub.path("profile", "PROFILE", PROFILE, nargs="?" if workspace else None)
            add_out(sub)
        if workspace:
            add_workspace(sub)
        return sub

    _add_starting(command)

    _add_build(command)

    watch = command("watch", "build whenever a file changes; show what it costs")
    watch.path(
        "--scenario",
        "FILE",
        "run it after each build, and show the instructions that it executes",
    )
    watch.jobs()

    command("plan", "show what would be built and why; needs no compiler")
    check = command(
        "check",
        "check profile, models, kernels and memory; needs no compiler",
        workspace=True,
    )
    check.jobs(WORKERS)

    _add_memory(command)
    _add_export(command)

    inspect = command("inspect", "show what is in a .pte or .ptd file", profile=False)
    inspect.path("model", "MODEL", "the file")

    _add_memory_plan(command)
    _add_executorch_tools(command)

    add_measuring(command)

    why = command("why", "show why something is in the product, and what it costs")
    why.value("name", "NAME", _NAME)
    why_not = command("why-not", "show why something is not in the product")
    why_not.value("name", "NAME", _NAME)
    why_not.value(
        "dtype", "DTYPE", "a dtype that the kernel lacks, such as Half", nargs="?"
    )

    _add_compat(command)
    add_update(command)
    add_package(command)
    add_provenance(command)

    _add_lock_commands(command)
    _add_help(command)
    return top


def _add_help(command: Callable[..., CommandParser]) -> None:
    """Commands about Orchestrator itself, and what remains."""
    _add_cleaning(command)
    targets = command(
        "targets", "list cores, toolchains, boards and operators", profile=False
    )
    targets.flag(
        "--operators",
        "list the operators that have a kernel, with dtypes and dim orders",
    )
    command("doctor", "list compilers and emulators, found and missing", profile=False)
    schema = command("schema", "print the JSON Schema of profiles", profile=False)
    schema.flag("--workspace", "that of orchestrator.toml instead", dest="of_workspace")
    _add_texts(command)


def _add_texts(command: Callable[..., CommandParser]) -> None:
    """Commands that print a text about all commands."""
    completion = command(
        "completion", "print a completion script for a shell", profile=False
    )
    completion.add_argument(
        "shell", choices=("bash", "zsh", "fish"), help="the shell that reads it"
    )
    man = command("man", "print or write man pages", profile=False)
    man.value("page", "COMMAND", "default: the page of orchestrator", nargs="?")
    man.path("--output-dir", "DIR", "write the pages of all commands into this folder")


def _add_common(command: argparse.ArgumentParser, *, is_top: bool = False) -> None:
    """Options that every command has, and that may stand before it too."""
    # A default of the command would overwrite what stands before it.
    off, auto = (False, "auto") if is_top else (argparse.SUPPRESS, argparse.SUPPRESS)
    much = command.add_mutually_exclusive_group()
    for flags, text in (
        (("-q", "--quiet"), "print results and errors only"),
        (("-v", "--verbose"), "print every step as a line"),
    ):
        much.add_argument(*flags, action="store_true", default=off, help=text)
    command.add_argument(
        "--json",
        action="store_true",
        default=off,
        help="print results as JSON",
    )
    command.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default=auto,
        help="colours on stderr; auto: on a terminal, unless NO_COLOR is set",
    )


def _add_build(command: Callable[..., CommandParser]) -> None:
    """The build command."""
    build = command(
        "build",
        "build firmware, library and lock file",
        profile=False,
        workspace=True,
    )
    build.path(
        "profiles",
        "PROFILE",
        "profiles to build, one after the other; - for stdin",
        nargs="*",
    )
    add_out(build)
    build.jobs()
    build.add_argument(
        "-k",
        "--keep-going",
        action="store_true",
        help="build the other profiles although one failed",
    )
    add_locking(build)
    build.flag("--explain", "show why each stage ran, or did not")
    _add_depfile(build)


def _add_target(command: CommandParser) -> None:
    command.value(
        "--cpu",
        "CORE",
        "core, as `orchestrator targets` lists them; default: host",
        choices=tuple(CPUS),
    )
    command.value(
        "--board",
        "BOARD",
        "board, likewise; default: that of the core",
        choices=tuple(BOARDS),
    )
    command.add_argument(
        "--toolchain",
        choices=TOOLCHAINS,
        help="compiler; default: the first that is installed",
    )


def _add_cleaning(command: Callable[..., CommandParser]) -> None:
    command("clean", "remove the build folder")
    cache = command(
        "cache",
        "show, shrink, check or publish the objects that builds share",
        profile=False,
    )
    cache.value(
        "action",
        "ACTION",
        "size: show how much there is; prune: remove damaged objects, and those"
        " that were not used for the longest time; verify: compare all digests;"
        " publish: give all of them to other machines, with a signed list",
        choices=("size", "prune", "verify", "publish"),
    )
    cache.flag(
        "--list-only",
        "with publish: only the list of objects, where others have the objects"
        " from ccache's remote storage",
    )
    cache.flag(
        "--exports",
        "with publish: programs made from Python code as well, with their inputs"
        " and outputs",
    )
    cache.value(
        "url",
        "URL",
        "where publish writes: a folder, or a URL that fsspec can write to",
        nargs="?",
    )
    cache.path("--key", "KEY", "private key that publish signs with, in PEM")
    cache.value(
        "--to",
        "SIZE",
        "what prune leaves at most, such as 256 MiB; default: nothing",
        type=memory_size,
        default=0,
        dest="limit_bytes",
    )


def _add_starting(command: Callable[..., CommandParser]) -> None:
    """Commands that write the first files of a project."""
    init = command("init", "write a profile and a scenario for models", profile=False)
    init.value(
        "models",
        "MODEL",
        "model.pte, model.pt2, or FILE.py:function that returns one;"
        " default: the .pte and .pt2 files of the folder",
        nargs="*",
    )
    init.value("--name", "NAME", "name of the product; default: that of the model")
    init.path(
        "--dir",
        "DIR",
        "folder of the new files; default: the current one",
        default=Path(),
    )
    _add_target(init)
    init.add_argument(
        "--load",
        choices=("pte", "prelinked"),
        help="pte (default): the device loads them; prelinked: the build",
    )
    init.value(
        "--lowering",
        "NAME",
        "for .pt2 and .py models: what to lower for; default: portable",
    )
    init.flag("--quantize", "make .pt2 and .py models int8")
    init.value("--flash", "SIZE", 'flash budget, such as "256 KiB"')
    init.value("--ram", "SIZE", 'RAM budget, such as "64 KiB"')
    init.flag("--yes", "ask nothing, take the defaults")
    new = command("new", "write an example firmware with a small model", profile=False)
    new.path("folder", "DIR", "new or empty folder")
    _add_target(new)


def _add_lock_commands(command: Callable[..., CommandParser]) -> None:
    """Commands for the lock and its outputs."""
    lock = command("lock", "write the lock file", workspace=True)
    lock.add_argument("-j", "--jobs", type=job_count, metavar="N", help=JOBS)
    add_lock_file(lock)
    lock.add_argument("--check", action="store_true", help="compare, change nothing")
    lock.add_argument(
        "--outputs",
        action="store_true",
        help="with --check: compare the published outputs with the lock",
    )
    verify = command(
        "verify",
        "rebuild elsewhere and compare every byte, or one file with the lock",
        workspace=True,
    )
    verify.jobs()
    verify.add_argument(
        "--artefact",
        "--artifact",
        type=Path,
        metavar="FILE",
        help="identify this file as an output of the lock; build nothing",
    )
    add_lock_file(verify)


def _add_export(command: Callable[..., CommandParser]) -> None:
    """The export command."""
    export = command("export", "export models given as Python to programs")
    export.flag("--again", "export even if nothing changed")
    export.add_argument(
        "--no-accelerate",
        action="store_false",
        dest="accelerate",
        help="use ExecuTorch's lowering unchanged",
    )
    export.flag("--verify", "lower both ways, and compare every graph and the program")
    export.flag("--explain", "show what each pass of lowering did")


def _add_memory(command: Callable[..., CommandParser]) -> None:
    """The memory command."""
    memory = command("memory", "show arenas, and what less RAM costs")
    memory.flag("--pareto", "list plans by rows: bytes against instructions")
    memory.path("--svg", "F.svg", "draw what --pareto lists")


def _add_memory_plan(command: Callable[..., CommandParser]) -> None:
    """The memory planner as a command of its own."""
    plan = command(
        "memory-plan", "give each block of a CSV file an offset", profile=False
    )
    plan.path("file", "FILE", "CSV with id,lower,upper,size")
    plan.value("--capacity", "N", "accept any plan of at most N bytes", type=byte_count)
    plan.path("--output", "F.csv", "write the blocks with offsets")
    plan.path("--svg", "F.svg", "draw the plan")


def _add_compat(command: Callable[..., CommandParser]) -> None:
    """The compat command."""
    compat = command(
        "compat", "check whether built firmware can run new programs", profile=False
    )
    compat.path("firmware", "FIRMWARE", "lock or build folder")
    compat.path("programs", "PROGRAM", "new .pte programs", nargs="+")
    compat.value("--model", "NAME", "the model they replace")


def _add_executorch_tools(command: Callable[..., CommandParser]) -> None:
    """Commands for a user who keeps ExecuTorch's own build."""
    oplist = command(
        "oplist",
        "write an operator list for ExecuTorch's own build",
        profile=False,
    )
    oplist.several(
        "--model", "FILE", "a .pte program whose operators to list", type=Path
    )
    oplist.several("--ops", "LIST", "operator names")
    oplist.several("--ops-dict", "JSON", "operators with dtypes or kernel keys")
    oplist.several(
        "--yaml", "FILE", "functions.yaml or selected_operators.yaml", type=Path
    )
    oplist.flag("--all", "list every operator", dest="every")
    oplist.path("--output", "FILE", "where to write", required=True)
    _add_depfile(oplist)

    headers = command(
        "headers",
        "write headers of an operator list for ExecuTorch's own build",
        profile=False,
    )
    headers.add_argument(
        "--oplist",
        type=Path,
        action="append",
        required=True,
        metavar="FILE",
        help="an operator list; several are merged",
    )
    headers.path("--output-dir", "DIR", "folder of the headers", required=True)
    headers.value(
        "--prim-ops",
        "N",
        "prim ops that ExecuTorch registers, or `listed` for those of the list;"
        " default: 28, as in 1.5",
        type=prim_op_count,
    )


def _add_depfile(command: CommandParser) -> None:
    command.path(
        "--depfile", "FILE", "write the files that were read, as a rule for make"
    )
    command.value("--depfile-target", "NAME", "name of the target in the depfile")
