"""Documents of a build: printed, or written."""

from __future__ import annotations

import json
from argparse import Namespace
from functools import partial
from typing import Any

from orchestrator.build import Project, Shell, build_product
from orchestrator.cli.commands.current import make_current
from orchestrator.cli.commands.named_files import read_text
from orchestrator.cli.commands.options import project_of
from orchestrator.cli.commands.workspace import needs_profile, run_workspace
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode
from orchestrator.fleet.task import costs_of
from orchestrator.shell.files import write_if_changed


def show_document(args: Namespace, console: Console, *, name: str) -> ExitCode:
    """Build if anything changed; then print a document of the build, or write it.

    Args:
        args: Of the command.
        console: Where to print.
        name: Of the document in the build folder.
    """
    if not needs_profile(args, args.profile):
        return run_workspace(args, console, partial(_written, name))
    project = project_of(args)
    make_current(project, console)
    text = read_text(project.folder / name, wanted="a document of a build")
    console.document(json.loads(text))
    if args.output is None:
        console.data(text.removesuffix("\n"))
        return ExitCode.OK
    write_if_changed(args.output, text.encode())
    console.data(str(args.output))
    return ExitCode.OK


def _written(name: str, project: Project, shell: Shell) -> dict[str, Any]:
    """Build a product; fields of the outcome."""
    report, file = build_product(project, shell).report, str(project.folder / name)
    return {"done": f"written: {file}", "costs": costs_of(report), "details": {"document": file}}
