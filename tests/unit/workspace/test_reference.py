"""The schema and the page of `orchestrator.toml` are made from its tables."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli

from orchestrator.workspace.load import read_workspace, workspace_schema_text
from tests.pages import WORKSPACE_EXAMPLE, workspace_page
from tests.schemas import validator

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("schema/orchestrator.schema.json", workspace_schema_text()),
        ("docs/orchestrator-toml.md", workspace_page()),
    ],
)
def test_generated_file_is_current(file: str, text: str, request: pytest.FixtureRequest) -> None:
    path = ROOT / file
    if request.config.getoption("--update-golden", default=False):
        path.write_text(text, encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text


def test_the_example_is_valid(tmp_path: Path) -> None:
    file = tmp_path / "orchestrator.toml"
    file.write_text(WORKSPACE_EXAMPLE)
    assert not list(validator(workspace_schema_text()).iter_errors(tomli.loads(WORKSPACE_EXAMPLE)))
    assert read_workspace(file).table.matrix.cpus == ("cortex-m4", "cortex-m55")


@pytest.mark.parametrize(
    "text",
    [
        "[workspace]\nprofiles = []\n[defaults]\nname = 'x'\n",
        "[workspace]\nprofiles = ['*.toml']\n[defaults.target]\ncpus = 'x'\n",
        "[workspace]\nprofiles = ['*.toml']\n[matrix]\ncpus = ['z80']\n",
    ],
)
def test_the_schema_finds_errors(text: str) -> None:
    assert list(validator(workspace_schema_text()).iter_errors(tomli.loads(f"schema = 1\n{text}")))
