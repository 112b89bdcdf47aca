"""`orchestrator sbom`: what a product consists of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.commands.documents import show_document
from orchestrator.errors import ExitCode
from orchestrator.provenance.documents import SBOM

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Build if anything changed, and print the SBOM, or write it."""
    show_document(args, console, SBOM)
    return ExitCode.OK
