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
from orchestrator.cli.shared_arguments import JOBS, PROFILE, add_locking, add_out
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
    add_locking(run)
    run.add_argument("-j", "--jobs", type=job_count, metavar="N", help=JOBS)
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

    test = command(
        "test", "compare the product with its own program, bit for bit", workspace=True
    )
    test.add_argument(
        "--runs", type=job_count, metavar="N", help="random calls of each method"
    )
    test.add_argument("--seed", type=count, metavar="N", help="of the random inputs")
    test.add_argument(
        "--scenario",
        type=Path,
        metavar="FILE",
        help="more calls; default: scenarios/NAME.json beside the profile",
    )
    test.add_argument(
        "--bisect",
        action="store_true",
        help="find the pass or the part of the plan that makes a difference",
    )
    add_locking(test)
    test.add_argument("-j", "--jobs", type=job_count, metavar="N", help=JOBS)
    test.add_argument(
        "--timeout",
        type=finite_number,
        default=600.0,
        metavar="SECONDS",
        help="stop each firmware after that time; default: 600",
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


def _add_evaluate(command: Callable[..., CommandParser]) -> None:
    """The evaluate command."""
    evaluate = command("evaluate", "measure the accuracy of a model over a data set")
    evaluate.add_argument(
        "--data",
        required=True,
        metavar="DATA",
        help="folder, .npz file, or function as package.module:name",
    )
    evaluate.add_argument("--model", metavar="NAME", help="model, if there are several")
    evaluate.add_argument(
        "--method", default="forward", metavar="NAME", help="method; default: forward"
    )
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
        "--resume", action="store_true", help="continue an interrupted evaluation"
    )
    evaluate.add_argument(
        "--results", type=Path, metavar="FILE", help="where outputs are kept"
    )
    evaluate.add_argument(
        "--timeout",
        type=finite_number,
        default=600.0,
        metavar="SECONDS",
        help="seconds for one sample; default 600",
    )
    add_locking(evaluate)
    evaluate.add_argument("-j", "--jobs", type=job_count, metavar="N", help=JOBS)


def _add_size(command: Callable[..., CommandParser]) -> None:
    """The size command and its variants."""
    size = command(
        "size",
        "show flash and RAM of the last build, or of a variant",
        workspace=True,
    )
    size.add_argument(
        "--full", action="store_true", help="every contributor, section and method"
    )
    size.add_argument(
        "--by",
        choices=("op", "kernel", "model", "section"),
        help="one table, with its rows explained",
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
    size.add_argument("-j", "--jobs", type=job_count, metavar="N", help=JOBS)


def _add_report(command: Callable[..., CommandParser]) -> None:
    """The report command."""
    report = command("report", "show the last build as a page, report.html")
    report.add_argument("--open", action="store_true", help="open it in the browser")
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
        "--history-of",
        type=Path,
        action="append",
        default=[],
        metavar="OTHER",
        help="the same with a line for other products: a lock, profile, or folder",
    )
    report.add_argument(
        "--costs",
        type=Path,
        metavar="FILE",
        help="add what `run --profile --json` measured",
    )
    report.add_argument(
        "--accuracy",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="add what `evaluate --json` found",
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
    add_locking(report)
    report.add_argument("-j", "--jobs", type=job_count, metavar="N", help=JOBS)


def _add_scratch(command: Callable[..., CommandParser]) -> None:
    """The scratch command."""
    scratch = command(
        "scratch", "show scratch memory of each call, or compare tables", profile=False
    )
    scratch.add_argument(
        "profile", type=Path, nargs="?", metavar="PROFILE", help=PROFILE
    )
    add_out(scratch)
    scratch.add_argument(
        "--check",
        type=Path,
        nargs="+",
        default=[],
        metavar="TABLE",
        help="CSV of scratch sizes of your CMSIS-NN",
    )
