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
            sub.add_argument(
                "profile",
                type=Path,
                nargs="?" if workspace else None,
                metavar="PROFILE",
                help=PROFILE,
            )
            add_out(sub)
        if workspace:
            add_workspace(sub)
        return sub

    _add_starting(command)

    _add_build(command)

    watch = command("watch", "build whenever a file changes; show what it costs")
    watch.add_argument(
        "--scenario",
        type=Path,
        metavar="FILE",
        help="run it after each build, and show the instructions that it executes",
    )
    watch.add_argument("-j", "--jobs", type=job_count, metavar="N", help=JOBS)

    command("plan", "show what would be built and why; needs no compiler")
    check = command(
        "check",
        "check profile, models, kernels and memory; needs no compiler",
        workspace=True,
    )
    check.add_argument("-j", "--jobs", type=job_count, metavar="N", help=WORKERS)

    _add_memory(command)
    _add_export(command)

    inspect = command("inspect", "show what is in a .pte or .ptd file", profile=False)
    inspect.add_argument("model", type=Path, metavar="MODEL", help="the file")

    _add_memory_plan(command)
    _add_executorch_tools(command)

    add_measuring(command)

    why = command("why", "show why something is in the product, and what it costs")
    why.add_argument("name", metavar="NAME", help=_NAME)
    why_not = command("why-not", "show why something is not in the product")
    why_not.add_argument("name", metavar="NAME", help=_NAME)
    why_not.add_argument(
        "dtype",
        nargs="?",
        metavar="DTYPE",
        help="a dtype that the kernel lacks, such as Half",
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
    targets.add_argument(
        "--operators",
        action="store_true",
        help="list the operators that have a kernel, with dtypes and dim orders",
    )
    command("doctor", "list compilers and emulators, found and missing", profile=False)
    schema = command("schema", "print the JSON Schema of profiles", profile=False)
    schema.add_argument(
        "--workspace",
        action="store_true",
        dest="of_workspace",
        help="that of orchestrator.toml instead",
    )
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
    man.add_argument(
        "page", nargs="?", metavar="COMMAND", help="default: the page of orchestrator"
    )
    man.add_argument(
        "--output-dir",
        type=Path,
        metavar="DIR",
        help="write the pages of all commands into this folder",
    )


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
    build.add_argument(
        "profiles",
        type=Path,
        nargs="*",
        metavar="PROFILE",
        help="profiles to build, one after the other; - for stdin",
    )
    add_out(build)
    build.add_argument("-j", "--jobs", type=job_count, metavar="N", help=JOBS)
    build.add_argument(
        "-k",
        "--keep-going",
        action="store_true",
        help="build the other profiles although one failed",
    )
    add_locking(build)
    build.add_argument(
        "--explain", action="store_true", help="show why each stage ran, or did not"
    )
    _add_depfile(build)


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--cpu",
        choices=tuple(CPUS),
        metavar="CORE",
        help="core, as `orchestrator targets` lists them; default: host",
    )
    command.add_argument(
        "--board",
        choices=tuple(BOARDS),
        metavar="BOARD",
        help="board, likewise; default: that of the core",
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
    cache.add_argument(
        "action",
        choices=("size", "prune", "verify", "publish"),
        metavar="ACTION",
        help="size: show how much there is; prune: remove damaged objects, and those"
        " that were not used for the longest time; verify: compare all digests;"
        " publish: give all of them to other machines, with a signed list",
    )
    cache.add_argument(
        "--list-only",
        action="store_true",
        help="with publish: only the list of objects, where others have the objects"
        " from ccache's remote storage",
    )
    cache.add_argument(
        "--exports",
        action="store_true",
        help="with publish: programs made from Python code as well, with their inputs"
        " and outputs",
    )
    cache.add_argument(
        "url",
        nargs="?",
        metavar="URL",
        help="where publish writes: a folder, or a URL that fsspec can write to",
    )
    cache.add_argument(
        "--key",
        type=Path,
        metavar="KEY",
        help="private key that publish signs with, in PEM",
    )
    cache.add_argument(
        "--to",
        type=memory_size,
        default=0,
        dest="limit_bytes",
        metavar="SIZE",
        help="what prune leaves at most, such as 256 MiB; default: nothing",
    )


def _add_starting(command: Callable[..., CommandParser]) -> None:
    """Commands that write the first files of a project."""
    init = command("init", "write a profile and a scenario for models", profile=False)
    init.add_argument(
        "models",
        nargs="*",
        metavar="MODEL",
        help="model.pte, model.pt2, or FILE.py:function that returns one;"
        " default: the .pte and .pt2 files of the folder",
    )
    init.add_argument(
        "--name", metavar="NAME", help="name of the product; default: that of the model"
    )
    init.add_argument(
        "--dir",
        type=Path,
        default=Path(),
        metavar="DIR",
        help="folder of the new files; default: the current one",
    )
    _add_target(init)
    init.add_argument(
        "--load",
        choices=("pte", "prelinked"),
        help="pte (default): the device loads them; prelinked: the build",
    )
    init.add_argument(
        "--lowering",
        metavar="NAME",
        help="for .pt2 and .py models: what to lower for; default: portable",
    )
    init.add_argument(
        "--quantize", action="store_true", help="make .pt2 and .py models int8"
    )
    init.add_argument("--flash", metavar="SIZE", help='flash budget, such as "256 KiB"')
    init.add_argument("--ram", metavar="SIZE", help='RAM budget, such as "64 KiB"')
    init.add_argument(
        "--yes", action="store_true", help="ask nothing, take the defaults"
    )
    new = command("new", "write an example firmware with a small model", profile=False)
    new.add_argument("folder", type=Path, metavar="DIR", help="new or empty folder")
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
    verify.add_argument("-j", "--jobs", type=job_count, metavar="N", help=JOBS)
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
    export.add_argument(
        "--again", action="store_true", help="export even if nothing changed"
    )
    export.add_argument(
        "--no-accelerate",
        action="store_false",
        dest="accelerate",
        help="use ExecuTorch's lowering unchanged",
    )
    export.add_argument(
        "--verify",
        action="store_true",
        help="lower both ways, and compare every graph and the program",
    )
    export.add_argument(
        "--explain", action="store_true", help="show what each pass of lowering did"
    )


def _add_memory(command: Callable[..., CommandParser]) -> None:
    """The memory command."""
    memory = command("memory", "show arenas, and what less RAM costs")
    memory.add_argument(
        "--pareto",
        action="store_true",
        help="list plans by rows: bytes against instructions",
    )
    memory.add_argument(
        "--svg", type=Path, metavar="F.svg", help="draw what --pareto lists"
    )


def _add_memory_plan(command: Callable[..., CommandParser]) -> None:
    """The memory planner as a command of its own."""
    plan = command(
        "memory-plan", "give each block of a CSV file an offset", profile=False
    )
    plan.add_argument(
        "file", type=Path, metavar="FILE", help="CSV with id,lower,upper,size"
    )
    plan.add_argument(
        "--capacity",
        type=byte_count,
        metavar="N",
        help="accept any plan of at most N bytes",
    )
    plan.add_argument(
        "--output", type=Path, metavar="F.csv", help="write the blocks with offsets"
    )
    plan.add_argument("--svg", type=Path, metavar="F.svg", help="draw the plan")


def _add_compat(command: Callable[..., CommandParser]) -> None:
    """The compat command."""
    compat = command(
        "compat", "check whether built firmware can run new programs", profile=False
    )
    compat.add_argument(
        "firmware", type=Path, metavar="FIRMWARE", help="lock or build folder"
    )
    compat.add_argument(
        "programs", type=Path, nargs="+", metavar="PROGRAM", help="new .pte programs"
    )
    compat.add_argument("--model", metavar="NAME", help="the model they replace")


def _add_executorch_tools(command: Callable[..., CommandParser]) -> None:
    """Commands for a user who keeps ExecuTorch's own build."""
    oplist = command(
        "oplist",
        "write an operator list for ExecuTorch's own build",
        profile=False,
    )
    oplist.add_argument(
        "--model",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a .pte program whose operators to list",
    )
    oplist.add_argument(
        "--ops", action="append", default=[], metavar="LIST", help="operator names"
    )
    oplist.add_argument(
        "--ops-dict",
        action="append",
        default=[],
        metavar="JSON",
        help="operators with dtypes or kernel keys",
    )
    oplist.add_argument(
        "--yaml",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="functions.yaml or selected_operators.yaml",
    )
    oplist.add_argument(
        "--all", action="store_true", dest="every", help="list every operator"
    )
    oplist.add_argument(
        "--output", type=Path, required=True, metavar="FILE", help="where to write"
    )
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
    headers.add_argument(
        "--output-dir",
        type=Path,
        required=True,
        metavar="DIR",
        help="folder of the headers",
    )
    headers.add_argument(
        "--prim-ops",
        type=prim_op_count,
        metavar="N",
        help="prim ops that ExecuTorch registers, or `listed` for those of the list;"
        " default: 28, as in 1.5",
    )


def _add_depfile(command: CommandParser) -> None:
    command.add_argument(
        "--depfile",
        type=Path,
        metavar="FILE",
        help="write the files that were read, as a rule for make",
    )
    command.add_argument(
        "--depfile-target", metavar="NAME", help="name of the target in the depfile"
    )
