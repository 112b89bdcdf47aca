"""What prepared calls cost, in instructions: estimates from what kernels loop over.

Numbers are those of loops in kernels/cortex_m. Where one is not known well, it is small
for whole calls and large for bands: a run then becomes less slow than estimated. In an emulator
the longest step of DS-CNN and of ResNet-8 takes 0.75 to 1.35 of its estimate, which
tests/qemu/test_bounded_steps.py holds.
"""

from __future__ import annotations

from math import prod
from types import MappingProxyType
from typing import Final

from orchestrator.method.linked import LinkedCall
from orchestrator.method.rows.bands import CONVOLUTION, TRANSPOSED, RowCall, pixels_of
from orchestrator.method.rows.copies import COPY, number_at
from orchestrator.method.windows import Core, Cost

_ISAS: Final = ("scalar", "dsp", "mve")
"""All of the following have a number for each of these."""
# Numbers without a word of their own are by hand, from runs in the emulator: the scalar column from
# DS-CNN on a Cortex-M0+ (tests/qemu/test_bounded_steps.py), others from DS-CNN, ResNet-8,
# MobileNetV1, MobileNetV2 and a U-Net by rows.
_PLAIN_SETUP: Final = (600, 60, 60)
"""Instructions of a call beside its loops."""
_PRODUCT_SETUP: Final = (900, 600, 300)
"""Instructions of a call whose weights are not packed, beside its loops."""
# Loops of convolve.cpp, depthwise.cpp and tile_dsp.h, or of convolve_mve.cpp. `nox -s speeds` finds
# 2.1 to 9.8 of a product on an M4, and 0.4 to 0.5 of a convolution or matrix product on an M55.
_PRODUCT: Final = (6.2, 5.0, 0.5)
"""Instructions per product in kernels whose weights are not packed."""
# A Cortex-M0+ has no product of 64 bits, with which sums are scaled.
_OUTPUT: Final = (120.0, 0.0, 0.0)
"""Instructions per output of these kernels, beside its products."""
_INT8: Final = "orch::cortex_m::"
# Kernels of int8 with a row in docs/kernel-speeds.md have its figures for M4 and M55: `nox -s
# speeds` measures them. By hand are additions, products and activations, which depend on their
# numbers, copies and moves, and scaled images.
_ITEM: Final = MappingProxyType(
    {
        # A plain addition takes 16 on an M4: the scales of the call decide.
        "orch::cortex_m::AddCall": (200.0, 20.0, 4.0),
        "orch::cortex_m::MultiplyCall": (90.0, 20.0, 2.5),
        "orch::cortex_m::ActivationCall": (10.0, 6.0, 0.3),
        "orch::portable::ScaleCall": (400.0, 60.0, 60.0),
        COPY: (5.0, 2.5, 1.5),
        # Each item is a byte: `move_bytes` moves words, or vectors. A move in DS-CNN takes 0.89 of
        # this on an M4, with its setup, and 0.58 on an M55.
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
"""Instructions per item that is written."""
# Inner loops of copies.cpp: an image of 3 x 32 x 32 that becomes channels-last has 1024 of three
# items, of 43,038 instructions on an M4, 44,062 or 33,819 on an M55 by compiler, 53,294 on an M0+.
_COPIED: Final = MappingProxyType(
    {
        "orch::copy_items": ((25, 9), (19, 8), (18, 5)),
        "orch::copy_blocks": ((0, 53), (0, 40), (0, 25)),
    }
)
"""Instructions of an inner loop of a copy, and of each of its blocks, if they are more."""
_TAP: Final = MappingProxyType(
    {
        "orch::cortex_m::AveragePoolCall": (20.0, 6.5, 3.0),
        "orch::cortex_m::MaxPoolCall": (15.0, 6.2, 2.5),
    }
)
"""Instructions per item of a window."""
_ANY_ITEM: Final = (10.0, 5.0, 2.0)
"""Instructions per item that is written, of other calls."""
_AVERAGED: Final = (8.0, 1.9, 0.7)
"""Instructions per item of an image that is averaged as a whole."""
# Steps of DS-CNN and ResNet-8 take 0.95 of this on an M4, and half of it on an M55.
_SUMMED: Final = (9.0, 2.6, 2.3)
"""Instructions per item of an image that is averaged by rows."""
SUMS: Final = "orch::cortex_m::SumRowsCall"
_IMAGE: Final = "orch::cortex_m::AverageImageCall"
_SIDES, _AXES = ("height", "width"), ("rows", "columns")


def whole_cost(call: RowCall, core: Core, rows: int) -> int:
    """Instructions of a prepared call as it is; arguments as for `costs_of`."""
    if (pixels := pixels_of(call.call)) is not None:
        return round(_AVERAGED[_ISAS.index(core.isa)] * pixels * call.items)
    return sum(cost.of(rows) for cost in costs_of(call, core, rows))


def costs_of(call: RowCall, core: Core, rows: int) -> tuple[Cost, ...]:
    """What bands of a call cost; all of these are added up.

    Args:
        call: The call.
        core: What it runs on.
        rows: Of its output.
    """
    if call.header is None:
        return (_plain(call, _ISAS.index(core.isa), rows),)
    return call.header.costs(core, rows, call.weights)


def is_estimated(call: LinkedCall, core: Core) -> bool:
    """Whether `whole_cost` knows what a call costs: int8 kernels and copies."""
    if call.prepared is None or core.isa not in _ISAS:
        return False
    kind = call.prepared.struct
    return kind in _ITEM or kind.startswith(_INT8)


def sums_cost(items: int, rows: int, core: Core) -> Cost:
    """What it costs to add up some rows of so many items."""
    at = _ISAS.index(core.isa)
    return Cost(setup=_PLAIN_SETUP[at], tile=round(_SUMMED[at] * items / rows))


def _plain(row_call: RowCall, at: int, rows: int) -> Cost:
    """The cost of a call whose weights are not packed, or that has none."""
    call, items = row_call.call, row_call.items
    kind, numbers = call.form.struct, call.form.numbers
    if kind in (CONVOLUTION, TRANSPOSED):
        pixels: float = prod(number_at(numbers, f"sizes.out.{n}") for n in _SIDES)
        if kind == TRANSPOSED:
            strides = (number_at(numbers, f"sizes.{n}.axis.stride") for n in _AXES)
            pixels /= prod(strides)  # each has a part of the taps
        weights, each = len(row_call.weights), _PRODUCT[at]
        setup = _PRODUCT_SETUP[at]
        # Without a price for depthwise calls, the plan that `auto` took for a mixed net made it
        # 12.6 % slower; with it, 4.3 %.
        if _ISAS[at] == "mve":  # sums of weights; of four channels what they need
            is_depthwise = "depthwise" in call.function
            each = 3.6 if is_depthwise else each
            setup += weights * (50 if is_depthwise else 2)
        row = each * weights * pixels + _OUTPUT[at] * items
        return Cost(setup=setup, tile=round(row / rows))
    each = _ITEM.get(kind, _ANY_ITEM)[at]
    if kind in _TAP:
        window = (number_at(numbers, f"pool.{n}.kernel") for n in _AXES)
        each = _TAP[kind][at] * prod(window)
    elif kind in (SUMS, _IMAGE):
        each = (_SUMMED if kind == SUMS else _AVERAGED)[at] * number_at(numbers, "pixels")
    found = each * items
    if kind == COPY and call.form.shape is not None:
        shape = call.form.shape.numbers
        counts = [number_at(shape, f"{loop}.count") for loop in ("outer", "middle", "inner")]
        line, block = _COPIED[call.function][at]
        found = max(found, line * prod(counts[:2]) + block * prod(counts))
    return Cost(setup=_PLAIN_SETUP[at], tile=round(found / rows))
