"""`isas` of functions.yaml names the instructions that sources and headers use."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.catalog import read_library

if TYPE_CHECKING:
    from collections.abc import Iterator

KERNELS: Final = Path(__file__).parents[3] / "kernels"
CODE: Final = {
    "dsp": re.compile(r"\bORCH_ISA_DSP\b"),
    "mve": re.compile(
        r"\bORCH_ISA_MVE\b|\bORCH_FLOAT_VECTORS\b|\bORCH_VECTORS\b"
        r"|\bORCH_LANES(_AFTER)?\(|\bof_lanes\("
    ),
}
"""What guards code for instructions."""
OFFERS_THEM: Final = frozenset(KERNELS / "util" / name for name in ("isa.h", "lanes.h"))


def included(file: Path) -> Iterator[Path]:
    """A source, and the headers of kernels that it includes."""
    seen: set[Path] = set()
    left = [file]
    while left:
        file = left.pop()
        if file in seen or file in OFFERS_THEM:
            continue
        seen.add(file)
        yield file
        for name in re.findall(r'^#include "(.+)"', file.read_text("utf-8"), re.MULTILINE):
            places = (file.parent / name, KERNELS / name)
            left += [place for place in places if place.is_file()][:1]


def used(sources: tuple[str, ...], folder: Path) -> set[str]:
    """Instruction sets that files have code for."""
    files = {f for source in sources for f in included(folder / source)}
    texts = [file.read_text(encoding="utf-8") for file in sorted(files)]
    return {isa for isa, code in CODE.items() if any(map(code.search, texts))}


@pytest.mark.parametrize(
    "library", ["cortex_m", "cortex_m_int16", "portable", "prim_ops", "quantized"]
)
def test_isas_are_those_of_the_sources(library: str) -> None:
    file = KERNELS / library / "functions.yaml"
    text = file.read_text(encoding="utf-8")
    kernels = read_library(text, library=library, file=str(file))
    assert kernels
    wrong = [
        f"{k.operator}: isas has {sorted(k.isas)}, sources {sorted(found)}"
        for k in kernels
        if (found := used(k.sources, file.parent)) != {*k.isas}
    ]
    assert wrong == []


def test_vectors_are_found_behind_headers() -> None:
    found = used(("op_mm.cpp",), KERNELS / "portable")
    assert found == {"mve"}
    assert used(("op_flip.cpp",), KERNELS / "portable") == set()
