from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
import yaml

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import TensorMeta
from orchestrator.core.operator import OperatorName
from orchestrator.program.program import Delegate, DelegateCall, KernelCall, Method, Program
from orchestrator.program.reader import read_program
from orchestrator.program.values import (
    BoolListValue,
    BoolValue,
    DoubleListValue,
    DoubleValue,
    Dynamism,
    IntListValue,
    IntValue,
    NoneValue,
    OptionalTensorListValue,
    StringValue,
    TensorListValue,
    TensorValue,
    Value,
)
from orchestrator.selection.extract import extract
from orchestrator.selection.op_info import CallPattern, DelegateUse, OpCall, OpInfo
from tests.conftest import CASES, CORPUS, model_bytes


def _extract(case: str) -> OpInfo:
    return extract(read_program(model_bytes(case), file=case), model=case)


def _oplist(case: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CORPUS / case / "oplist.yaml").read_text())
    return found


@pytest.mark.parametrize("case", CASES)
def test_operators_are_those_executorch_lists(case: str) -> None:
    names = {str(name) for _, name in _extract(case).operators}
    assert names == set(_oplist(case)["operators"])


@pytest.mark.parametrize("case", CASES)
def test_kernel_keys_are_those_executorch_finds(case: str) -> None:
    keys: dict[str, set[str]] = defaultdict(set)
    for call in _extract(case).calls:
        keys[str(call.operator)].add(str(call.pattern.key))
    expected = _oplist(case)["et_kernel_metadata"]
    assert keys == {name: set(found) for name, found in expected.items()}


def _tensor(dtype: ScalarType, rank: int) -> TensorValue:
    return TensorValue(
        dtype=dtype,
        sizes=(1,) * rank,
        dim_order=tuple(range(rank)),
        dynamism=Dynamism.STATIC,
        data_buffer_index=0,
        allocation=None,
        extra=None,
        requires_grad=False,
    )


def _program(*methods: Method) -> Program:
    return Program(
        version=0,
        header=None,
        methods=methods,
        segments=(),
        constants=None,
        mutable_segments=(),
        named_data=(),
        inline_constants=(),
        inline_data=(),
        data=b"",
    )


def _method(values: tuple[Value, ...], **changes: Any) -> Method:
    empty: dict[str, Any] = dict.fromkeys(
        ("inputs", "outputs", "instructions", "operators", "delegates", "arena_bytes"), ()
    )
    return Method(**{"name": "forward", "values": values, **empty, **changes})


_ADD = OperatorName("aten", "add", "out")


def _pattern(*values: Value, args: tuple[int, ...]) -> CallPattern:
    call = KernelCall(operator=0, args=args)
    method = _method(values, operators=(_ADD,), instructions=(call,))
    (found,) = extract(_program(method), model="m").calls
    expected = OpCall(operator=_ADD, pattern=found.pattern, method="forward", instruction=0)
    assert found == expected
    return found.pattern


def test_every_kind_of_value_has_its_letter() -> None:
    values = (
        _tensor(ScalarType.Float, 1),
        TensorListValue(()),
        OptionalTensorListValue(()),
        IntValue(1),
        DoubleValue(1.0),
        BoolValue(True),  # noqa: FBT003
        StringValue("floor"),
        IntListValue(()),
        DoubleListValue(()),
        BoolListValue(()),
        NoneValue(),
    )
    pattern = _pattern(*values, args=tuple(range(len(values))))
    assert pattern.kinds == "TLLIDBCJEAN"


def test_a_list_counts_as_its_first_tensor() -> None:
    values = (
        _tensor(ScalarType.Int, 1),
        _tensor(ScalarType.Float, 0),
        NoneValue(),
        TensorListValue((1, 0)),
        OptionalTensorListValue((-1, 2, 0, 1)),
        TensorListValue(()),
    )
    pattern = _pattern(*values, args=(0, 3, 2, 4, 5, 1))
    assert pattern == CallPattern(
        "TLNOLT",
        (
            (0, TensorMeta(ScalarType.Int, (0,))),
            (1, TensorMeta(ScalarType.Float, ())),
            (3, TensorMeta(ScalarType.Int, (0,))),
            (5, TensorMeta(ScalarType.Float, ())),
        ),
        list_items=((1, TensorMeta(ScalarType.Int, (0,))), (3, TensorMeta(ScalarType.Float, ()))),
    )
    assert str(pattern.key) == "v1/3;0|6;|3;0|6;"


def test_a_call_without_tensors_has_the_bare_key() -> None:
    assert str(_pattern(IntValue(1), args=(0, 0)).key) == "v1"


def test_every_method_is_looked_at() -> None:
    info = _extract("multi_method")
    assert {method for method, _ in info.operators} == {"encode", "decode"}
    assert {call.method for call in info.calls} == {"encode", "decode"}
    assert info.model == "multi_method"


def test_operators_that_are_not_called_are_listed() -> None:
    info = extract(_program(_method((), operators=(_ADD,))), model="m")
    assert info.operators == (("forward", _ADD),)
    assert info.calls == ()


def test_delegates_are_found_called_or_not() -> None:
    delegates = tuple(
        Delegate(backend=name, is_inline=True, data_index=0, compile_specs=())
        for name in ("A", "B")
    )
    call = DelegateCall(delegate=1, args=(0,))
    method = _method((IntValue(0),), delegates=delegates, instructions=(call, call))
    info = extract(_program(method), model="m")
    assert info.delegates == (
        DelegateUse(backend="B", method="forward", instruction=0),
        DelegateUse(backend="B", method="forward", instruction=1),
        DelegateUse(backend="A", method="forward", instruction=-1),
    )


def test_a_delegate_of_a_real_program() -> None:
    assert _extract("xnnpack_partial").delegates == (
        DelegateUse(backend="XnnpackBackend", method="forward", instruction=0),
    )
