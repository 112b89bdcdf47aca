"""Key paths against tomli's parse; lines against hand-counted ones."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import tomli
import tomli_w
from hypothesis import assume, given
from hypothesis import strategies as st

from orchestrator.profile.source_map import map_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.profile.source_map import KeyPath


def key_paths(value: object, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Every key path of parsed TOML."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from key_paths(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from key_paths(item, (*path, index))


def assert_same_key_paths(text: str) -> None:
    lines = map_lines(text)
    assert set(lines) == set(key_paths(tomli.loads(text)))
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())


# Surrogates cannot be in TOML; "\r" is written by tomli_w as an escape.
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
KEYS = st.one_of(
    st.sampled_from(["a", "b", "c.d", "", "1", "-", '"', "'", "#", "[x]", "\\"]), TEXTS
)
SCALARS = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    st.datetimes(),
    st.dates(),
    st.times(),
    TEXTS,
    st.sampled_from(["a\nb", '"""', "'''", "[t]\na = 1", "# no", "a = {", "\\", '""']),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(KEYS, inner, max_size=3)
        | st.lists(st.dictionaries(KEYS, inner, max_size=3), min_size=1, max_size=3)
    ),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)


@given(document=DOCUMENTS, multiline=st.booleans())
def test_key_paths_are_the_parsers(document: dict[str, Any], multiline: bool) -> None:  # noqa: FBT001
    assert_same_key_paths(tomli_w.dumps(document, multiline_strings=multiline))


# Pieces that a document may be put together of, valid or not.
PIECES = st.sampled_from(
    [
        "a = 1",
        "a.b = 1",
        'a."b.c" . d = "x"',
        "'l.k' = 'v'",
        "[a]",
        "[a.b]",
        "[ x . 'y' ]  # comment",
        "[[t]]",
        "[[t]]",
        "[t.u]",
        "[[t.v]]",
        "[t.v.w]",
        "k = [1, [2, 3,], # c ]\n 4 ]",
        "k = [\n\n  # [\n  { p = 1, q.r = [ {} ] },\n]",
        's = """\n[no]\nx = 1 \\\n "" " \\""""""',
        "s = '''\n# no\n''''''",
        "d = 1979-05-27 07:32:00Z # c",
        "i = {}",
        "i = { a = 1, b = [ 'x', ] }",
        "i = {\n  a = 1, # c\n}",
        "e = []",
        '"\\u0041\\t\\"" = 0',
        "f = -inf",
        "",
        "# [c]",
        "\t",
    ]
)


@given(pieces=st.lists(PIECES, max_size=8), newline=st.sampled_from(["\n", "\r\n"]))
def test_key_paths_of_hand_made_documents(pieces: list[str], newline: str) -> None:
    # What the parser refuses, such as a key given twice, is for the next test.
    text = "\n".join(pieces).replace("\n", newline)
    try:
        tomli.loads(text)
    except tomli.TOMLDecodeError:
        assume(condition=False)
    assert_same_key_paths(text)


NOT_TOML = st.one_of(
    st.text(max_size=60),
    st.text("ab.=[]{}\"'#\\,\n\r\t 1-:", max_size=60),
    st.lists(PIECES).map("\n".join).flatmap(lambda t: st.just(t[: len(t) * 2 // 3])),
)


@given(text=NOT_TOML)
def test_never_raises(text: str) -> None:
    lines = map_lines(text)
    assert all(1 <= line <= text.count("\n") + 1 for line in lines.values())


def test_escape_that_is_no_character_ends_the_map() -> None:
    assert map_lines('a = 1\n"\\UFFFFFFFF" = 2\n') == {("a",): 1}


def test_deep_nesting_loses_lines_only() -> None:
    text = "first = 1\na = " + "[" * 5000 + "]" * 5000
    assert map_lines(text)[("first",)] == 1


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_lines(newline: str) -> None:
    text = '''\
# comment
top = """
a
b = 2
"""
a.b = 1

[target] # comment
cpu = "x"
"quoted.key" = 1

[[models]]
path = "p"
[models.more]
x = 1
[[models]]
list = [
  1, 2,
  # comment
  { inner = 1 },
]

[dtypes.operators]
"aten::add.out" = ["Float"]
[dtypes]
select = "all"
'''.replace("\n", newline)
    assert map_lines(text) == {
        ("top",): 2,
        ("a",): 6,
        ("a", "b"): 6,
        ("target",): 8,
        ("target", "cpu"): 9,
        ("target", "quoted.key"): 10,
        ("models",): 12,
        ("models", 0): 12,
        ("models", 0, "path"): 13,
        ("models", 0, "more"): 14,
        ("models", 0, "more", "x"): 15,
        ("models", 1): 16,
        ("models", 1, "list"): 17,
        ("models", 1, "list", 0): 18,
        ("models", 1, "list", 1): 18,
        ("models", 1, "list", 2): 20,
        ("models", 1, "list", 2, "inner"): 20,
        ("dtypes",): 25,
        ("dtypes", "operators"): 23,
        ("dtypes", "operators", "aten::add.out"): 24,
        ("dtypes", "operators", "aten::add.out", 0): 24,
        ("dtypes", "select"): 26,
    }


def test_lines_of_unique_keys_hold_them() -> None:
    """An oracle that searches the text: a key that occurs once is on its line."""
    text = tomli_w.dumps(
        {f"k{i}": {f"a{i}": [{f"x{i}": i}, f"s\n{i}"]} for i in range(30)}, multiline_strings=True
    )
    lines = text.split("\n")
    for path, line in map_lines(text).items():
        if isinstance(path[-1], str):
            assert re.search(rf"\b{path[-1]}\b", lines[line - 1]), (path, line)
