"""ExecuTorch's own runtime takes the programs we make, and gives the same outputs."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from orchestrator.build.adapter import Adapter
from orchestrator.core.border import NO_IO
from orchestrator.errors import KernelError
from orchestrator.method.passes import PASSES, run_passes, try_link
from orchestrator.method.replan import adapt_program
from orchestrator.planner import plan_blocks
from orchestrator.program.encode import write_program
from orchestrator.selection.extract import extract
from tests.conftest import CASES, CORPUS
from tests.unit.method.test_prelink_unlink import resolution_of_all as kernels_of
from tests.unit.products import DATA, program_of
from tests.unit.schemas import schemas

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.core.lazy_bytes import Bytes
    from orchestrator.program.program import Program

PYTHON = os.environ.get("EXECUTORCH_PYTHON", "")
RUNNER = Path(__file__).with_name("run_programs.py")

pytestmark = [
    pytest.mark.executorch,
    pytest.mark.skipif(not PYTHON, reason="EXECUTORCH_PYTHON is not set; see `nox -s interop`"),
]


def _calls(case: str) -> list[dict[str, Any]]:
    facts = json.loads((CORPUS / case / "case.json").read_text())
    return [
        {
            "method": call["method"],
            "inputs": [
                str(CORPUS / case / value["file"]) if "file" in value else value.get("value")
                for value in call["inputs"]
            ],
        }
        for call in facts["runs"]
    ]


def _planned(program: Program) -> bytes:
    """Places and sizes are others, in its own bytes."""
    found = adapt_program(program, program, schemas(), plan=plan_blocks)
    return bytes(found.program.data)


_PASSES: Final = [name for name in PASSES if name != "fold_batch_norm"]
"""Those that a profile does not have to ask for: that one changes sums of floats."""


def _passed(program: Program) -> bytes:
    """After these passes; as it is where something has no kernel."""
    try:
        linkage = try_link(program, extract(program, model="m"), kernels_of(program))
    except KernelError:
        return bytes(program.data)
    methods = tuple(run_passes(m, _PASSES, planned=False) for m in linkage.methods)
    adapter = Adapter(passes=tuple(_PASSES), schemas=schemas(), planner=plan_blocks, isa="")
    linkage = replace(linkage, methods=methods)
    return bytes(adapter.loaded("m", program, program, linkage, NO_IO).program.data)


MAKERS: Final[tuple[Callable[[Program], Bytes], ...]] = (_planned, write_program, _passed)


def test_programs_of_ours_give_the_same_outputs(tmp_path: Path) -> None:
    cases = [case for case in CASES if case not in DATA]
    steps: list[dict[str, Any]] = []
    changed = [0 for _ in MAKERS]
    for case in cases:
        program, calls = program_of(case), _calls(case)
        steps.append({"program": str(CORPUS / case / "model.pte"), "calls": calls})
        for number, make in enumerate(MAKERS):
            data = bytes(make(program))
            changed[number] += data != bytes(program.data)
            path = tmp_path / f"{case}.{number}.pte"
            path.write_bytes(data)
            steps.append({"program": str(path), "calls": calls})
    assert min(changed) > 15
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
    assert len(answers) == len(steps)
    ran = 0
    for case in cases:
        before, *others = answers[: 1 + len(MAKERS)]
        del answers[: 1 + len(MAKERS)]
        for make, after in zip(MAKERS, others, strict=True):
            assert after == before, (case, make.__name__)
        ran += isinstance(before, list)
    # The others call what the package has no kernel for.
    assert ran > 30
