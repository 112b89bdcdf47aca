"""Resolver: kernels with scratch arguments say how much they need."""

from __future__ import annotations

import pytest

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, KernelError, SourceSpan
from orchestrator.selection.op_info import SelectedOperator, Selection
from orchestrator.selection.resolve import resolve

POOL = "my::pool.out(Tensor self, Tensor scratch, *, Tensor(a!) out) -> Tensor(a!)"
SUM = "my::sum.out(Tensor self, Tensor row_scratch, *, Tensor(a!) out) -> Tensor(a!)"


def entry(schema: str, scratch: str = "") -> str:
    name = schema.partition("(")[0].replace("::", "_").replace(".", "_")
    argument = "row_scratch" if "row_scratch" in schema else "scratch"
    return f"""\
- func: {schema}
  type_alias: {{T: [Float, Half]}}
  dim_order_alias: {{D: [[0, 1]]}}
  kernels:
    - kernel_name: k::{name}
    - kernel_name: k::{name}_half
      arg_meta: {{self: [T, D], {argument}: [T, D], out: [T, D]}}
{scratch}"""


def link(*texts: str, names: tuple[str, ...] = ("my::pool.out",)) -> None:
    library = LibraryText(name="my", file="my/functions.yaml", text="".join(texts))
    operators = tuple(
        SelectedOperator(name=OperatorName.parse(name), every_dtype=True) for name in names
    )
    resolve(
        Selection(operators=operators),
        read_catalog([library]),
        every_dtype=False,
        span_of=lambda _: None,
    )


def missing(schema: str, line: int, argument: str) -> Diagnostic:
    name = schema.partition("(")[0]
    return Diagnostic(
        code="missing-scratch-size",
        message=f"no scratch size is given for {name}",
        where=SourceSpan(file="my/functions.yaml", line=line),
        notes=(("found", f"{argument} in {schema}"),),
        hint="add `scratch` to this entry, see docs/scratch.md",
    )


def test_kernels_that_say_how_much_are_linked() -> None:
    link(entry(POOL, "  scratch: {scratch: self.numel}\n"))


def test_every_entry_that_is_linked_and_does_not_is_named_once() -> None:
    with pytest.raises(KernelError) as caught:
        link(entry(POOL), entry(SUM), names=("my::sum.out", "my::pool.out"))
    assert caught.value.diagnostics == (missing(POOL, 1, "scratch"), missing(SUM, 8, "row_scratch"))


def test_operators_that_nothing_selects_may_be_silent() -> None:
    link(entry(POOL, "  scratch: {scratch: 0}\n"), entry(SUM))
