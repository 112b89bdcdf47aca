"""The package's own modules as syntax trees, parsed once a session and process."""

from __future__ import annotations

import ast
from functools import cache

from tests.integration.workspace import ROOT

PACKAGE = ROOT / "orchestrator"


@cache
def modules() -> dict[str, list[ast.AST]]:
    """All nodes of each module, by its path in the package."""
    return {
        path.relative_to(PACKAGE).as_posix(): [*ast.walk(ast.parse(path.read_text("utf-8")))]
        for path in sorted(PACKAGE.rglob("*.py"))
    }
