"""Headers of packed weights: their fields are those of the structs that kernels read."""

from __future__ import annotations

import re
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.method.passes.packing.kernels import FAMILIES
from orchestrator.method.passes.packing.pairs import Pairs
from orchestrator.method.windows import Axis, Image

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.method.passes.packing.header import Header

KERNEL_SOURCES: Final = Path(__file__).parents[3] / "kernels" / "cortex_m"
STRUCT: Final = re.compile(r"^struct (\w+) \{\n(.*?)^\};", re.MULTILINE | re.DOTALL)
MEMBER: Final = re.compile(r"^  (\w+) (\w+)(?:\[(\d)\])?;", re.MULTILINE)
INLINE: Final = ("PackedConvolution", "PackedSteps")
"""Structs whose members are fields of a header."""
STRUCTS: Final = {
    "Pairs": "PackedPairs",
    "Matrix": "PackedMatrix",
    "Depthwise": "PackedDepthwise",
    "Depthwise3x3": "PackedDepthwise",
    "Strips": "PackedDepthwiseStrips",
    "Pixels": "PackedPixels",
    "Lines": "PackedLines",
    "Pixel": "PackedPixel",
    "Int4Convolution": "PackedConvolution",
    "Int4Pairs": "PackedPairs",
    "Int4Matrix": "Int4Matrix",
    "Int4Pixels": "PackedPixels",
    "Int4Pixel": "PackedPixel",
}


def structs() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in ("packed.h", "packed_dsp.h", "int4.h"):
        found |= dict(STRUCT.findall((KERNEL_SOURCES / name).read_text()))
    return found


def members(name: str) -> Iterator[str]:
    for kind, member, count in MEMBER.findall(structs()[name]):
        if kind in INLINE:
            yield from members(kind)
        elif count:
            yield from (f"{member}_{at}" for at in range(int(count)))
        else:
            yield member


@pytest.mark.parametrize("family", FAMILIES)
def test_fields_are_those_of_the_struct(family: type[Header]) -> None:
    names = [field.name for field in fields(family)]
    assert names == [*members(STRUCTS[family.__name__])]


@pytest.mark.parametrize("family", FAMILIES)
def test_words_are_read_as_they_are_written(family: type[Header]) -> None:
    words = (*range(100, 140),)
    count = len(family.of(words).words())
    assert family.of(words).words() == words[:count]


def test_only_pixels_that_do_not_depend_on_each_other_are_a_line() -> None:
    """An image of one row in dim order (0, 3, 2, 1) has its columns as rows in memory."""
    line, one = Axis(size=8, out=8), Axis(size=1, out=1)
    windows = Axis(size=8, out=8, kernel=3, padding=1)
    words = [0] * len(fields(Pairs))
    memory = Image(rows=8, row_bytes=4)
    for rows, columns, window in (
        (one, line, line),
        (line, one, line),
        (one, windows, one),  # which is not the eight rows of the memory: all are needed
        (windows, one, windows),
    ):
        header = replace(Pairs.of([*rows.words(), *columns.words(), *words]), batch=1)
        assert header.window(memory) == window
        assert header.is_line == (window == line)
