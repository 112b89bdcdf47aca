"""Builds that have nothing to do: seen without the full program, never wrongly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.fastpath import unchanged_build, up_to_date
from orchestrator.shell import stamp

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working folder with two built profiles: a.toml, and b.toml below p/."""
    monkeypatch.chdir(tmp_path)
    _built(tmp_path / "a.toml", 'schema = 1\nname = "a"\n', "build/a")
    _built(tmp_path / "p" / "b.toml", 'schema = 1\nname = "b"\n', "build/b")
    return tmp_path


def _built(profile: Path, text: str, out: str) -> None:
    """Write a profile and the stamp of a build of it in the folder `out`."""
    profile.parent.mkdir(exist_ok=True)
    profile.write_text(text)
    work = profile.parents[profile.parent.name == "p"] / out / ".work"
    work.mkdir(parents=True, exist_ok=True)
    document = {
        "profile": str(profile),
        "environment": stamp.environment(),
        "library": f"/{out}/lib.a",
        "lock": str(profile.with_suffix(".lock")),
        "shared": "none",
        "input_count": 1,
        # What was made comes after what was read.
        "files": {str(profile): stamp.state_of(str(profile)), "/nowhere/lib.a": []},
    }
    (work / stamp.STAMP_NAME).write_text(json.dumps(document))
    shared = {"identity": "none", "input_count": 0, "files": {}}
    (work / stamp.shared_file(stamp.STAMP_NAME)).write_text(json.dumps(shared))


@pytest.mark.parametrize(
    "arguments",
    [
        ["a.toml"],
        ["./a.toml"],
        ["p/b.toml"],
        ["a.toml", "p/b.toml"],
        ["a.toml", "--out", "build/a"],
        ["--out", "build/a", "a.toml"],
        ["a.toml", "--no-lock"],
        ["a.toml", "--lock", "p/../a.lock"],
    ],
    ids=" ".join,
)
def test_nothing_to_do(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert unchanged_build(arguments)
    said = capsys.readouterr()
    assert said.out == ""
    profiles = [a for a in arguments if a.endswith(".toml")]
    folders = {"a": "build/a", "b": "build/b"}
    assert said.err == "".join(f"{p}: up to date, outputs in {folders[p[-6]]}\n" for p in profiles)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["--out", "build/a"],
        ["a.toml", "--out"],
        ["a.toml", "--out", "build/b"],
        ["a.toml", "--out", "missing"],
        ["a.toml", "p/b.toml", "--out", "build/a"],
        ["missing.toml"],
        ["p"],
        ["a.toml", "missing.toml"],
        ["--json", "a.toml"],
        ["a.toml", "--explain"],
        ["a.toml", "--locked"],
        ["a.toml", "--lock", "other.lock"],
        ["a.toml", "--lock"],
        ["a.toml", "--lock", "a.lock", "--no-lock"],
        ["a.toml", "p/b.toml", "--no-lock"],
        ["a.toml", "--frozen"],
        ["a.toml", "-j2"],
        ["a.toml", "p/b.toml", "--depfile", "x.d"],
        ["a.toml", "--depfile"],
        ["a.toml", "--depfile", "--explain"],
        ["a.toml", "--depfile-target", "x"],
        ["a.toml", "--depfile", "p"],
        ["a.toml", "--depfile", "x.d", "--depfile-target", "a\tb"],
        ["a.toml", "--help"],
        ["a.toml", "--unknown"],
    ],
    ids=" ".join,
)
def test_any_doubt_is_left_to_the_full_program(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert not unchanged_build(arguments)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("options", "target"), [([], "/build/a/lib.a"), (["--depfile-target", "a b"], "a\\ b")]
)
def test_the_depfile_names_what_was_read(folder: Path, options: list[str], target: str) -> None:
    assert unchanged_build(["a.toml", "--depfile", "d/x.d", *options])
    assert (folder / "d" / "x.d").read_text() == f"{target}: \\\n  {folder}/a.toml\n"


@pytest.mark.parametrize("facts", [{"input_count": "1"}, {"library": 1}, {"input_count": 0}])
def test_a_stamp_without_what_a_depfile_needs(folder: Path, facts: dict[str, object]) -> None:
    path = folder / "build" / "a" / ".work" / stamp.STAMP_NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | facts))
    assert unchanged_build(["a.toml"])
    assert not unchanged_build(["a.toml", "--depfile", "x.d"])
    assert not (folder / "x.d").exists()


def test_one_changed_profile_of_several(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "p" / "b.toml").write_text('name = "b"')
    assert not unchanged_build(["a.toml", "p/b.toml"])
    assert capsys.readouterr().err == ""
    assert unchanged_build(["a.toml"])


@pytest.mark.parametrize(
    "text",
    [
        "name = 'a'\n[[models]]\nname = \"x\"\n",
        '"name" = "a"\n[[models]]\nname = "x"\n',
        'name = "a b"\n',
        'name = ""\n',
        "",
        "\0",
    ],
)
def test_a_name_in_another_form_is_not_guessed(folder: Path, text: str) -> None:
    """The folder that such a text seems to name belongs to another profile."""
    _built(folder / "x.toml", 'name = "x"\n', "build/x")
    _built(folder / "a.toml", text, "build/a")
    assert not unchanged_build(["a.toml"])


def test_what_it_says() -> None:
    assert up_to_date("p/a.toml", "build/a") == ("p/a.toml: up to date, outputs in build/a")


def test_a_depfile_in_the_place_of_a_source_is_left_to_the_full_program(folder: Path) -> None:
    for name in ("a.toml", "net.pte", "link.d"):
        path = folder / name
        if name == "link.d":
            path.symlink_to("a.toml")
        elif not path.exists():
            path.write_text(name)
        text = path.read_text()
        assert not unchanged_build(["a.toml", "--depfile", name])
        assert path.read_text() == text
