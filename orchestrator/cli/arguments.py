"""The command line's arguments."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import orchestrator
from orchestrator.cli.argument_types import (
    byte_count,
    class_names,
    count,
    finite_number,
    instruction_index,
    job_count,
    port_number,
    prim_op_count,
    quantization,
    sample_range,
)
from orchestrator.cli.manual import SYNONYMS, epilog
from orchestrator.errors import Diagnostic, UsageError, did_you_mean
from orchestrator.targets.cores import BOARDS, CPUS, TOOLCHAINS

if TYPE_CHECKING:
    from collections.abc import Callable

_NAME = "operator, kernel function, source or symbol to look for"
_PROFILE = "profile of the product, a TOML file; - for stdin"
_OUT = "build folder; default: build/NAME in the current folder"
_JOBS = "compile steps at a time; default: what ninja chooses"


class _Parser(argparse.ArgumentParser):
    """Reports usage errors like all other errors."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError instead of printing and exiting."""
        if match := re.match(r"argument command: invalid choice: '(.*?)' \(", message):
            raise UsageError(
                Diagnostic(
                    code="usage",
                    message=f'there is no command "{match[1]}"',
                    hint=_near(message)
                    or "run `orchestrator --help` to see all commands",
                )
            )
        raise UsageError(
            Diagnostic(
                code="usage",
                message=message,
                hint=_near(message) or f"run `{self.prog} --help` to see its options",
            )
        )


class _CMakeFolder(argparse.Action):
    """Prints the folder of the CMake package; argparse would wrap a long path."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        from orchestrator.shell.sources import native_root  # noqa: PLC0415

        sys.stdout.write(f"{native_root() / 'cmake'}\n")
        parser.exit()


def _near(message: str) -> str:
    """A hint for a misspelt choice, from argparse's error message."""
    if match := re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message):
        if message.startswith("argument command") and match[1].lower() in SYNONYMS:
            return f'did you mean "{SYNONYMS[match[1].lower()]}"?'
        return did_you_mean(match[1], re.findall(r"[\w-]+", match[2]))
    return ""


