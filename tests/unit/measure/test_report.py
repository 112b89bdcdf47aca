"""Texts made of size reports: JSON, tables, budgets."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from orchestrator.errors import Diagnostic, ExitCode, MemoryPlanError, SourceSpan, UsageError
from orchestrator.measure import check_budget, diff_table, read_report, report_json, size_table
from orchestrator.measure.size import MethodStack, SizeMethod, SizeReport, SizeTotals
from orchestrator.profile.tables import BudgetTable
from tests.unit.measure.measure_cases import CASES, SMALL, STACK, Kind, cost, report


def _budget(flash_bytes: int, ram_bytes: int) -> BudgetTable:
    return BudgetTable.model_validate({"flash": f"{flash_bytes} B", "ram": f"{ram_bytes} B"})


TABLE = """\
doorbell (cortex-m55, mve, mps3-an547, zig, size)

                                               flash       %         RAM       %
models                                         8,000    80.0
  person                                       7,000    70.0
  wake                                         1,000    10.0
kernels                                          500     5.0
  portable/op_add                                500     5.0
runtime                                        1,330    13.3
  load_method                                    900     9.0
  executor                                       430     4.3
platform                                         160     1.6         160     8.0
arenas                                                               600    30.0
  person.forward arena 1                                             600    30.0
method states                                                        200    10.0
reserved stack                                                     1,024    51.2
padding                                           10     0.1          16     0.8
total                                         10,000   100.0       2,000   100.0
  without models                               2,000    20.0

memory                  kind              used            of       %
itcm                    flash           10,000       524,288     1.9
dtcm                    ram              2,000         4,000    50.0

section                                  address       bytes  memory
.text                                 0x10000000       9,840  itcm
.data                                 0x30000000         160  dtcm, from itcm

stack, worst use: 700 bytes of 1,024 reserved (68.4 %)
  application and platform                       220
  loader                                         480
  not bounded: my_ops::fancy
"""

DIFF = """\
from  doorbell (cortex-m55, mve, mps3-an547, zig, size)
to    doorbell (cortex-m55, mve, mps3-an547, gnu, size)

                                       flash      change         RAM      change
models
  wake                                            -1,000
kernels
  portable/op_mul                        300        +300
  portable/op_add                        510         +10
arenas
  person.forward arena 1                                         840        +240
total                                  9,310        -690       2,240        +240
  without models                       2,310        +310
stack, worst use                                                 650         -50
"""

SAME = """\
from  doorbell (cortex-m55, mve, mps3-an547, zig, size)
to    doorbell (cortex-m55, mve, mps3-an547, zig, size)

                                       flash      change         RAM      change
nothing changed
total                                 10,000                   2,000
  without models                       2,000
