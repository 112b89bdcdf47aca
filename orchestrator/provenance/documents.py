"""Names of the documents, and their canonical form."""

from __future__ import annotations

import json
from typing import Final

SBOM: Final = "sbom.cdx.json"
STATEMENT: Final = "provenance.intoto.json"
DOCUMENTS: Final = frozenset({SBOM, STATEMENT})
"""Published files that describe the others."""

PROJECT: Final = "https://github.com/orchestrator-dev/orchestrator"
DISTRIBUTION: Final = "pte-orchestrator"


def document_bytes(document: object) -> bytes:
    """JSON, the same bytes for equal documents."""
    return (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode()
