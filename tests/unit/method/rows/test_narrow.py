"""Kernels for bands of few pixels: where they are taken, and what is reckoned then."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Final

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import OperatorName
from orchestrator.method.linked import LinkedCall, LinkedMethod, Prepared
from orchestrator.method.passes.packing.kernels import packed_header
from orchestrator.method.passes.packing.pixels import Pixels
from orchestrator.method.passes.packing.strips import Strips
from orchestrator.method.places import Access
from orchestrator.method.rows.bands import RowCall
from orchestrator.method.rows.extracted import with_narrow_kernels, with_scratch_saving
from orchestrator.method.windows import Core, Cost, ScratchSavingVariant
from orchestrator.program.values import Allocation, Dynamism, TensorValue

OPERATOR: Final = OperatorName("test", "rows", "out")
STRIPS: Final = ((6, 6), (5, 6), (5, 4), (7, 4))
"""Pixels of a row, and the most at once."""
_S: Final = ScalarType


def depthwise(rows: int, stride: int = 1, batch: int = 1) -> tuple[int, ...]:
    """A PackedDepthwise of an image of 5 columns and 64 channels."""
    axis, out = (3, rows, 3, stride, 0, 1), 5 // stride
    return (*axis, 5, out, 3, stride, 1, 1, batch, 64, 64, -128, out, 1280, 0)


def matrix(pixels: int, outputs: int = 64) -> tuple[int, ...]:
    """A PackedPairs whose pixels lie in a line."""
    line = (pixels, pixels, 1, 1, 0, 1)
    whole = (1, 64, outputs, 64, 0, 0, 128, 9, 1, 64, 125, 0)
    return (1, 1, 1, 1, 0, 1, *line, *whole)


def pixels(count: int, channels: int = 64) -> tuple[int, ...]:
    """A turned PackedPixels of a row of 1 x 1 windows."""
    line = (count, count, 1, 1, 0, 1)
    lines = (channels, count * channels, channels, count * channels)
    whole = (1, channels, 64, channels, 0, 0, 0, count * channels, *lines, 0, 0, 0, 0)
    return (*line, 1, 1, 1, 1, 0, 1, *whole)


def taps(channels: int, taps: int = 10, width: int = 10) -> tuple[int, ...]:
    """The same of windows of several taps below each other, for 4 pixels."""
    depth = -(-taps * channels // 16) * 16
    lines = (channels, width * channels, 64, 4 * 64)
    whole = (1, channels, 64, depth, 0, 0, 4, 0, *lines, 0, 0, 0, 0)
    return (4, 4, 1, 1, 0, 1, taps, 1, taps, 1, 0, 1, *whole)


def strips(pixels: int, at_once: int) -> tuple[int, ...]:
    """A PackedDepthwiseStrips of a row of 3 x 3 windows."""
    across, along = (3, 1, 3, 1, 0, 1), (pixels, pixels, 3, 1, 1, 1)
    rest = (1, 64, 0, 64 * pixels, 64, 64 * pixels, 64)
    return (*across, *along, *rest, 2, at_once, 1, at_once + 2, 0, 64, 128, 768)


def method_of(*calls: tuple[str, tuple[int, ...]]) -> LinkedMethod:
    """A method by rows with bands of calls that have other headers as a whole."""
    values: list[TensorValue] = []
    data, instructions = [], []
    for name, header in calls:
        args = []
        for place in (Allocation(memory_id=1, offset_bytes=0), None):
            args.append(len(values))
            values.append(
                TensorValue(
                    dtype=_S.Char,
                    sizes=(4,),
                    dim_order=(0,),
                    dynamism=Dynamism.STATIC,
                    data_buffer_index=0,
                    allocation=place,
                    extra=None,
                    requires_grad=False,
                )
            )
        other = [9, 9, *header[2:]]
        data.append((args[1], struct.pack(f"<{len(other)}i", *other)))
        instructions.append(
            LinkedCall(
                operator=OPERATOR,
                function=f"orch::cortex_m::{name}",
                args=tuple(args),
                outs=(args[0],),
                accesses=(Access.FILLS, Access.READS),
                prepared=Prepared(
                    struct="orch::cortex_m::PackedCall",
                    memory=(("out", 0), ("header", 1)),
                    numbers=(),
                    header=header,
                ),
            )
        )
    return LinkedMethod(
        model="m",
        name="forward",
        values=tuple(values),
        instructions=tuple(instructions),
        inputs=(),
        outputs=(),
        data=tuple(data),
        origins=tuple(range(len(instructions))),
        by_rows=True,
    )


def scratch_saving(
    method: LinkedMethod, call: LinkedCall, core: Core, rows: int
) -> ScratchSavingVariant | None:
    """What the whole call, whose header is in memory, is with less scratch memory."""
    call = replace(call, prepared=replace(call.form, header=()))
    header = packed_header(method, call)
    assert header is not None
    return header.scratch_saving(core, rows, b"")


def functions(method: LinkedMethod, whole_cost: int = 10_000) -> list[str]:
    """What its calls become."""
    made = with_narrow_kernels(method, whole_cost)
    assert made.data == method.data
    pairs = zip(made.instructions, method.instructions, strict=True)
    assert all(
        isinstance(a, LinkedCall)
        and isinstance(b, LinkedCall)
        and replace(a, function=b.function) == b
        for a, b in pairs
    )
    calls = [call for call in made.instructions if isinstance(call, LinkedCall)]
    return [call.function.rpartition("::")[2] for call in calls]


@pytest.mark.parametrize("limited", ["", "limited_"])
def test_bands_of_one_row_or_two_have_a_kernel(limited: str) -> None:
    name = f"{limited}packed_depthwise_3x3"
    row, both = f"{limited}packed_depthwise_row", f"{limited}packed_depthwise_two_rows"
    headers = [
        *(depthwise(1), depthwise(2), depthwise(3)),
        *(depthwise(1, 2), depthwise(2, 2), depthwise(1, batch=2)),
    ]
    method = method_of(*((name, header) for header in headers))
    others = [f"{row}_by_two", name, name]
    assert functions(method) == [row, both, name, *others]


def test_the_kernel_for_two_rows_computes_one_where_that_is_rare() -> None:
    calls = [("packed_depthwise_3x3", depthwise(rows)) for rows in (1, *[2] * 9)]
    both = "packed_depthwise_two_rows"
    assert functions(method_of(*calls), 2_000_000) == [both] * 10


def test_a_kernel_that_is_linked_is_taken_for_all() -> None:
    names = ("packed_depthwise_3x3", "limited_packed_depthwise_row")
    method = method_of(*((name, depthwise(1)) for name in names))
    row = "packed_depthwise_row"
    assert functions(method, 10**9) == [row, f"limited_{row}"]


@pytest.mark.parametrize("limited", ["", "limited_"])
@pytest.mark.parametrize(
    ("stride", "inputs", "outputs", "at_once", "columns"),
    [
        (1, 48, 48, 16, 18),
        (1, 18, 18, 18, 20),
        (1, 72, 72, 18, 20),
        (1, 19, 19, 10, 12),
        (2, 48, 24, 8, 17),
        (2, 19, 9, 9, 19),
        (1, 5, 5, 5, 7),
    ],
)
def test_rows_of_windows_are_computed_in_parts(  # noqa: PLR0917
    stride: int, inputs: int, outputs: int, at_once: int, columns: int, limited: str
) -> None:
    """As equal as they can be, of 20 columns of inputs at most."""
    header = list(depthwise(1, stride))
    header[6:8] = inputs, outputs
    method = method_of((f"{limited}packed_depthwise_3x3", tuple(header)))
    (call,) = method.instructions
    assert isinstance(call, LinkedCall)
    assert call.prepared is not None
    few = scratch_saving(replace(method, data=_whole(header)), call, Core("dsp"), 1)
    assert few is not None
    assert few.one_row
    assert few.scratch_bytes == 32 * columns
    changed = with_scratch_saving(method, call)
    header[16] = at_once
    row = f"orch::cortex_m::{limited}packed_depthwise_row"
    assert changed == replace(
        call,
        function=f"{row}_by_two" if stride == 2 else row,
        prepared=replace(call.prepared, header=tuple(header)),
    )


@pytest.mark.parametrize(
    "changed",
    [
        {10: 3},  # padding: a part may lie beside the image
        {7: 7},  # outputs: the last window lies behind it
        {12: 2},  # batch
    ],
)
def test_windows_without_inputs_keep_their_kernel(changed: dict[int, int]) -> None:
    header = list(depthwise(1))
    for at, word in changed.items():
        header[at] = word
    method = method_of(("packed_depthwise_3x3", tuple(header)))
    (call,) = method.instructions
    assert isinstance(call, LinkedCall)
    assert scratch_saving(replace(method, data=_whole(header)), call, Core("dsp"), 1) is None
    assert functions(method, 1) == ["packed_depthwise_3x3"]


def _whole(header: list[int]) -> tuple[tuple[int, bytes], ...]:
    """Data of a method of one call with a header."""
    return ((1, struct.pack(f"<{len(header)}i", *header)),)


def test_all_convolutions_have_the_kernel_for_two_pixels() -> None:
    """So that the other one is not linked as well."""
    names = ("packed_conv2d", "limited_packed_conv2d", "packed_conv2d")
    method = method_of(*zip(names, map(matrix, (5, 7, 6)), strict=True))
    assert functions(method) == [f"{name}_two" for name in names]


@pytest.mark.parametrize(
    "call",
    [
        ("packed_conv2d", matrix(6)),
        ("int4_packed_conv2d", matrix(5)),
        ("packed_matrix", matrix(5)),
        ("packed_depthwise", depthwise(1)),
        ("packed_lines", matrix(5)),
        ("int4_packed_pixels", pixels(5)),
        ("packed_depthwise_3x3", depthwise(3)),
        ("packed_depthwise_3x3", depthwise(2, 2)),
    ],
)
def test_others_keep_their_kernels(call: tuple[str, tuple[int, ...]]) -> None:
    assert functions(method_of(call), 1) == [call[0]]


@pytest.mark.parametrize("limited", ["", "limited_"])
@pytest.mark.parametrize(
    ("name", "odd", "even"),
    [
        *((row.name, pixels(5), pixels(6)) for row in Pixels.kernels() if row.is_whole),
        ("packed_pixels", taps(1), taps(9)),
        ("packed_pixels", taps(8), taps(12)),
        ("packed_pixels", taps(3, 16), taps(3, 17)),
    ],
)
def test_odd_rows_have_a_kernel_for_vectors(
    name: str, odd: tuple[int, ...], even: tuple[int, ...], limited: str
) -> None:
    """And so have lines of few channels, which that brings together at once."""
    name = limited + name
    assert functions(method_of((name, even)), 1) == [name]
    assert functions(method_of((name, odd))) == [f"{name}_band"]
    assert functions(method_of((name, even), (name, odd))) == [f"{name}_band"] * 2


@pytest.mark.parametrize("limited", ["", "limited_"])
def test_strips_have_a_kernel_for_bands(limited: str) -> None:
    name = f"{limited}packed_depthwise_strips"
    whole, band = (row.name for row in Strips.kernels())
    saved = [Strips.of(strips(*s)).saved(whole, band) for s in STRIPS]
    even, odd, alone, short = (s or 0 for s in saved)
    # Columns beside the image; then the last pixel, if there are two in a strip.
    assert 0 < even < odd - 100
    assert 0 < alone < short - 100
    assert functions(method_of((name, strips(5, 6)))) == [f"{name}_band"]


@pytest.mark.parametrize(
    "call",
    [
        ("packed_conv2d", matrix(5)),
        ("packed_depthwise_3x3", depthwise(1)),
        ("packed_pixels", pixels(5)),
    ],
)
def test_a_kernel_has_to_pay(call: tuple[str, tuple[int, ...]]) -> None:
    """More calls make it pay."""
    method = method_of(call)
    assert functions(method, 10**7) == [call[0]]
    assert functions(method_of(*[call] * 100), 10**7) != [call[0]] * 100


@pytest.mark.parametrize("two", [66, 75, 100])
def test_two_pixels_cost_what_the_best_mix_does(two: int) -> None:
    cost = Cost(setup=7, tile=100, together=3, pixels=1, two=two)
    for pixels in range(1, 30):
        best = min(
            100 * threes + two * twos
            for threes in range(11)
            for twos in range(3)
            if 3 * threes + 2 * twos >= pixels
        )
        assert cost.of(pixels) == 7 + best


def test_one_row_costs_what_its_kernel_does() -> None:
    cost = Cost(setup=7, tile=100, together=2, first_rows=(60,))
    assert [cost.of(rows) for rows in (1, 2, 3)] == [60, 107, 207]
    assert replace(cost, first_rows=()).of(1) == 107


@pytest.mark.parametrize("limited", ["", "limited_"])
def test_convolutions_of_whole_words_take_fewer_pixels_at_once(limited: str) -> None:
    method = method_of((f"{limited}packed_conv2d", matrix(5)))
    (call,) = method.instructions
    assert isinstance(call, LinkedCall)
    few = scratch_saving(method, call, Core("dsp"), 1)
    assert few is not None
    assert few.scratch_bytes == 4 * 64  # pairs of two pixels
    assert [cost.together for cost in few.costs] == [2]
    changed = with_scratch_saving(method, call)
    assert changed == replace(call, function=f"orch::cortex_m::{limited}packed_conv2d_few")
    assert functions(replace(method, instructions=(changed,)), 1) == [f"{limited}packed_conv2d_few"]


@pytest.mark.parametrize("limited", ["", "limited_"])
def test_matrix_products_take_no_scratch_memory(limited: str) -> None:
    """Calls for all rows of them."""
    header = (3, 64, 64, 40, 256, 2604, 1 << 30, 0, 0, 0, 0, 0, 0)
    method = method_of((f"{limited}packed_matrix", header))
    (call,) = method.instructions
    assert isinstance(call, LinkedCall)
    method = replace(method, data=_whole([*header]))
    few = scratch_saving(method, call, Core("dsp"), 1)
    assert few is not None
    assert few.whole
    assert few.scratch_bytes == 0
    assert with_scratch_saving(method, call) == replace(
        call, function=f"orch::cortex_m::{limited}packed_matrix_few"
    )
    # Rows of images may begin beside words.
    assert scratch_saving(method, call, Core("dsp"), 3) is None
    # Some taps of the last step would lie beyond the inputs.
    odd = [header[0], 63, *header[2:]]
    assert scratch_saving(replace(method, data=_whole(odd)), call, Core("dsp"), 1) is None


@pytest.mark.parametrize(
    ("name", "channels"),
    [
        *(("packed_conv2d", 63), ("int4_packed_conv2d", 64), ("packed_matrix", 64)),
        ("packed_depthwise", 64),
    ],
)
def test_others_take_as_many_as_before(name: str, channels: int) -> None:
    header = [*matrix(5)]
    header[13] = channels
    method = method_of((name, tuple(header)))
    (call,) = method.instructions
    assert isinstance(call, LinkedCall)
    assert scratch_saving(method, call, Core("dsp"), 1) is None


@pytest.mark.parametrize(
    ("name", "header", "may"),
    [
        ("packed_conv2d", {}, True),
        ("limited_packed_conv2d", {}, True),
        ("packed_conv2d", {2: 3}, False),  # rows of a window
        ("packed_conv2d", {9: 2}, False),  # stride of columns
        ("packed_conv2d", {10: 1}, False),  # padding
        ("int4_packed_conv2d", {}, False),  # it reads inputs for each block
        ("packed_matrix", {}, False),
        ("packed_pixels", {}, False),
    ],
)
def test_pixels_that_are_widened_may_be_written_over(
    name: str,
    header: dict[int, int],
    may: bool,  # noqa: FBT001  # a parameter
) -> None:
    given = pixels(5) if name == "packed_pixels" else (1, 1, *matrix(5)[2:])
    words = [header.get(at, word) for at, word in enumerate(given)]
    method = method_of((name, tuple(words)))
    # The header of the whole call, which begins with other rows.
    data = tuple((i, struct.pack(f"<{len(words)}i", *words)) for i, _ in method.data)
    (call,) = method.instructions
    assert isinstance(call, LinkedCall)
    assert RowCall.of(replace(method, data=data), call).may_write_over_input == may


@pytest.mark.parametrize(
    ("struct_name", "may"),
    [("Add", True), ("Multiply", True), ("Extreme", True), ("Divide", False)],
)
def test_kernels_of_items_may_write_over_them(
    struct_name: str,
    may: bool,  # noqa: FBT001  # a parameter
) -> None:
    method = method_of(("quantized", matrix(5)))
    (call,) = method.instructions
    assert isinstance(call, LinkedCall)
    assert call.prepared is not None
    name = f"orch::cortex_m::{struct_name}Call"
    prepared = replace(call.prepared, struct=name)
    assert RowCall.of(method, replace(call, prepared=prepared)).may_write_over_input == may
