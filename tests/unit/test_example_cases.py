"""examples/cases: one case for each checked-in profile, and it fits the product."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import tomli

from orchestrator.build import BuildOptions, Project, load, open_build
from orchestrator.build.table import GENERATE
from orchestrator.running.product import read_product
from orchestrator.running.scenario import read_scenario
from tests.conftest import CORPUS

ROOT = Path(__file__).resolve().parents[2]
PROFILES = sorted((ROOT / "profiles").glob("*.toml"))
EXAMPLES = ROOT / "examples" / "cases"


def test_every_profile_has_a_case() -> None:
    assert {p.stem for p in EXAMPLES.glob("*.json")} == {p.stem for p in PROFILES}


def _oracle(model: Path) -> tuple[Path, dict[str, Any]]:
    """Folder and text of the corpus' case that has this program."""
    digest = hashlib.sha256(model.read_bytes()).hexdigest()
    for path in CORPUS.glob("*/case.json"):
        case = json.loads(path.read_text())
        if case["program"]["sha256"] == digest:
            return path.parent, case
    raise AssertionError(f"{model} is not in the corpus")


@pytest.mark.parametrize("profile", PROFILES, ids=lambda p: p.stem)
def test_the_case_of_a_profile(profile: Path, tmp_path: Path) -> None:
    """What it calls is in the product; inputs and outputs are ExecuTorch's.

    tests/qemu runs the same programs with the same inputs on every core.
    """
    file = EXAMPLES / f"{profile.stem}.json"
    text = file.read_text()
    build = open_build(Project(load(profile), BuildOptions(out=tmp_path)))
    generated = {f.path: f.text for f in build[GENERATE]}
    scenario = read_scenario(
        text,
        file=str(file),
        product=read_product(generated["product.json"]),
        read_bytes=lambda path: Path(path).read_bytes(),
    )
    models = tomli.loads(profile.read_text())["models"]
    assert [call.method.model for call in scenario.calls] == [m["name"] for m in models]
    case = json.loads(text)
    for run, model in zip(case["runs"], models, strict=True):
        folder, oracle = _oracle(profile.parent / model["path"])
        assert case["tolerance"] == oracle["tolerance"]
        theirs = oracle["runs"][0]
        for side in ("inputs", "outputs"):
            for mine, other in zip(run[side], theirs[side], strict=True):
                shown = {k: v for k, v in mine.items() if k != "file"}
                assert shown == {key: other[key] for key in shown}
                data = (EXAMPLES / mine["file"]).read_bytes()
                assert data == (folder / other["file"]).read_bytes()
