"""The table of operators is that of the kernel libraries."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.catalog import read_library
from orchestrator.catalog.operator_page import (
    NEVER_CALLED,
    counts,
    dtypes_of,
    missing,
    operator_rows,
)
from orchestrator.shell.sources import library_file, library_names
from tests.pages import operators_page

if TYPE_CHECKING:
    import pytest

    from orchestrator.core.kernel import Kernel

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "operators.md"


@cache
def kernels() -> tuple[Kernel, ...]:
    """Those of all libraries."""
    return tuple(
        kernel
        for name in library_names()
        for kernel in read_library(
            library_file(name).read_text(encoding="utf-8"), library=name, file=name
        )
    )


def test_the_page_is_current(request: pytest.FixtureRequest) -> None:
    text = operators_page(kernels())
    if request.config.getoption("--update-golden", default=False):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text


def test_counts_are_those_of_the_readme() -> None:
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for have, of in counts(operator_rows(kernels())).values():
        assert f"{have} of {of}" in readme


def test_rows_say_what_kernels_take() -> None:
    rows = {row.operator: row for row in operator_rows(kernels())}
    assert rows["aten::mm.out"].dtypes == "real, complex"
    assert rows["aten::relu.out"].dtypes == "real"
    assert rows["aten::mm.out"].executorch == "portable"
    assert rows["aten::cos.out"].dtypes.endswith("out: floating")
    assert rows["cortex_m::quantized_conv2d.out"].executorch == "cortex_m"
    assert rows["cortex_m::quantized_conv2d_nhwc.out"].executorch == ""
    assert rows["aten::mm.out"].isas == ("mve",)
    assert rows["aten::mm.out"].error == "8 ulp of the terms"
    assert rows["aten::neg.out"].error == "exact"
    assert rows["aten::_native_batch_norm_legit.out"].limits == ("not training",)
    assert rows["aten::full.out"].limits == ()  # sizes of 32 bits
    assert dtypes_of(kernels()[0])


def test_differences_from_pytorch_are_explained() -> None:
    """Each operator that has not PyTorch's bits is on the page of differences."""
    page = (ROOT / "docs" / "executorch-compatibility.md").read_text(encoding="utf-8")
    portable = page.partition("## Portable kernels")[2]
    names = {k.operator.base for k in kernels() if k.error}
    assert {name for name in names if f"`{name}" not in portable} == set()


def test_what_is_missing_is_told() -> None:
    few = operator_rows(k for k in kernels() if k.library == "quantized")
    assert "aten::mm.out" in missing(few)["portable"]
    page = operators_page(k for k in kernels() if k.library == "quantized")
    assert "Of `portable` there is no kernel for" in page


def test_what_no_program_calls_is_not_missing() -> None:
    page = operators_page(kernels())
    assert "there is no kernel for" not in page
    for operator, instead in NEVER_CALLED.items():
        assert f"No program calls `{operator}`" in page
        assert instead in {row.operator for row in operator_rows(kernels())}
