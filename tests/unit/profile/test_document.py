"""Merging a profile with its base keeps values and their places together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.profile.document import read_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.profile.checked import KeyPath

TABLES: st.SearchStrategy[Any] = st.recursive(
    st.integers() | st.lists(st.integers(), max_size=2),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)
DOCUMENTS = st.dictionaries(st.sampled_from("abc"), TABLES, max_size=3)


def values(value: Any, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    """Every key path and its value."""
    if path:
        yield path, value
    items = value.items() if isinstance(value, dict) else ()
    for key, item in enumerate(value) if isinstance(value, list) else items:
        yield from values(item, (*path, key))


@given(derived=DOCUMENTS, base=DOCUMENTS)
@example(derived={"a": {}}, base={"a": [0]})
@example(derived={"a": [0]}, base={"a": {"b": 1}})
def test_every_value_is_where_its_span_says(
    derived: dict[str, Any], base: dict[str, Any]
) -> None:
    parts = {"derived.toml": dict(values(derived)), "base.toml": dict(values(base))}
    documents = [
        read_document(Path(file), text_of=lambda _, data=data: tomli_w.dumps(data))  # type: ignore[misc]  # lambda with a default
        for file, data in (("derived.toml", derived), ("base.toml", base))
    ]
    merged = documents[0].over(documents[1])
    merged_values = dict(values(merged.data))
    assert set(merged.spans) == set(merged_values)
    for path, value in merged_values.items():
        file = merged.span(*path).file
        assert (file == "derived.toml") == (path in parts["derived.toml"])
        if not isinstance(value, dict):  # tables may have parts from both
            assert parts[file][path] == value
    # Nothing of the profile is lost, and of the base only what the profile overrides.
    assert parts["derived.toml"].keys() <= merged_values.keys()
    for path in parts["base.toml"].keys() - merged_values.keys():
        parents = [path[:n] for n in range(1, len(path))]
        assert any(
            p in parts["derived.toml"]
            and not all(isinstance(part[p], dict) for part in parts.values())
            for p in parents
        )


def test_models_come_with_the_folder_of_their_file() -> None:
    with_models, without = (
        read_document(Path(file), text_of=lambda _, text=text: text)  # type: ignore[misc]  # lambda with a default
        for file, text in (("a/x.toml", "models = []"), ("b/y.toml", "b = 1"))
    )
    assert with_models.over(without).folder("models") == Path("a")
    assert without.over(with_models).folder("models") == Path("a")


def test_operator_lists_come_with_the_folder_of_their_file() -> None:
    with_lists, without = (
        read_document(Path(file), text_of=lambda _, text=text: text)  # type: ignore[misc]  # lambda with a default
        for file, text in (
            ("a/x.toml", "operators.include_yaml = []"),
            ("b/y.toml", "operators.include = []"),
        )
    )
    assert with_lists.over(without).folder("operators", "include_yaml") == Path("a")
    assert without.over(with_lists).folder("operators", "include_yaml") == Path("a")
