"""Lock files: canonical text that comes back as it was, and damage that is named."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
import tomli
from hypothesis import given
from hypothesis import strategies as st

import orchestrator
from orchestrator.build.lockfile import (
    Lock,
    damaged,
    differences,
    facts,
    lock_text,
    output_facts,
    parse_lock,
    stale,
)
from orchestrator.emit.artifact import Artifact
from orchestrator.errors import Diagnostic, LockError, SourceSpan
from tests.unit.golden import check_golden

TABLES = tuple(field.name for field in fields(Lock))

LOCK = Lock(
    profile=facts([("name", "doorbell"), ("file doorbell.toml", "a" * 64)]),
    models=facts([("person", "b" * 64)]),
    sources=facts([("runtime/src/error.cpp", "c" * 64)]),
    generated=facts([("gen/src/api.cpp", "d" * 64)]),
    target=facts([("cpu", "cortex-m55"), ("isa", "mve"), ("board", "mps3-an547")]),
    toolchain=facts([("name", "zig"), ("flags", "-Os -Wall")]),
    python=facts([("orchestrator", "0.1.0")]),
    outputs=output_facts([Artifact(path="firmware.elf", sha256="e", size_bytes=7)]),
    size=facts([("flash", "40868 bytes"), ("ram", "20164 bytes")]),
)

# Everything TOML allows in a basic string, so every name and value there can be.
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_FACTS = st.dictionaries(_TEXT, _TEXT, max_size=4).map(lambda d: facts(d.items()))
LOCKS = st.builds(Lock, **dict.fromkeys(TABLES, _FACTS))


@given(LOCKS)
def test_text_comes_back_as_the_same_lock(lock: Lock) -> None:
    assert parse_lock(lock_text(lock), file="a.lock") == lock


@given(LOCKS)
def test_text_is_toml_with_one_fact_per_line(lock: Lock) -> None:
    text = lock_text(lock)
    document = tomli.loads(text)
    assert document.pop("schema") == 1
    if not lock.exports:
        document["exports"] = {}  # left out where no model is exported
    assert document == {name: dict(getattr(lock, name)) for name in TABLES}
    count = sum(len(getattr(lock, name)) for name in TABLES)
    tables = len(TABLES) - (not lock.exports)
    assert text.count("\n") == 2 + 2 * tables + count


@given(st.lists(st.tuples(_TEXT, _TEXT), unique_by=lambda pair: pair[0]), st.randoms())
def test_order_does_not_reach_the_text(pairs: list[tuple[str, str]], r: object) -> None:
    shuffled = pairs.copy()
    r.shuffle(shuffled)  # type: ignore[attr-defined]  # random.Random
    assert lock_text(replace(LOCK, models=facts(pairs))) == lock_text(
        replace(LOCK, models=facts(shuffled))
    )


def test_the_whole_text_is_as_held(request: pytest.FixtureRequest) -> None:
    check_golden(request, "doorbell.lock", lock_text(LOCK))


def test_inputs_are_what_is_known_before_a_build() -> None:
    known = LOCK.inputs()
    assert known == replace(LOCK, generated=(), outputs=(), size=())


@given(LOCKS, LOCKS)
def test_there_are_differences_exactly_between_different_locks(a: Lock, b: Lock) -> None:
    assert differences(a, a) == ()
    assert bool(differences(a, b)) == (a != b)
    assert len(differences(a, b)) == len(differences(b, a))


def test_differences_name_table_and_fact() -> None:
    new = replace(
        LOCK,
        models=facts([("person", "f" * 64), ("wake", "1")]),
        target=facts([("cpu", "cortex-m4"), ("isa", "mve"), ("board", "mps3-an547")]),
        python=(),
    )
    assert differences(LOCK, new) == (
        "models: person changed",
        "models: wake is new",
        "target: cpu changed (cortex-m55 -> cortex-m4)",
        "python: orchestrator is gone",
    )


def _damage(text: str) -> Diagnostic:
    with pytest.raises(LockError) as caught:
        parse_lock(text, file="a.lock")
    (problem,) = caught.value.diagnostics
    assert problem == replace(damaged("a.lock", "").diagnostics[0], notes=problem.notes)
    assert problem.where == SourceSpan(file="a.lock")
    return problem


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ("schema = 1", "schema = 0", "schema is 0, not 1"),
        ("schema = 1", 'schema = "2"', "schema is '2', not 1"),
        ("schema = 1", "schema = true", "schema is True, not 1"),
        ("schema = 1", "", "schema is None, not 1"),
        ("[models]", "[model]", "models: Field required"),
        ('"b' + "b" * 63 + '"', "7", "models.person: Input should be a valid string"),
        ("[outputs]", "[outputs]\nx = 1", "outputs.x: Input should be a valid string"),
        ("[python]", "[more]\n[python]", "more: Extra inputs are not permitted"),
        ("[python]", "[python", "Expected ']' at the end of a table declaration"),
    ],
)
def test_damage_is_named(old: str, new: str, found: str) -> None:
    text = lock_text(LOCK)
    assert text.count(old) == 1
    ((label, note),) = _damage(text.replace(old, new)).notes
    assert label == "found"
    assert note.startswith(found)


@pytest.mark.parametrize(
    ("old", "new", "found", "expected"),
    [
        ("schema = 1", "schema = 2", "schema 2", "schema 1"),
        (
            '[python]\n"orchestrator" = "0.1.0"',
            '[more]\n[python]\n"orchestrator" = "99.0"',
            "Orchestrator 99.0",
            f"Orchestrator {orchestrator.__version__}",
        ),
    ],
)
def test_a_lock_of_the_future_is_not_called_damaged(
    old: str, new: str, found: str, expected: str
) -> None:
    text = lock_text(LOCK)
    assert text.count(old) == 1
    with pytest.raises(LockError) as caught:
        parse_lock(text.replace(old, new), file="a.lock")
    assert caught.value.diagnostics == (
        Diagnostic(
            code="newer-lock",
            message="the lock file was made by a newer Orchestrator",
            where=SourceSpan(file="a.lock"),
            notes=(("found", found), ("expected", f"{expected} or older")),
            hint="update Orchestrator; to go back to this version, remove the lock and build again",
        ),
    )


@pytest.mark.parametrize("version", ["nonsense", "", "0.0.9", "0.1.0rc1"])
def test_damage_is_not_called_the_future(version: str) -> None:
    damage = f'[more]\n[python]\n"orchestrator" = "{version}"'
    old = '[python]\n"orchestrator" = "0.1.0"'
    _damage(lock_text(LOCK).replace(old, damage))


@pytest.mark.parametrize("text", ["", "\0", "a = " + "[" * 5000, f"a = {'9' * 9999}"])
def test_no_text_is_too_strange(text: str) -> None:
    assert _damage(text).code == "bad-lock"


@given(st.integers(0, len(lock_text(LOCK)) - 1), st.characters())
def test_any_change_gives_a_lock_or_a_lock_error(at: int, new: str) -> None:
    text = lock_text(LOCK)
    try:
        lock = parse_lock(text[:at] + new + text[at + 1 :], file="a.lock")
    except LockError:
        return
    assert parse_lock(lock_text(lock), file="a.lock") == lock


def test_a_stale_lock_lists_what_changed() -> None:
    (problem,) = stale("a.lock", ("models: kws changed", "x: y is new")).diagnostics
    assert problem == Diagnostic(
        code="stale-lock",
        message="the lock file does not match",
        where=SourceSpan(file="a.lock"),
        notes=(("changed", "models: kws changed"), ("changed", "x: y is new")),
        hint="`orchestrator lock` updates it; commit the result",
    )


def test_a_very_stale_lock_counts_the_rest() -> None:
    (problem,) = stale("a.lock", tuple(map(str, range(20)))).diagnostics
    assert problem.notes[-1] == ("and", "8 more")
    assert [text for _, text in problem.notes[:-1]] == list(map(str, range(12)))
