"""Calls that kernels would refuse are refused by the build, each with its reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.errors import Diagnostic, KernelError
from orchestrator.program.reader import read_program
from orchestrator.program.values import Dynamism, IntValue, TensorValue
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.resolve import check_calls, resolve
from tests.cpp.support.native import linked_catalog

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.program.program import Program
    from orchestrator.program.values import Value

CORPUS = Path(__file__).parents[2] / "data" / "corpus"


def changed(case: str, change: Callable[[Value], Value]) -> Program:
    """A program of the corpus with other values."""
    data = (CORPUS / case / "model.pte").read_bytes()
    program = read_program(data, file="m.pte")
    methods = tuple(replace(m, values=tuple(map(change, m.values))) for m in program.methods)
    return replace(program, methods=methods)


def problems(program: Program, *, allow: tuple[str, ...] = ()) -> list[Diagnostic]:
    info = extract(program, model="m")
    catalog = linked_catalog()
    resolution = resolve(aggregate([info]), catalog, every_dtype=False, span_of=lambda _: None)
    try:
        check_calls(
            {"m": program}, [info], resolution, catalog, span_of=lambda _: None, allow_missing=allow
        )
    except KernelError as error:
        return list(error.diagnostics)
    return []


def entry_of(operator: str) -> str:
    kernels = [k for _, offered in linked_catalog().libraries for k in offered]
    return next(k.entry for k in kernels if str(k.operator) == operator)


def test_programs_as_they_are() -> None:
    for case in sorted(CORPUS.glob("*/model.pte")):
        program = read_program(case.read_bytes(), file=case.name)
        try:
            found = problems(program)
        except KernelError:
            continue  # operators that nothing serves
        assert found == [], case


def in_order(value: Value) -> Value:
    """Images as PyTorch has them."""
    if isinstance(value, TensorValue) and value.dim_order == (0, 2, 3, 1):
        return replace(value, dim_order=(0, 1, 2, 3))
    return value


def test_images_that_are_not_channels_last() -> None:
    found = problems(changed("kws_dscnn_int8_m4", in_order))
    first = next(d for d in found if "quantized_conv2d" in d.message)
    operator = "cortex_m::quantized_conv2d.out"
    *asked, place, required, by = first.notes
    assert asked[0] == ("needed by", 'model "m", method "forward", instructions 3, 5, 7, 9')
    assert place[0] == "found"
    assert place[1].startswith("input Char [1, ")
    assert required == ("required", "is_channels_last(input)")
    assert by == ("by", f"orch::cortex_m::quantized_conv2d_out, {entry_of(operator)}")
    assert first.code == "no-kernel-for-arguments"
    assert first.message == f"no kernel for {operator} with these arguments"
    assert first.hint == (
        "export the model and its example inputs in channels-last memory format:"
        " .to(memory_format=torch.channels_last)"
    )


def test_an_allowed_gap_is_none() -> None:
    program = changed("kws_dscnn_int8_m4", in_order)
    names = tuple({d.message.split()[3] for d in problems(program)})
    assert names
    assert problems(program, allow=names) == []


@pytest.mark.parametrize("dynamic", [False, True])
def test_sizes_that_cannot_fit(*, dynamic: bool) -> None:
    """Within the bounds of a dynamic tensor it might, and the kernel will see."""

    def change(value: Value) -> Value:
        if not isinstance(value, TensorValue) or value.is_constant:
            return value
        dynamism = Dynamism.BOUNDED if dynamic else Dynamism.STATIC
        sizes = (*value.sizes[:-1], value.sizes[-1] + 1) if value.sizes else ()
        return replace(value, sizes=sizes, dynamism=dynamism)

    found = problems(changed("mlp", change))
    assert bool(found) is not dynamic
    assert all(d.code == "no-kernel-for-arguments" for d in found)


def test_a_number_out_of_range() -> None:
    def change(value: Value) -> Value:
        return IntValue(-579) if value == IntValue(-128) else value

    found = problems(changed("kws_dscnn_int8_m4", change))
    required = {dict(d.notes)["required"] for d in found}
    assert any("-128 <= " in text for text in required)
    assert any("-579" in dict(d.notes)["found"] for d in found)
