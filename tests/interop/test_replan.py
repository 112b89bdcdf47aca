"""ExecuTorch's own runtime takes the programs we plan, and gives the same outputs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestrator.stages.planner import plan_blocks
from orchestrator.stages.replan import adapt_program
from tests.conftest import CASES, CORPUS
from tests.unit.stages.products import DATA, program_of
from tests.unit.stages.schemas import schemas

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
RUNNER = Path(__file__).with_name("run_programs.py")

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(
        not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"
    ),
]


def _calls(case: str) -> list[dict[str, Any]]:
    facts = json.loads((CORPUS / case / "case.json").read_text())
    return [
        {
            "method": call["method"],
            "inputs": [
                str(CORPUS / case / value["file"])
                if "file" in value
                else value.get("value")
                for value in call["inputs"]
            ],
        }
        for call in facts["runs"]
    ]


def test_planned_programs_give_the_same_outputs(tmp_path: Path) -> None:
    cases = [case for case in CASES if case not in DATA]
    steps: list[dict[str, Any]] = []
    changed = 0
    for case in cases:
        program = program_of(case)
        found = adapt_program(program, program, schemas(), plan=plan_blocks).program
        changed += found.data != program.data
        (tmp_path / f"{case}.pte").write_bytes(found.data)
        calls = _calls(case)
        steps += [
            {"program": str(path), "calls": calls}
            for path in (CORPUS / case / "model.pte", tmp_path / f"{case}.pte")
        ]
    assert changed > 15
    (tmp_path / "steps.json").write_text(json.dumps(steps))
    done = subprocess.run(
        [PYTHON, str(RUNNER), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    answers = json.loads((tmp_path / "answers.json").read_text())
    assert len(answers) == 2 * len(cases)
    ran = 0
    for case, before, after in zip(cases, answers[::2], answers[1::2], strict=True):
        assert before == after, case
        ran += isinstance(before, list)
    # The others call what the package has no kernel for.
    assert ran > 30
