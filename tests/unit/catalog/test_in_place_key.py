"""The key `in_place` of kernel libraries."""

from __future__ import annotations

import pytest

from orchestrator.catalog import read_library
from orchestrator.errors import Diagnostic, ProfileError, SourceSpan

ADD = "my::add.out(Tensor self, Tensor other, int by, *, Tensor(a!) out) -> Tensor(a!)"
TWO = "my::two.out(Tensor self, *, Tensor(a!) a, Tensor(b!) b) -> ()"


def in_place(schema: str, text: str) -> tuple[str, ...]:
    (kernel,) = read_library(
        f"- func: {schema}\n"
        "  kernels: [{arg_meta: null, kernel_name: k::f}]\n"
        f"  in_place: {text}\n",
        library="my",
        file="my/functions.yaml",
    )
    return kernel.in_place


def problem(schema: str, text: str) -> Diagnostic:
    with pytest.raises(ProfileError) as caught:
        in_place(schema, text)
    (found,) = caught.value.diagnostics
    return found


def span(text: str) -> SourceSpan:
    return SourceSpan(file="my/functions.yaml", line=3, text=f"  in_place: {text}")


def test_arguments_in_the_order_of_the_schema() -> None:
    assert in_place(ADD, "[other, self, other]") == ("self", "other")
    assert in_place(ADD, "[]") == ()


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("slef", 'did you mean "self"?'),
        ("by", "name tensors that the kernel reads"),
        ("out", "name tensors that the kernel reads"),
    ],
)
def test_only_inputs_that_are_tensors(name: str, hint: str) -> None:
    assert problem(ADD, f"[{name}]") == Diagnostic(
        code="unknown-argument",
        message=f'"{name}" is not an input of my::add.out',
        where=span(f"[{name}]"),
        notes=(("known", "self, other"),),
        hint=hint,
    )


def test_an_operator_of_one_output() -> None:
    assert problem(TWO, "[self]") == Diagnostic(
        code="bad-entry",
        message="`in_place` is for operators with one output; my::two.out has 2",
        where=span("[self]"),
        hint="leave it out",
    )
