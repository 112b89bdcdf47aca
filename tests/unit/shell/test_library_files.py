"""Which files belong to a custom kernel library, and how they are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.shell.library_files import LibraryFiles, find_library

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in (
        "lib/functions.yaml",
        "lib/op_a.cpp",
        "lib/a.h",
        "lib/deep/b.hpp",
        "lib/notes.txt",
        "lib/.git/x.h",
        "lib/build/x/.work/src/c.h",
        "lib/build/x/published.h",
        "vendor/src/v1.c",
        "vendor/src/v1.h",
        "vendor/src/sub/v2.c",
        "vendor/src/sub/v[3].c",
        "vendor/inc/v/w.h",
        "vendor/inc/w.c",
        "elsewhere/never.h",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path


def _find(home: Path, sources: list[str] = [], include: list[str] = []) -> LibraryFiles:  # noqa: B006  # not changed
    return find_library(
        home / "lib" / "functions.yaml",
        sources=[home / s for s in sources],
        include=[home / i for i in include],
    )


def test_a_library_is_the_folder_of_its_list(home: Path) -> None:
    found = _find(home)
    assert (found.root, found.folder) == (home / "lib", "")
    assert found.functions == "functions.yaml"
    assert set(found.files) == {"op_a.cpp", "a.h", "deep/b.hpp"}
    assert found.files["a.h"] == home / "lib" / "a.h"
    assert (found.sources, found.include, found.unmatched) == ((), (".",), ())


def test_files_elsewhere_widen_it_to_the_folder_of_all(home: Path) -> None:
    found = _find(home, ["vendor/src/**/*.c"], ["vendor/inc"])
    assert (found.root, found.folder) == (home, "lib")
    assert found.functions == "lib/functions.yaml"
    assert found.sources == ("vendor/src/sub/v2.c", "vendor/src/sub/v[3].c", "vendor/src/v1.c")
    assert found.include == ("lib", "vendor/inc")
    assert set(found.files) == {
        *("lib/op_a.cpp", "lib/a.h", "lib/deep/b.hpp"),
        *found.sources,
        "vendor/src/v1.h",
        "vendor/inc/v/w.h",
    }


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("vendor/src/*.c", ["vendor/src/v1.c"]),
        ("vendor/**/v2.c", ["vendor/src/sub/v2.c"]),
        ("vendor/src/sub/v[3].c", ["vendor/src/sub/v[3].c"]),
        ("vendor/src/*/v[3].c", ["vendor/src/sub/v[3].c"]),
        ("vendor/src/../src/v1.c", ["vendor/src/v1.c"]),
        ("vendor/src/v1.h*", []),
        ("vendor/src/v?.c", []),
        ("nowhere/*.c", []),
        ("nowhere/x.c", []),
        ("vendor/src/s*", []),
    ],
)
def test_patterns(home: Path, pattern: str, expected: list[str]) -> None:
    found = _find(home, [pattern])
    assert list(found.sources) == expected
    assert found.unmatched == (() if expected else (0,))


def test_a_folder_that_is_not_there_has_no_headers(home: Path) -> None:
    found = _find(home, [], ["lib/missing"])
    assert found.include == (".", "missing")


def test_a_delegate_has_no_list_and_the_folder_of_its_sources(home: Path) -> None:
    sources, include = [home / "vendor/src/*.c"], [home / "vendor/inc"]
    found = find_library(None, sources=sources, include=include)
    assert (found.root, found.functions) == (home / "vendor", "")
    assert set(found.files) == {"src/v1.c", "src/v1.h", "inc/v/w.h"}
    assert (found.sources, found.include) == (("src/v1.c",), ("inc",))
    alone = find_library(None, sources=sources, include=[])
    assert (alone.root, alone.include) == (home / "vendor/src", ())
    nothing = find_library(None, sources=[home / "none/*.c"], include=[])
    assert (nothing.sources, nothing.unmatched) == ((), (0,))
