# ruff: noqa: INP001 -- Sphinx reads it as a file
"""The documentation as a site, built by Sphinx: `nox -s site`."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from orchestrator import __version__

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_ROOT: Final = Path(__file__).parents[1]
_REPOSITORY: Final = "https://github.com/orchestrator-dev/orchestrator"
_LINK: Final = re.compile(r"\]\((\.\./[^)\s#]*)")

project = "Orchestrator"
author = "the Orchestrator developers"
release = __version__
extensions = [*("myst_parser", "sphinx_copybutton"), *("sphinx.ext.autodoc", "sphinx.ext.napoleon")]
autodoc_mock_imports = ["executorch", "torch"]  # the extra `export`
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
root_doc = "index"
exclude_patterns = ["README.md"]  # the same list for readers of the repository
html_theme = "furo"
html_title = f"Orchestrator {release}"
html_copy_source = False
html_show_copyright = False
html_theme_options = {"source_repository": _REPOSITORY, "source_branch": "main"}
html_theme_options["source_directory"] = "docs/"
copybutton_exclude = ".linenos, .gp, .go"
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence"]


def _to_repository(_app: Sphinx, page: str, text: list[str]) -> None:
    """Lead links to files outside of docs/ to the repository.

    A link to a file that does not exist stays, so that Sphinx reports it.
    """
    folder = (PurePosixPath("docs") / page).parent

    def linked(found: re.Match[str]) -> str:
        parts: list[str] = []
        for part in (folder / found[1]).parts:
            if part != "..":
                parts.append(part)
            elif parts:
                parts.pop()
        path = _ROOT.joinpath(*parts)
        if parts[:1] == ["docs"] or not path.exists():
            return found[0]
        kind = "tree" if path.is_dir() else "blob"
        return f"]({_REPOSITORY}/{kind}/main/{'/'.join(parts)}"

    text[0] = _LINK.sub(linked, text[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect what Sphinx calls."""
    app.connect("source-read", _to_repository)
    return {"parallel_read_safe": True}
