"""Resolver: dtypes requested by name, of operators that convert."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.catalog import Catalog, LibraryText, read_catalog
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey
from orchestrator.core.operator import OperatorName
from orchestrator.errors import KernelError
from orchestrator.selection.op_info import Origin, SelectedOperator, Selection
from orchestrator.selection.resolve import resolve

if TYPE_CHECKING:
    from orchestrator.selection.resolution import Binding

BYTE, CHAR, LONG = ScalarType.Byte, ScalarType.Char, ScalarType.Long
FLOAT, HALF = ScalarType.Float, ScalarType.Half

CONVERT = """
- func: q::convert.out(Tensor input, Tensor scales, *, Tensor(a!) out) -> Tensor(a!)
  kernels:
    - arg_meta: null
      kernel_name: k::{library}_out
  sources: [op_convert.cpp]
  dtypes:
    input: [Half, Float]
    scales: [Double]
    out: {out}
  dtype_arguments: {deciding}
"""


def _catalog(*libraries: str, deciding: str = "[input, out]") -> Catalog:
    """Libraries `name=[dtypes of out]`, in order."""
    texts = []
    for library in libraries:
        name, _, out = library.partition("=")
        text = CONVERT.format(library=name, out=out, deciding=deciding)
        texts.append(LibraryText(name=name, file=f"{name}.yaml", text=text))
    return read_catalog(texts)


def _bindings(catalog: Catalog, *dtypes: ScalarType) -> tuple[Binding, ...]:
    operator = SelectedOperator(
        name=OperatorName.parse("q::convert.out"),
        dtypes=tuple(sorted(dtypes)),
        origins=(Origin(source="dtypes.operators"),),
    )
    resolution = resolve(
        Selection(operators=(operator,)), catalog, every_dtype=False, span_of=lambda _: None
    )
    (resolved,) = resolution.operators
    return resolved.bindings


def test_dtypes_go_to_the_arguments_that_take_them() -> None:
    (binding,) = _bindings(_catalog("all=[Byte, Char]"), FLOAT, CHAR)
    assert binding.dtypes == {FLOAT, CHAR}
    assert binding.table_dtypes == {FLOAT, CHAR, ScalarType.Double}
    (binding,) = _bindings(_catalog("all=[Byte, Char]"), FLOAT, CHAR, BYTE)
    assert binding.dtypes == {FLOAT, CHAR, BYTE}


def test_one_library_serves_what_another_does_not() -> None:
    found = _bindings(_catalog("chars=[Char]", "bytes=[Byte]"), FLOAT, CHAR, BYTE)
    assert [(b.kernel.library, set(b.dtypes)) for b in found] == [
        ("chars", {FLOAT, CHAR}),
        ("bytes", {FLOAT, BYTE}),
    ]


def test_an_argument_without_a_dtype_is_a_gap() -> None:
    with pytest.raises(KernelError) as caught:
        _bindings(_catalog("all=[Byte, Char]"), FLOAT)
    (found,) = caught.value.diagnostics
    assert found.code == "no-kernel-for-dtype"
    assert ("found", "out Float") in found.notes
    assert ("known", "all takes Byte, Char for out") in found.notes


def test_a_dtype_that_nothing_takes_is_a_gap() -> None:
    with pytest.raises(KernelError) as caught:
        _bindings(_catalog("all=[Byte, Char]"), FLOAT, CHAR, LONG)
    (found,) = caught.value.diagnostics
    assert found.message == "no kernel for q::convert.out with dtype Long"
    assert "real numbers" not in found.hint


def test_complex_numbers_can_be_written_with_real_ones() -> None:
    with pytest.raises(KernelError) as caught:
        _bindings(_catalog("all=[Float]"), FLOAT, ScalarType.ComplexFloat)
    (found,) = caught.value.diagnostics
    assert found.hint == (
        "compute it with real numbers, as torch.complex(z.abs().log(), z.angle()) for"
        " torch.log(z); or export the model without ComplexFloat there, or add it to"
        " k::all_out, all.yaml:2"
    )


@pytest.mark.parametrize(
    ("other", "hint"),
    [
        ("more=[Long]", 'add "more" to kernels.libraries, it has a kernel for it'),
        ("less=[Byte]", "export the model without Long there, or add it to k::all_out, all.yaml:2"),
    ],
)
def test_a_library_that_takes_the_dtype_is_named(other: str, hint: str) -> None:
    operator = SelectedOperator(
        name=OperatorName.parse("q::convert.out"),
        keys=(KernelKey.parse("v1/6;0|7;0|4;0|4;0"),),
        origins=(Origin(source="operators.include"),),
    )
    with pytest.raises(KernelError) as caught:
        resolve(
            Selection(operators=(operator,)),
            _catalog("all=[Char]"),
            every_dtype=False,
            span_of=lambda _: None,
            elsewhere=lambda: _catalog(other),
        )
    (found,) = caught.value.diagnostics
    assert (found.code, found.hint) == ("no-kernel-for-dtype", hint)


def test_no_argument_decides() -> None:
    (binding,) = _bindings(_catalog("all=[Char]", deciding="[]"), HALF)
    assert binding.dtypes == frozenset()
    assert binding.table_dtypes == {HALF, FLOAT, CHAR, ScalarType.Double}
