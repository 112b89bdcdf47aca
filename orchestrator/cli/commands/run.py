"""`orchestrator run`: run the built firmware on given inputs."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.build import Project, load
from orchestrator.build.instrument import instrument
from orchestrator.cli.commands.current import make_current, need_current
from orchestrator.cli.commands.device_status import explain_failure
from orchestrator.cli.commands.firmware import carry_out, need_runnable
from orchestrator.cli.commands.options import build_options, options_of
from orchestrator.errors import (
    Diagnostic,
    ExitCode,
    MismatchError,
    SourceSpan,
    UsageError,
)
from orchestrator.running.compare import Tolerance, compare_calls
from orchestrator.running.costs import RunCosts, cost_data, cost_table, timed
from orchestrator.running.counting import counted, read_counts
from orchestrator.running.inputs import command_line_call
from orchestrator.running.outputs import output_files
from orchestrator.running.product import Product, read_product
from orchestrator.running.protocol import CallResult, DeviceError, decode_response
from orchestrator.running.report import failures, render_table, report_data
from orchestrator.running.scenario import read_scenario
from orchestrator.shell.files import read_file, read_text_file, write_atomic

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from orchestrator.cli.console import Console
    from orchestrator.running.values import Call

_DEFAULT = Tolerance(atol=1e-5, rtol=1e-5)
_PASSES = 11


def run(args: Namespace, console: Console) -> ExitCode:
    """Run calls in order, write their outputs, and compare them with expected ones."""
    if args.passes is not None and not args.costs:
        raise UsageError(
            Diagnostic(
                code="usage",
                message="--passes requires --profile",
                hint="add --profile, or leave out --passes",
            )
        )
    options = options_of(build_options(args), args.profile)
    project = Project(load(args.profile), options)
    if args.no_build:
        need_current(project, console)
    else:
        make_current(project, console)
    product = read_product(_text(project.folder / "product.json", args.profile))
    need_runnable(product)
    calls, tolerance = _calls(args, product)
    measured = None
    if args.costs:
        results, measured = _measure(args, console, project, calls)
    else:
        firmware = (project.folder / product.firmware).resolve()
        with _running(console, product):
            answer = carry_out(product, firmware, calls, timeout_s=args.timeout)
        results = decode_response(answer.response, calls)
    limit = tolerance or _DEFAULT
    outputs = compare_calls(calls, results, limit)
    if args.output_dir is not None:
        for name, data in output_files(results):
            write_atomic(args.output_dir / name, data)
    failure = explain_failure(project, calls, results)
    document = report_data(calls, results, outputs, tolerance, failure)
    table = render_table(calls, outputs, tolerance)
    if measured is not None:
        document["profile"] = measured.data
        table += f"\n{measured.table}"
    console.document(document)
    console.data(table)
    problems = failures(calls, results, outputs, tolerance, failure)
    if problems and console.json:
        # The document has everything; a second one would be invalid JSON.
        console.problems(problems)
        return ExitCode.MISMATCH
    if problems:
        raise MismatchError(problems)
    return ExitCode.OK


@contextmanager
def _running(console: Console, product: Product) -> Iterator[None]:
    """Show that the firmware runs, and since when."""
    with console.progress() as reporter:
        where = f"in QEMU, {product.board}" if product.emulator else "on this machine"
        reporter.working(f"running {where}")
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measured:
    """Costs of a run, as text and as JSON."""

    table: str
    data: dict[str, object]


def _measure(
    args: Namespace, console: Console, project: Project, calls: tuple[Call, ...]
) -> tuple[tuple[CallResult, ...], _Measured | None]:
    """Results of the calls, and their costs unless one failed on the device."""
    with console.progress() as reporter:
        ready = instrument(project, console.shell(reporter))
    passes = (args.passes or _PASSES) if ready.plan is None else 1
    # Each pass starts like a run: with methods that are not loaded.
    again = (replace(calls[0], fresh=True), *calls[1:])
    every = (*calls, *(again * (passes - 1)))
    with tempfile.TemporaryDirectory(prefix="orchestrator-profile-") as name:
        firmware = Path(name) / ready.product.firmware
        firmware.write_bytes(ready.firmware)
        firmware.chmod(0o755)
        with _running(console, ready.product):
            answer = carry_out(
                ready.product, firmware, every, timeout_s=args.timeout, plan=ready.plan
            )
    results = decode_response(answer.response, every)
    first = results[: len(calls)]
    if any(result.error is not DeviceError.Ok for result in first):
        return first, None
    costs: RunCosts
    if ready.plan is None:
        starts = range(0, len(every), len(calls))
        groups = [results[start : start + len(calls)] for start in starts]
        costs = timed(calls, groups, ready.operators)
    else:
        found = read_counts(answer.counts)
        costs = counted(found, runs=len(calls), operators=ready.operators)
    methods = {m.index: (m.model, m.name) for m in ready.product.methods}
    return first, _Measured(
        table=cost_table(costs, ready.operators, ready.estimate),
        data=cost_data(costs, ready.operators, methods, ready.estimate),
    )


def _calls(
    args: Namespace, product: Product
) -> tuple[tuple[Call, ...], Tolerance | None]:
    """Calls of the command line, and their tolerance if outputs are expected."""
    if args.scenario is None:
        call = command_line_call(
            product,
            model=args.model,
            method=args.method,
            inputs=args.input,
            expected=args.expect or None,
            read_bytes=_read_bytes,
        )
        atol = _DEFAULT.atol if args.atol is None else args.atol
        rtol = _DEFAULT.rtol if args.rtol is None else args.rtol
        return (call,), Tolerance(atol=atol, rtol=rtol) if args.expect else None
    if args.input or args.expect or args.model:
        raise UsageError(
            Diagnostic(
                code="usage",
                message="--scenario names models, inputs and outputs itself",
                hint="leave out --model, --input and --expect",
            )
        )
    try:
        text = read_text_file(args.scenario)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            Diagnostic(
                code="bad-scenario",
                message="cannot read the scenario",
                where=SourceSpan(file=str(args.scenario)),
                notes=(("found", getattr(error, "strerror", None) or str(error)),),
                hint="name a JSON file with runs and tolerance",
            )
        ) from error
    scenario = read_scenario(
        text, file=str(args.scenario), product=product, read_bytes=_read_bytes
    )
    return scenario.calls, scenario.tolerance


def _read_bytes(path: str) -> bytes:
    return read_file(Path(path))


def _text(path: Path, profile: Path) -> str:
    try:
        return read_text_file(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            Diagnostic(
                code="not-built",
                message=f"{profile} is not built",
                notes=(("expected", str(path)),),
                hint=f"run `orchestrator build {profile}` first",
            )
        ) from error
