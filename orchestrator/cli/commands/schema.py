"""`orchestrator plumbing schema`: the JSON Schema of profiles, or of workspaces."""

from __future__ import annotations

from argparse import Namespace

from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode
from orchestrator.profile.reference import schema_text
from orchestrator.workspace.load import workspace_schema_text


def run(args: Namespace, console: Console) -> ExitCode:
    """Print the schema; it is JSON with and without --json."""
    console.put(workspace_schema_text() if args.of_workspace else schema_text())
    return ExitCode.OK
