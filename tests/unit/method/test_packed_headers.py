"""Headers of packed weights: their fields are those of the structs that kernels read."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.method.passes.packing.kernels import FAMILIES
from orchestrator.method.passes.packing.pairs import Pairs
from orchestrator.method.windows import Axis, Image
from tests.unit.method.packed_reader import FORMATS, members

if TYPE_CHECKING:
    from orchestrator.method.passes.packing.header import Header


@pytest.mark.parametrize("family", FAMILIES)
def test_fields_are_those_of_the_struct(family: type[Header]) -> None:
    names = [field.name for field in fields(family)]
    assert names == [name for _, name in members(FORMATS[family.__name__][0])]


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
