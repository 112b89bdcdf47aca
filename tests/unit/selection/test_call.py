"""Calls against op schemas and kernels."""

from __future__ import annotations

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import Kernel, KernelKey, TensorMeta
from orchestrator.core.operator import OpSchema, parse_schema
from orchestrator.selection.call import (
    calls_of_key,
    misfit,
    refused_dtypes,
    takes,
    takes_dim_orders,
    tensor_names,
)
from orchestrator.selection.op_info import CallPattern

CLAMP = parse_schema(
    "aten::clamp.out(Tensor self, Scalar? min=None, Scalar? max=None, *,"
    " Tensor(a!) out) -> Tensor(a!)"
)
CONV = parse_schema(
    "aten::conv.out(Tensor input, Tensor? bias, int groups, *, Tensor(a!) out) -> Tensor(a!)"
)
CAT = parse_schema("aten::cat.out(Tensor[] tensors, *, Tensor(a!) out) -> Tensor(a!)")
INDEX = parse_schema(
    "aten::index.Tensor_out(Tensor self, Tensor?[] indices, *, Tensor(a!) out) -> Tensor(a!)"
)
MAX = parse_schema(
    "aten::max.dim_max(Tensor self, str how, *, Tensor(a!) max, Tensor(b!) at)"
    " -> (Tensor(a!), Tensor(b!))"
)
PRIM = parse_schema("p::sub.Scalar(Scalar a, Scalar b) -> Scalar")
VOID = parse_schema("p::put(Tensor(a!) a, int i) -> ()")
FLOAT = TensorMeta(ScalarType.Float, (0, 1))
HALF = TensorMeta(ScalarType.Half, (0, 1))
LAST = TensorMeta(ScalarType.Float, (1, 0))


def kernel(schema: OpSchema, *, keys: tuple[str, ...] = (), dim_orders: str = "any") -> Kernel:
    names = [a.name for a in schema.tensor_arguments if a.name]
    return Kernel(
        operator=schema.name,
        schema=schema,
        library="portable",
        function="k::f",
        sources=(),
        keys=tuple(KernelKey.parse(key) for key in keys),
        dtypes=tuple((name, frozenset({ScalarType.Float})) for name in names),
        dtype_arguments=tuple(names),
        closure=frozenset(),
        dim_orders=dim_orders,
        entry="portable.yaml:1",
    )


@pytest.mark.parametrize(
    ("schema", "kinds", "why"),
    [
        (CLAMP, "TDNTT", ""),
        (CLAMP, "TIBTT", ""),
        (CLAMP, "TDNT", "the result is missing, not a tensor"),
        (CLAMP, "TDNTL", "the result is a tensor list, not a tensor"),
        (CLAMP, "TDNTTT", "the result is a tensor and a tensor, not a tensor"),
        (CLAMP, "TDN", "3 arguments, the schema has 4"),
        (CLAMP, "T", "1 argument, the schema has 4"),
        (CLAMP, "TTNTT", 'argument 2 "min" is a tensor, not an int, float or bool'),
        (CLAMP, "NDNTT", 'argument 1 "self" is None, not a tensor'),
        (CONV, "TNITT", ""),
        (CONV, "TTDTT", 'argument 3 "groups" is a float, not an int'),
        (INDEX, "TOTT", ""),
        (INDEX, "TLTT", ""),
        (INDEX, "OLTT", 'argument 1 "self" is a tensor list with None in it, not a tensor'),
        (CAT, "LTT", ""),
        (CAT, "OTT", 'argument 1 "tensors" is a tensor list with None in it, not a tensor list'),
        (MAX, "TCTTL", ""),
        (MAX, "TJTTL", 'argument 2 "how" is an int list, not a string'),
        (MAX, "TCTTTT", "the result is a tensor and a tensor, not a tensor list"),
        (PRIM, "IID", ""),
        (PRIM, "IIN", "the result is None, not an int, float or bool"),
        (VOID, "TI", ""),
        (VOID, "TIT", "3 arguments, the schema has 2 and no result"),
    ],
)
def test_misfit(schema: OpSchema, kinds: str, why: str) -> None:
    assert misfit(schema, kinds) == why


