"""`orchestrator run`: run the built firmware on given inputs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from orchestrator.build.device_status import explain_failure
from orchestrator.build.firmware import carry_out, need_runnable
from orchestrator.build.judging import product_of, read_bytes, scenario_of
from orchestrator.cli.commands.current import make_current, need_current
from orchestrator.cli.commands.measuring import measure, running
from orchestrator.cli.commands.options import device_for, project_of
from orchestrator.cli.commands.workspace import needs_profile, run_workspace
from orchestrator.cli.console import Console
from orchestrator.cli.outputs import would_overwrite
from orchestrator.errors import ExitCode, UsageError
from orchestrator.fleet.outcome import Kind
from orchestrator.running.compare import Tolerance
from orchestrator.running.inputs import command_line_call, may_be_output, output_files
from orchestrator.running.product import Product
from orchestrator.running.report import Ran
from orchestrator.running.values import Call
from orchestrator.shell.files import write_atomic

# Absolute and relative, for outputs of one command line. Chosen by hand.
_DEFAULT = Tolerance(atol=1e-5, rtol=1e-5)


def run(args: Namespace, console: Console) -> ExitCode:
    """Run calls in order, write their outputs, and compare them with expected ones."""
    if not needs_profile(args, args.profile):
        return run_workspace(args, console, Kind.RUN)
    if args.passes is not None and not args.costs:
        raise UsageError.wrong(
            "--passes requires --profile", "add --profile, or leave out --passes"
        )
    project = project_of(args)
    (need_current if args.no_build else make_current)(project, console)
    product = product_of(project)
    on = device_for(args, project, product)
    need_runnable(product, on)
    read: list[str] = []
    calls, tolerance = _calls(args, product, read)
    _check_outputs(args.output_dir, read)
    measured = None
    if args.costs:
        results, measured = measure(
            project, calls, console, passes=args.passes, timeout_s=args.timeout, on=on
        )
    else:
        # Resolved: a build that ends meanwhile moves the link, and the run would read
        # another file.
        firmware = (project.folder / product.firmware).resolve()
        with running(console, product, on):
            answer = carry_out(product, firmware, calls, timeout_s=args.timeout, on=on)
        results = answer.results
    if args.output_dir is not None:
        for name, data in output_files(results):
            write_atomic(args.output_dir / name, data)
    failure = explain_failure(project, calls, results)
    ran = Ran(calls=calls, results=results, tolerance=tolerance, failure=failure)
    document, table = ran.data, ran.table
    if measured is not None:
        document["profile"] = measured.data
        table += f"\n{measured.table}"
    console.result(document, table)
    return console.verdict(ran.problems)


def _check_outputs(folder: Path | None, read: Sequence[str]) -> None:
    """Refuse to write outputs over files that were read. Raises UsageError."""
    if folder is None or not folder.is_dir():
        return
    names = [path.name for path in map(Path, read) if path.parent.samefile(folder)]
    if mine := [name for name in names if may_be_output(name)]:
        found = "an input of the command"
        raise UsageError(would_overwrite("--output-dir", str(folder / mine[0]), found))


def _calls(
    args: Namespace, product: Product, read: list[str]
) -> tuple[tuple[Call, ...], Tolerance | None]:
    """Calls of the command line, and their tolerance if outputs are expected.

    Args:
        args: Of the command line.
        product: What is called.
        read: Gets the paths of all files with inputs and expected outputs.
    """

    def noted(path: str) -> bytes:
        read.append(path)
        return read_bytes(path)

    if args.scenario is None:
        call = command_line_call(
            product,
            model=args.model,
            method=args.method,
            inputs=args.input,
            expected=args.expect or None,
            read_bytes=noted,
        )
        atol = _DEFAULT.atol if args.atol is None else args.atol
        rtol = _DEFAULT.rtol if args.rtol is None else args.rtol
        return (call,), Tolerance(atol=atol, rtol=rtol) if args.expect else None
    if args.input or args.expect or args.model:
        raise UsageError.wrong(
            "--scenario names models, inputs and outputs itself",
            "leave out --model, --input and --expect",
        )
    scenario = scenario_of(args.scenario, product, noted)
    return scenario.calls, scenario.tolerance
