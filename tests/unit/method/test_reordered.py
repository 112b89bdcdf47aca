"""Views that lie in another order than their base are noticed, others are not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.build.product_warnings import _reordered
from orchestrator.method.link import reordered_reads
from orchestrator.program.program import Frame
from tests.unit.method.methods import tensor
from tests.unit.method.test_effects import method

if TYPE_CHECKING:
    from orchestrator.program.values import TensorValue

LAST = (0, 2, 3, 1)


def ordered(sizes: tuple[int, ...], order: tuple[int, ...]) -> TensorValue:
    return replace(tensor(sizes, 0), dim_order=order)


def plain(*sizes: int) -> TensorValue:
    return tensor(sizes, 0)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (plain(1, 3, 4, 4), plain(1, 48)),
        (ordered((1, 3, 4, 4), LAST), ordered((1, 3, 4, 4), LAST)),
        (ordered((1, 3, 1, 1), LAST), plain(1, 3)),  # one pixel
        (ordered((2, 1, 4, 4), LAST), plain(2, 16)),  # one channel
        (ordered((2, 3, 4, 4), LAST), ordered((2, 3, 16), (0, 2, 1))),
    ],
)
def test_views_in_the_order_of_their_base(written: TensorValue, read: TensorValue) -> None:
    out = tensor((48,), 64)
    values = (tensor(written.sizes, 128), written, read, out)
    found = method(
        values, ("aten::relu.out", (0, 1, 1)), ("aten::relu.out", (2, 3, 3)), inputs=(0,)
    )
    assert reordered_reads(found) == ()


def test_a_view_in_another_order() -> None:
    image, view = ordered((1, 3, 4, 4), LAST), plain(1, 3, 16)
    out = tensor((48,), 64)
    found = method((image, view, out), ("aten::relu.out", (1, 2, 2)), inputs=(0,), outputs=(2,))
    (read,) = reordered_reads(found)
    assert (read.instruction, read.read, read.written) == (0, view, image)
    frames = ((Frame(filename="net.py", line=7, name="view", context=""),),)
    (text,) = _reordered(replace(found, frames=frames))
    assert text.startswith("forward: aten::relu.out (net.py:7) reads [1, 3, 16]")
    # Another tensor was written there in the meantime.
    other = method(
        (image, view, out),
        ("aten::relu.out", (2, 1, 1)),
        ("aten::relu.out", (1, 2, 2)),
        inputs=(0,),
    )
    assert reordered_reads(other) == ()
