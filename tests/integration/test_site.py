"""The documentation as a site."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytest.importorskip("furo", reason="the extra docs is not installed")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going"),
            *("-d", folder / "doctrees", ROOT / "docs", folder / "html"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "html"


def test_every_page_is_in_it(site: Path) -> None:
    pages = {p.relative_to(ROOT / "docs") for p in (ROOT / "docs").rglob("*.md")}
    made = {p.relative_to(site).with_suffix(".md") for p in site.rglob("*.html")}
    assert pages - made == {Path("README.md")}


def test_readers_fetch_nothing(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r'<(?:script|img|iframe|link)\b[^>]*(?:src|href)="([^"]*)', text)
        assert [url for url in fetched if "//" in url] == [], page
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", text), style


def test_the_search_finds_words(site: Path) -> None:
    index = (site / "searchindex.js").read_text(encoding="utf-8")
    assert '"prelink' in index


def test_links_out_of_the_docs_lead_to_the_repository(site: Path) -> None:
    text = (site / "testing.html").read_text(encoding="utf-8")
    assert "/blob/main/CONTRIBUTING.md#before-you-commit" in text
