"""Which kernels have an evaluator; int8 ones, against what boards give."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Final

from orchestrator.catalog import read_library
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes.evaluate import evaluated_kernels, results_of
from orchestrator.method.passes.views import moves_items
from tests.unit.method.recorded_calls import (
    KERNELS,
    kernel_names,
    method_of,
    read_calls,
)

ROOT: Final = Path(__file__).parents[3]
WITHOUT: Final = {
    "orch::prim_ops::et_copy_index_tensor": "keeps what it does not write",
}
"""Kernels without an evaluator, and why; those that move items are folded."""


def test_every_kernel_has_an_evaluator_or_a_reason() -> None:
    """Of every library in the repository, each kernel of an operator."""
    left = set()
    for file in KERNELS.glob("*/functions.yaml"):
        text, library = file.read_text(encoding="utf-8"), file.parent.name
        for kernel in read_library(text, library=library, file=str(file)):
            if kernel.function not in evaluated_kernels() and not moves_items(
                kernel.operator
            ):
                left.add(kernel.function)
    assert left == WITHOUT.keys()


def test_registry_names_what_modules_have() -> None:
    found: dict[str, str] = {}
    for family in {*evaluated_kernels().values()}:
        module = import_module(f"orchestrator.method.passes.evaluate.{family}")
        found |= dict.fromkeys(module.EVALUATORS, family)
    assert found == dict(evaluated_kernels())
    assert {*found} <= {*kernel_names().values()}


def test_the_page_names_what_has_an_evaluator() -> None:
    page = (ROOT / "docs" / "constants.md").read_text(encoding="utf-8")
    rows = page.partition("## Operators")[2].partition("Copies, views")[0]
    found = re.findall(r"`(\w+::[\w.]+)`", rows)
    assert len(found) == len({*found})
    assert {kernel_names()[name] for name in found} == {*evaluated_kernels()}


def test_int8_calls_give_what_boards_give() -> None:
    """The same calls run on every kind of core: tests/qemu/test_kernel_calls.py."""
    seen = set()
    for call in read_calls(ROOT / "tests" / "data" / "cortex_m" / "calls.bin"):
        method = method_of([call])
        (linked,) = method.instructions
        assert isinstance(linked, LinkedCall)
        (want,) = call.outs
        found = results_of(method, linked, frozenset())
        assert found == {linked.outs[0]: want.data}, call
        seen.add(linked.function)
    ours = {f for f in kernel_names().values() if f.startswith("orch::cortex_m::")}
    assert seen == ours
