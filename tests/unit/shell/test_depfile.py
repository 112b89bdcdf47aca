"""Depfiles hold every path that their syntax has a form for, and refuse the others."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.shell.depfile import depfile_text, write_depfile
from orchestrator.shell.ninja import ninja_program
from tests.tools import need_tool

if TYPE_CHECKING:
    from pathlib import Path


def test_inputs_are_listed_once_and_in_order() -> None:
    assert depfile_text("out/lib a.a", ["/b", "/a b", "/b"]) == (
        "out/lib\\ a.a: \\\n  /a\\ b \\\n  /b\n"
    )
    assert depfile_text("x", []) == "x:\n"


def test_characters_that_mean_something() -> None:
    assert depfile_text("x", ["a#b$c\\d\\ e"]) == "x: \\\n  a\\#b$$c\\d\\\\\\ e\n"


@pytest.mark.parametrize("character", "\t\n\r\v\f\0")
def test_characters_without_a_form(character: str) -> None:
    path = f"a{character}b"
    with pytest.raises(ValueError, match=re.escape(path)):
        depfile_text("x", [path])
    with pytest.raises(ValueError, match=re.escape(path)):
        depfile_text(path, [])


def _read(text: str) -> list[str]:
    """Words of a rule as GNU make reads them, the target's colon included."""
    words = [""]
    rest = iter(text.replace("\\\n", ""))
    pending = 0
    for character in rest:
        if character == "\\":
            pending += 1
            continue
        if character in " #\n":
            words[-1] += "\\" * (pending // 2 if pending % 2 or pending else 0)
            if pending % 2:
                words[-1] += character
            else:
                words.append("")
        elif character == "$":
            words[-1] += "\\" * pending + next(rest)
        else:
            words[-1] += "\\" * pending + character
        pending = 0
    return [word for word in words if word]


@given(
    st.lists(
        st.text(
            st.characters(codec="ascii", exclude_categories=["Cc"], exclude_characters=":"),
            min_size=1,
        ).filter(lambda path: not re.search(r"\\(#|$)", path)),
        min_size=1,
        unique=True,
    )
)
def test_what_is_written_is_read(paths: list[str]) -> None:
    target, *inputs = paths
    assert _read(depfile_text(target, inputs)) == [f"{target}:", *sorted(inputs)]


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A file whose path has a bit of everything."""
    path = tmp_path / "a b" / "über #1 $x & (y)'s \\ z.pte"
    path.parent.mkdir()
    path.write_text("1")
    return path


def _ninja(folder: Path) -> str:
    done = subprocess.run(
        [ninja_program(), "-d", "explain"], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


def test_ninja_sees_a_change_of_an_odd_path(odd: Path, tmp_path: Path) -> None:
    depfile = tmp_path / "made.d"
    write_depfile(str(depfile), target="made", inputs=[str(odd)])
    (tmp_path / "build.ninja").write_text(
        "rule make\n  command = touch made\n  depfile = made.d\nbuild made: make\n"
    )
    assert "[1/1]" in _ninja(tmp_path)
    assert "no work to do" in _ninja(tmp_path)
    odd.unlink()
    assert "[1/1]" in _ninja(tmp_path)


def test_make_sees_a_change_of_an_odd_path(odd: Path, tmp_path: Path) -> None:
    make = need_tool("make", "gmake")
    depfile = tmp_path / "made.d"
    write_depfile(str(depfile), target="made", inputs=[str(odd)])
    (tmp_path / "Makefile").write_text("made:\n\ttouch made\ninclude made.d\n")
    said = [
        subprocess.run(
            [make, "made"], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout
        for _ in range(2)
    ]
    assert said == ["touch made\n", "make: 'made' is up to date.\n"]


def test_writing_makes_the_folder_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "x.d"
    write_depfile(str(path), target="x", inputs=["/y"])
    assert path.read_text() == "x: \\\n  /y\n"
    path.unlink()
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        write_depfile(str(path), target="x", inputs=["/y"])
    assert [p.name for p in path.parent.iterdir()] == ["x.d"]


def test_names_that_are_not_utf8_keep_their_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.d"
    write_depfile(str(path), target="x", inputs=[b"/\xff".decode(errors="surrogateescape")])
    assert path.read_bytes() == b"x: \\\n  /\xff\n"
