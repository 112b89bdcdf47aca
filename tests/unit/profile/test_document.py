"""Merging a profile with its base keeps values and their places together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli_w
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.profile.document import Text, read_document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.profile.source_map import KeyPath

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
def test_every_value_is_where_its_span_says(derived: dict[str, Any], base: dict[str, Any]) -> None:
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


def test_texts_know_the_folder_of_their_file() -> None:
    derived, base = (
        read_document(Path(file), text_of=lambda _, text=text: text)  # type: ignore[misc]  # lambda with a default
        for file, text in (
            ("a/x.toml", 'a = "1"\nt.a = "2"\nl = ["3"]'),
            ("b/y.toml", 'a = "4"\nt.b = "5"\nl = ["6"]\nm = [{a = "7"}]'),
        )
    )
    data = derived.over(base).data
    texts: tuple[Any, ...] = (
        data["a"],
        data["t"]["a"],
        data["l"][0],
        data["t"]["b"],
        data["m"][0]["a"],
    )
    assert texts == ("1", "2", "3", "5", "7")
    folders = [str(text.folder) for text in texts if isinstance(text, Text)]
    assert folders == ["a", "a", "a", "b", "b"]
