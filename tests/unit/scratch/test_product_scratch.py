"""Scratch memory of the calls of a product."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.catalog.operator_page import cmsis_nn_sizes
from orchestrator.errors import Diagnostic, KernelError, SourceSpan
from orchestrator.program.reader import read_program
from orchestrator.scratch import ScratchNeed, product_scratch
from orchestrator.scratch.table import scratch_json, scratch_text
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.resolution import Resolution
from orchestrator.selection.resolve import resolve
from tests.conftest import CASES, CORPUS
from tests.unit.cortex_m_schemas import SCHEMAS

if TYPE_CHECKING:
    from orchestrator.program.program import Program

ISAS = {"m0plus": "scalar", "m3": "scalar", "m4": "dsp", "m55": "mve"}
INT8 = [case for case in CASES if "_int8_" in case]
PLAIN = [case for case in INT8 if not case.endswith("m0plus")]  # whose own is plain
OWN = {
    "quantized_conv2d": "{scratch: weight.numel}",
    "quantized_depthwise_conv2d": "{scratch: 0}",
    "quantized_avg_pool2d": "{scratch: \"4 if isa == 'dsp' else 0\"}",
    "quantized_transpose_conv2d": "{scratch: 8, output_scratch: 0}",
    "quantized_batch_matmul": "{scratch: 12}",
}


def case_json(case: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((CORPUS / case / "case.json").read_text())
    return document


def resolved(program: Program, *, own: dict[str, str] = OWN) -> Resolution:
    """Kernels of ours for all operators with scratch; the others are missing."""
    entries = [
        f"- func: {schema}\n  kernels: [{{kernel_name: k::{base}}}]\n"
        + (f"  scratch: {own[base]}\n" if base in own else "")
        for base, schema in SCHEMAS.items()
    ]
    library = LibraryText(name="ours", file="ours.yaml", text="".join(entries))
    info = extract(program, model="kws")
    return resolve(
        aggregate([info]),
        read_catalog([library]),
        every_dtype=False,
        span_of=lambda _: None,
        allow_missing=[str(o) for _, o in info.operators if o.base not in SCHEMAS],
    )


def needs_of(program: Program, isa: str) -> tuple[ScratchNeed, ...]:
    return product_scratch({"kws": program}, resolved(program), isa)["kws"]


def cmsis_nn_needs(program: Program, isa: str) -> tuple[ScratchNeed, ...]:
    return product_scratch(
        {"kws": program}, resolved(program), isa, sizes=lambda kernel: cmsis_nn_sizes(kernel.schema)
    )["kws"]


def read(path: str) -> Program:
    return read_program((CORPUS.parent / path).read_bytes(), file=path)


@pytest.mark.parametrize("case", INT8)
def test_cmsis_nn_s_sizes_are_what_the_exporter_reserved(case: str) -> None:
    isa = ISAS[case.rpartition("_")[2]]
    calls = cmsis_nn_needs(read(f"corpus/{case}/model.pte"), isa)
    methods = case_json(case)["program"]["methods"]
    expected = [
        (name, s["instruction"], f"{s['operator']}.out", s["value"], s["bytes"])
        for name, method in methods.items()
        for s in method.get("scratch", [])
    ]
    assert [
        (c.method, c.instruction, c.operator, c.value, c.reserved_bytes) for c in calls
    ] == expected
    assert [c.needed_bytes for c in calls] == [c.reserved_bytes for c in calls]


@pytest.mark.parametrize("case", PLAIN)
def test_plain_c_programs_reserve_what_plain_c_needs(case: str) -> None:
    calls = cmsis_nn_needs(read(f"corpus/{case}/plain_c.pte"), "scalar")
    assert [c.needed_bytes for c in calls] == [c.reserved_bytes for c in calls]


@pytest.mark.parametrize("core", ["m0plus", "m4", "m55"])
def test_transposed_convolutions_and_matrix_products(core: str) -> None:
    calls = cmsis_nn_needs(read(f"scratch/cortex-{core}.pte"), ISAS[core])
    sizes = [(c.operator.partition("::")[2], c.argument, c.needed_bytes) for c in calls]
    assert [c.reserved_bytes for c in calls] == [size for _, _, size in sizes]
    assert {base.removesuffix(".out") for base, _, _ in sizes} == set(OWN)
    assert {a for _, a, _ in sizes} == {"scratch", "output_scratch"}


def test_what_kernels_need_on_an_isa() -> None:
    program = read("corpus/kws_dscnn_int8_m4/model.pte")
    pool = [c for c in needs_of(program, "dsp") if "avg_pool" in c.operator]
    assert pool == [
        ScratchNeed(
            method="forward",
            instruction=11,
            operator="cortex_m::quantized_avg_pool2d.out",
            argument="scratch",
            value=pool[0].value,
            library="ours",
            reserved_bytes=256,
            needed_bytes=4,
            is_private=True,
        )
    ]
    (plain,) = [c for c in needs_of(program, "scalar") if "avg_pool" in c.operator]
    assert plain.needed_bytes == 0


def test_calls_without_a_kernel_are_left_out() -> None:
    program = read("corpus/kws_dscnn_int8_m4/model.pte")
    empty = Resolution(operators=())
    assert product_scratch({"kws": program}, empty, "dsp") == {"kws": ()}


def test_operators_without_scratch_are_left_out() -> None:
    program = read("corpus/add_mul/model.pte")
    text = (
        "- func: aten::add.out(Tensor self, Tensor other, *, Scalar alpha=1,"
        " Tensor(a!) out) -> Tensor(a!)\n  kernels: [{kernel_name: k::f}]\n"
    )
    info = extract(program, model="m")
    resolution = resolve(
        aggregate([info]),
        read_catalog([LibraryText(name="ours", file="ours.yaml", text=text)]),
        every_dtype=False,
        span_of=lambda _: None,
        allow_missing=[str(o) for _, o in info.operators],
    )
    assert resolution.operators
    assert product_scratch({"m": program}, resolution, "dsp") == {"m": ()}


def test_every_call_without_a_size_is_named() -> None:
    program = read("corpus/kws_dscnn_int8_m4/model.pte")
    own = OWN | {"quantized_conv2d": "{scratch: 'stride[0] - 3'}"}
    with pytest.raises(KernelError) as caught:
        product_scratch({"kws": program}, resolved(program, own=own), "dsp")
    problems = caught.value.diagnostics
    assert len(problems) == 4
    assert problems[0] == Diagnostic(
        code="no-scratch-size",
        message="`scratch` of scratch has no size for a call: it gives -2 bytes",
        where=SourceSpan(file="ours.yaml", line=1),
        notes=(
            ("call", "method forward, instruction 3, cortex_m::quantized_conv2d.out"),
            ("found", "stride[0] - 3"),
        ),
        hint="correct the expression, or export the model again",
    )


def need(instruction: int, **how: Any) -> ScratchNeed:
    fields: dict[str, Any] = {
        "method": "forward",
        "instruction": instruction,
        "operator": "my::pool.out",
        "argument": "scratch",
        "value": 7,
        "library": "mine",
        "reserved_bytes": 1024,
        "needed_bytes": 0,
        "is_private": True,
    }
    return ScratchNeed(**{**fields, **how})


def test_a_table_per_method() -> None:
    needs = (
        need(3),
        need(12, needed_bytes=2048, argument="row_scratch"),
        need(1, method="encode", library="portable"),
    )
    cmsis_nn = {"kws": (need(3, needed_bytes=1024),), "other": (need(12),)}
    assert scratch_text({"kws": needs}, cmsis_nn) == (
        "kws, method forward\n"
        "      operator      argument     program  CMSIS-NN  needed  library\n"
        "   3  my::pool.out  scratch        1,024     1,024       0  mine\n"
        "  12  my::pool.out  row_scratch    1,024         -   2,048  mine"
        "  (the program has too little)\n"
        "\n"
        "kws, method encode\n"
        "      operator      argument     program  CMSIS-NN  needed  library\n"
        "   1  my::pool.out  scratch        1,024         -       0  portable"
    )
    assert scratch_text({"kws": ()}, {}) == ""


def test_needs_as_json() -> None:
    assert scratch_json({"kws": (need(3),)}, {}) == [
        {
            "model": "kws",
            "method": "forward",
            "instruction": 3,
            "operator": "my::pool.out",
            "argument": "scratch",
            "value": 7,
            "library": "mine",
            "reserved_bytes": 1024,
            "cmsis_nn_bytes": None,
            "needed_bytes": 0,
        }
    ]
