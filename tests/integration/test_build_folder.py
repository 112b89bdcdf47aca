"""Folders of the user: no command writes into them, or removes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.main import run
from orchestrator.shell.build_folder import MARKER, STORE, WORK
from orchestrator.shell.publish import published_files
from tests.conftest import model_bytes
from tests.integration.workspace import write_product
from tests.tools import need_toolchain
from tests.unit.shell.test_build_folder import tree

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that its profile lies in, with a folder for the command to run in."""
    folder = tmp_path / "project"
    write_product(folder, case="add_mul", toolchain="gnu")
    (folder / "model.pte").unlink()
    (folder / "src").mkdir()
    (folder / "src" / "main.c").write_text("int main(void) { return 0; }\n")
    (folder / "build.ninja").write_text("# mine\n")
    (folder / "report.json").write_text("{}\n")
    (folder / "models").mkdir()
    (folder / "models" / "model.pte").write_bytes(model_bytes("add_mul"))
    profile = folder / "product.toml"
    profile.write_text(profile.read_text().replace('"model.pte"', '"models/model.pte"'))
    monkeypatch.chdir(folder / "src")
    return folder


PROFILE = "../product.toml"
COMMANDS = {
    "build": ("build", PROFILE),
    "lock": ("lock", PROFILE),
    "verify": ("verify", PROFILE),
    "what-if": ("size", PROFILE, "--optimize", "speed"),
    "costs": ("run", PROFILE, "--costs", "--input", "x.npy"),
    "plan": ("plan", PROFILE),
    "check": ("check", PROFILE),
    "clean": ("clean", PROFILE),
}


@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("command", "out"),
    [
        *((command, "..") for command in COMMANDS),
        *(("build", out) for out in (".", "../models", "main.c", "../link")),
    ],
)
def test_no_command_touches_a_folder_of_the_user(
    project: Path, command: str, out: str, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "gnu")
    (project / "link").symlink_to("src")
    before = {p: p.read_bytes() for p in project.rglob("*") if p.is_file()}
    code = run([*COMMANDS[command], "--out", out])
    said = capsys.readouterr().err
    assert {p: p.read_bytes() for p in project.rglob("*") if p.is_file()} == before
    if command in ("plan", "check"):
        assert code == 0  # they only read
    else:
        assert code == 2
    if command in ("build", "lock", "verify", "clean"):
        assert "error[not-a-build-folder]" in said


@pytest.mark.toolchain
def test_files_of_the_user_in_a_build_folder_stay(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "gnu")
    out, profile = project / "out", project / "product.toml"
    build = ["build", str(profile), "--out", str(out)]
    assert run(build) == 0
    assert (out / MARKER).is_file()
    outputs, lock = published_files(out), (project / "product.lock").read_bytes()
    # A folder of the user's in the place of an output.
    (out / "notes.txt").write_text("mine")
    (out / "include").unlink()
    (out / "include").mkdir()
    (out / "include" / "mine.h").write_text("mine")
    profile.write_text(profile.read_text().replace('"gnu"', '"gnu"\noptimize = "speed"'))
    capsys.readouterr()
    assert run(build) == 2
    said = capsys.readouterr().err
    assert f"error[name-taken]: cannot publish include: {out}/include" in said
    assert "compile" not in said
    assert published_files(out) == outputs
    assert (project / "product.lock").read_bytes() == lock
    assert (out / "include" / "mine.h").read_text() == "mine"
    # Cleaning leaves it, and what else is theirs.
    assert run(["clean", str(profile), "--out", str(out)]) == 0
    shown = capsys.readouterr().out
    assert shown == f"{out}: removed build outputs; kept include, notes.txt\n"
    assert set(tree(out)) == {MARKER, "include", "include/mine.h", "notes.txt"}
    # With the name free again, builds go on, whatever an older version left.
    (out / "include" / "mine.h").unlink()
    assert run(build) == 0
    (out / MARKER).unlink()
    profile.write_text(profile.read_text() + "\n")
    assert run(build) == 0
    assert (out / MARKER).is_file()
    (out / "notes.txt").unlink()
    assert run(["clean", str(profile), "--out", str(out)]) == 0
    assert not out.exists()


@pytest.mark.toolchain
@pytest.mark.parametrize("name", [STORE, f"{WORK}/models", ".lock"])
def test_links_in_a_build_folder_lead_nowhere(
    project: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("host", "gnu")
    victim = project / ("build.ninja" if name == ".lock" else "src")
    link = project / "out" / name
    (project / "out" / WORK).mkdir(parents=True)
    (project / "out" / MARKER).write_text('{"schema": 1, "made": []}\n')
    link.symlink_to(victim)
    before = tree(project)
    for command in ("build", "clean"):
        if command == "clean" and WORK in name:
            continue  # removing what has a link in it is no harm
        args = [command, str(project / "product.toml"), "--out", str(project / "out")]
        assert run(args) == 2
        assert f"{link} is a link to {victim}, which no build made" in capsys.readouterr().err
    after = tree(project)
    after.pop("out/.lock", None)
    before.pop("out/.lock", None)
    assert after == before
    assert link.is_symlink()
