"""The estimate of `check`, held against what programs of the corpus take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.build import BuildOptions, Project, inputs, load, open_build, table
from orchestrator.cli.main import run
from orchestrator.errors import MemoryPlanError
from orchestrator.measure import budget
from orchestrator.memory.estimate import estimated_costs
from orchestrator.profile.tables import BudgetTable
from tests.doc_blocks import ROOT
from tests.estimates import check_estimate
from tests.integration.test_corpus import RUNNABLE, corpus_product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from orchestrator.build import Build

PROFILES: Final = sorted((ROOT / "profiles").glob("*.toml"))
LOOSE: Final = 1.9
"""Most that an estimate is of the truth, whatever dtypes a program has."""

PLACES: Final = (("cortex-m0plus", "gnu"), ("cortex-m4", "zig"), ("cortex-m55", "gnu"))
SOME: Final = (
    ("remainder_signs", "cortex-m0plus", "gnu"),
    ("integer_types", "cortex-m0plus", "gnu"),
    ("dynamic_sequence", "cortex-m4", "zig"),
    ("double_net", "cortex-m4", "zig"),
    ("dynamic_sequence", "cortex-m55", "gnu"),
)
"""Programs of several dtypes, or of another one than the first that was measured."""

pytestmark = pytest.mark.toolchain


def _hold(folder: Path, case: str, cpu: str, toolchain: str) -> None:
    need_toolchain(cpu, toolchain)
    product = corpus_product(folder, "corpus", [case], cpu=cpu, toolchain=toolchain)
    assert product.run("build") == 0
    check_estimate(product.profile, product.out, slack=(LOOSE, 0))


@pytest.mark.parametrize(("case", "cpu", "toolchain"), SOME)
def test_what_check_says_fits_links(case: str, cpu: str, toolchain: str, tmp_path: Path) -> None:
    """Flash of code and tables is no more than the estimate, and not far below."""
    _hold(tmp_path, case, cpu, toolchain)


@pytest.mark.nightly
@pytest.mark.parametrize("case", RUNNABLE)
@pytest.mark.parametrize(("cpu", "toolchain"), PLACES)
def test_every_program_of_the_corpus(case: str, cpu: str, toolchain: str, tmp_path: Path) -> None:
    _hold(tmp_path, case, cpu, toolchain)


def _found(build: Build, flash: int, ram: int) -> str:
    """What `check` says of a budget."""
    allowed = BudgetTable.model_construct(flash_bytes=flash, ram_bytes=ram)
    memory, board = build[table.MEMORY], build[inputs.TARGET].board
    try:
        found = budget.check_estimate(memory, board, allowed, build[inputs.SPAN])
    except MemoryPlanError as error:
        return ", ".join(problem.message for problem in error.diagnostics)
    return ", ".join(found) or "fits"


@pytest.mark.parametrize("profile", PROFILES, ids=lambda path: path.stem)
def test_check_says_no_fits_where_the_build_refuses(profile: Path, tmp_path: Path) -> None:
    """And refuses nothing that the build takes."""
    assert run(["build", str(profile), "--no-lock", "--out", str(tmp_path), "-q"]) == 0
    check_estimate(profile, tmp_path)
    build = open_build(Project(load(profile), BuildOptions(out=tmp_path)))
    totals = json.loads((tmp_path / "report.json").read_text())["totals"]
    flash, ram = totals["flash_bytes"], totals["ram_bytes"]
    exact = _found(build, flash, ram)
    assert exact == "fits" or exact.startswith("warning[may-not-fit]")
    for less in (_found(build, flash - 1, ram), _found(build, flash, ram - 1)):
        assert less != "fits"
    memory, board = build[table.MEMORY], build[inputs.TARGET].board
    most, least = (
        {key: sum(parts.values()) for key, parts in costs.items()}
        for costs in (estimated_costs(memory, board), estimated_costs(memory, board, least=True))
    )
    assert _found(build, most["flash"], most["ram"]) == "fits"
    assert least["ram"] <= ram <= most["ram"] <= ram + 1280
    planned = memory.arena_bytes + memory.state_bytes + memory.caller_bytes
    if board is not None:
        # Without the stack that the board reserves it would fit.
        short = _found(build, most["flash"], planned + board.stack_bytes - 1)
        assert short == "the firmware needs at least 1 byte more RAM than its budget"
    short = _found(build, least["flash"] - 1, most["ram"])
    assert short == "the firmware needs at least 1 byte more flash than its budget"
