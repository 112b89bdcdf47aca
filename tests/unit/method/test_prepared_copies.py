"""Copies as blocks of bytes: what the struct of a call moves is what its view moves."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.dtype import ScalarType
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes import run_passes
from orchestrator.method.passes.views import views_of
from orchestrator.method.rows.bands import image_of
from orchestrator.method.rows.copies import CopiedRows, copied_rows, is_spread
from orchestrator.program.values import TensorValue
from tests.unit.method.recorded_calls import Call, Tensor, method_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.method.linked import Numbers

_KINDS: Final = ("slice", "permute", "cat", "split", "expand")
_IMAGE: Final = 4
_DTYPES: Final = {
    dtype.item_bytes: dtype
    for dtype in (ScalarType.Char, ScalarType.Half, ScalarType.Float, ScalarType.Double)
}


def _tensor(sizes: tuple[int, ...], item: int, *, is_out: bool = False) -> Tensor:
    """Images are channels last."""
    data = bytes(i % 251 for i in range(prod(sizes) * item))
    order = (0, 2, 3, 1) if len(sizes) == _IMAGE else tuple(range(len(sizes)))
    return Tensor(_DTYPES[item], sizes, order, data, is_out=is_out)


@st.composite
def _calls(draw: st.DrawFn, *, images: bool = False) -> Call:
    """A copy of a part, in another order, of several tensors, or of one to several."""
    item = draw(st.sampled_from(sorted(_DTYPES)))
    rank = _IMAGE if images else draw(st.integers(2, 4))
    size = st.integers(1, 5)
    sizes = tuple(draw(size) for _ in range(rank))
    dim = draw(st.integers(int(images), rank - 1))
    if images:
        sizes = (1, *sizes[1:])
    x = _tensor(sizes, item)
    kinds = ["slice", "cat", "scale"] if images else _KINDS
    kind = draw(st.sampled_from(kinds))
    if kind == "scale":
        scaled = tuple(draw(st.integers(1, 3)) * n for n in sizes[2:])
        out = _tensor((*sizes[:2], *scaled), item, is_out=True)
        return Call("aten::upsample_nearest2d.vec_out", (x, scaled, None, out))
    if kind == "slice":
        first = draw(st.integers(0, sizes[dim] - 1))
        last = draw(st.integers(first + 1, sizes[dim]))
        step = draw(st.integers(1, 3))
        count = len(range(first, last, step))
        out = _tensor((*sizes[:dim], count, *sizes[dim + 1 :]), item, is_out=True)
        args: tuple[Any, ...] = (x, dim, first, last, step, out)
        return Call("aten::slice_copy.Tensor_out", args)
    if kind == "permute":
        order = tuple(draw(st.permutations(range(rank))))
        out = _tensor(tuple(sizes[d] for d in order), item, is_out=True)
        return Call("aten::permute_copy.out", (x, order, out))
    if kind == "expand":
        wide = tuple(draw(size) if s == 1 else s for s in sizes)
        out = _tensor((draw(size), *wide), item, is_out=True)
        return Call("aten::expand_copy.out", (x, out.sizes, False, out))
    counts = tuple(draw(size) for _ in range(draw(st.integers(1, 3))))
    parts = [(*sizes[:dim], count, *sizes[dim + 1 :]) for count in counts]
    whole = (*sizes[:dim], sum(counts), *sizes[dim + 1 :])
    if kind == "cat":
        given_parts = tuple(_tensor(part, item) for part in parts)
        out = _tensor(whole, item, is_out=True)
        return Call("aten::cat.out", (given_parts, dim, out))
    outs = tuple(_tensor(part, item, is_out=True) for part in parts)
    name = "aten::split_with_sizes_copy.out"
    return Call(name, (_tensor(whole, item), counts, dim, outs))


def _bytes(method: LinkedMethod) -> dict[int, bytearray]:
    """What the tensors of a method hold, by value; constants, and zeros."""
    found = {
        index: bytearray(value.size_bytes)
        for index, value in enumerate(method.values)
        if isinstance(value, TensorValue)
    }
    for index, data in method.data:
        found[index] = bytearray(bytes(data))
    return found


def _number(numbers: tuple[tuple[str, Numbers], ...], path: str) -> int:
    """A number of a struct, or of one in it."""
    found: Numbers = numbers
    for name in path.split("."):
        assert isinstance(found, tuple)
        found = dict(found)[name]
    assert isinstance(found, int)
    return found


def _execute(call: LinkedCall, memory: Mapping[int, bytearray | memoryview]) -> None:
    """What `orch::copy_blocks` and `orch::copy_items` do."""
    assert call.prepared is not None
    assert call.prepared.shape is not None
    offsets, shape = call.prepared.numbers, call.prepared.shape.numbers
    size = _number(shape, "block_bytes")
    places = [(_number(offsets, "input_offset"), _number(offsets, "out_offset"))]
    for axis in ("outer", "middle", "inner"):
        count, here, there = (
            _number(shape, f"{axis}.{name}") for name in ("count", "read", "written")
        )
        places = [
            (read + i * here, written + i * there) for read, written in places for i in range(count)
        ]
    item = size if call.function == "orch::copy_items" else 1
    assert item in (1, 2, 4)
    source, target = (memory[index] for index in call.args)
    for read, written in places:
        assert read % item == written % item == 0
        target[written : written + size] = source[read : read + size]


@given(_calls())
def test_a_copy_moves_what_its_call_moves(call: Call) -> None:
    method = method_of([call])
    (original,) = method.instructions
    assert isinstance(original, LinkedCall)
    expected = _bytes(method)
    views = views_of(method, original, method.written)
    assert views
    for view in views:
        value = method.values[view.source]
        assert isinstance(value, TensorValue)
        source = bytes(expected[view.source])
        view.moved(source, expected[view.target], value.dtype.item_bytes)
    after = run_passes(method, ["prepare_calls"], isa="scalar")
    memory = _bytes(after)
    for made in after.instructions:
        assert isinstance(made, LinkedCall)
        if made.prepared is None:
            # More loops than three, or of a part that is empty.
            assert len(views[0].sizes) > 3
            return
        _execute(made, memory)
    assert len(views) <= len(after.instructions) == len(after.origins)
    targets = {str(method.values[v.target]): expected[v.target] for v in views}
    for made in after.instructions:
        assert isinstance(made, LinkedCall)
        assert memory[made.args[1]] == targets[str(after.values[made.args[1]])]


def _at_end(call: LinkedCall, held: dict[int, bytearray], copied: CopiedRows) -> bytearray | None:
    """What a call makes of an output whose end its input is; None if that may not be.

    Bytes that it does not write are as before.
    """
    source, target = (held[index] for index in call.args)
    if not copied.is_spread or len(target) % len(source):
        return None
    shared, whole = bytearray(target), memoryview(bytearray(target))
    whole[-len(source) :] = source
    _execute(call, {call.args[0]: whole[-len(source) :], call.args[1]: whole})
    ones = {call.args[0]: bytearray(b"\1") * len(source)}
    ones[call.args[1]] = bytearray(len(target))
    _execute(call, ones)
    for at, is_written in enumerate(ones[call.args[1]]):
        if is_written:
            shared[at] = whole[at]
    return shared


@pytest.mark.parametrize("counts", [(4, 4), (4, 8, 3), (8, 4)])
@pytest.mark.parametrize("part", [0, 1])
def test_the_first_part_of_a_concatenation_is_spread(counts: tuple[int, ...], part: int) -> None:
    """Others begin within the output."""
    parts = tuple(_tensor((1, count, 3, 5), 1) for count in counts)
    out = _tensor((1, sum(counts), 3, 5), 1, is_out=True)
    call = Call("aten::cat.out", (parts, 1, out))
    method = run_passes(method_of([call]), ["prepare_calls"], isa="scalar")
    made = method.instructions[part]
    assert isinstance(made, LinkedCall)
    source, target = (image_of(method.values[index]) for index in made.args)
    assert is_spread(made, (source, target)) == (part == 0)
    assert not is_spread(replace(made, prepared=None), (source, target))


@given(_calls(images=True), st.integers(1, 4))
def test_a_copy_by_rows_moves_the_same(call: Call, band: int) -> None:
    """What rows of an output need, and nothing else, is at the addresses of a band."""
    method = run_passes(method_of([call]), ["prepare_calls"], isa="scalar")
    for made in method.instructions:
        assert isinstance(made, LinkedCall)
        if made.prepared is None:
            return
        images = [image_of(method.values[index]) for index in made.args]
        copied = copied_rows(made.prepared, (images[0], images[1]))
        rows = images[1].rows
        if copied is None or rows == 1:
            continue
        whole, parts = _bytes(method), _bytes(method)
        _execute(made, whole)
        window = copied.window(images[0].rows, rows)
        for first in range(0, rows, band):
            last = min(first + band, rows) - 1
            low, high = window.inputs(first, last)
            of = copied.band(made.prepared, (first, last), low, (images[0], images[1]))
            assert (of is None) == (low > high)
            if of is not None:
                places = [(low, high), (first, last)]
                held = {
                    index: parts[index][begin * image.row_bytes : (end + 1) * image.row_bytes]
                    for index, image, (begin, end) in zip(made.args, images, places, strict=True)
                }
                ended = _at_end(replace(made, prepared=of), held, copied)
                _execute(replace(made, prepared=of), held)
                assert ended in (None, held[made.args[1]])
                at, size = made.args[1], images[1].row_bytes
                parts[at][first * size : (last + 1) * size] = held[at]
        assert parts == whole
