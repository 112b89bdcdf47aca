"""`orchestrator why-not`: why something is not in a product, and how to add it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.build import BuildOptions, Project, load, open_build
from orchestrator.build.facts import selection_facts
from orchestrator.errors import ExitCode
from orchestrator.explain import why_not, why_not_document, why_not_text

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Explain why an operator, kernel, source or dtype is not in the product."""
    project = Project(load(args.profile), BuildOptions(out=args.out))
    with console.progress() as reporter:
        build = open_build(project, console.shell(reporter))
        facts = selection_facts(project, build)
    answer = why_not(args.name, facts, dtype=args.dtype)
    console.document(why_not_document(answer))
    console.data(why_not_text(answer))
    return ExitCode.OK
