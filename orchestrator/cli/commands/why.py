"""`orchestrator why`: why something is in a product, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.build import BuildOptions, Project, load, open_build
from orchestrator.build.facts import selection_facts
from orchestrator.cli.commands.current import note_if_stale
from orchestrator.errors import ExitCode
from orchestrator.explain import why, why_document, why_text

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Explain why an operator, kernel, source or symbol is in the product."""
    project = Project(load(args.profile), BuildOptions(out=args.out))
    with console.progress() as reporter:
        build = open_build(project, console.shell(reporter))
        facts = selection_facts(project, build)
    answer = why(args.name, facts)
    if answer.built:
        note_if_stale(project, console, "costs")
    console.document(why_document(answer))
    console.data(why_text(answer))
    return ExitCode.OK
