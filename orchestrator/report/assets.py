"""Files that are part of the page: styles, scripts and the template."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def asset(name: str) -> str:
    """Text of a file in `page/`."""
    return (files("orchestrator.report") / "page" / name).read_text(encoding="utf-8")
