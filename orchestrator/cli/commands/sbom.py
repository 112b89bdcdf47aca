"""`orchestrator sbom`: what a product consists of."""

from functools import partial

from orchestrator.cli.commands.documents import show_document
from orchestrator.provenance.sbom import SBOM

run = partial(show_document, name=SBOM)
