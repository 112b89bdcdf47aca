"""`orchestrator test`: the product against its own program, bit for bit."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import asdict, replace

from orchestrator.build.judging import (
    Trial,
    Verdict,
    bisect,
    judge,
    problems_of,
    product_of,
    trial_of,
)
from orchestrator.cli.commands.current import make_current
from orchestrator.cli.commands.measuring import running
from orchestrator.cli.commands.options import device_for, project_of
from orchestrator.cli.commands.workspace import needs_profile, run_workspace
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, UsageError
from orchestrator.fleet.outcome import Kind
from orchestrator.plain_table import table_lines


def run(args: Namespace, console: Console) -> ExitCode:
    """Compare the product with its program, and show a line for each method."""
    if not needs_profile(args, args.profile):
        return run_workspace(args, console, Kind.TEST)
    if args.bisect and args.on:
        raise UsageError.wrong(
            "--bisect runs other firmware than the device has", "leave out --on, or --bisect"
        )
    project = project_of(args)
    make_current(project, console)
    product = product_of(project)
    given = {key: getattr(args, key) for key in ("runs", "seed", "scenario")}
    trial = replace(
        trial_of(project.profile),
        timeout_s=args.timeout,
        on=device_for(args, project, product),
        **{key: value for key, value in given.items() if value is not None},
    )
    with console.progress() as reporter, running(console, product, trial.on):
        verdict = judge(project, trial, console.shell(reporter))
    causes: dict[str, str] = {}
    if args.bisect and not verdict.is_equal:
        with console.progress() as reporter:
            causes = bisect(project, verdict, trial, console.shell(reporter))
    console.document(_document(verdict, trial, causes))
    console.data(_table(verdict))
    if verdict.is_equal:
        return ExitCode.OK
    return console.verdict(problems_of(project.profile, verdict, causes).diagnostics)


def _table(verdict: Verdict) -> str:
    rows = [("method", "runs", "outputs", "result")]
    for found in verdict.methods:
        result = "equal" if found.runs else "not called"
        if found.difference is not None:
            result = found.difference.text
        name = f"{found.method.model}.{found.method.name}"
        rows.append((name, str(found.runs), str(found.outputs), result))
    lines = table_lines(rows)
    if verdict.refused:
        lines += [f"random calls that the program refuses: {verdict.refused}"]
    return "\n".join([*lines, ""])


def _document(verdict: Verdict, trial: Trial, causes: Mapping[str, str]) -> dict[str, object]:
    return {
        "seed": trial.seed,
        "equal": verdict.is_equal,
        "refused": verdict.refused,
        "methods": [
            {
                "model": found.method.model,
                "method": found.method.name,
                "runs": found.runs,
                "outputs": found.outputs,
                "difference": found.difference and asdict(found.difference),
                **({"cause": causes[model]} if found.difference and causes else {}),
            }
            for found in verdict.methods
            for model in [found.method.model]
        ],
        **({"cause": "; ".join(dict.fromkeys(causes.values()))} if causes else {}),
    }