def parser() -> argparse.ArgumentParser:
    """All commands and their arguments."""
    # No abbreviated options: a new option could break scripts that use them.
    top = _Parser(
        prog="orchestrator", description=orchestrator.__doc__, allow_abbrev=False
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
    commands = top.add_subparsers(dest="command", required=True, parser_class=_Parser)

    def command(name: str, text: str, *, profile: bool = True) -> _Parser:
        sub: _Parser = commands.add_parser(
            name,
            help=text,
            description=f"{text[0].upper()}{text[1:]}.",
            epilog=epilog(name),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        _add_common(sub)
        if profile:
            sub.add_argument("profile", type=Path, metavar="PROFILE", help=_PROFILE)
            _add_out(sub)
        return sub

    _add_starting(command)

    build = command("build", "build firmware, library and lock file", profile=False)
    build.add_argument(
        "profiles",
        type=Path,
        nargs="+",
        metavar="PROFILE",
        help="profiles to build, one after the other; - for stdin",
    )
    _add_out(build)
    build.add_argument("-j", "--jobs", type=job_count, metavar="N", help=_JOBS)
    _add_locking(build)
    build.add_argument(
        "--explain", action="store_true", help="show why each stage ran, or did not"
    )
    _add_depfile(build)

    watch = command("watch", "build whenever a file changes; show flash and RAM")
    watch.add_argument("-j", "--jobs", type=job_count, metavar="N", help=_JOBS)

    command("plan", "show what would be built and why; needs no compiler")
    command("check", "check profile, models, kernels and memory; needs no compiler")

    _add_export(command)

    inspect = command("inspect", "show what is in a .pte program", profile=False)
    inspect.add_argument("model", type=Path, metavar="MODEL", help="a .pte program")

    _add_memory_plan(command)
    _add_executorch_tools(command)

    _add_run(command)
    _add_evaluate(command)
    _add_size(command)
    _add_report(command)
    _add_scratch(command)

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

    _add_lock_commands(command)
    command("clean", "remove the build folder")
    targets = command(
        "targets", "list cores, toolchains, boards and operators", profile=False
    )
    targets.add_argument(
        "--operators",
        action="store_true",
        help="list the operators that have a kernel, with dtypes and dim orders",
    )
    command("doctor", "list compilers and emulators, found and missing", profile=False)
    command("schema", "print the JSON Schema of profiles", profile=False)
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
    return top


def _add_common(command: argparse.ArgumentParser) -> None:
    """Options that every command has."""
    command.add_argument("--json", action="store_true", help="print results as JSON")
    much = command.add_mutually_exclusive_group()
    much.add_argument(
        "-q", "--quiet", action="store_true", help="print results and errors only"
    )
    much.add_argument(
        "-v", "--verbose", action="store_true", help="print every step as a line"
    )
    command.add_argument(
        "--color",
        choices=("auto", "always", "never"),
        default="auto",
        help="colours on stderr; auto: on a terminal, unless NO_COLOR is set",
    )


def _add_out(command: argparse.ArgumentParser) -> None:
    command.add_argument("--out", type=Path, metavar="DIR", help=_OUT)


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


def _add_starting(command: Callable[..., _Parser]) -> None:
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
        help="the device loads programs (pte, default), or the build does",
    )
    init.add_argument(
        "--lowering",
        metavar="NAME",
        help="of .pt2 and .py: what to lower for; default: portable",
    )
    init.add_argument(
        "--quantize", action="store_true", help="of .pt2 and .py: make the model int8"
    )
    init.add_argument("--flash", metavar="SIZE", help='most flash, such as "256 KiB"')
    init.add_argument("--ram", metavar="SIZE", help='most RAM, such as "64 KiB"')
    init.add_argument(
        "--yes", action="store_true", help="ask nothing, take the defaults"
    )
    new = command("new", "write an example firmware with a small model", profile=False)
    new.add_argument("folder", type=Path, metavar="DIR", help="new or empty folder")
    _add_target(new)


def _add_locking(command: _Parser) -> None:
    """Lock options of commands that build."""
    _add_lock_file(command)
    lock = command.add_mutually_exclusive_group()
    lock.add_argument(
        "--no-lock", action="store_true", help="neither read nor write a lock"
    )
    lock.add_argument(
        "--locked", action="store_true", help="fail if the lock would change"
    )
    lock.add_argument(
        "--frozen",
        action="store_true",
        help="like --locked, and compare the inputs first",
    )


def _add_lock_file(command: _Parser) -> None:
    command.add_argument(
        "--lock",
        type=Path,
        metavar="FILE",
        dest="lock_file",
        help="the lock; default: beside the profile",
    )


def _add_lock_commands(command: Callable[..., _Parser]) -> None:
    """Commands for the lock and its outputs."""
    lock = command("lock", "write the lock file")
    _add_lock_file(lock)
    lock.add_argument("--check", action="store_true", help="compare, change nothing")
    lock.add_argument(
        "--outputs",
        action="store_true",
        help="with --check: compare the published outputs with the lock",
    )
    verify = command(
        "verify",
        "rebuild elsewhere and compare every byte, or one file with the lock",
        profile=False,
    )
    verify.add_argument(
        "profile", type=Path, nargs="?", metavar="PROFILE", help=_PROFILE
    )
    _add_out(verify)
    verify.add_argument(
        "--artefact",
        "--artifact",
        type=Path,
        metavar="FILE",
        help="identify this file as an output of the lock; build nothing",
    )
    _add_lock_file(verify)


def _add_export(command: Callable[..., _Parser]) -> None:
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


def _add_run(command: Callable[..., _Parser]) -> None:
    """The commands that run firmware and explain its statuses."""
    run = command("run", "run the built firmware on .npy inputs")
    run.add_argument("--model", metavar="NAME", help="model, if there are several")
    run.add_argument(
        "--method", default="forward", metavar="NAME", help="default: forward"
    )
    run.add_argument(
        "--input",
        action="append",
        default=[],
        metavar="FILE",
        help="a .npy file or a number, once for each input",
    )
    run.add_argument(
        "--expect",
        action="append",
        default=[],
        metavar="FILE",
        help="a .npy file or a number to compare with, once for each output",
    )
    run.add_argument(
        "--atol", type=finite_number, metavar="X", help="absolute tolerance"
    )
    run.add_argument(
        "--rtol", type=finite_number, metavar="X", help="relative tolerance"
    )
    run.add_argument(
        "--output-dir", type=Path, metavar="DIR", help="write every output as .npy"
    )
    run.add_argument(
        "--scenario",
        type=Path,
        metavar="FILE",
        help="JSON file of calls and expected outputs",
    )
    run.add_argument(
        "--no-build", action="store_true", help="fail if the build is not current"
    )
    _add_locking(run)
    run.add_argument("-j", "--jobs", type=job_count, metavar="N", help=_JOBS)
    run.add_argument(
        "--timeout",
        type=finite_number,
        default=600.0,
        metavar="SECONDS",
        help="stop the run after that time; default: 600",
    )
    run.add_argument(
        # argparse would name this option `profile`, which the positional argument has.
        "--profile",
        action="store_true",
        dest="costs",
        help="show what each operator costs",
    )
    run.add_argument(
        "--passes",
        type=job_count,
        metavar="N",
        help="with --profile on a host: runs to take the median of",
    )

    decode = command("decode", "explain a status of the device", profile=False)
    decode.add_argument("code", metavar="CODE", help="number or name of an orch_status")
    decode.add_argument(
        "--profile",
        type=Path,
        required=True,
        metavar="PROFILE",
        dest="from_profile",
        help="profile that the device was built from",
    )
    decode.add_argument(
        "--instruction",
        type=instruction_index,
        metavar="N",
        help="the instruction that failed",
    )
    decode.add_argument("--model", metavar="NAME", help="model, if there are several")
    decode.add_argument("--method", metavar="NAME", help="method, if there are several")


def _add_evaluate(command: Callable[..., _Parser]) -> None:
    """The evaluate command."""
    evaluate = command("evaluate", "measure the accuracy of a model over a data set")
    evaluate.add_argument(
        "--data",
        required=True,
        metavar="DATA",
        help="folder, .npz file, or function as package.module:name",
    )
    evaluate.add_argument("--model", metavar="NAME", help="model, if there are several")
    evaluate.add_argument("--method", default="forward", metavar="NAME")
    evaluate.add_argument(
        "--metric",
        metavar="METRIC",
        help="top1, mae, auc, or package.module:name; default: top1 for classes, mae"
        " for other numbers",
    )
    evaluate.add_argument(
        "--reference",
        type=Path,
        metavar="FILE.pte",
        help="program of the float model, to compare with",
    )
    evaluate.add_argument(
        "--layers",
        type=job_count,
        metavar="N",
        help="compare every layer with the reference, over the first N samples",
    )
    evaluate.add_argument(
        "--emulator",
        action="store_true",
        help="run the board's firmware in its emulator; default: on this machine",
    )
    evaluate.add_argument(
        "--samples",
        type=sample_range,
        default=(0, None),
        metavar="BEGIN:END",
        help="part of the data; END is exclusive",
    )
    evaluate.add_argument(
        "--classes",
        type=class_names,
        default=(),
        metavar="NAMES",
        help="names of the classes, separated by commas",
    )
    evaluate.add_argument(
        "--worst", type=count, default=5, metavar="N", help="samples to list; default 5"
    )
    for option, what in (("--input-quant", "inputs"), ("--output-quant", "outputs")):
        evaluate.add_argument(
            option,
            type=quantization,
            metavar="SCALE,ZERO_POINT",
            help=f"of integer {what} that stand for real numbers",
        )
    evaluate.add_argument(
        "--at-least", type=finite_number, metavar="X", help="fail if the metric is less"
    )
    evaluate.add_argument(
        "--at-most", type=finite_number, metavar="X", help="fail if the metric is more"
    )
    evaluate.add_argument(
        "--resume", action="store_true", help="use the outputs of an ended evaluation"
    )
    evaluate.add_argument(
        "--results", type=Path, metavar="FILE", help="where outputs are kept"
    )
    evaluate.add_argument(
        "--timeout",
        type=finite_number,
        default=600.0,
        metavar="SECONDS",
        help="longest time for a sample; default 600",
    )
    _add_locking(evaluate)
    evaluate.add_argument(
        "-j", "--jobs", type=job_count, metavar="N", help="parallel steps"
    )


def _add_size(command: Callable[..., _Parser]) -> None:
    """The size command and its variants."""
    size = command("size", "show flash and RAM of the last build, or of a variant")
    size.add_argument(
        "--full", action="store_true", help="every contributor, section and method"
    )
    size.add_argument(
        "--by",
        choices=("op", "kernel", "model", "section"),
        help="one table, and what each of its rows is",
    )
    size.add_argument(
        "--diff",
        type=Path,
        metavar="OTHER",
        help="compare with a report.json, or with another profile's build",
    )
    what_if = size.add_argument_group("what if", "build a variant and compare")
    for option, text in (
        ("--without-model", "leave out a model"),
        ("--without-op", "leave out an operator that only the profile requests"),
    ):
        what_if.add_argument(
            option, action="append", default=[], metavar="NAME", help=text
        )
    for option, choices, text in (
        ("--dtypes", ("all", "models"), "as dtypes.select in the profile"),
        ("--optimize", ("size", "speed", "debug"), "as target.optimize"),
        ("--toolchain", TOOLCHAINS, "as target.toolchain"),
    ):
        what_if.add_argument(option, choices=choices, default="", help=text)
    size.add_argument("-j", "--jobs", type=job_count, metavar="N", help=_JOBS)


def _add_report(command: Callable[..., _Parser]) -> None:
    """The report command."""
    report = command("report", "show the last build as a page, report.html")
    report.add_argument("--open", action="store_true", help="open it in the browser")
    what = report.add_mutually_exclusive_group()
    what.add_argument(
        "--serve",
        action="store_true",
        help="serve it on localhost; the page reloads when a build ends",
    )
    what.add_argument(
        "--svg",
        choices=("flash", "memory", "arena"),
        metavar="KIND",
        help="write one kind of picture as SVG: flash, memory or arena",
    )
    report.add_argument(
        "--diff",
        type=Path,
        action="append",
        default=[],
        metavar="OTHER",
        help="add the changes from another build folder, report.json, profile or lock",
    )
    report.add_argument(
        "--history",
        action="store_true",
        help="add the sizes of each commit of the lock, from git",
    )
    report.add_argument(
        "--costs",
        type=Path,
        metavar="FILE",
        help="add what `run --profile --json` measured",
    )
    report.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="where to write a page with additions; default: in the build folder",
    )
    report.add_argument(
        "--output-dir", type=Path, metavar="DIR", help="folder of the pictures"
    )
    report.add_argument(
        "--port", type=port_number, metavar="N", help="of --serve; default: a free one"
    )
    report.add_argument(
        "--no-build", action="store_true", help="fail if the build is not current"
    )
    _add_locking(report)
    report.add_argument(
        "-j", "--jobs", type=job_count, metavar="N", help="parallel steps"
    )


def _add_scratch(command: Callable[..., _Parser]) -> None:
    """The scratch command."""
    scratch = command(
        "scratch", "show scratch memory of each call, or compare tables", profile=False
    )
    scratch.add_argument(
        "profile", type=Path, nargs="?", metavar="PROFILE", help=_PROFILE
    )
    _add_out(scratch)
    scratch.add_argument(
        "--check",
        type=Path,
        nargs="+",
        default=[],
        metavar="TABLE",
        help="CSV of scratch sizes of your CMSIS-NN",
    )


def _add_memory_plan(command: Callable[..., _Parser]) -> None:
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


def _add_compat(command: Callable[..., _Parser]) -> None:
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


def _add_executorch_tools(command: Callable[..., _Parser]) -> None:
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


def _add_depfile(command: _Parser) -> None:
    command.add_argument(
        "--depfile",
        type=Path,
        metavar="FILE",
        help="write the files that were read, as a rule for make",
    )
    command.add_argument(
        "--depfile-target", metavar="NAME", help="name of the target in the depfile"
    )
