"""`orchestrator why`: why something is in a product, or not, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.build import BuildOptions, Project, load, open_build
from orchestrator.build.facts import selection_facts
from orchestrator.cli.commands.measuring import note_if_stale
from orchestrator.errors import ExitCode, UsageError
from orchestrator.explain import (
    why,
    why_document,
    why_not,
    why_not_document,
    why_not_text,
    why_text,
)

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Explain why an operator, kernel, source or symbol is in the product, or not."""
    if args.dtype is not None and not args.absent:
        hint = "`why --not` explains why a kernel lacks a dtype"
        raise UsageError.of("usage", "--dtype requires --not", hint=hint)
    project = Project(load(args.profile), BuildOptions(out=args.out))
    with console.progress() as reporter:
        build = open_build(project, console.shell(reporter))
        facts = selection_facts(project, build)
    if args.absent:
        absences = why_not(args.name, facts, dtype=args.dtype)
        console.document(why_not_document(absences))
        console.data(why_not_text(absences))
        return ExitCode.OK
    answer = why(args.name, facts)
    if answer.built:
        note_if_stale(project, console, "costs")
    console.document(why_document(answer))
    console.data(why_text(answer))
    return ExitCode.OK
