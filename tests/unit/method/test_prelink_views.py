"""Which calls are known to move items only, and which items they move."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import constants
from orchestrator.method.passes.constants import MovedBytes
from orchestrator.method.passes.views import View, moves_items, views_of
from orchestrator.program.values import (
    BoolValue,
    IntListValue,
    IntValue,
    NoneValue,
    TensorListValue,
    TensorValue,
)
from tests.unit.method.methods import Builder, tensor


def found(b: Builder, *, inputs: tuple[int, ...] = ()) -> tuple[View, ...] | None:
    """Views of the last call."""
    method = b.method(inputs)
    call = method.instructions[-1]
    assert isinstance(call, LinkedCall)
    return views_of(method, call, method.written)


def call(
    operator: str, sizes: tuple[int, ...], out: tuple[int, ...], *args: object
) -> bytes | None:
    """Items of the output of a call on 0, 1, 2, ...; None if they are not known.

    An argument is an int, a list of ints or None; the tensors are first and last.
    """
    b = Builder()
    source, target = b.tensor(sizes, 0), b.tensor(out, 64)
    indices = []
    for argument in args:
        if isinstance(argument, int):
            indices.append(b.value(IntValue(argument)))
        elif isinstance(argument, list):
            indices.append(b.numbers(*argument))
        else:
            indices.append(b.value(NoneValue()))
    b.call(operator, source, *indices, target)
    views = found(b)
    if views is None:
        return None
    value = b.values[target]
    assert isinstance(value, TensorValue)
    content = bytearray(value.size_bytes)
    (view,) = views
    view.moved(bytes(range(64)), content, 1)
    # Large tensors are moved part by part.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(constants, "_SLAB_BYTES", 3)
        parts = MovedBytes([(view, bytes(range(64)))], len(content), 1)
        assert b"".join(parts.chunks()) == bytes(content)
    return bytes(content)


@pytest.mark.parametrize(
    ("operator", "sizes", "out", "args", "items"),
    [
        ("aten::alias_copy.out", (4,), (4,), (), (0, 1, 2, 3)),
        (
            *("aten::upsample_nearest2d.vec_out", (1, 1, 2, 2), (1, 1, 2, 6)),
            *(([2, 6], None), (0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3)),
        ),
        ("aten::clone.out", (4,), (4,), (None,), (0, 1, 2, 3)),
        ("aten::_to_copy.out", (2, 1), (2, 1), (None, None), (0, 1)),
        ("aten::detach_copy.out", (), (), (), (0,)),
        ("aten::lift_fresh_copy.out", (2,), (2,), (), (0, 1)),
        ("dim_order_ops::_clone_dim_order.out", (2,), (2,), (None, None), (0, 1)),
        ("dim_order_ops::_clone_dim_order.out", (2,), (2,), (None, [0]), (0, 1)),
        ("dim_order_ops::_to_dim_order_copy.out", (2,), (2,), (None, [0]), (0, 1)),
        ("aten::expand_copy.out", (2, 1), (3, 2, 2), ([3, -1, 2], None),
         (0, 0, 1, 1) * 3),
        ("aten::permute_copy.out", (2, 3), (3, 2), ([-1, 0],), (0, 3, 1, 4, 2, 5)),
        ("aten::select_copy.int_out", (2, 3), (2,), (1, -1), (2, 5)),
        ("cortex_m::pad.out", (1, 1, 1, 3), (1, 1, 1, 3), ([0] * 4, [0] * 4, 5),
         (0, 1, 2)),
        ("aten::slice_copy.Tensor_out", (2, 4), (2, 2), (1, -3, 9, 2), (1, 3, 5, 7)),
        ("aten::slice_copy.Tensor_out", (3,), (1,), (0, None, None, 5), (0,)),
        ("aten::squeeze_copy.dims_out", (1, 2, 1), (2,), ([0, 2],), (0, 1)),
        ("aten::squeeze_copy.dims_out", (1, 2), (2,), ([0, 1],), (0, 1)),
        ("aten::unsqueeze_copy.out", (2,), (2, 1), (-1,), (0, 1)),
        ("aten::view_copy.out", (2, 3), (3, 2), ([3, -1],), (0, 1, 2, 3, 4, 5)),
        ("executorch_prim::et_view.default", (2,), (1, 2), ([1, 2],), (0, 1)),
        ("aten::transpose_copy.int_out", (2, 3), (3, 2), (0, -1), (0, 3, 1, 4, 2, 5)),
        ("aten::t_copy.out", (2, 3), (3, 2), (), (0, 3, 1, 4, 2, 5)),
        ("aten::t_copy.out", (3,), (3,), (), (0, 1, 2)),
        ("aten::t_copy.out", (), (), (), (0,)),
        ("aten::squeeze_copy.dim_out", (2, 1), (2,), (-1,), (0, 1)),
        ("aten::squeeze_copy.dim_out", (2, 1), (2, 1), (0,), (0, 1)),
        ("aten::narrow_copy.out", (2, 3), (2, 2), (1, -2, 2), (1, 2, 4, 5)),
        ("aten::diagonal_copy.out", (2, 3), (2,), (1, 0, 1), (1, 5)),
        ("aten::diagonal_copy.out", (3, 2, 1), (1, 2), (-1, 0, -2), (2, 5)),
        ("aten::unfold_copy.out", (2, 4), (2, 2, 2), (1, 2, 2), (*range(8),)),
        ("aten::unfold_copy.out", (3, 2), (2, 2, 2), (0, 2, 1),
         (0, 2, 1, 3, 2, 4, 3, 5)),
        ("aten::as_strided_copy.out", (6,), (2, 2), ([2, 2], [1, 3], 1), (1, 4, 2, 5)),
        ("aten::as_strided_copy.out", (6,), (2,), ([2], [0], None), (0, 0)),
        ("aten::repeat.out", (2, 1), (2, 2, 3), ([2, 1, 3],),
         (0, 0, 0, 1, 1, 1) * 2),
        ("aten::repeat.out", (2,), (4,), ([2],), (0, 1, 0, 1)),
        ("aten::pixel_shuffle.out", (4, 1, 2), (1, 2, 4), (2,),
         (0, 2, 1, 3, 4, 6, 5, 7)),
        ("aten::pixel_unshuffle.out", (1, 2, 4), (4, 1, 2), (2,),
         (0, 2, 1, 3, 4, 6, 5, 7)),
    ],
)  # fmt: skip
def test_items_that_a_call_moves(
    operator: str,
    sizes: tuple[int, ...],
    out: tuple[int, ...],
    args: tuple[object, ...],
    items: tuple[int, ...],
) -> None:
    assert call(operator, sizes, out, *args) == bytes(items)


@pytest.mark.parametrize(
    ("operator", "sizes", "out", "args"),
    [
        ("cortex_m::pad.out", (1, 1, 1, 3), (1, 1, 1, 4), ([0] * 4, [0, 0, 0, 1], 5)),
        ("cortex_m::pad.out", (1, 1, 1, 3), (1, 1, 1, 3), ([0] * 4, [0] * 4, 128)),
        ("cortex_m::pad.out", (1, 1, 1, 3), (1, 1, 1, 3), ([0] * 3, [0] * 4, 5)),
        ("aten::relu.out", (4,), (4,), ()),  # computes
        ("aten::alias_copy.out", (4,), (3,), ()),  # the kernel refuses it
        ("aten::alias_copy.out", (4,), (2, 2), ()),
        ("dim_order_ops::_clone_dim_order.out", (2,), (2,), (None, [1])),
        ("aten::expand_copy.out", (2,), (3,), ([3], None)),
        ("aten::expand_copy.out", (2, 1), (2,), ([2], None)),
        ("aten::expand_copy.out", (2,), (1, 2), ([-1, 2], None)),
        ("aten::permute_copy.out", (2, 3), (3, 2), ([1],)),
        ("aten::permute_copy.out", (2, 3), (3, 2), ([1, 1],)),
        ("aten::permute_copy.out", (2, 3), (3, 2), ([1, 2],)),
        ("aten::permute_copy.out", (2, 3), (3, 2), (1,)),  # no list
        ("aten::select_copy.int_out", (2, 3), (3,), (0, 2)),
        ("aten::select_copy.int_out", (2, 3), (3,), (2, 0)),
        ("aten::select_copy.int_out", (2, 3), (3,), (0, [0])),
        ("aten::select_copy.int_out", (2, 3), (3,), (0,)),  # too few
        ("aten::slice_copy.Tensor_out", (3,), (1,), (0, 0, 1, 0)),
        ("aten::slice_copy.Tensor_out", (3,), (0,), (0, 2, 1, 1)),
        ("aten::slice_copy.Tensor_out", (3,), (2,), (0, 0, 1, 1)),
        ("aten::squeeze_copy.dims_out", (1, 2), (2,), ([0, 0],)),
        ("aten::unsqueeze_copy.out", (2,), (2, 1), (2,)),
        ("aten::view_copy.out", (2, 3), (6,), ([5],)),
        ("aten::view_copy.out", (2, 3), (4,), ([-1, 4],)),
        ("aten::view_copy.out", (2, 3), (2, 3), ([-1, -1],)),
        ("aten::view_copy.out", (0, 3), (0,), ([-1],)),
        ("aten::transpose_copy.int_out", (2, 3), (3, 2), (0, 2)),
        ("aten::transpose_copy.int_out", (2, 3), (2, 3), (0, 1)),
        ("aten::t_copy.out", (1, 2, 3), (3, 2, 1), ()),
        ("aten::squeeze_copy.dim_out", (2, 1), (2,), (2,)),
        ("aten::narrow_copy.out", (3,), (2,), (0, 2, 2)),
        ("aten::narrow_copy.out", (3,), (1,), (0, -4, 1)),
        ("aten::narrow_copy.out", (3,), (0,), (0, 0, 0)),
        ("aten::diagonal_copy.out", (2, 3), (0,), (3, 0, 1)),
        ("aten::diagonal_copy.out", (2, 2), (2,), (0, 0, -2)),
        ("aten::unfold_copy.out", (3,), (0, 4), (0, 4, 1)),
        ("aten::unfold_copy.out", (3,), (2, 2), (0, 2, 0)),
        ("aten::as_strided_copy.out", (6,), (2, 2), ([2, 2], [1, 3], 2)),
        ("aten::as_strided_copy.out", (6,), (2,), ([2], [-1], 3)),
        ("aten::as_strided_copy.out", (6,), (2,), ([2], [1, 1], None)),
        ("aten::as_strided_copy.out", (6,), (1,), ([1], [1], -1)),
        ("aten::repeat.out", (2,), (4,), ([3],)),
        ("aten::repeat.out", (2, 1), (2,), ([1],)),
        ("aten::repeat.out", (2,), (0,), ([0],)),
        ("aten::pixel_shuffle.out", (3, 1, 2), (0, 2, 4), (2,)),
        ("aten::pixel_shuffle.out", (4, 2), (2, 4), (2,)),
        ("aten::pixel_unshuffle.out", (1, 2, 3), (4, 1, 1), (2,)),
    ],
)
def test_what_is_not_certain_is_not_known(
    operator: str, sizes: tuple[int, ...], out: tuple[int, ...], args: tuple[object, ...]
) -> None:
    assert call(operator, sizes, out, *args) is None


def test_what_a_run_can_change_is_not_known() -> None:
    b = Builder()
    one, other, dynamic = b.tensor((2,), 0), b.tensor((2,), 8), b.tensor((2,), 16)
    b.values[dynamic] = tensor((2,), 16, dynamic=True)
    number, none = b.value(IntValue(0)), b.value(NoneValue())
    b.call("aten::alias_copy.out", one, dynamic)
    assert found(b) is None
    b.call("aten::alias_copy.out", dynamic, one)
    assert found(b) is None
    b.call("aten::alias_copy.out", one, other)
    assert found(b) is not None
    b.call("aten::slice_copy.Tensor_out", one, number, none, none,
           b.value(IntValue(1)), other)  # fmt: skip
    assert found(b) is not None
    assert found(b, inputs=(number,)) is None
    assert found(b, inputs=(none,)) is None


def test_dtypes_are_one_unless_conversions_are_asked_for() -> None:
    b = Builder()
    one, other = b.tensor((2,), 0), b.tensor((2,), 8)
    none = b.value(NoneValue())
    value = b.values[other]
    assert isinstance(value, TensorValue)
    b.values[other] = replace(value, dtype=ScalarType.Char)
    for name, converts in (("_to_dim_order_copy", True), ("_clone_dim_order", False)):
        b.call(f"dim_order_ops::{name}.out", one, none, none, other)
        method = b.method()
        copy = method.instructions[-1]
        assert isinstance(copy, LinkedCall)
        assert found(b) is None
        views = views_of(method, copy, method.written, converts=True)
        assert (views is not None) is converts
        assert moves_items(copy.operator)


def test_dim_orders_have_to_be_those_of_the_call() -> None:
    b = Builder()
    one, other = b.tensor((2, 3), 0), b.tensor((2, 3), 8)
    none = b.value(NoneValue())
    value = b.values[other]
    assert isinstance(value, TensorValue)
    b.values[other] = replace(value, dim_order=(1, 0))
    for args in ((one, none, none, other), (one, none, b.numbers(0, 1), other)):
        b.call("dim_order_ops::_clone_dim_order.out", *args)
        assert found(b) is None
    b.call("aten::clone.out", one, none, other)
    assert found(b) is None
    b.call("aten::view_copy.out", one, b.numbers(2, 3), other)
    assert found(b) is None
    b.call("aten::copy_", one, other, none, one)
    assert found(b) is None
    b.call("dim_order_ops::_clone_dim_order.out", one, none, b.numbers(1, 0), other)
    (view,) = found(b) or ()
    assert (view.read, view.written) == ((3, 1), (1, 2))
    assert not view.is_block


def test_split_and_cat_are_views_of_parts() -> None:
    b = Builder()
    one, other, both = b.tensor((2, 1), 0), b.tensor((2, 2), 4), b.tensor((2, 3), 8)
    parts = b.value(TensorListValue((one, other)))
    dim, out = b.value(IntValue(1)), (one, other)
    b.call("aten::cat.out", parts, dim, both)
    views = found(b)
    assert views is not None
    content = bytearray(6)
    views[0].moved(b"ab", content, 1)
    views[1].moved(b"cdef", content, 1)
    assert content == b"acdbef"
    b.call("aten::split_with_sizes_copy.out", both, b.numbers(1, 2), dim, parts, outs=out)
    views = found(b)
    assert views is not None
    assert [v.first_read for v in views] == [0, 1]
    refused = [
        (both, b.numbers(1, 1), dim, parts),
        (both, b.numbers(0, 3), dim, parts),
        (both, b.numbers(3), dim, parts),
        (both, b.numbers(1, 2), dim, b.value(TensorListValue((other, one)))),
        (both, b.numbers(1, 2), dim, b.value(IntListValue(()))),
    ]
    for args in refused:
        b.call("aten::split_with_sizes_copy.out", *args, outs=out)
        assert found(b) is None
    row = b.value(IntValue(0))
    for listed, along in (((one, one), dim), ((one, other), row), ((), dim)):
        b.call("aten::cat.out", b.value(TensorListValue(listed)), along, both)
        assert found(b) is None
    b.call("aten::cat.out", b.value(BoolValue(value=True)), dim, both)
    assert found(b) is None


def test_stack_unbind_and_even_parts_are_views_of_parts() -> None:
    b = Builder()
    one, other, both = b.tensor((2,), 0), b.tensor((2,), 4), b.tensor((2, 2), 8)
    rows, row = b.tensor((2, 2), 16), b.tensor((1, 2), 24)
    parts, uneven = (b.value(TensorListValue((one, other))), b.value(TensorListValue((rows, row))))
    dim, first, two = (b.value(IntValue(n)) for n in (1, 0, 2))
    b.call("aten::stack.out", parts, dim, both)
    stacked = found(b)
    b.call("aten::unbind_copy.int_out", both, dim, parts, outs=(one, other))
    unbound = found(b)
    assert stacked is not None
    assert unbound is not None
    for view, back in zip(stacked, unbound, strict=True):
        assert (view.source, view.target) == (back.target, back.source)
        assert (view.read, view.written) == (back.written, back.read)
        assert (view.first_read, view.first_written) == (0, back.first_read)
    assert [(v.first_read, v.read) for v in unbound] == [(0, (2,)), (1, (2,))]

    whole = b.tensor((3, 2), 32)
    b.call("aten::split_copy.Tensor_out", whole, two, first, uneven, outs=(rows, row))
    assert [(v.first_read, v.sizes) for v in found(b) or ()] == [(0, (2, 2)), (4, (2,))]
    refused = [
        ("split_copy.Tensor_out", (whole, dim, first, uneven), (rows, row)),
        ("split_copy.Tensor_out", (whole, first, first, uneven), (rows, row)),
        ("unbind_copy.int_out", (whole, first, parts), (one, other)),
        ("stack.out", (uneven, first, both), (both,)),
        ("stack.out", (parts, b.value(IntValue(2)), both), (both,)),
        ("stack.out", (b.value(TensorListValue((one,))), first, both), (both,)),
    ]
    for name, args, outs in refused:
        b.call(f"aten::{name}", *args, outs=outs)
        assert found(b) is None


def test_a_copy_in_place_takes_the_same_sizes_only() -> None:
    b = Builder()
    one, other, wide = b.tensor((2,), 0), b.tensor((2,), 4), b.tensor((1,), 8)
    none = b.value(NoneValue())
    b.call("aten::copy_", one, other, none, one)
    (view,) = found(b) or ()
    assert (view.source, view.target) == (other, one)
    b.call("aten::copy_", one, wide, none, one)  # repeats an item
    assert found(b) is None
    b.call("aten::copy_", one, other, none, one, outs=(one, wide))
    assert found(b) is None  # writes more than is known
