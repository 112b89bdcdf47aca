"""Scratch memory of programs that come later."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.compat.firmware import Firmware, ScratchRule
from orchestrator.compat.firmware_scratch import scratch_problems, scratch_rules
from orchestrator.core.operator import OperatorName
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import NoneValue, TensorValue
from orchestrator.selection.aggregate import aggregate
from orchestrator.selection.extract import extract
from orchestrator.selection.resolve import resolve
from orchestrator.shell import sources
from tests.conftest import model_bytes

CONV = "cortex_m::quantized_conv2d.out"
METHOD = read_program(model_bytes("kws_dscnn_int8_m4"), file="new.pte").method(
    "forward"
)
LIBRARY = sources.library_file("cortex_m").read_text(encoding="utf-8")
SCHEMA = next(
    line.removeprefix("- func: ")
    for line in LIBRARY.splitlines()
    if line.startswith(f"- func: {CONV}(")
)


def firmware(expression: str) -> Firmware:
    return Firmware(
        pointer_bytes=4,
        kernels=(),
        methods=(),
        scratch=(
            ScratchRule(
                operator=OperatorName.parse(CONV),
                argument="scratch",
                isa="mve",
                expression=expression,
                schema=SCHEMA,
            ),
        ),
    )


def test_enough_is_enough() -> None:
    place = firmware("16 if isa == 'scalar' else 0")
    assert [*scratch_problems(place, METHOD, name="new.pte")] == []


def test_too_little_is_told() -> None:
    first, *_ = scratch_problems(
        firmware("16 if isa == 'mve' else 0"), METHOD, name="new.pte, method forward"
    )
    assert first.code == "update-scratch"
    assert first.message == (
        "new.pte, method forward: instruction 3, cortex_m::quantized_conv2d.out, has"
        " too little scratch memory in scratch"
    )
    assert first.notes == (
        ("needs", "16 bytes with mve"),
        ("found", "0 bytes in the program"),
    )


def test_a_size_without_a_result_is_told() -> None:
    first, *_ = scratch_problems(firmware("input.sizes[7]"), METHOD, name="new.pte")
    assert first.code == "update-scratch"


def test_no_scratch_tensor_needs_nothing() -> None:
    calls = [i for i in METHOD.instructions if isinstance(i, KernelCall)]
    scratch = {
        c.args[12]
        for c in calls
        if str(METHOD.operators[c.operator]) == CONV
        and isinstance(METHOD.values[c.args[12]], TensorValue)
    }
    values = tuple(
        NoneValue() if index in scratch else value
        for index, value in enumerate(METHOD.values)
    )
    method = replace(METHOD, values=values)
    assert [*scratch_problems(firmware("16"), method, name="new.pte")] == []


@pytest.mark.parametrize(("size", "count"), [("0", 0), ("4 * input.sizes[1]", 1)])
def test_rules_are_those_of_kernels_that_need_some(size: str, count: int) -> None:
    program = read_program(model_bytes("kws_dscnn_int8_m4"), file="new.pte")
    head, conv, rest = LIBRARY.partition(SCHEMA)
    text = head + conv + rest.replace("{scratch: 0}", f'{{scratch: "{size}"}}', 1)
    library = LibraryText(name="cortex_m", file="functions.yaml", text=text)
    resolution = resolve(
        aggregate([extract(program, model="m")]),
        read_catalog([library]),
        every_dtype=False,
        span_of=lambda _: None,
    )
    rules = scratch_rules(resolution, "dsp")
    assert len(rules) == count
    assert all((r.isa, r.expression) == ("dsp", size) for r in rules)
