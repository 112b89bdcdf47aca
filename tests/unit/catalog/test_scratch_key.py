"""The key `scratch` of kernel libraries."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest

from orchestrator.catalog import read_library
from orchestrator.catalog.scratch_arguments import scratch_arguments
from orchestrator.errors import Diagnostic, ProfileError, SourceSpan

ROOT = Path(__file__).resolve().parents[3]
LIBRARIES = sorted(ROOT.glob("kernels/*/functions.yaml"))
POOL = (
    "my::pool.out(Tensor self, int[] size, Tensor scratch, Tensor? row_scratch, *,"
    " Tensor(a!) out) -> Tensor(a!)"
)
ENTRY = f"""\
- func: {POOL}
  kernels: [{{arg_meta: null, kernel_name: k::f}}]
"""


def scratch(text: str) -> tuple[tuple[str, str], ...]:
    (kernel,) = read_library(
        ENTRY + indent(dedent(text), "  "), library="my", file="my/functions.yaml"
    )
    return kernel.scratch


def problems(text: str) -> tuple[Diagnostic, ...]:
    with pytest.raises(ProfileError) as caught:
        scratch(text)
    return caught.value.diagnostics


def span(line: int, text: str) -> SourceSpan:
    return SourceSpan(file="my/functions.yaml", line=line, text=text)


def test_sizes_in_the_order_of_the_schema() -> None:
    text = """\
          scratch:
            row_scratch: 0
            scratch: >-
              self.sizes[1]
                * size[0]
        """
    assert scratch(text) == (("scratch", "self.sizes[1] * size[0]"), ("row_scratch", "0"))


def test_a_library_in_executorch_s_form_has_no_sizes() -> None:
    assert scratch("") == ()


def test_every_scratch_argument_needs_a_size() -> None:
    assert problems("  scratch: {scratch: 4}\n") == (
        Diagnostic(
            code="missing-argument",
            message='`scratch` lacks the argument "row_scratch"',
            where=span(3, "  scratch: {scratch: 4}"),
            hint="give the size of every scratch argument, 0 if it is not used",
        ),
    )


def test_only_scratch_arguments_have_sizes() -> None:
    line = "  scratch: {scratch: 4, row_scratch: 0, row_scrach: 0, out: 4}"
    notes = (("known", "scratch, row_scratch"),)
    assert problems(f"{line}\n") == (
        Diagnostic(
            code="unknown-argument",
            message='"row_scrach" is not a scratch argument of my::pool.out',
            where=span(3, line),
            notes=notes,
            hint='did you mean "row_scratch"?',
        ),
        Diagnostic(
            code="unknown-argument",
            message='"out" is not a scratch argument of my::pool.out',
            where=span(3, line),
            notes=notes,
            hint="scratch arguments are tensors named scratch, or ..._scratch",
        ),
    )


def test_an_operator_without_scratch() -> None:
    text = (
        "- func: my::f.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)\n"
        "  kernels: [{arg_meta: null, kernel_name: k::f}]\n"
        "  scratch: {self: 0}\n"
    )
    with pytest.raises(ProfileError) as caught:
        read_library(text, library="my", file="my/functions.yaml")
    (problem,) = caught.value.diagnostics
    assert problem.notes == (("known", "none"),)


def test_a_wrong_expression() -> None:
    text = """\
          scratch:
            scratch: 4
            row_scratch: self.shape[0] *
              2
        """
    assert problems(text) == (
        Diagnostic(
            code="bad-scratch-size",
            message="`scratch` of row_scratch: a tensor has no shape, it has sizes,"
            " nhwc, rank, numel, dtype, dtype_bytes, size_bytes, is_contiguous",
            where=span(5, "    row_scratch: self.shape[0] *"),
            notes=(("found", "self.shape[0] * 2"), ("schema", POOL)),
            hint="docs/scratch.md describes such expressions",
        ),
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  scratch: 4\n", "`scratch` must be a mapping"),
        ("  scratch: {scratch: [4], row_scratch: 0}\n", "`scratch` of scratch must be"),
        ("  scratch: {scratch: , row_scratch: 0}\n", "`scratch` of scratch must be"),
    ],
)
def test_a_wrong_form(text: str, message: str) -> None:
    (problem,) = problems(text)
    assert problem.code == "wrong-type"
    assert problem.message.startswith(message)


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.parent.name)
def test_our_kernels_say_how_much_they_need(library: Path) -> None:
    kernels = read_library(library.read_text(encoding="utf-8"), library="ours", file=str(library))
    silent = [
        str(kernel.operator)
        for kernel in kernels
        if len(kernel.scratch) != len(scratch_arguments(kernel.schema))
    ]
    assert silent == []
