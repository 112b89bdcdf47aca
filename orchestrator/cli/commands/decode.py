"""`orchestrator decode`: a status of the device as a sentence."""

from __future__ import annotations

from argparse import Namespace

from orchestrator.build import Project, load
from orchestrator.build.device_status import explain_device_error
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode
from orchestrator.running.status import parse_status


def run(args: Namespace, console: Console) -> ExitCode:
    """Explain a status: its meaning, its origin and what to do."""
    error = parse_status(args.code)
    found = explain_device_error(
        Project(load(args.from_profile)),
        error,
        model=args.model,
        method=args.method,
        instruction=args.instruction,
    )
    source = found.place.source
    origin = f"\nexported from {source}" if source else ""
    return console.result(found.data, found.sentence + origin)
