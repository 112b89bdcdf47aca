from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.program.reader import read_program
from orchestrator.program.values import (
    DoubleListValue,
    DoubleValue,
    Dynamism,
    IntValue,
    TensorValue,
    kind_name,
)
from tests.conftest import CORPUS, model_bytes

if TYPE_CHECKING:
    from orchestrator.program.program import Method


def _method(case: str, name: str = "forward") -> Method:
    return read_program(model_bytes(case), file=case).method(name)


def _tensors(method: Method) -> list[TensorValue]:
    return [value for value in method.values if isinstance(value, TensorValue)]


def test_constants_are_found_by_their_offset() -> None:
    program = read_program(model_bytes("cond_computed"), file="m")
    (constant,) = (t for t in _tensors(program.methods[0]) if t.is_constant)
    data = program.data_bytes(constant)
    assert len(data) == constant.size_bytes
    start = program.data_offset(constant)
    assert data == program.data[start : start + constant.size_bytes]


def test_initial_state_is_found_in_its_segment() -> None:
    program = read_program(model_bytes("kv_cache"), file="m")
    state = [t for t in _tensors(program.methods[0]) if t.is_mutable_state]
    assert [program.data_offset(t) for t in state] == [
        program.segment_offset(1),
        program.segment_offset(1) + 128,
    ]
    assert all(t.is_planned and not t.is_constant for t in state)
    assert all(program.data_bytes(t) == bytes(t.size_bytes) for t in state)


def test_external_data_is_not_in_the_program() -> None:
    program = read_program(model_bytes("external_constants"), file="m")
    external = [t for t in _tensors(program.methods[0]) if t.is_external]
    assert [t.extra and t.extra.qualified_name for t in external] == [
        "0.weight",
        "0.bias",
        "2.weight",
        "2.bias",
    ]
    for tensor in external:
        with pytest.raises(ValueError, match="no data for this tensor"):
            program.data_offset(tensor)


def test_delegate_data_is_its_segment() -> None:
    program = read_program(model_bytes("xnnpack_partial"), file="m")
    (delegate,) = program.methods[0].delegates
    assert delegate.backend == "XnnpackBackend"
    data = program.delegate_bytes(delegate)
    assert len(data) == 1824
    assert data == program.data[2176 : 2176 + 1824]


def test_a_method_is_found_by_name() -> None:
    program = read_program(model_bytes("multi_method"), file="m")
    for method in program.methods:
        assert program.method(method.name) is method
    with pytest.raises(KeyError, match="forward"):
        program.method("forward")


def test_programs_are_equal_by_their_facts() -> None:
    data = (CORPUS / "mlp" / "model.pte").read_bytes()
    one, other = read_program(data, file="a"), read_program(data, file="b")
    assert one == other
    assert hash(one) == hash(other)
    assert one.size_bytes == len(data)


def test_sizes_of_dynamic_tensors_are_upper_bounds() -> None:
    dynamic = [t for t in _tensors(_method("dynamic_batch")) if t.is_dynamic]
    assert dynamic
    for tensor in dynamic:
        assert tensor.dynamism is Dynamism.BOUNDED
        assert tensor.size_bytes == tensor.numel * 4


def test_channels_last_is_not_contiguous() -> None:
    tensors = _tensors(_method("channels_last"))
    orders = {t.dim_order for t in tensors if not t.is_contiguous}
    assert orders == {(0, 2, 3, 1)}


def test_a_tensor_without_dimensions_has_one_element() -> None:
    tensor = TensorValue(
        dtype=ScalarType.Long,
        sizes=(),
        dim_order=(),
        dynamism=Dynamism.STATIC,
        data_buffer_index=0,
        allocation=None,
        extra=None,
        requires_grad=False,
    )
    assert (tensor.numel, tensor.size_bytes) == (1, 8)
    assert tensor.is_contiguous
    places = (tensor.is_planned, tensor.is_constant, tensor.is_mutable_state)
    assert not any(places)
    assert kind_name(type(tensor)) == "tensor"


def test_doubles_are_equal_by_their_bits() -> None:
    """A program with NaN is itself, and 0 is not the constant that -0 is."""
    assert DoubleValue(math.nan) == DoubleValue(float("nan"))
    assert len({DoubleValue(math.nan), DoubleValue(float("nan"))}) == 1
    assert DoubleValue(0.0) != DoubleValue(-0.0)
    assert DoubleListValue((math.nan,)) == DoubleListValue((float("nan"),))
    assert DoubleListValue((0.0,)) != DoubleListValue((-0.0,))
    assert DoubleValue(1.0) != IntValue(1)
