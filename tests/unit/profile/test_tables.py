"""Tables are frozen, keep what is right, and are all that a new key needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import Field, ValidationError

from orchestrator.errors import Diagnostic, ProfileError
from orchestrator.profile import load, reference, tables
from orchestrator.profile.fields import Size  # pydantic reads it
from orchestrator.profile.kernels import KernelsTable
from orchestrator.profile.table import BrokenValueError, salvage, sound
from orchestrator.profile.tables import BudgetTable, Profile, ProfileTable
from tests import pages

if TYPE_CHECKING:
    from collections.abc import Iterator

SMALL = 'schema = 1\nname = "small"\ntarget.cpu = "host"\nmodels = []\n'


def read(text: str) -> Profile:
    return load.load_profile(
        Path("p.toml"),
        text_of=lambda _: text,
        is_file=lambda _: True,
        known_libraries=("portable",),
    )


def problem_of(text: str) -> Diagnostic:
    with pytest.raises(ProfileError) as caught:
        read(text)
    (problem,) = caught.value.diagnostics
    return problem


class _Budget(BudgetTable):
    """Bounds, one more."""

    heap_bytes: Size | None = Field(
        default=None, alias="heap", description="Most heap. Default: no bound.", examples=["8 KiB"]
    )


class _Profile(ProfileTable):
    """A profile with one key more."""

    budget: _Budget = Field(default=_Budget(), description="Bounds.")


@pytest.fixture
def with_new_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for module in (tables, load, reference):
        monkeypatch.setattr(module, "ProfileTable", _Profile)
    tables.tables.cache_clear()
    yield
    tables.tables.cache_clear()


@pytest.mark.usefixtures("with_new_key")
def test_a_new_key_needs_only_its_table() -> None:
    """It is read, explained, in the schema and on the page."""
    budget = read(SMALL + 'budget.heap = "2 KiB"\n').budget
    assert isinstance(budget, _Budget)
    assert budget.heap_bytes == 2048
    wrong = problem_of(SMALL + 'budget.heap = "2 kb"\n')
    assert wrong.message == 'budget.heap is not a size: "2 kb"'
    assert str(wrong.where) == "p.toml:5"
    misspelt = problem_of(SMALL + 'budget.heep = "2 KiB"\n')
    assert misspelt.notes[0][1].endswith(", heap")
    assert misspelt.hint == 'did you mean "heap"?'
    assert "heap" in reference.json_schema()["$defs"]["_Budget"]["properties"]
    assert "| `heap` | size | no bound | Most heap. |" in pages.profile_page()


@pytest.mark.parametrize("name", ["name", "target", "files"])
def test_a_profile_is_frozen(name: str) -> None:
    profile = read(SMALL)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(profile, name, None)
    with pytest.raises(ValidationError, match="frozen"):
        setattr(profile.target, "cpu", "cortex-m4")  # noqa: B010  # mypy refuses it


def test_what_is_right_of_a_broken_table() -> None:
    kernels = salvage(
        KernelsTable,
        {
            "libraries": [1, "portable", [], "quantized"],
            "operators": {"add.out": ["a", 2], "b:": ["a"], "c": []},
            "custom": [{"name": "mine", "sources": 3, "unknown": 4}, 5],
        },
    )
    assert list(sound(kernels.libraries)) == [(1, "portable"), (3, "quantized")]
    assert kernels.operators_.keys() == {"add.out"}
    assert list(sound(kernels.operators_["add.out"])) == [(0, "a")]
    ((index, custom),) = sound(kernels.custom)
    assert (index, custom.name, custom.defines) == (0, "mine", ())
    assert custom.written_keys == {"name", "functions", "sources"}
    for name in ("functions", "sources", "default_name"):
        with pytest.raises(BrokenValueError):
            getattr(custom, name)
    with pytest.raises(BrokenValueError):
        _ = kernels.custom[1].name
