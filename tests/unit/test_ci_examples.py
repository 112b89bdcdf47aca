"""examples/ci and the pre-commit hook: of the right form, with commands that exist."""

from __future__ import annotations

import re
import shlex
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

import orchestrator
from orchestrator.cli.arguments import parser
from tests.schemas import validator

ROOT = Path(__file__).resolve().parents[2]
CI = ROOT / "examples" / "ci"
HOOKS = ROOT / ".pre-commit-hooks.yaml"


def _read(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def _scripts() -> dict[str, str]:
    github = _read(CI / "github.yml")["jobs"]["firmware"]["steps"]
    found = {f"github {i}": s["run"] for i, s in enumerate(github) if "run" in s}
    job = _read(CI / "gitlab.yml")["firmware"]
    lines = [*job["before_script"], *job["script"]]
    found |= {f"gitlab {i}": line for i, line in enumerate(lines)}
    found["size_diff.sh"] = (CI / "size_diff.sh").read_text(encoding="utf-8")
    found["hook"] = _read(HOOKS)[0]["entry"] + " profiles/doorbell.toml"
    return found


@pytest.mark.parametrize("name", _scripts())
def test_scripts_are_shell_and_call_commands_that_exist(name: str) -> None:
    text = _scripts()[name]
    # Expressions of the workflow are in `env` alone: text of others never becomes code.
    assert "${{" not in text
    done = subprocess.run(["/bin/bash", "-n"], input=text, text=True, check=False)
    assert done.returncode == 0
    code = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    for command in re.findall(r"(?<![\w-])orchestrator ([a-z][^;\n)|]*)", code):
        parser().parse_args(shlex.split(command))


def test_every_step_is_in_both() -> None:
    text = "\n".join(_scripts().values())
    for name in ("lock --check", "build --locked", "test", "verify"):
        assert text.count(f"orchestrator {name}") >= 2, name
    assert text.count("ci/size_diff.sh ") == 2


@pytest.mark.parametrize(
    ("file", "schema"), [("github.yml", "github-workflows.json"), ("gitlab.yml", "gitlab-ci.json")]
)
def test_the_form_is_that_of_the_service(file: str, schema: str) -> None:
    """By the schemas that check-jsonschema carries."""
    pytest.importorskip("check_jsonschema")
    folder = files("check_jsonschema") / "builtin_schemas" / "vendor"
    document = _read(CI / file)
    if True in document:  # YAML 1.1 takes `on` for a truth value
        document["on"] = document.pop(True)
    text = (folder / schema).read_text(encoding="utf-8")
    errors = validator(text).iter_errors(document)
    assert [error.message for error in errors] == []


def test_the_hook_is_that_of_this_version() -> None:
    (hook,) = _read(HOOKS)
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for needed in hook["additional_dependencies"]:
        assert f'"{needed}"' in text
    page = (CI / "README.md").read_text(encoding="utf-8")
    assert f"id: {hook['id']}" in page
    assert f"rev: v{orchestrator.__version__}" in page
    assert re.search(hook["files"], "models/person.pte")
