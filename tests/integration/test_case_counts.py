"""The counts of cases at the end of a test log."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

TESTS = """\
import pytest
from tests.case_counts import count_case


@pytest.mark.parametrize("case", ["a", "b", "c", "d"])
@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_case(case, target, record_property):
    if (case, target) == ("b", "cortex-m4"):
        pytest.skip("not here")
    assert (case, target) != ("c", "cortex-m4")
    if case != "d":
        count_case(record_property, case, target)


def test_again(record_property):
    count_case(record_property, "a", "host")


def test_fails_after(record_property):
    count_case(record_property, "late", "host")
    assert not record_property
"""


def _run(folder: Path, text: str, *options: str) -> list[str]:
    (folder / "test_it.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\n")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-p", "tests.case_counts"),
            *("-p", "no:cacheprovider", "-ra", "--rootdir", str(folder)),
            *options,
            *("-c", str(folder / "pytest.ini"), str(folder / "test_it.py")),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines()


def test_counts_are_those_of_cases_that_ran_and_passed(tmp_path: Path) -> None:
    *_, before, closing = _run(tmp_path, TESTS)
    assert before == "cases run: cortex-m4 1, host 3"
    assert re.fullmatch(
        r"=+ 2 failed, 7 passed, 1 skipped, 1 cases on cortex-m4, 3 cases on host"
        r" in [0-9.]+s =+",
        closing,
    )


def test_without_cases_nothing_is_added(tmp_path: Path) -> None:
    lines = _run(tmp_path, "def test_it():\n    pass\n")
    assert re.fullmatch(r"=+ 1 passed in [0-9.]+s =+", lines[-1])
    assert not any(line.startswith("cases run") for line in lines)


def test_ci_finds_the_closing_line_also_of_several_workers(tmp_path: Path) -> None:
    """By the pattern it looks for."""
    script = (ROOT / ".ci" / "run").read_text()
    found = re.search(r"grep -E '(.*?)'", script)
    assert found is not None
    *_, before, closing = _run(tmp_path, TESTS, "-n", "2")
    assert before == "cases run: cortex-m4 1, host 3"
    assert re.search(found[1], closing)
    assert "3 cases on host" in closing