stack, worst use                                                 700
"""


def changed() -> SizeReport:
    gone = {"wake", "portable/op_add", "person.forward arena 1"}
    return replace(
        SMALL,
        target=replace(SMALL.target, toolchain="gnu"),
        totals=SizeTotals(
            flash_bytes=9_310,
            model_bytes=7_000,
            ram_bytes=2_240,
            arena_bytes=840,
            state_bytes=200,
            data_bytes=176,
            stack_bytes=1_024,
        ),
        contributors=(
            *(c for c in SMALL.contributors if c.name not in gone),
            cost(Kind.KERNEL, "portable/op_add", 510, 0),
            cost(Kind.KERNEL, "portable/op_mul", 300, 0),
            cost(Kind.ARENA, "person.forward arena 1", 0, 840),
        ),
        stack=replace(STACK, stack_bytes=650),
    )


def test_size_table() -> None:
    assert size_table(SMALL) == TABLE


def test_diff_table() -> None:
    assert diff_table(SMALL, changed()) == DIFF


def test_diff_of_the_same() -> None:
    assert diff_table(SMALL, SMALL) == SAME


@pytest.mark.parametrize("name", CASES)
def test_names_are_never_cut(name: str) -> None:
    long = replace(
        report(name),
        profile="a-product-with-" + "a-very-" * 12 + "long-name",
        contributors=(
            *report(name).contributors,
            cost(Kind.KERNEL, "my/" + "op_" * 40, 12_345_678, 12_345_678),
        ),
        stack=replace(STACK, unknown=("my_ops::fancy" * 9,)),
    )
    text = size_table(long) + diff_table(report("m4-gnu"), long)
    kernel = "my/" + "op_" * 40
    assert f"\n  {kernel}   12,345,678 " in text
    assert text.startswith(long.profile)
    assert f"  not bounded: {'my_ops::fancy' * 9}\n" in text
    assert "…" not in text
    assert not [line for line in text.splitlines() if line != line.rstrip()]


def test_a_host_has_no_memories_and_no_reserve() -> None:
    text = size_table(report("host-gnu"))
    assert text.startswith("demo (host, scalar, gnu, size)\n")
    assert "memory                  kind" not in text
    assert "\n.got " in text
    assert "  RAM, from file\n" in text
    assert "  file\n" in text
    assert " reserved" not in text


@pytest.mark.parametrize("name", CASES)
def test_json_and_back(name: str) -> None:
    text = report_json(report(name))
    assert read_report(text) == report(name)
    assert report_json(read_report(text)) == text
    assert text.endswith("}\n")


def test_json_form() -> None:
    document = json.loads(report_json(SMALL))
    assert list(document) == [
        "schema",
        "profile",
        "target",
        "totals",
        "regions",
        "sections",
        "contributors",
        "symbols",
        "stack",
        "parts",
        "operators",
        "dtype_comparison",
        "missing",
        "methods",
        "prelink",
    ]
    assert document["schema"] == 1
    assert document["totals"]["flash_bytes_without_models"] == 2_000
    assert document["contributors"][3] == {
        "kind": "runtime",
        "name": "load_method",
        "flash_bytes": 900,
        "ram_bytes": 0,
    }
    assert document["symbols"][0]["aliases"] == ["execute"]


@pytest.mark.parametrize("name", CASES)
def test_json_holds_no_path_of_the_machine(name: str) -> None:
    text = report_json(report(name))
    assert "/usr" not in text
    assert "/tmp" not in text  # noqa: S108  # no file is made
    assert "/opt" not in text


REPORT = "a size report"
_KINDS = " or ".join((", ".join(f"'{kind}'" for kind in Kind)).rsplit(", ", 1))


@pytest.mark.parametrize(
    ("change", "found", "expected"),
    [
        ("", "no JSON", "Expecting value: line 1 column 1 (char 0)"),
        ("[]", "no schema version", REPORT),
        ({"schema": 2}, "schema version 2", "version 1"),
        ({"profile": 3}, "report.profile: Input should be a valid string", REPORT),
        ({"totals": 3}, "report.totals: Input should be an object", REPORT),
        ({"regions": {}}, "report.regions: Input should be a valid array", REPORT),
        (
            {"contributors": [{"kind": "magic"}]},
            f"report.contributors[0].kind: Input should be {_KINDS}",
            REPORT,
        ),
        (
            {"contributors": [{"kind": "api", "name": "api"}]},
            "report.contributors[0].flash_bytes: Field required",
            REPORT,
        ),
        (
            {"regions": [{"name": "x", "kind": "ram", "size_bytes": True}]},
            "report.regions[0].size_bytes: Input should be a valid integer",
            REPORT,
        ),
    ],
)
def test_reports_of_others(change: object, found: str, expected: str) -> None:
    text = change if isinstance(change, str) else ""
    if isinstance(change, dict):
        text = json.dumps({**json.loads(report_json(SMALL)), **change})
    with pytest.raises(UsageError) as error:
        read_report(text, file="old/report.json")
    assert error.value.diagnostics == (
        Diagnostic(
            code="bad-report",
            message="old/report.json is not a size report of this version",
            notes=(("found", found), ("expected", expected)),
            hint="build the product again with this version of Orchestrator",
        ),
    )


def test_json_deeper_than_any_report() -> None:
    with pytest.raises(UsageError):
        read_report("[" * 200_000)


def span(*key: str) -> SourceSpan:
    return SourceSpan(file="doorbell.toml", line={"flash": 7, "ram": 8}[key[1]])


def test_a_budget_that_is_kept() -> None:
    check_budget(SMALL, _budget(10_000, 2_000), span)
    check_budget(SMALL, BudgetTable(), span)


def test_a_budget_that_is_exceeded() -> None:
    with pytest.raises(MemoryPlanError) as error:
        check_budget(SMALL, _budget(9_216, 1_999), span)
    assert error.value.exit_code is ExitCode.MEMORY
    assert error.value.diagnostics == (
        Diagnostic(
            code="over-budget",
            message="the firmware needs 784 bytes more flash than its budget",
            where=SourceSpan(file="doorbell.toml", line=7),
            notes=(
                ("needed", "10,000 bytes (9.8 KiB)"),
                ("allowed", "9,216 bytes (9.0 KiB)"),
                ("over", "784 bytes"),
                ("largest", "model person: 7,000 bytes (70.0 %)"),
                ("largest", "model wake: 1,000 bytes (10.0 %)"),
                ("largest", "runtime load_method: 900 bytes (9.0 %)"),
                ("largest", "kernel portable/op_add: 500 bytes (5.0 %)"),
                ("largest", "runtime executor: 430 bytes (4.3 %)"),
            ),
            hint="choose smaller models, fewer operators or dtypes, or raise budget.flash",
        ),
        Diagnostic(
            code="over-budget",
            message="the firmware needs 1 byte more RAM than its budget",
            where=SourceSpan(file="doorbell.toml", line=8),
            notes=(
                ("needed", "2,000 bytes (2.0 KiB)"),
                ("allowed", "1,999 bytes (2.0 KiB)"),
                ("over", "1 byte"),
                ("largest", "stack: 1,024 bytes (51.2 %)"),
                ("largest", "arena person.forward arena 1: 600 bytes (30.0 %)"),
                ("largest", "method state person.forward: 200 bytes (10.0 %)"),
                ("largest", "platform cortex_m/semihosting: 160 bytes (8.0 %)"),
            ),
            hint="reserve less stack in a board file of your own, choose models with smaller"
            " activations, or raise budget.ram",
        ),
    )


@pytest.mark.parametrize("name", CASES)
def test_the_budget_is_exact(name: str) -> None:
    totals = report(name).totals
    flash, ram = totals.flash_bytes, totals.ram_bytes
    check_budget(report(name), _budget(flash, ram), span)
    with pytest.raises(MemoryPlanError) as error:
        check_budget(report(name), _budget(flash - 1, ram), span)
    assert len(error.value.diagnostics) == 1
    assert error.value.diagnostics[0].notes[2] == ("over", "1 byte")


def _check(report: SizeReport) -> None:
    check_budget(report, BudgetTable(), lambda *_: None)


def test_a_firmware_that_overflows_its_stack_is_refused() -> None:
    exact = replace(STACK, stack_bytes=1_024)
    _check(replace(SMALL, stack=exact))
    with pytest.raises(MemoryPlanError) as caught:
        _check(replace(SMALL, stack=replace(exact, stack_bytes=1_025)))
    assert caught.value.diagnostics == (
        Diagnostic(
            code="stack-too-small",
            message="the firmware can use more stack than the board reserves",
            notes=(
                ("needs", "1025 bytes"),
                ("reserved", "1024 bytes"),
                ("takes", "480 loader"),
                ("takes", "220 application and platform"),
            ),
            hint="choose kernels that need less, or a board that reserves more",
        ),
    )
    # On hosts there is none.
    _check(replace(SMALL, stack=None))


def test_methods_and_a_computed_stack_are_shown() -> None:
    method = SizeMethod(
        model="person",
        method="forward",
        arena_bytes=(600, 8),
        state_bytes=200,
        temporary_bytes=0,
        input_bytes=(16,),
        output_bytes=(8, 8),
        stack=MethodStack(load_bytes=480, run_bytes=300, entries=(), unknown=()),
    )
    shown = replace(
        SMALL,
        methods=(method, replace(method, method="reset", stack=None)),
        stack=replace(STACK, unknown=("fancy",)),
    )
    assert read_report(report_json(shown)) == shown
    text = size_table(shown)
    assert (
        """\
methods                  arena     state temporary   in, out      load       run
  person.forward           608       200         0        32       480       300
  person.reset             608       200         0        32

stack, worst use: 700 bytes of 1,024 reserved (68.4 %)
"""
        in text
    )
    assert "  not bounded: fancy\n" in text
    assert max(map(len, text.splitlines())) <= 80
