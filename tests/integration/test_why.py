"""`why` and `why --not` on real models, before a build and after one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.integration.workspace import Workspace, write_product

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def fresh(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Workspace:
    """A profile that was never built."""
    write_product(tmp_path / "w", cpu="cortex-m55")
    return Workspace(folder=tmp_path / "w", capsys=capsys)


def _answer(w: Workspace, command: str, *names: str) -> dict[str, Any]:
    done = w.run(command, *names, "--json")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert isinstance(document, dict)
    return document


def _code(w: Workspace, command: str, *names: str) -> str:
    done = w.run(command, *names, "--json")
    document = json.loads(done.out)
    assert done.code == document["exit_code"] == 2
    (problem,) = document["diagnostics"]
    return str(problem["code"])


@pytest.mark.toolchain
def test_costs_are_those_of_the_report(w: Workspace) -> None:
    report = json.loads((w.out / "report.json").read_text())
    parts = {
        c["name"]: (c["flash_bytes"], c["ram_bytes"])
        for c in report["contributors"]
        if c["kind"] == "kernel"
    }
    resolved = json.loads((w.out / "resolution.json").read_text())
    total = 0
    for operator in resolved["operators"]:
        answer = _answer(w, "why", operator["operator"])
        assert answer["built"]
        (kernel,) = answer["kernels"]
        costs = [
            parts.get(source.removeprefix("kernels/").removesuffix(".cpp"), (0, 0))
            for source in kernel["sources"]
        ]
        assert kernel["flash_bytes"] == sum(flash for flash, _ in costs) > 0
        assert kernel["ram_bytes"] == sum(ram for _, ram in costs)
        for source in kernel["sources"]:
            assert _answer(w, "why", source)["kernels"] == [kernel]
        assert _answer(w, "why", kernel["function"])["kernels"] == [kernel]
        total += kernel["flash_bytes"]
    assert total == sum(flash for flash, _ in parts.values()) > 0


@pytest.mark.toolchain
def test_every_symbol_and_part_of_the_firmware_has_a_reason(w: Workspace) -> None:
    report = json.loads((w.out / "report.json").read_text())
    symbols = {s["symbol"]: s for s in report["symbols"]}
    kinds: dict[str, str] = {}
    for symbol in symbols.values():
        kinds.setdefault(symbol["kind"], symbol["symbol"])
    assert {"kernel", "runtime", "kernel_table", "api"} <= set(kinds)
    for kind, name in kinds.items():
        answer = _answer(w, "why", name)
        found = [s for part in answer["parts"] for s in part["symbols"]]
        assert symbols[name]["size_bytes"] in [s["size_bytes"] for s in found]
        assert kind in [part["kind"] for part in answer["parts"]]
        assert all(part["reason"] for part in answer["parts"])
        assert bool(answer["kernels"]) == (kind == "kernel")
        assert _code(w, "why", "--not", name) == "in-product"


@pytest.mark.toolchain
def test_costs_of_another_build_are_told_as_such(w: Workspace) -> None:
    w.build()  # in this folder
    assert "changed" not in w.run("why", "relu").err
    w.edit("product.toml", '[dtypes.operators]\n"aten::relu.out" = ["Half"]\n')
    done = w.run("why", "relu", "--json")
    assert "something changed since the last build" in done.err
    (kernel,) = json.loads(done.out)["kernels"]
    assert kernel["dtypes"] == ["Half", "Float"]
    assert [a["source"] for a in kernel["asked_by"]] == ["dtypes.operators", "model"]


@pytest.mark.toolchain
def test_a_report_that_is_damaged(w: Workspace) -> None:
    report = (w.out / "report.json").resolve()
    report.write_bytes(b"\xff")
    assert _code(w, "why", "relu") == "no-report"
    report.write_text("{}")
    assert _code(w, "why", "relu") == "bad-report"


def test_no_build_is_needed(fresh: Workspace) -> None:
    answer = _answer(fresh, "why", "aten::addmm.out")
    assert not answer["built"]
    (kernel,) = answer["kernels"]
    assert kernel["flash_bytes"] is None
    assert kernel["asked_by"] == [
        {"source": "model", "method": "forward", "calls": 1, "instructions": [20]}
    ]
    assert "not built: run `orchestrator build" in fresh.run("why", "addmm").out
    assert not fresh.out.exists()


def test_what_is_missing_and_how_it_is_added(fresh: Workspace) -> None:
    (absence,) = _answer(fresh, "why", "--not", "tanh")["absences"]
    assert absence["reason"] == "not-asked"
    assert _code(fresh, "why", "tanh") == "not-in-product"
    fresh.edit("product.toml", '[operators]\ninclude = ["aten::tanh.out"]\n')
    (kernel,) = _answer(fresh, "why", "tanh")["kernels"]
    assert [kernel["dtypes"]] == [link["dtypes"] for link in absence["links"]]
    assert kernel["asked_by"][0]["source"] == "operators.include"
    assert _code(fresh, "why", "--not", "tanh") == "in-product"


def test_a_dtype_that_is_missing_and_how_it_is_added(fresh: Workspace) -> None:
    (absence,) = _answer(fresh, "why", "--not", "aten::relu.out", "--dtype", "Half")["absences"]
    assert absence["reason"] == "not-instantiated"
    fresh.edit("product.toml", '[dtypes.operators]\n"aten::relu.out" = ["Half"]\n')
    assert _code(fresh, "why", "--not", "relu", "--dtype", "Half") == "in-product"
    (kernel,) = _answer(fresh, "why", "relu")["kernels"]
    assert [kernel["dtypes"]] == [link["dtypes"] for link in absence["links"]]


@pytest.mark.parametrize("every", [False, True])
def test_gaps_do_not_keep_from_answers(fresh: Workspace, *, every: bool) -> None:
    """A product that cannot be built is where the question comes up."""
    fresh.edit(
        "product.toml",
        f'[operators]\ninclude = ["my::own.out"]\nall = {str(every).lower()}\n'
        '[dtypes.operators]\n"aten::mm.out" = ["Bool"]\n',
    )
    assert fresh.run("check").code == 5
    for name, code in (("my::own.out", "no-kernel"), ("mm", "no-kernel-for-dtype")):
        assert _code(fresh, "why", name) == "not-in-product"
        (absence,) = _answer(fresh, "why", "--not", name)["absences"]
        assert absence["reason"] == "gap"
        assert [problem["code"] for problem in absence["problems"]] == [code]
    assert _answer(fresh, "why", "relu")["kernels"]
    negation = [] if every else ["--not"]
    assert _answer(fresh, "why", *negation, "tanh")


def test_names_nobody_has(fresh: Workspace) -> None:
    for negation in ([], ["--not"]):
        done = fresh.run("why", *negation, "op_rellu")
        assert done.code == 2
        assert "error[unknown-name]" in done.err
        assert 'hint: did you mean "op_relu"?' in done.err
        assert done.out == ""
