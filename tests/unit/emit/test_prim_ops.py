"""Prim ops of the corpus: each call has a kernel, a macro and a place."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.catalog import Catalog, LibraryText, read_catalog
from orchestrator.emit.executorch_headers import executorch_headers
from orchestrator.method.checks import check_writes
from orchestrator.program.prim_ops import PRIM_OPS
from orchestrator.program.reader import read_program
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.resolve import resolve
from tests.conftest import CASES, CORPUS, model_bytes

FILE = Path(__file__).parents[3] / "kernels" / "prim_ops" / "functions.yaml"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    text = FILE.read_text(encoding="utf-8")
    return read_catalog([LibraryText(name="prim_ops", file=str(FILE), text=text)])


def _macro(name: str) -> str:
    return "INCLUDE_" + re.sub("_+", "_", re.sub("[:.]+", "_", name)).upper()


@pytest.mark.parametrize("case", CASES)
def test_every_call_is_served_and_counted_once(case: str, catalog: Catalog) -> None:
    program = read_program(model_bytes(case), file=case)
    selection = aggregate([extract(program, model=case)])
    called = tuple(o for o in selection.operators if o.name in PRIM_OPS)
    selection = replace(selection, operators=called, delegates=())
    resolution = resolve(selection, catalog, every_dtype=False, span_of=lambda _: None)
    check_writes({case: program}, resolution, {})
    files = executorch_headers("For tests.", selection, resolution)
    ours = {f.path.rpartition("/")[2]: f.text for f in files}
    assert f"KERNEL_NUM {len(called)}\n" in ours["selected_max_kernel_num.h"]
    # Of their macros those that register_prim_ops.cpp looks for.
    theirs = (CORPUS / case / "selected_prim_ops.h").read_text()
    macros = {_macro(str(name)) for name in PRIM_OPS}
    expected = macros & set(re.findall(r"#define (\w+)", theirs))
    found = re.findall(r"#define (\w+)", ours["selected_prim_ops.h"])
    assert set(found) == expected
    assert len(found) == len(called) == len(expected)


def test_the_corpus_calls_several() -> None:
    headers = [(CORPUS / case / "selected_prim_ops.h").read_text() for case in CASES]
    assert sum("INCLUDE_EXECUTORCH_PRIM_" in text for text in headers) >= 5
