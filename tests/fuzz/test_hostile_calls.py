"""Calls with arguments that no exporter writes do no harm, whatever the operator."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Final

import pytest

from tests.cpp.support.native import build
from tests.fuzz.hostile_calls import hostile
from tests.integration.test_conditions import kernels
from tests.opinfo.programs import program_of
from tests.opinfo.run import Runner, described
from tests.unit.method.recorded_calls import Call, reference_calls

pytestmark = pytest.mark.toolchain

_MUTANTS: Final = 12
"""Per operator."""


def test_hostile_calls_do_no_harm(pytestconfig: pytest.Config) -> None:
    """Each operator that has recorded calls runs under sanitizers."""
    calls: dict[str, list[Call]] = {}
    for call in reference_calls():
        calls.setdefault(call.operator, []).append(call)
    each = pytestconfig.getoption("--mutants") or _MUTANTS
    known = kernels()
    runner = Runner(build("load_file"))
    found: Counter[str] = Counter()
    crashes = []
    for operator, recorded in sorted(calls.items()):
        rng = Random(operator)  # noqa: S311  # not for secrets
        for number in range(each):
            call = hostile(rng.choice(recorded), known[operator].schema, rng)
            failed, _ = runner.run(*program_of(call, dynamic=number % 3 == 1))
            found[failed.split(maxsplit=1)[0] if failed else "ran"] += 1
            if failed.startswith("crash"):
                crashes.append(f"{operator}{described(call)}: {failed}")
    runner.close()
    assert not crashes, f"{len(crashes)}: " + "\n".join(crashes[:9])
    assert found["run"] > found.total() / 10, found  # they reach the kernels
