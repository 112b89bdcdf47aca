"""Bytes grouped by operator, kernel, model and section; what selecting dtypes does."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.measure import (
    By,
    compare_dtypes,
    diff_document,
    diff_table,
    dtype_notice,
    group_document,
    group_table,
    read_report,
    report_json,
    size_table,
)
from orchestrator.measure.groups import group_sizes
from orchestrator.measure.size import (
    DtypeComparison,
    LargerKernel,
    SizeOperator,
    SizePart,
    SizeReport,
)
from tests.unit.measure.measure_cases import CASES, SMALL, Kind, case, report

ADD, MUL, TANH = "aten::add.out", "aten::mul.out", "aten::tanh.out"
EVERY_WAY = pytest.mark.parametrize("by", By)


def operator(name: str, *models: str, keys: tuple[str, ...] = ()) -> SizeOperator:
    return SizeOperator(name=name, functions=(), models=models, keys=keys)


def part(  # the columns of a table
    kind: Kind, name: str, flash: int, ram: int, section: str, *operators: str
) -> SizePart:
    return SizePart(
        section=section,
        kind=kind,
        contributor=name,
        operators=operators,
        flash_bytes=flash,
        ram_bytes=ram,
    )


def report_of(parts: tuple[SizePart, ...], operators: tuple[SizeOperator, ...]) -> SizeReport:
    return replace(
        SMALL,
        parts=parts,
        operators=operators,
        totals=replace(
            SMALL.totals,
            flash_bytes=sum(p.flash_bytes for p in parts),
            ram_bytes=sum(p.ram_bytes for p in parts),
            model_bytes=sum(p.flash_bytes for p in parts if p.kind is Kind.MODEL),
        ),
    )


DETAILED = report_of(
    (
        part(Kind.KERNEL, "portable/op_add", 100, 0, ".text", ADD),
        part(Kind.KERNEL, "portable/op_add", 30, 0, ".text", ADD, MUL),
        part(Kind.KERNEL, "portable/op_mul", 50, 0, ".text", MUL),
        part(Kind.KERNEL, "portable/op_tanh", 70, 0, ".text", TANH),
        part(Kind.KERNEL, "op_own", 5, 0, ".text"),
        part(Kind.RUNTIME, "math", 20, 0, ".text", TANH),
        part(Kind.RUNTIME, "math", 8, 0, ".text", ADD, TANH),
        part(Kind.RUNTIME, "executor", 40, 0, ".text"),
        part(Kind.PADDING, "alignment", 3, 0, ".text"),
        part(Kind.MODEL, "person", 1_000, 0, ".rodata"),
        part(Kind.MODEL, "wake", 200, 0, ".rodata"),
        part(Kind.ARENA, "person.forward arena 1", 0, 600, ".data"),
        part(Kind.METHOD_STATE, "person.forward", 0, 60, ".data"),
        part(Kind.METHOD_STATE, "wake.forward", 4, 6, ".data"),
        part(Kind.PADDING, "alignment", 2, 1, ""),
    ),
    (
        operator(ADD, "person", "wake"),
        operator(MUL, "wake"),
        operator(TANH, keys=("operators.include",)),
        operator("aten::view.out", "wake"),
    ),
)


def rows(found: SizeReport, by: By) -> dict[str, dict[str, tuple[int, int]]]:
    return {
        group.title: {r.name: (r.flash_bytes, r.ram_bytes) for r in group.rows}
        for group in group_sizes(found, by)
    }


def test_by_operator() -> None:
    assert rows(DETAILED, By.OP) == {
        "operators, what only they need": {
            ADD: (100, 0),
            TANH: (90, 0),
            MUL: (50, 0),
            "aten::view.out": (0, 0),
        },
        "shared by operators": {f"{ADD}, {MUL}": (30, 0), f"{ADD}, {TANH}": (8, 0)},
        "rest of the firmware": {
            "models": (1_200, 0),
            "arenas": (0, 600),
            "method states": (4, 66),
            "runtime": (40, 0),
            "padding": (5, 1),
            "kernels, operator unknown": (5, 0),
        },
    }


def test_by_kernel() -> None:
    found = rows(DETAILED, By.KERNEL)
    assert found["kernels of portable"] == {
        "op_add": (130, 0),
        "op_tanh": (70, 0),
        "op_mul": (50, 0),
    }
    assert found["kernels of several libraries"] == {"op_own": (5, 0)}
    assert found["rest of the firmware"]["runtime"] == (68, 0)
    assert list(found)[-1] == "rest of the firmware"


def test_by_model() -> None:
    assert rows(DETAILED, By.MODEL) == {
        "model person": {"program": (1_000, 0), "arenas": (0, 600), "method states": (0, 60)},
        "model wake": {"program": (200, 0), "code only it needs": (50, 0), "method states": (4, 6)},
        "kernels shared by models": {
            "person, wake": (130, 0),
            "person, wake, the profile's lists": (8, 0),
        },
        "only in the profile's lists": {TANH: (90, 0)},
        "rest of the firmware": {
            "runtime": (40, 0),
            "padding": (5, 1),
            "kernels, operator unknown": (5, 0),
        },
    }


def test_a_common_arena_is_no_models() -> None:
    name = "common arena of all methods"
    parts = (*DETAILED.parts, part(Kind.ARENA, name, 0, 64, ".arenas"))
    found = rows(report_of(parts, DETAILED.operators), By.MODEL)
    assert found.pop("arenas shared by models") == {name: (0, 64)}
    assert found == rows(DETAILED, By.MODEL)


def test_by_section() -> None:
    found = rows(DETAILED, By.SECTION)
    # Those of the report by address, others, and what is in none.
    assert list(found) == [".text", ".data", ".rodata", "between sections"]
    assert found[".text"]["kernels: portable/op_add"] == (130, 0)
    assert found[".data"] == {
        "arenas: person.forward arena 1": (0, 600),
        "method states: person.forward": (0, 60),
        "method states: wake.forward": (4, 6),
    }
    assert found["between sections"] == {"padding": (2, 1)}


def check_totals(found: SizeReport, by: By) -> None:
    groups = group_sizes(found, by)
    assert sum(g.flash_bytes for g in groups) == found.totals.flash_bytes
    assert sum(g.ram_bytes for g in groups) == found.totals.ram_bytes
    for group in groups:
        names = [row.name for row in group.rows]
        assert len(names) == len(set(names))
        costs = [row.flash_bytes + row.ram_bytes for row in group.rows]
        assert costs == sorted(costs, reverse=True)
    titles = [group.title for group in groups]
    assert len(titles) == len(set(titles))


@EVERY_WAY
@pytest.mark.parametrize("name", CASES)
def test_rows_add_up_to_real_firmware(name: str, by: By) -> None:
    check_totals(report(name), by)
    # A report of an earlier version has contributors only.
    check_totals(replace(report(name), parts=()), by)


@pytest.mark.parametrize("name", CASES)
def test_sections_are_those_of_the_elf(name: str) -> None:
    found = rows(report(name), By.SECTION)
    sizes = {s.name: s for s in report(name).sections}
    assert set(found) - {"between sections"} <= set(sizes)
    for section, contributors in found.items():
        if section in sizes:
            flash = sum(f for f, _ in contributors.values())
            ram = sum(r for _, r in contributors.values())
            size = sizes[section]
            assert flash == size.size_bytes * size.in_flash
            assert ram == size.size_bytes * size.in_ram


_NAMES = st.sampled_from([ADD, MUL, TANH])
_PARTS = st.builds(
    lambda kind, name, flash, ram, section, operators: part(
        kind, name, flash, ram, section, *sorted(operators)
    ),
    st.sampled_from(list(Kind)),
    st.sampled_from(["a", "b", "lib/a", "lib/b", "m.forward", "m"]),
    st.integers(0, 999),
    st.integers(0, 999),
    st.sampled_from(["", ".text", ".data", ".other"]),
    st.sets(_NAMES),
)


@EVERY_WAY
@given(
    parts=st.lists(
        _PARTS, min_size=1, unique_by=lambda p: (p.section, p.kind, p.contributor, p.operators)
    ),
    models=st.lists(st.sampled_from(["m", "n"]), unique=True),
)
def test_rows_add_up_whatever_the_parts_are(
    by: By, parts: list[SizePart], models: list[str]
) -> None:
    # One operator is not listed: who asks for it is not known.
    operators = (operator(ADD, *models), operator(MUL, "m", keys=("operators.all",)))
    check_totals(report_of(tuple(parts), operators), by)


@EVERY_WAY
def test_changes_add_up_to_that_of_the_totals(by: By) -> None:
    document = json.loads(json.dumps(diff_document(report("m4-gnu"), DETAILED, by)))
    for what in ("flash_bytes", "ram_bytes"):
        before, after = document[what]
        changes = [r[what] for g in document["groups"] for r in g["rows"]]
        assert sum(b - a for a, b in changes) == after - before
        assert all(row["name"] for g in document["groups"] for row in g["rows"])
    assert document["profiles"] == ["demo", "doorbell"]


@EVERY_WAY
def test_tables_show_whole_names_and_both_totals(by: By) -> None:
    text = group_table(DETAILED, by) + diff_table(report("m4-zig"), DETAILED, by)
    groups = group_document(DETAILED, by)["groups"]
    assert isinstance(groups, list)
    names = [row["name"] for group in groups for row in group["rows"]]
    assert [name for name in names if name not in text] == []
    assert not [line for line in text.splitlines() if line != line.rstrip()]
    assert text.count("\ntotal ") == 2
    assert "nothing changed" in diff_table(DETAILED, DETAILED, by)


def test_documents_hold_the_rows() -> None:
    document = group_document(DETAILED, By.OP)
    assert document["by"] == "op"
    assert document["flash_bytes"] == DETAILED.totals.flash_bytes
    groups = document["groups"]
    assert isinstance(groups, list)
    assert groups[1] == {
        "title": "shared by operators",
        "flash_bytes": 38,
        "ram_bytes": 0,
        "rows": [
            {"name": f"{ADD}, {MUL}", "flash_bytes": 30, "ram_bytes": 0},
            {"name": f"{ADD}, {TANH}", "flash_bytes": 8, "ram_bytes": 0},
        ],
    }


def test_a_change_in_words() -> None:
    text = diff_table(SMALL, SMALL, what="what if --dtypes all")
    assert text.splitlines()[2:4] == ["      what if --dtypes all", ""]


def test_a_report_of_an_earlier_version_is_read() -> None:
    document = json.loads(report_json(SMALL))
    for key in ("parts", "operators", "dtype_comparison"):
        del document[key]
    assert read_report(json.dumps(document)) == SMALL


# Dtypes


def with_code(flash: int, ram: int, **operators: tuple[int, int]) -> SizeReport:
    """A product of these totals; per operator, its own bytes and what all share."""
    parts = [
        part(Kind.KERNEL, "portable/k", own, 0, ".text", f"aten::{n}.out")
        for n, (own, _) in operators.items()
    ]
    names = sorted(f"aten::{n}.out" for n in operators)
    shared = max(both for _, both in operators.values())
    parts.append(part(Kind.KERNEL, "portable/k", shared, 0, ".text", *names))
    found = report_of(tuple(parts), tuple(operator(n, "m") for n in names))
    totals = replace(found.totals, flash_bytes=flash, ram_bytes=ram)
    return replace(found, totals=totals)


def test_operators_that_the_selection_makes_larger() -> None:
    selected = with_code(900, 10, add=(100, 20), mul=(80, 20), tanh=(50, 20))
    every = with_code(1_000, 10, add=(90, 20), mul=(300, 20), tanh=(20, 20))
    found = compare_dtypes(selected, every)
    assert found == DtypeComparison(
        selected_flash_bytes=900,
        every_flash_bytes=1_000,
        selected_ram_bytes=10,
        every_ram_bytes=10,
        larger=(
            LargerKernel(operator=TANH, selected_bytes=70, every_bytes=40),
            LargerKernel(operator=ADD, selected_bytes=120, every_bytes=110),
        ),
    )
    noted = replace(SMALL, dtype_comparison=found)
    notice = (
        "larger with the selected dtypes than with every dtype, in bytes:\n"
        "  aten::tanh.out: 70 instead of 40\n"
        "  aten::add.out: 120 instead of 110\n"
        "to have every dtype of an operator, add it to operators.include\n"
        'to have every dtype of all, write select = "all" in [dtypes]\n'
    )
    assert dtype_notice(noted) == notice
    assert size_table(noted) == f"{size_table(SMALL)}\n{notice}"
    assert read_report(report_json(noted)) == noted


def test_code_that_only_moved_between_operators_is_not_larger() -> None:
    """What is shared counts for each, wherever the linker put it."""
    selected = with_code(100, 0, add=(100, 0), mul=(100, 0))
    every = with_code(100, 0, add=(0, 100), mul=(0, 100))
    found = compare_dtypes(selected, every)
    assert found.larger == ()
    assert dtype_notice(replace(SMALL, dtype_comparison=found)) == ""


def test_a_product_that_the_selection_makes_larger() -> None:
    selected = with_code(1_010, 12, add=(90, 0), gone=(10, 0))
    every = with_code(1_000, 10, add=(90, 0))
    found = compare_dtypes(selected, every)
    assert dtype_notice(replace(SMALL, dtype_comparison=found)) == (
        "larger with the selected dtypes than with every dtype, in bytes:\n"
        "  the firmware's flash: 1,010 instead of 1,000\n"
        "  the firmware's RAM: 12 instead of 10\n"
        'to have every dtype of all, write select = "all" in [dtypes]\n'
    )


def test_no_comparison_no_notice() -> None:
    assert dtype_notice(SMALL) == ""
    assert case("m4-gnu").measure().dtype_comparison is None
