"""`orchestrator provenance`: how a product was made."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.commands.documents import show_document
from orchestrator.errors import ExitCode
from orchestrator.provenance.documents import STATEMENT

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Build if anything changed, and print the statement, or write it."""
    show_document(args, console, STATEMENT)
    return ExitCode.OK
