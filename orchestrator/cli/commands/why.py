"""`orchestrator why`: why something is in a product, or not, and what it costs."""

from __future__ import annotations

from argparse import Namespace

from orchestrator.build import open_build
from orchestrator.build.facts import selection_facts
from orchestrator.cli.commands.current import note_if_stale
from orchestrator.cli.commands.options import project_of
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, UsageError
from orchestrator.explain import (
    why,
    why_document,
    why_not,
    why_not_document,
    why_not_text,
    why_text,
)


def run(args: Namespace, console: Console) -> ExitCode:
    """Explain why an operator, kernel, source or symbol is in the product, or not."""
    if args.dtype is not None and not args.absent:
        hint = "`why --not` explains why a kernel lacks a dtype"
        raise UsageError.wrong("--dtype requires --not", hint)
    project = project_of(args)
    with console.progress() as reporter:
        build = open_build(project, console.shell(reporter))
        facts = selection_facts(project, build)
    if args.absent:
        absences = why_not(args.name, facts, dtype=args.dtype)
        return console.result(why_not_document(absences), why_not_text(absences))
    answer = why(args.name, facts)
    if answer.built:
        note_if_stale(project, console, "costs")
    return console.result(why_document(answer), why_text(answer))
