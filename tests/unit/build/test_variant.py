"""What-if: what a variant of a profile is, and which make no sense."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.build import variant
from orchestrator.build.variant import EVERY_DTYPE, Variant
from orchestrator.cli.arguments import parser
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, UsageError
from orchestrator.measure.size import SizeOperator
from orchestrator.profile.choices import DtypeSelect, Optimize
from orchestrator.profile.load import load_profile
from orchestrator.targets.cores import CPUS, TOOLCHAINS

if TYPE_CHECKING:
    from orchestrator.profile.tables import Profile

RELU, TANH = (OperatorName.parse(f"aten::{n}.out") for n in ("relu", "tanh"))


TEXT = """\
schema = 1
name = "p"
target.cpu = "cortex-m4"
operators.include = ["relu.out", "tanh.out"]
dtypes = {compare = true, operators = {"tanh.out" = ["Half"]}}
registry.max_kernels = 3
budget.flash = "1 B"
[[models]]
path = "a.pte"
[[models]]
path = "b.pte"
[[models]]
path = "c.pte"
"""


def load(text: str) -> Profile:
    return load_profile(
        Path("p.toml"),
        text_of=lambda _: text,
        is_file=lambda _: True,
        known_libraries=("portable",),
    )


PROFILE = load(TEXT)


def operator(name: str, *models: str, keys: tuple[str, ...] = ()) -> SizeOperator:
    return SizeOperator(name=name, functions=(), models=models, keys=keys)


OPERATORS = (
    operator("aten::relu.out", "a", keys=("operators.include",)),
    operator("aten::tanh.out", keys=("dtypes.operators", "operators.include")),
    operator("aten::mm.out", "a", "b"),
    operator("aten::add.out", keys=("operators.all", "operators.include")),
)


def test_models_are_left_out_with_their_lines() -> None:
    found = Variant(without_models=("b",)).of(PROFILE, OPERATORS)
    assert [m.name for m in found.models] == ["a", "c"]
    assert found.span("models", 0, "path").line == 9
    assert found.span("models", 1, "path").line == 13
    assert found.span("name").line == 2
    # Everything else is as it was, but nothing bounds the variant.
    without = TEXT.replace('[[models]]\npath = "b.pte"\n', "").replace("= true", "= false")
    without = without.replace("registry.max_kernels = 3\n", "")
    expected = load(without.replace('budget.flash = "1 B"\n', ""))
    assert found.model_copy(update={"spans": expected.spans}) == expected


def test_every_model_may_be_left_out() -> None:
    found = Variant(without_models=("c", "b", "a")).of(PROFILE, OPERATORS)
    assert found.models == ()


def test_an_operator_is_left_out_of_both_keys() -> None:
    found = Variant(without_operators=("aten::tanh.out",)).of(PROFILE, OPERATORS)
    assert found.operators.include == (RELU,)
    assert found.dtypes.operators == ()


def test_an_operator_is_left_out_with_the_model_that_calls_it() -> None:
    both = Variant(without_models=("a",), without_operators=("aten::relu.out",))
    assert both.of(PROFILE, OPERATORS).operators.include == (TANH,)


def test_target_and_dtypes() -> None:
    found = Variant(dtypes="all", optimize="speed", toolchain="gnu").of(PROFILE, ())
    assert found.dtypes.select is DtypeSelect.ALL
    assert dict(found.target) == dict(PROFILE.target) | {
        "optimize": Optimize.SPEED,
        "toolchain": "gnu",
    }
    assert EVERY_DTYPE.of(PROFILE, ()).dtypes.select is DtypeSelect.ALL


def test_all_problems_at_once() -> None:
    wrong = Variant(
        without_models=("a", "d1"),
        without_operators=("aten::mm.out", "aten::add.out", "aten::tanj.out", "my::own.out"),
    )
    with pytest.raises(UsageError) as error:
        wrong.of(PROFILE, OPERATORS)
    assert error.value.diagnostics == (
        Diagnostic(
            code="unknown-model",
            message='p has no model "d1"',
            notes=(("models", "a, b, c"),),
            hint="name a model of the profile",
        ),
        Diagnostic(
            code="operator-needed",
            message="aten::mm.out cannot be left out: models call it",
            notes=(("called by", "b"),),
            hint="leave out what calls it: --without-model b",
        ),
        Diagnostic(
            code="operator-needed",
            message="aten::add.out cannot be left out: the profile lists more than"
            " single operators",
            notes=(("requested by", "operators.all"),),
            hint="only operators of operators.include and dtypes.operators can be left"
            " out one by one",
        ),
        Diagnostic(
            code="not-in-product",
            message="aten::tanj.out is not in p",
            hint='did you mean "aten::tanh.out"?',
        ),
        Diagnostic(
            code="not-in-product",
            message="my::own.out is not in p",
            hint="name an operator that `orchestrator size --by op` lists",
        ),
    )


def test_a_model_of_nearly_that_name() -> None:
    profile = load(TEXT.replace("a.pte", "person.pte"))
    with pytest.raises(UsageError) as error:
        Variant(without_models=("persom",)).of(profile, ())
    assert error.value.diagnostics[0].hint == 'did you mean "person"?'


def test_a_toolchain_the_core_does_not_have(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu = replace(CPUS["cortex-m4"], toolchains=("zig",))
    monkeypatch.setattr(variant, "CPUS", {"cortex-m4": cpu})
    with pytest.raises(UsageError) as error:
        Variant(toolchain="gnu").of(PROFILE, ())
    (problem,) = error.value.diagnostics
    assert problem.message == "cortex-m4 has no toolchain gnu"


def test_the_text_names_a_variant() -> None:
    assert Variant().text == ""
    one = Variant(without_models=("b", "a"), optimize="speed")
    two = Variant(without_models=("a", "b"), optimize="speed")
    text = "--without-model a --without-model b --optimize speed"
    assert one.text == two.text == text
    everything = Variant(without_operators=("x",), dtypes="all", toolchain="gnu").text
    assert everything == "--without-op x --dtypes all --toolchain gnu"


@pytest.mark.parametrize(
    ("option", "values"),
    [("--dtypes", DtypeSelect), ("--optimize", Optimize), ("--toolchain", TOOLCHAINS)],
)
def test_options_take_what_the_profile_takes(option: str, values: tuple[str, ...]) -> None:
    for value in map(str, values):
        args = parser().parse_args(["size", "p.toml", option, value])
        assert getattr(args, option.removeprefix("--")) == value
