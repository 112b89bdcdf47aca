"""`orchestrator why`: what asked for something, what serves it and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import ExitCode
from orchestrator.explain_selection import why, why_document, why_text
from orchestrator.pipeline import WORK, BuildOptions, Pipeline, load
from orchestrator.pipeline.facts import selection_facts
from orchestrator.shell.stamp import STAMP_NAME, is_current

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Tell why an operator, kernel, source or symbol is in the product."""
    pipeline = Pipeline(load(args.profile), BuildOptions(out=args.out))
    pipeline.reporter = console.notes()
    facts = selection_facts(pipeline)
    answer = why(args.name, facts)
    stamp = str(pipeline.folder / WORK / STAMP_NAME)
    if answer.built and is_current(stamp, profile=str(args.profile)) is None:
        console.talk(
            f"{args.profile}: something changed since the last build;"
            " costs are those of that build"
        )
    console.document(why_document(answer))
    console.data(why_text(answer))
    return ExitCode.OK
