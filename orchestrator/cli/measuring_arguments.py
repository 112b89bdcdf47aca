"""Arguments of commands that run a product, or show what it costs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.argument_types import (
    class_names,
    count,
    finite_number,
    instruction_index,
    job_count,
    port_number,
    quantization,
    sample_range,
)
from orchestrator.cli.shared_arguments import PROFILE, add_locking, add_out
from orchestrator.targets.cores import TOOLCHAINS

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.cli.shared_arguments import CommandParser


def add_measuring(command: Callable[..., CommandParser]) -> None:
    """Commands that run a product, or show what it costs."""
    _add_run(command)
    _add_evaluate(command)
    _add_size(command)
    _add_report(command)
    _add_scratch(command)


def _add_run(command: Callable[..., CommandParser]) -> None:
    """The commands that run firmware and explain its statuses."""
    run = command("run", "run the built firmware on .npy inputs", workspace=True)
    run.value("--model", "NAME", "model, if there are several")
    run.value("--method", "NAME", "default: forward", default="forward")
    run.several("--input", "FILE", "a .npy file or a number, once for each input")
    run.several(
        "--expect",
        "FILE",
        "a .npy file or a number to compare with, once for each output",
    )
    run.value("--atol", "X", "absolute tolerance", type=finite_number)
    run.value("--rtol", "X", "relative tolerance", type=finite_number)
    run.path("--output-dir", "DIR", "write every output as .npy")
    run.path("--scenario", "FILE", "JSON file of calls and expected outputs")
    run.flag("--no-build", "fail if the build is not current")
    add_locking(run)
    run.jobs()
    run.value(
        "--timeout",
        "SECONDS",
        "stop the run after that time; default: 600",
        type=finite_number,
        default=600.0,
    )
    run.add_argument(
        # argparse would name this option `profile`, which the positional argument has.
        "--profile",
        action="store_true",
        dest="costs",
        help="show what each operator costs",
    )
    run.value(
        "--passes",
        "N",
        "with --profile on a host: runs to take the median of",
        type=job_count,
    )

    test = command(
        "test", "compare the product with its own program, bit for bit", workspace=True
    )
    test.value("--runs", "N", "random calls of each method", type=job_count)
    test.value("--seed", "N", "of the random inputs", type=count)
    test.path(
        "--scenario",
        "FILE",
        "more calls; default: scenarios/NAME.json beside the profile",
    )
    test.flag(
        "--bisect", "find the pass or the part of the plan that makes a difference"
    )
    add_locking(test)
    test.jobs()
    test.value(
        "--timeout",
        "SECONDS",
        "stop each firmware after that time; default: 600",
        type=finite_number,
        default=600.0,
    )

    decode = command("decode", "explain a status of the device", profile=False)
    decode.value("code", "CODE", "number or name of an orch_status")
    decode.path(
        "--profile",
        "PROFILE",
        "profile that the device was built from",
        required=True,
        dest="from_profile",
    )
    decode.value(
        "--instruction", "N", "the instruction that failed", type=instruction_index
    )
    decode.value("--model", "NAME", "model, if there are several")
    decode.value("--method", "NAME", "method, if there are several")


def _add_evaluate(command: Callable[..., CommandParser]) -> None:
    """The evaluate command."""
    evaluate = command("evaluate", "measure the accuracy of a model over a data set")
    evaluate.value(
        "--data",
        "DATA",
        "folder, .npz file, or function as package.module:name",
        required=True,
    )
    evaluate.value("--model", "NAME", "model, if there are several")
    evaluate.value("--method", "NAME", "method; default: forward", default="forward")
    evaluate.value(
        "--metric",
        "METRIC",
        "top1, mae, auc, or package.module:name; default: top1 for classes, mae"
        " for other numbers",
    )
    evaluate.path(
        "--reference", "FILE.pte", "program of the float model, to compare with"
    )
    evaluate.value(
        "--layers",
        "N",
        "compare every layer with the reference, over the first N samples",
        type=job_count,
    )
    evaluate.flag(
        "--emulator",
        "run the board's firmware in its emulator; default: on this machine",
    )
    evaluate.value(
        "--samples",
        "BEGIN:END",
        "part of the data; END is exclusive",
        type=sample_range,
        default=(0, None),
    )
    evaluate.value(
        "--classes",
        "NAMES",
        "names of the classes, separated by commas",
        type=class_names,
        default=(),
    )
    evaluate.value("--worst", "N", "samples to list; default 5", type=count, default=5)
    for option, what in (("--input-quant", "inputs"), ("--output-quant", "outputs")):
        evaluate.value(
            option,
            "SCALE,ZERO_POINT",
            f"of integer {what} that stand for real numbers",
            type=quantization,
        )
    evaluate.value("--at-least", "X", "fail if the metric is less", type=finite_number)
    evaluate.value("--at-most", "X", "fail if the metric is more", type=finite_number)
    evaluate.flag("--resume", "continue an interrupted evaluation")
    evaluate.path("--results", "FILE", "where outputs are kept")
    evaluate.value(
        "--timeout",
        "SECONDS",
        "seconds for one sample; default 600",
        type=finite_number,
        default=600.0,
    )
    add_locking(evaluate)
    evaluate.jobs()


def _add_size(command: Callable[..., CommandParser]) -> None:
    """The size command and its variants."""
    size = command(
        "size",
        "show flash and RAM of the last build, or of a variant",
        workspace=True,
    )
    size.flag("--full", "every contributor, section and method")
    size.add_argument(
        "--by",
        choices=("op", "kernel", "model", "section"),
        help="one table, with its rows explained",
    )
    size.path(
        "--diff", "OTHER", "compare with a report.json, or with another profile's build"
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
    size.jobs()


def _add_report(command: Callable[..., CommandParser]) -> None:
    """The report command."""
    report = command("report", "show the last build as a page, report.html")
    report.flag("--open", "open it in the browser")
    what = report.add_mutually_exclusive_group()
    what.add_argument(
        "--serve",
        action="store_true",
        help="serve it on localhost; the page reloads when a build ends",
    )
    for option in ("svg", "png"):
        what.add_argument(
            f"--{option}",
            choices=("flash", "memory", "arena", "graph"),
            metavar="KIND",
            help=f"write pictures as {option.upper()}: flash, memory, arena or graph",
        )
    report.several(
        "--diff",
        "OTHER",
        "add the changes from another build folder, report.json, profile or lock",
        type=Path,
    )
    report.flag("--history", "add the sizes of each commit of the lock, from git")
    report.several(
        "--history-of",
        "OTHER",
        "the same with a line for other products: a lock, profile, or folder",
        type=Path,
    )
    report.path("--costs", "FILE", "add what `run --profile --json` measured")
    report.several("--accuracy", "FILE", "add what `evaluate --json` found", type=Path)
    report.path(
        "--output",
        "FILE",
        "where to write a page with additions; default: in the build folder",
    )
    report.path("--output-dir", "DIR", "folder of the pictures")
    report.value("--port", "N", "of --serve; default: a free one", type=port_number)
    report.flag("--no-build", "fail if the build is not current")
    add_locking(report)
    report.jobs()


def _add_scratch(command: Callable[..., CommandParser]) -> None:
    """The scratch command."""
    scratch = command(
        "scratch", "show scratch memory of each call, or compare tables", profile=False
    )
    scratch.path("profile", "PROFILE", PROFILE, nargs="?")
    add_out(scratch)
    scratch.path(
        "--check",
        "TABLE",
        "CSV of scratch sizes of your CMSIS-NN",
        nargs="+",
        default=[],
    )
