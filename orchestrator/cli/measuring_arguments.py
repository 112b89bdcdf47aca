"""Arguments of commands that run a product, or show what it costs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from orchestrator.cli.shared_arguments import (
    PROFILE,
    CommandParser,
    add_jobs,
    add_locking,
    add_out,
    add_timeout,
    count,
    finite_number,
    flag,
    instruction_index,
    job_count,
    names,
    option,
    path,
    pixel_range,
    port_number,
    quantization,
    sample_range,
    several,
)
from orchestrator.targets.cores import TOOLCHAINS

_MODEL = "model, if there are several"
_NO_BUILD = "fail if the build is not current"


def add_measuring(command: Callable[..., CommandParser]) -> None:
    """Commands that run a product, or show what it costs."""
    _add_run(command)
    _add_test(command)
    _add_decode(command)
    _add_evaluate(command)
    _add_size(command)
    _add_report(command)
    _add_scratch(command)


def _add_run(command: Callable[..., CommandParser]) -> None:
    run = command("run", "run the built firmware on .npy inputs", workspace=True)
    option(run, "--model", "NAME", _MODEL)
    option(run, "--method", "NAME", "default: forward", default="forward")
    several(run, "--input", "FILE", "a .npy file or a number, once for each input")
    what = "a .npy file or a number to compare with, once for each output"
    several(run, "--expect", "FILE", what)
    option(run, "--atol", "X", "absolute tolerance", type=finite_number)
    option(run, "--rtol", "X", "relative tolerance", type=finite_number)
    path(run, "--output-dir", "DIR", "write every output as .npy")
    path(run, "--scenario", "FILE", "JSON file of calls and expected outputs")
    flag(run, "--no-build", _NO_BUILD)
    add_locking(run)
    add_jobs(run)
    add_timeout(run, "stop the run after that time; default: 600")
    # argparse would name this option `profile`, which the positional argument has.
    flag(run, "--profile", "show what each operator costs", dest="costs")
    what = "with --profile on a host: runs to take the median of"
    option(run, "--passes", "N", what, type=job_count)


def _add_test(command: Callable[..., CommandParser]) -> None:
    what = "compare the product with its own program, bit for bit"
    test = command("test", what, workspace=True)
    option(test, "--runs", "N", "random calls of each method", type=job_count)
    option(test, "--seed", "N", "of the random inputs", type=count)
    what = "more calls; default: scenarios/NAME.json beside the profile"
    path(test, "--scenario", "FILE", what)
    what = "find the pass or the part of the plan that makes a difference"
    flag(test, "--bisect", what)
    add_locking(test)
    add_jobs(test)
    add_timeout(test, "stop each firmware after that time; default: 600")


def _add_decode(command: Callable[..., CommandParser]) -> None:
    decode = command("decode", "explain a status of the device", profile=False)
    option(decode, "code", "CODE", "number or name of an orch_status")
    what = "profile that the device was built from"
    path(decode, "--profile", "PROFILE", what, required=True, dest="from_profile")
    what = "the instruction that failed"
    option(decode, "--instruction", "N", what, type=instruction_index)
    option(decode, "--model", "NAME", _MODEL)
    option(decode, "--method", "NAME", "method, if there are several")


def _add_evaluate(command: Callable[..., CommandParser]) -> None:
    what = "measure the accuracy of a model over a data set"
    evaluate = command("evaluate", what, workspace=True)
    what = (
        "CSV or .npz file, folder of samples or classes, folder that `datasets` saved,"
        " or function as package.module:name"
    )
    option(evaluate, "--data", "DATA", what, required=True)
    what = "columns or arrays of the inputs; default: all columns but the label"
    option(evaluate, "--inputs", "NAMES", what, type=names, default=())
    what = (
        "column or array of the labels, or none; default: the column label, class,"
        " target or y, else the last one"
    )
    option(evaluate, "--labels", "NAME", what, default="")
    what = "what black and white are in images, as in --pixels=-1,1; default 0,1"
    option(evaluate, "--pixels", "LOW,HIGH", what, type=pixel_range)
    option(evaluate, "--model", "NAME", _MODEL)
    what = "method; default: forward"
    option(evaluate, "--method", "NAME", what, default="forward")
    option(
        evaluate,
        "--metric",
        "METRIC",
        "top1, mae, auc, or package.module:name; default: top1 for classes, mae for other numbers",
    )
    what = "program of the float model, to compare with"
    path(evaluate, "--reference", "FILE.pte", what)
    what = "compare every layer with the reference, over the first N samples"
    option(evaluate, "--layers", "N", what, type=job_count)
    what = "run the board's firmware in its emulator; default: on this machine"
    flag(evaluate, "--emulator", what)
    option(
        evaluate,
        "--samples",
        "BEGIN:END",
        "part of the data; END is exclusive",
        type=sample_range,
        default=(0, None),
    )
    what = "names of the classes, separated by commas"
    option(evaluate, "--classes", "NAMES", what, type=names, default=())
    what = "samples to list; default 5"
    option(evaluate, "--worst", "N", what, type=count, default=5)
    for name, what in (("--input-quant", "inputs"), ("--output-quant", "outputs")):
        text = f"of integer {what} that stand for real numbers"
        option(evaluate, name, "SCALE,ZERO_POINT", text, type=quantization)
    for name, what in (("--at-least", "less"), ("--at-most", "more")):
        text = f"fail if the metric is {what}"
        option(evaluate, name, "X", text, type=finite_number)
    flag(evaluate, "--resume", "continue an interrupted evaluation")
    path(evaluate, "--results", "FILE", "where outputs are kept")
    add_timeout(evaluate, "seconds for one sample; default 600")
    add_locking(evaluate)
    add_jobs(evaluate)


def _add_size(command: Callable[..., CommandParser]) -> None:
    """The size command and its variants."""
    what = "show flash and RAM of the last build, or of a variant"
    size = command("size", what, workspace=True)
    flag(size, "--full", "every contributor, section and method")
    kinds = ("op", "kernel", "model", "section")
    what = "one table, with its rows explained"
    option(size, "--by", None, what, choices=kinds)
    what = "compare with a report.json, or with another profile's build"
    path(size, "--diff", "OTHER", what)
    what_if = size.add_argument_group("what if", "build a variant and compare")
    several(what_if, "--without-model", "NAME", "leave out a model")
    what = "leave out an operator that only the profile requests"
    several(what_if, "--without-op", "NAME", what)
    for name, choices, text in (
        ("--dtypes", ("all", "models"), "as dtypes.select in the profile"),
        ("--optimize", ("size", "speed", "debug"), "as target.optimize"),
        ("--toolchain", TOOLCHAINS, "as target.toolchain"),
    ):
        option(what_if, name, None, text, choices=choices, default="")
    add_jobs(size)


def _add_report(command: Callable[..., CommandParser]) -> None:
    what = "show the last build as a page, report.html"
    report = command("report", what, workspace=True)
    flag(report, "--open", "open it in the browser")
    shows = report.add_mutually_exclusive_group()
    text = "serve it on localhost; the page reloads when a build ends"
    flag(shows, "--serve", text)
    kinds = ("flash", "memory", "arena", "graph")
    for name in ("svg", "png"):
        text = f"write pictures as {name.upper()}: flash, memory, arena or graph"
        option(shows, f"--{name}", "KIND", text, choices=kinds)
    text = "add the changes from another build folder, report.json, profile or lock"
    several(report, "--diff", "OTHER", text, type=Path)
    text = "add the sizes of each commit of the lock, from git"
    flag(report, "--history", text)
    text = "the same with a line for other products: a lock, profile, or folder"
    several(report, "--history-of", "OTHER", text, type=Path)
    path(report, "--costs", "FILE", "add what `run --profile --json` measured")
    text = "add what `evaluate --json` found"
    several(report, "--accuracy", "FILE", text, type=Path)
    text = "where to write a page with additions; default: in the build folder"
    path(report, "--output", "FILE", text)
    path(report, "--output-dir", "DIR", "folder of the pictures")
    text = "of --serve; default: a free one"
    option(report, "--port", "N", text, type=port_number)
    flag(report, "--no-build", _NO_BUILD)
    add_locking(report)
    add_jobs(report)


def _add_scratch(command: Callable[..., CommandParser]) -> None:
    what = "show scratch memory of each call, or compare tables"
    scratch = command("scratch", what, profile=False)
    path(scratch, "profile", "PROFILE", PROFILE, nargs="?")
    add_out(scratch)
    what = "CSV of scratch sizes of your CMSIS-NN"
    path(scratch, "--check", "TABLE", what, nargs="+", default=[])
