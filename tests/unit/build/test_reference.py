"""What is said when ExecuTorch's runtime does not carry out the calls of a scenario."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from orchestrator.build.reference import Reference, reference_outputs
from orchestrator.shell.process import Finished

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path


@dataclass
class FakeProcesses:
    """A runtime that ends with an error."""

    error: str

    def run(
        self, command: Sequence[str], *, cwd: Path, env: Mapping[str, str], timeout_s: float
    ) -> Finished:
        """Write the result, or end without one."""
        del command, env, timeout_s
        if self.error:
            text = json.dumps({"error": self.error})
            (cwd / "result.json").write_text(text, encoding="utf-8")
        return Finished(status=-9, stdout="", stderr="")


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        ("torch is not installed", "torch is not installed"),
        (
            "Failed to load method forward, error: 0x:14",
            "ExecuTorch's Python package has no kernel for an operator of the program",
        ),
        (
            "Failed to load method forward, error: 0x20",
            "ExecuTorch's Python package has no backend for a delegate of the program",
        ),
        (
            "Failed to execute method forward, error: 0x12",
            "ExecuTorch's Python package cannot run the program: 0x12",
        ),
        ("", "ExecuTorch ended with: status -9"),
    ],
)
def test_problems_are_said_in_words(error: str, problem: str) -> None:
    found = reference_outputs((), programs={}, inputs={}, processes=FakeProcesses(error))
    assert found == Reference(problem=problem)
