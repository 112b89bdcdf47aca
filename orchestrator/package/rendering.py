"""Texts of packages from their templates."""

from __future__ import annotations

from functools import cache

import jinja2

from orchestrator.package.sources import byte_rows


def rendered(template: str, **values: object) -> str:
    """The text that a template gives with some values."""
    return _templates().get_template(template).render(**values)


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("orchestrator.package"),
        # A misspelt name in a template is an error, not an empty text.
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # Only the pack's description is XML; in C and CMake escapes would be wrong.
        autoescape=jinja2.select_autoescape(("pdsc.j2",), default=False),
    )
    environment.globals["byte_rows"] = byte_rows
    return environment
