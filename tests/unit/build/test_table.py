"""The table of stages: each function gets what its stage declares, and needs it all."""

from __future__ import annotations

import inspect
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.build import inputs, open_build, table
from orchestrator.build.engine import (
    Build,
    Derived,
    EachStage,
    Effect,
    Given,
    Input,
    Item,
    Stage,
    Value,
    all_of,
)
from orchestrator.shell.build_folder import BuildNotes
from tests.unit.build.fake_project import project_in, write_project
from tests.unit.build.fakes import FakeShell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.build.engine import AnyStage

VALUES = all_of((*table.STAGES, table.WARNINGS))
STAGES: list[AnyStage] = [v for v in VALUES if isinstance(v, Stage | EachStage)]
MADE = [v for v in VALUES if isinstance(v, Stage | EachStage | Derived)]
DECLARED = [(value, read) for value in MADE for read in value.reads]

MORE = """
[operators]
include = ["aten::sigmoid.out"]
include_yaml = ["more.yaml"]
overlap = "allow"

[dtypes]
compare = true
"""


def _name(value: object) -> str | None:
    return value.gives if isinstance(value, Value) else None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("table")
    (folder / "more.yaml").write_text("- op: tanh.out\n")
    write_project(folder, more=MORE)
    return folder


def _opened(folder: Path) -> Build:
    fakes = FakeShell()
    given: dict[Value[Any], object] = {
        inputs.COMPILE_FOLDER: fakes.folder,
        inputs.EVERY_DTYPE_SIZE: lambda: None,
    }
    return open_build(project_in(folder), fakes.shell, given=given)


@pytest.fixture(scope="module")
def values(folder: Path) -> dict[Value[Any], object]:
    """Every value of a build."""
    build = _opened(folder)
    return {value: build[value] for value in VALUES if not isinstance(value, Item)}


def _alone(value: Value[Any], values: dict[Value[Any], object]) -> object:
    """What the function of a value makes; everything else is there already."""
    given = {other: made for other, made in values.items() if other is not value}
    notes = BuildNotes(Path("/nowhere"))
    return Build((), given, notes=notes, always=inputs.ORCHESTRATOR)[value]


@pytest.mark.parametrize("value", MADE, ids=_name)
def test_a_function_gives_the_same_when_called_alone(
    value: Value[Any], values: dict[Value[Any], object]
) -> None:
    assert _alone(value, values) == values[value]


@pytest.mark.parametrize(("value", "read"), DECLARED, ids=_name)
def test_without_a_declared_value_it_fails(
    value: Stage[Any], read: Value[Any], values: dict[Value[Any], object]
) -> None:
    fewer = tuple(r for r in value.reads if r is not read)
    with pytest.raises(TypeError, match=f"'{read.gives}'"):
        _alone(replace(value, reads=fewer), values)


@pytest.mark.parametrize("value", MADE, ids=_name)
def test_stages_reach_the_outside_through_inputs_only(value: Value[Any]) -> None:
    """Besides inputs, stages and derived values they have effects, which give nothing
    that a result depends on."""
    for read in value.reads:
        assert not isinstance(read, Given) or isinstance(read, Effect), read.gives


@pytest.mark.parametrize("value", MADE, ids=_name)
def test_functions_are_typed_as_what_they_get(value: Stage[Any]) -> None:
    """A parameter is annotated like what the function of its value returns."""
    parameters = inspect.signature(value.run).parameters
    assert list(parameters) == [read.gives for read in value.reads]
    for read in value.reads:
        if not isinstance(read, Stage | EachStage | Derived):
            continue
        made = inspect.signature(read.run).return_annotation
        returned = read.run.__name__ if isinstance(read.run, type) else str(made)
        if isinstance(read, EachStage):
            returned = f"dict[str, {returned}]"
        taken = str(parameters[read.gives].annotation)
        assert taken in {returned, *_read_only(returned)}, (read.gives, returned)


def _read_only(annotation: str) -> Iterator[str]:
    """Annotations of parameters that take such a value and do not change it."""
    yield annotation.replace("dict[", "Mapping[", 1)
    if annotation.startswith("tuple[") and annotation.endswith(", ...]"):
        yield f"Sequence[{annotation[len('tuple[') : -len(', ...]')]}]"
    if annotation.startswith("list["):
        yield annotation.replace("list[", "Sequence[", 1)


def test_what_has_no_digest_shapes_no_remembered_result(
    folder: Path, values: dict[Value[Any], object], tmp_path: Path
) -> None:
    """Another folder and other lines of the profile: messages would be others."""
    other = tmp_path / "further" / "down"
    shutil.copytree(folder, other, ignore=lambda *_: ["out"])
    profile = other / "demo.toml"
    profile.write_text(f"# more\n# lines\n{profile.read_text()}")
    build = _opened(other)
    silent = [v for v in VALUES if isinstance(v, Input) and v.digests is None]
    assert inputs.MODEL_SPANS in silent
    assert build[inputs.MODEL_SPANS] != values[inputs.MODEL_SPANS]
    for stage in STAGES:
        if isinstance(stage, EachStage) or stage.is_remembered:
            assert build[stage] == values[stage], stage.name
            assert not set(build.planned(stage)) - {*_opened(folder).planned(stage)}, stage.name


def test_what_a_plan_depends_on_has_a_label() -> None:
    for value in VALUES:
        if isinstance(value, Input):
            assert bool(value.label) is (value.digests is not None), value.gives


def test_names_are_used_once() -> None:
    for names in ([v.gives for v in VALUES], [stage.name for stage in STAGES]):
        assert len(names) == len(set(names))


def test_the_table_is_in_the_order_of_reading() -> None:
    """Each stage comes after those that it reads; none is left out."""
    assert [v for v in all_of(table.STAGES) if v in table.STAGES] == [*table.STAGES]
    assert set(STAGES) < set(table.STAGES)
