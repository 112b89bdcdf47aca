"""What prepared calls cost, in instructions: estimates from what kernels loop over.

Numbers are those of loops in kernels/cortex_m. Where one is not known well, it is small
for whole calls and large for bands: a run then becomes less slow than estimated.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from types import MappingProxyType
from typing import Final, NamedTuple

from orchestrator.core.lazy_bytes import Bytes
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.packing.convolution import TILE, WORD, kernel_of
from orchestrator.method.passes.packing.int4 import Blocks
from orchestrator.method.passes.packing.strips import strips_of
from orchestrator.method.passes.packing.turned import (
    band_row_saves,
    is_turned,
    row_cost,
    strips_cost,
)
from orchestrator.method.places import Access
from orchestrator.method.rows.bands import CONVOLUTION, TRANSPOSED, pixels_of
from orchestrator.method.rows.copies import COPY, number_at
from orchestrator.method.rows.network import Cost
from orchestrator.method.rows.strips import is_strips
from orchestrator.method.steps import header_of

_ISAS: Final = ("scalar", "dsp", "mve")
"""Of which all of the following have numbers."""
_SETUP: Final = (900, 170, 160)
"""Of a call with packed weights; on scalar cores of any."""
_PLAIN_SETUP: Final = (600, 60, 60)
_PRODUCT_SETUP: Final = (900, 600, 300)
_PRODUCT: Final = (6.2, 5.0, 0.5)
"""Instructions per product in kernels whose weights are not packed."""
_OUTPUT: Final = (120.0, 0.0, 0.0)
"""Instructions per output of these kernels, beside its products."""
_INT8: Final = "orch::cortex_m::"
_ITEM: Final = MappingProxyType(
    {
        "orch::cortex_m::AddCall": (200.0, 20.0, 4.0),
        "orch::cortex_m::MultiplyCall": (90.0, 20.0, 2.5),
        "orch::cortex_m::ActivationCall": (10.0, 6.0, 0.3),
        "orch::portable::ScaleCall": (400.0, 60.0, 60.0),
        COPY: (5.0, 2.5, 1.5),
        "orch::MoveCall": (0.5, 0.3, 0.1),
        "orch::QuantizeNearCall": (290.0, 7.3, 2.3),
        "orch::QuantizeVectorsCall": (290.0, 7.3, 2.3),
        "orch::DequantizeCall": (160.0, 8.2, 1.7),
        "orch::cortex_m::DivideCall": (400.0, 70.0, 5.6),
        "orch::cortex_m::SoftmaxCall": (500.0, 142.0, 40.0),
        "orch::cortex_m::TransposeCall": (20.0, 9.2, 8.2),
        "orch::cortex_m::PadCall": (10.0, 5.8, 2.0),
        "orch::cortex_m::AverageSumsCall": (100.0, 13.5, 13.0),
    }
)
"""Of an item that is written."""
_TAP: Final = MappingProxyType(
    {
        "orch::cortex_m::AveragePoolCall": (20.0, 8.3, 6.2),
        "orch::cortex_m::MaxPoolCall": (15.0, 6.2, 2.5),
    }
)
"""Instructions per item of a window."""
_ANY_ITEM: Final = (10.0, 5.0, 2.0)
_AVERAGED: Final = (8.0, 1.9, 1.3)
"""Of an item of an image that is averaged as a whole, and of one by rows."""
_SUMMED: Final = (9.0, 2.6, 2.3)
SUMS: Final = "orch::cortex_m::SumRowsCall"
_SIDES, _AXES = ("height", "width"), ("rows", "columns")
_LINE: Final = (1, 1, 1, 1, 0, 1)
"""Rows of an image whose pixels lie in a line."""
_ROWS_OUT, _COLUMNS_IN, _COLUMNS_OUT = 1, 6, 7
_ACROSS_OUT = 7
_ROWS = (2, 3, 5)
"""Kernel, stride and dilation of rows."""
_BATCH, _CHANNELS, _OUT_CHANNELS, _DEPTH, _PAIRS = 12, 13, 14, 15, 15
_STRIDE, _IN_PLACE, _BLOCKS = 9, 19, 19
_WINDOW = (2, 8, 13)
"""Words of headers."""


class Core(NamedTuple):
    """What kernels run on.

    Args:
        isa: Instruction set of the core.
        fast: Whether the product favours speed.
    """

    isa: str
    fast: bool = False


def whole_cost(method: LinkedMethod, call: LinkedCall, core: Core, rows: int) -> int:
    """Instructions of a prepared call as it is; arguments as for `costs_of`."""
    if (pixels := pixels_of(call)) is not None:
        each = _AVERAGED[_ISAS.index(core.isa)]
        return round(each * pixels * _items(method, call))
    return sum(cost.of(rows) for cost in costs_of(method, call, core, rows))


def costs_of(method: LinkedMethod, call: LinkedCall, core: Core, rows: int) -> tuple[Cost, ...]:
    """What bands of a call cost; all of these are added up.

    Args:
        method: Its method.
        call: A prepared call.
        core: What it runs on.
        rows: Of its output.
    """
    header, at = call.form.header or header_of(method, call), _ISAS.index(core.isa)
    if header is None:
        return (_plain(method, call, at, rows),)
    if is_strips(call.function):
        return _strips(header)
    name = kernel_of(call.function)
    if name.endswith("matrix"):
        pixel = round(0.9 * _weight_bytes(method, call))
        return (Cost(setup=_SETUP[at], tile=pixel, pixels=header[0] // rows),)
    if name.endswith("packed_depthwise_3x3"):
        return _depthwise_3x3(header, core)
    if name.endswith("packed_depthwise"):
        taps = 2 * header[_PAIRS] * header[_CHANNELS]
        line = header[_COLUMNS_OUT] * taps * (3.4 if core.isa == "dsp" else 1.0)
        return (Cost(setup=_SETUP[at] + 2 * header[_CHANNELS], tile=round(line)),)
    cost = _pixels(name, header, core, rows)
    is_int4 = name.startswith(("int4_packed_conv2d", "int4_packed_pixels"))
    head = bytes(_weights(method, call)[:WORD])
    return (cost, *(_int4(head, header, core, cost) if is_int4 else ()))


def _int4(head: bytes, header: tuple[int, ...], core: Core, cost: Cost) -> tuple[Cost, ...]:
    """What it costs more that weights of 4 bits become int8, some at a time.

    Args:
        head: The first word of the weights.
        header: Of the call.
        core: What it runs on.
        cost: Of the call without that.
    """
    of = Blocks.of_pairs if core.isa == "dsp" else Blocks.of_pixels
    count = of(header).count_in(head)
    made = header[_DEPTH] * header[_OUT_CHANNELS]
    # Inputs are brought together for each block anew.
    if core.isa == "mve":
        again = strips_cost(header) if is_turned(header) else 30 * cost.together
        made = made * 9 // 8
    else:
        again, made = 5 * header[_DEPTH] + 440, 4 * made
    return (Cost(setup=made), replace(cost, setup=0, tile=again * (count - 1)))


def is_estimated(call: LinkedCall, core: Core) -> bool:
    """Whether `whole_cost` knows what a call costs: int8 kernels and copies."""
    if call.prepared is None or core.isa not in _ISAS:
        return False
    kind = call.prepared.struct
    return kind in _ITEM or kind.startswith(_INT8)


def narrow_saves(name: str, header: tuple[int, ...]) -> int | None:
    """What a call of a kernel takes less with the one for few pixels.

    None if there is no such kernel.
    """
    if name.startswith("packed_pixels"):
        return band_row_saves(header) * header[_ACROSS_OUT]
    if is_strips(name):
        strips = strips_of(header)
        lines = -(-header[_CHANNELS] // 8) * strips.across.out
        return lines * strips.odd_saves // 2 + strips.filling_saves
    rows = header[_ROWS_OUT]
    if name == "packed_depthwise_two_rows":
        one = row_of_windows_cost(header, header[_COLUMNS_OUT])
        return two_rows_of_windows_cost(header) - one if rows == 1 else None
    if name == "packed_depthwise_3x3":
        (cost,) = _depthwise_3x3(header, Core("dsp"))
        if rows > len(cost.few) or header[_BATCH] > 1:
            return None
        # With the kernel that takes the most rows.
        return replace(cost, few=()).of(rows) - cost.few[-1]
    cost = _pixels(name, header, Core("dsp"), rows)
    return replace(cost, two=0).of(rows) - cost.of(rows)


def few_cost(header: tuple[int, ...], core: Core, rows: int) -> Cost:
    """What a call costs that takes two pixels at once, with DSP instructions."""
    depth, outputs = header[_DEPTH], header[_OUT_CHANNELS]
    return Cost(
        setup=_SETUP[_ISAS.index(core.isa)],
        tile=outputs * (25 * depth // 16 + 14) + 4 * depth + 240,
        together=2,
        pixels=header[_ROWS_OUT] * header[_COLUMNS_OUT] // rows,
    )


def few_matrix_cost(pairs: Cost, core: Core) -> Cost:
    """What a matrix product costs that makes pairs of inputs for each tile anew.

    Args:
        pairs: What it costs with all pairs in scratch memory.
        core: What it runs on.
    """
    return replace(pairs, tile=pairs.tile * (107 if core.fast else 104) // 100)


def sums_cost(items: int, rows: int, core: Core) -> Cost:
    """What it costs to add up some rows of so many items."""
    at = _ISAS.index(core.isa)
    return Cost(setup=_PLAIN_SETUP[at], tile=round(_SUMMED[at] * items / rows))


def _strips(header: tuple[int, ...]) -> tuple[Cost, ...]:
    """Of depthwise calls in strips, for vectors."""
    strips = strips_of(header)
    setup = 2 * _SETUP[_ISAS.index("mve")] + 150 * strips.parts
    setup -= 0 if strips.is_turned else strips.filling_saves
    # 16 channels have a strip, of which 8 are computed at once.
    strip = -(-header[_CHANNELS] // 16) * strips.strip_cost
    eights = -(-header[_CHANNELS] // 8)
    line = eights * strips.line_cost // 2
    if not strips.is_turned:
        filled = Cost(setup=setup, tile=strip, together=strips.lines)
        return (filled, Cost(tile=line - eights * strips.odd_saves // 2))
    # Rows are along strips, two at once.
    count = -(-strips.across.out // strips.lines)
    pairs = -(-strips.along.out // 2)
    tile = (strips.across.out * line + count * strip) // pairs
    return (Cost(setup=setup, tile=tile, together=2),)


def _depthwise_3x3(header: tuple[int, ...], core: Core) -> tuple[Cost, ...]:
    """Of `packed_depthwise_3x3`, which pairs rows, for DSP instructions."""
    fours, columns = -(-header[_CHANNELS] // TILE), header[_COLUMNS_OUT]
    pairs = 16 * header[_COLUMNS_IN] + 70
    is_two = header[_STRIDE] == 1
    each = 16 if not is_two else 24 if core.fast else 26
    setup = _SETUP[_ISAS.index("dsp")]
    return (
        Cost(
            # Weights of four channels, and the pair of rows that windows begin with.
            setup=setup + fours * (200 + pairs),
            tile=fours * (pairs + TILE * (each * columns + 15)),
            together=2 if is_two else 1,
            few=(
                row_of_windows_cost(header, columns),
                *((two_rows_of_windows_cost(header),) if is_two else ()),
            ),
        ),
    )


def row_of_windows_cost(header: tuple[int, ...], at_once: int) -> int:
    """What the kernel for one row of 3 x 3 windows costs, some outputs at a time."""
    fours, columns = -(-header[_CHANNELS] // TILE), header[_COLUMNS_OUT]
    # Of outputs; of columns of inputs, which both of two parts have; of each part.
    shared = 3 - header[_STRIDE]
    parts = -(-columns // at_once)
    inputs = 17 * (header[_COLUMNS_IN] + shared * (parts - 1))
    row = inputs + TILE * 14 * columns + (TILE * 20 + 40) * parts
    return _SETUP[_ISAS.index("dsp")] * parts + fours * row


def two_rows_of_windows_cost(header: tuple[int, ...]) -> int:
    """The same of the kernel for two of them, or one, of whole rows."""
    fours, columns = -(-header[_CHANNELS] // TILE), header[_COLUMNS_OUT]
    row = 20 * header[_COLUMNS_IN] + TILE * (28 * columns + 22) + 40
    return _SETUP[_ISAS.index("dsp")] + fours * row


def _pixels(name: str, header: tuple[int, ...], core: Core, rows: int) -> Cost:
    """Of convolutions that take some pixels at once, whose inputs they gather."""
    depth, outputs = header[_DEPTH], header[_OUT_CHANNELS]
    columns, lines = header[_COLUMNS_OUT], header[_ROWS_OUT]
    setup, pixels = _SETUP[_ISAS.index(core.isa)], lines * columns // rows
    if core.isa == "scalar":
        return Cost(setup=setup, tile=round(8 * depth * outputs), pixels=pixels)
    if core == Core("dsp", fast=True) and header[: len(_LINE)] != _LINE:
        return _strips_of_three(header, setup, pixels)
    if core.isa == "dsp":  # three of all pixels
        loop = 17 * depth // 8 if core.fast else 9 * depth // 4
        tile = outputs * (loop + 25) + 5 * depth + 140
        tile += 0 if header[: len(_LINE)] == _LINE else 300
        two = 0 if name.startswith("int4") else tile * 17 // 25
        return Cost(setup=setup, tile=tile, together=3, pixels=pixels, two=two)
    if name.endswith("packed_pixel"):
        return Cost(setup=setup, tile=-(-outputs // 8) * (18 * depth // 16 + 35))
    return _vectors(name, header, setup, rows)


def _vectors(name: str, header: tuple[int, ...], setup: int, rows: int) -> Cost:
    """Of those that take pixels of a strip at once, for vectors."""
    is_lines = name.endswith("packed_lines")
    if is_turned(header):
        # As many strips for each row, however many rows there are.
        row = row_cost(header, is_lines=is_lines)
        if name.startswith("packed_pixels"):
            row -= band_row_saves(header)
        return Cost(setup=setup, tile=row * header[_ACROSS_OUT] // rows)
    # Down a column.
    depth, outputs = header[_DEPTH], header[_OUT_CHANNELS]
    columns, lines = header[_COLUMNS_OUT], header[_ROWS_OUT]
    in_place = not is_lines and header[_IN_PLACE]
    gathered = 0 if in_place else 30
    if is_lines:
        together, loop = 4, -(-outputs // 2) * (36 * header[_BLOCKS] + 40)
    else:
        together, loop = 2, -(-outputs // TILE) * (14 * depth // 16 + 32)
    tile = columns * (loop + together * gathered)
    if in_place and depth == prod(header[at] for at in _WINDOW):
        setup += 80 * columns
    else:
        setup += 260 * columns
        setup += tile if in_place else 0  # the last pixels are gathered
    if lines < rows:  # of several phases, each of which has some of the rows
        return Cost(setup=setup, tile=tile, together=together * rows // lines)
    return Cost(setup=setup, tile=tile, together=together, pixels=lines // rows)


def _strips_of_three(header: tuple[int, ...], setup: int, pixels: int) -> Cost:
    """Of the same that go down strips: the first row of a call shares no inputs."""
    depth, outputs = header[_DEPTH], header[_OUT_CHANNELS]
    kernel, stride, dilation = (header[at] for at in _ROWS)
    kept = max(kernel - stride, 0) if dilation == 1 else 0
    items = depth // kernel
    widened, moved = 13 * items // 4 + 40, items
    strips = -(-header[_COLUMNS_OUT] // 3)
    fresh = kernel - kept
    tile = outputs * (17 * depth // 8 + 25) + 60 + fresh * widened + kept * moved
    # Both strips at the borders copy inputs first.
    tile += fresh * (100 + items // 2) * min(2, strips) // strips
    more = strips * (100 + kept * (widened - moved))
    return Cost(setup=setup + more, tile=tile, together=3, pixels=pixels)


def _plain(method: LinkedMethod, call: LinkedCall, at: int, rows: int) -> Cost:
    """Of calls whose struct is all that they have."""
    kind, numbers = call.form.struct, call.form.numbers
    if kind in (CONVOLUTION, TRANSPOSED):
        pixels: float = prod(number_at(numbers, f"sizes.out.{n}") for n in _SIDES)
        if kind == TRANSPOSED:
            strides = (number_at(numbers, f"sizes.{n}.axis.stride") for n in _AXES)
            pixels /= prod(strides)  # each has a part of the taps
        weights, each = _weight_bytes(method, call), _PRODUCT[at]
        setup = _PRODUCT_SETUP[at]
        if _ISAS[at] == "mve":  # sums of weights; of four channels what they need
            is_depthwise = "depthwise" in call.function
            each = 3.6 if is_depthwise else each
            setup += weights * (50 if is_depthwise else 2)
        row = each * weights * pixels + _OUTPUT[at] * _items(method, call)
        return Cost(setup=setup, tile=round(row / rows))
    each = _ITEM.get(kind, _ANY_ITEM)[at]
    if kind in _TAP:
        window = (number_at(numbers, f"pool.{n}.kernel") for n in _AXES)
        each = _TAP[kind][at] * prod(window)
    elif kind == SUMS:
        each = _SUMMED[at] * number_at(numbers, "pixels")
    return Cost(setup=_PLAIN_SETUP[at], tile=round(each * _items(method, call) / rows))


def _items(method: LinkedMethod, call: LinkedCall) -> int:
    """Of what it writes."""
    written = (Access.FILLS, Access.UPDATES)
    return sum(method.tensor(i).numel for i, a in call.arguments if a in written)


def _weight_bytes(method: LinkedMethod, call: LinkedCall) -> int:
    """Of a call that multiplies with constants; else 0."""
    return len(_weights(method, call))


def _weights(method: LinkedMethod, call: LinkedCall) -> Bytes:
    """The constants that a call multiplies with; empty if it has none."""
    position = dict(call.form.memory).get("weights")
    return b"" if position is None else method.contents.get(call.args[position], b"")
