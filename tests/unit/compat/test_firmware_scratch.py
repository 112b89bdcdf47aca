"""Scratch memory of programs that come later."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.compat.check import check_compat, kernel_rules
from orchestrator.compat.firmware import Firmware, FirmwareMethod, KernelRule
from orchestrator.core.operator import parse_schema
from orchestrator.program.program import KernelCall, Method
from orchestrator.program.reader import read_program
from orchestrator.program.values import NoneValue, TensorValue
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.resolve import resolve
from orchestrator.shell import sources
from tests.conftest import model_bytes

if TYPE_CHECKING:
    from orchestrator.errors import Diagnostic

CONV = "cortex_m::quantized_conv2d.out"
PROGRAM = read_program(model_bytes("kws_dscnn_int8_m4"), file="new.pte")
METHOD = PROGRAM.method("forward")
LIBRARY = sources.library_file("cortex_m").read_text(encoding="utf-8")
SCHEMA = next(
    line.removeprefix("- func: ")
    for line in LIBRARY.splitlines()
    if line.startswith(f"- func: {CONV}(")
)


def problems(expression: str, method: Method = METHOD) -> list[Diagnostic]:
    """What a firmware without anything but this scratch size says of a program."""
    rule = KernelRule(schema=parse_schema(SCHEMA), scratch=(("scratch", expression),))
    place = FirmwareMethod(
        model="m", method="forward", state_bytes=0, arena_bytes=(), inputs=(), outputs=()
    )
    firmware = Firmware(pointer_bytes=4, kernels=(), methods=(place,), isa="mve", rules=(rule,))
    program = replace(PROGRAM, methods=(method,))
    info = extract(PROGRAM, model="m")
    found = check_compat(firmware, program, info, {"forward": 0}, model="m", file="new.pte")
    return [problem for problem in found if problem.code == "update-scratch"]


def test_enough_is_enough() -> None:
    assert problems("16 if isa == 'scalar' else 0") == []


def test_too_little_is_reported() -> None:
    first, *_ = problems("16 if isa == 'mve' else 0")
    assert first.message == (
        "new.pte, method forward: instruction 3, cortex_m::quantized_conv2d.out, has"
        " too little scratch memory in scratch"
    )
    assert first.notes == (("needs", "16 bytes with mve"), ("found", "0 bytes in the program"))


def test_a_size_without_a_result_is_reported() -> None:
    first, *_ = problems("input.sizes[7]")
    assert first.notes == (("found", "input.sizes has 4 items, no item 7"),)


def scratch_values() -> set[int]:
    return {
        i.args[12]
        for i in METHOD.instructions
        if isinstance(i, KernelCall)
        and str(METHOD.operators[i.operator]) == CONV
        and isinstance(METHOD.values[i.args[12]], TensorValue)
    }


def test_no_scratch_tensor_needs_nothing() -> None:
    values = tuple(
        NoneValue() if index in scratch_values() else value
        for index, value in enumerate(METHOD.values)
    )
    assert problems("16", replace(METHOD, values=values)) == []


def test_calls_with_too_few_arguments_have_no_scratch() -> None:
    cut = tuple(
        replace(i, args=i.args[:3]) if isinstance(i, KernelCall) else i for i in METHOD.instructions
    )
    assert problems("16", replace(METHOD, instructions=cut)) == []


@pytest.mark.parametrize(("size", "count"), [("0", 0), ("4 * input.sizes[1]", 1)])
def test_rules_have_sizes_that_are_not_always_0(size: str, count: int) -> None:
    head, conv, rest = LIBRARY.partition(SCHEMA)
    text = head + conv + rest.replace("{scratch: 0}", f'{{scratch: "{size}"}}', 1)
    library = LibraryText(name="cortex_m", file="functions.yaml", text=text)
    resolution = resolve(
        aggregate([extract(PROGRAM, model="m")]),
        read_catalog([library]),
        every_dtype=False,
        span_of=lambda _: None,
    )
    sizes = [rule.scratch for rule in kernel_rules(resolution) if rule.scratch]
    assert sizes == [(("scratch", size),)] * count