def test_key_with_an_entry_per_tensor_is_one_call() -> None:
    key = KernelKey((FLOAT, HALF, FLOAT, FLOAT))
    assert calls_of_key(CONV, key) == (
        CallPattern(kinds="", tensors=((0, FLOAT), (1, HALF), (3, FLOAT), (4, FLOAT))),
    )


def test_key_may_leave_out_optional_tensors_and_empty_lists() -> None:
    key = KernelKey((FLOAT, FLOAT, FLOAT))
    assert calls_of_key(CONV, key) == (
        CallPattern(kinds="", tensors=((0, FLOAT), (3, FLOAT), (4, FLOAT))),
    )
    assert calls_of_key(CAT, KernelKey((HALF, HALF))) == (
        CallPattern(kinds="", tensors=((1, HALF), (2, HALF))),
    )
    two = parse_schema("p::f.out(Tensor? a, Tensor? b, *, Tensor(a!) out) -> Tensor(a!)")
    assert [c.tensors[0][0] for c in calls_of_key(two, key)] == [1, 0]


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_key_of_another_operator_is_no_call(count: int) -> None:
    assert calls_of_key(CONV, KernelKey((FLOAT,) * count)) == ()


def test_key_of_an_operator_without_result() -> None:
    expected = CallPattern(kinds="", tensors=((0, FLOAT),))
    assert calls_of_key(VOID, KernelKey((FLOAT,))) == (expected,)


def test_tensors_by_name_have_list_items_but_no_result() -> None:
    call = CallPattern(
        kinds="LTT", tensors=((0, FLOAT), (1, HALF), (2, HALF)), list_items=((0, LAST),)
    )
    expected = [("tensors", FLOAT), ("out", HALF), ("tensors", LAST)]
    assert list(tensor_names(CAT, call)) == expected


def test_dtypes_are_refused_by_argument() -> None:
    call = CallPattern(
        kinds="LTT", tensors=((0, FLOAT), (1, HALF), (2, HALF)), list_items=((0, HALF), (0, HALF))
    )
    refused = refused_dtypes(kernel(CAT), call)
    assert refused == (("out", ScalarType.Half), ("tensors", ScalarType.Half))
    assert not takes(kernel(CAT), call)


@pytest.mark.parametrize(
    ("dim_orders", "metas", "taken"),
    [
        ("any", (FLOAT, LAST), True),
        ("same", (FLOAT, LAST), False),
        ("same", (LAST, LAST), True),
        ("same", (LAST, TensorMeta(ScalarType.Float, (0,))), True),
        ("contiguous", (FLOAT, FLOAT), True),
        ("contiguous", (LAST, LAST), False),
        ("contiguous", (TensorMeta(ScalarType.Float, ()),), True),
    ],
)
def test_dim_orders(
    dim_orders: str,
    metas: tuple[TensorMeta, ...],
    taken: bool,  # noqa: FBT001
) -> None:
    fallback = kernel(CAT, dim_orders=dim_orders)
    tensors = CallPattern(kinds="", tensors=tuple((0, m) for m in metas))
    items = CallPattern(
        kinds="", tensors=((0, metas[0]),), list_items=tuple((0, m) for m in metas[1:])
    )
    assert takes_dim_orders(fallback, tensors) is taken
    assert takes_dim_orders(fallback, items) is taken
    assert takes(fallback, tensors) is taken


def test_specialised_kernel_takes_its_keys_only() -> None:
    special = kernel(CAT, keys=("v1/6;0,1|6;0,1|6;0,1",), dim_orders="contiguous")
    call = CallPattern(kinds="LTT", tensors=((0, FLOAT), (1, FLOAT), (2, FLOAT)))
    other = CallPattern(kinds="LTT", tensors=((0, LAST), (1, FLOAT), (2, FLOAT)))
    mixed = CallPattern(kinds="LTT", tensors=call.tensors, list_items=((0, HALF),))
    assert takes(special, call)
    assert not takes(special, other)
    assert not takes(special, mixed)
