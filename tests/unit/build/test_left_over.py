"""Warnings about what a lowering leaves to kernels for floats."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from orchestrator.build.left_over import SPEEDS, left_over
from orchestrator.core.operator import parse_schema
from orchestrator.export.request import Request
from orchestrator.profile.lowering import Activations, Quantize, Weights
from orchestrator.program.reader import read_program
from tests.conftest import CORPUS
from tests.speeds.cores import PAGE, read_page

if TYPE_CHECKING:
    from orchestrator.core.operator import OpSchema

_INT8 = Quantize(activations=Activations.INT8, weights=Weights.PER_CHANNEL, dynamic=False)
_CONVOLUTION = (
    "aten::convolution.out(Tensor input, Tensor weight, Tensor? bias, SymInt[] stride,"
    " SymInt[] padding, SymInt[] dilation, bool transposed, SymInt[] output_padding,"
    " SymInt groups, *, Tensor(a!) out) -> Tensor(a!)"
)
_ADDMM = (
    "aten::addmm.out(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1,"
    " Scalar alpha=1, Tensor(a!) out) -> Tensor(a!)"
)
_SCHEMAS = {str(s.name): s for s in map(parse_schema, (_CONVOLUTION, _ADDMM))}


def _left(
    case: str,
    lowering: str = "cortex-m",
    *,
    isa: str = "dsp",
    quantize: Quantize | None = None,
    schemas: dict[str, OpSchema] = _SCHEMAS,
) -> list[tuple[str, str]]:
    program = read_program((CORPUS / case / "model.pte").read_bytes(), file="m.pte")
    request = Request(
        file="net.py",
        function="build",
        folder=".",
        lowering=lowering,
        cpu="cortex-m4",
        isa=isa,
        quantize=quantize,
    )
    return left_over(program, request, schemas)


def _rows(text: str) -> dict[str, list[str]]:
    _, _, *rows = text.splitlines()
    return {name: cells for name, *cells in map(str.split, rows)}


def test_products_and_items_have_costs() -> None:
    ((code, text),) = _left("pt2e_qdq_convnet")
    assert code == "left-in-float"
    assert text.splitlines()[0].endswith(
        "; see docs/export.md#what-stays-in-float; --deny-float makes this an error"
    )
    rows = _rows(text)
    speeds = json.loads(SPEEDS.read_text())
    # 6 filters of 2x3x3 for 8x8 places, and 384 products for each of 10 outputs.
    assert rows["aten::convolution.out"] == [
        *("1", "1x6x8x8", "1,536"),
        f"{round(6 * 18 * 64 * speeds['aten::convolution.out'][1]):,}",
    ]
    assert rows["aten::addmm.out"][:3] == ["1", "1x10", "40"]
    assert rows["aten::addmm.out"][3] == f"{round(3840 * speeds['aten::addmm.out'][1]):,}"
    costs = [int(cells[-1].replace(",", "")) for cells in rows.values()]
    assert costs == sorted(costs, reverse=True)
    bytes_of_all = sum(int(cells[2].replace(",", "")) for cells in rows.values())
    assert f": {bytes_of_all:,} bytes of results, about " in text


def test_a_core_with_vectors_has_its_own_costs() -> None:
    ((_, scalar),), ((_, vector),) = (
        _left("cortex_m_mixed_int8_m55", isa=isa) for isa in ("dsp", "mve")
    )
    assert scalar.splitlines()[0].partition(";")[0].endswith("on an M4")
    assert vector.splitlines()[0].partition(";")[0].endswith("on an M55")
    assert scalar != vector


def test_an_unknown_cost_makes_the_sum_a_least_one() -> None:
    ((_, text),) = _left("pt2e_qdq_convnet", schemas={})
    assert _rows(text)["aten::convolution.out"][-1] == "-"
    assert ", at least " in text


def test_the_ends_of_int8_programs_are_no_floats() -> None:
    assert _left("kws_dscnn_int8_m55", quantize=_INT8) == []
    assert _left("vww_mobilenetv1_int8_m4", quantize=_INT8) == []


def test_of_float_programs_only_what_backends_are_chosen_for() -> None:
    ((code, text),) = _left("small_cnn")
    assert code == "left-over"
    assert "aten::convolution.out" in text
    assert "relu" not in text
    assert _left("add_mul") == []


def test_programs_of_delegates() -> None:
    assert _left("small_cnn", "xnnpack") == [
        ("left-over", "no part of the model was lowered for xnnpack")
    ]
    assert _left("xnnpack_partial", "xnnpack") == []
    ((code, text),) = _left("xnnpack_partial", "xnnpack", quantize=_INT8)
    assert code == "left-in-float"
    assert _rows(text).keys() == {"aten::cumsum.out", "aten::topk.values"}
    assert _left("small_cnn", "portable") == []


def test_the_costs_are_those_of_the_page() -> None:
    speeds = json.loads(SPEEDS.read_text())
    page, _ = read_page(PAGE.read_text(encoding="utf-8"))
    assert {name: tuple(costs) for name, (_, *costs) in speeds.items()} == page
