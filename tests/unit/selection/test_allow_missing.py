"""Gaps that a profile allows: reported everywhere, and never served by mistake."""

from __future__ import annotations

import json

import pytest

from orchestrator.catalog import Catalog, LibraryText, read_catalog
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import TensorMeta
from orchestrator.core.operator import OperatorName
from orchestrator.emit.generate import Product, generate
from orchestrator.errors import KernelError
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.op_info import CallPattern, Origin, SelectedOperator, Selection
from orchestrator.selection.oplist import selected_operators_yaml
from orchestrator.selection.resolution import Missing, Resolution
from orchestrator.selection.resolve import resolution_json, resolve
from tests.unit.products import catalog, memory_of, program_of, target_of

RELU = OperatorName("aten", "relu", "out")
F, H = ScalarType.Float, ScalarType.Half


def _call(dtype: ScalarType, order: tuple[int, ...]) -> CallPattern:
    meta = TensorMeta(dtype, order)
    return CallPattern(kinds="TTT", tensors=((0, meta), (1, meta), (2, meta)))


def _relu(*calls: CallPattern, **more: object) -> Selection:
    operator = SelectedOperator(
        name=RELU,
        patterns=tuple((c, (Origin("m", "forward", n),)) for n, c in enumerate(calls)),
        **more,  # type: ignore[arg-type]  # checked by tests
    )
    return Selection(operators=(operator,))


def _library(**keys: str) -> str:
    lines = "".join(f"  {key}: {value}\n" for key, value in keys.items())
    return (
        "- func: aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n"
        "  kernels: [{kernel_name: k::relu}]\n  sources: [op_relu.cpp]\n" + lines
    )


def _resolve(selection: Selection, text: str, *allowed: str) -> Resolution:
    return resolve(
        selection,
        read_catalog([LibraryText(name="k", file="k.yaml", text=text)]),
        every_dtype=False,
        span_of=lambda _: None,
        allow_missing=allowed,
    )


def test_a_call_that_nothing_serves_is_not_found_by_what_serves_others() -> None:
    """A kernel for one dim order must not be found by calls in another."""
    plain, last = _call(F, (0, 1)), _call(F, (1, 0))
    text = _library(dim_orders="contiguous")
    with pytest.raises(KernelError):
        _resolve(_relu(plain, last), text)
    found = _resolve(_relu(plain, last), text, "aten::relu.out")
    assert [entry.key for entry in found.table_entries] == [plain.key]
    assert found.missing == (
        Missing(
            name="aten::relu.out",
            reason="no kernel for aten::relu.out with dim order 1,0",
            origins=(Origin("m", "forward", 1),),
        ),
    )
    # Without the gap any call finds the kernel.
    whole = _resolve(_relu(plain), text, "aten::relu.out")
    assert [entry.key for entry in whole.table_entries] == [None]
    assert whole.missing == ()


def test_a_kernel_that_no_call_could_find_is_not_linked() -> None:
    selection = _relu(_call(H, (0, 1)), dtypes=(F,))
    found = _resolve(selection, _library(dtypes="[Float]"), "aten::relu.out")
    assert (found.operators, found.table_entries, found.sources) == ((), (), ())
    assert [m.reason for m in found.missing] == ["no kernel for aten::relu.out with dtype Half"]


def test_only_what_is_named_may_be_missing() -> None:
    selection = _relu(_call(H, (0, 1)))
    for other in ("aten::relu", "aten::relu_.out", "relu.out", "Half"):
        with pytest.raises(KernelError) as caught:
            _resolve(selection, _library(dtypes="[Float]"), other)
        assert caught.value.diagnostics[0].code == "no-kernel-for-dtype"


def test_a_backend_may_be_missing() -> None:
    infos = [extract(program_of("xnnpack_partial"), model="x")]
    selection = aggregate(infos, [])
    with pytest.raises(KernelError) as caught:
        resolve(selection, catalog(), every_dtype=False, span_of=lambda _: None)
    codes = [d.code for d in caught.value.diagnostics]
    assert codes.count("no-delegate") == 1
    allowed = ["XnnpackBackend"]
    found = resolve(
        selection, catalog(), every_dtype=False, span_of=lambda _: None, allow_missing=allowed
    )
    assert [m.name for m in found.missing] == allowed
    assert all(m.origins for m in found.missing)


def test_every_output_says_what_is_missing() -> None:
    programs = {"net": program_of("mul_add_broadcast")}
    selection = aggregate([extract(programs["net"], model="net")], [])
    target = target_of("host", "zig")
    ((name, kernels),) = catalog().libraries
    others = tuple(k for k in kernels if str(k.operator) != "aten::mul.out")
    found = resolve(
        selection,
        Catalog(libraries=((name, others),)),
        every_dtype=False,
        span_of=lambda _: None,
        allow_missing=["aten::mul.out"],
    )
    (missing,) = found.missing
    product = Product("test", "Head.", programs, memory_of(programs, target), resolution=found)
    files = generate(product, target, generator="Orchestrator", kernels=())
    texts = {file.path: file.text for file in files}
    assert str(missing) in texts["gen/include/test.h"]
    assert "#define TEST_MISSING 1\n" in texts["gen/include/test.h"]
    assert str(missing) in texts["gen/src/registered_kernels.cpp"]
    (entry,) = json.loads(resolution_json(found))["missing"]
    assert entry["name"] == "aten::mul.out"
    assert entry["origins"][0]["source"] == "net"
    text = selected_operators_yaml(selection, generator="x", notes=[str(missing)])
    assert text.startswith(f"# x\n# {missing}\n")
