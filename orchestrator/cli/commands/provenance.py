"""`orchestrator provenance`: how a product was made."""

from functools import partial

from orchestrator.cli.commands.documents import show_document
from orchestrator.provenance.sbom import STATEMENT

run = partial(show_document, name=STATEMENT)
