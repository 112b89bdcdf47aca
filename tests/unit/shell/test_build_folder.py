"""Build folders: only what builds made in them is replaced or removed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from orchestrator.errors import UsageError
from orchestrator.shell import build_folder
from orchestrator.shell.build_folder import (
    LOCK,
    MARKER,
    STORE,
    VARIANTS,
    WORK,
    claim,
    exclusive,
    recorded_names,
    refuse_links,
    remove_made,
)
from orchestrator.shell.files import DISK
from orchestrator.shell.publish import publish, publish_exported, published_files
from tests.permissions import permissions_hold

OUTPUTS = {"firmware.elf": b"\x7fELF", "include/a.h": b"h"}


def tree(folder: Path) -> dict[str, str]:
    """Everything in a folder, links not followed."""
    return {
        str(path.relative_to(folder)): f"-> {os.readlink(path)}"  # noqa: PTH115
        if path.is_symlink()
        else path.read_bytes().decode("latin-1")
        if path.is_file()
        else "folder"
        for path in folder.rglob("*")
    }


def built(folder: Path) -> Path:
    """A build folder after a build."""
    with exclusive(folder):
        (folder / WORK / "obj").mkdir(parents=True)
        (folder / WORK / "obj" / "a.o").write_text("object")
        publish(folder, OUTPUTS)
    return folder


def older(folder: Path) -> Path:
    """A build folder that was made before there were marks."""
    built(folder)
    (folder / MARKER).unlink()
    return folder


def code_of(error: pytest.ExceptionInfo[UsageError]) -> str:
    (problem,) = error.value.diagnostics
    return problem.code


@pytest.mark.parametrize("name", ["main.c", "build.ninja", ".git/HEAD", "src/deep/a.c"])
def test_a_folder_with_anything_in_it_is_not_touched(tmp_path: Path, name: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = tree(tmp_path)
    with pytest.raises(UsageError) as caught, exclusive(tmp_path):
        pass
    (problem,) = caught.value.diagnostics
    assert problem.code == "not-a-build-folder"
    assert problem.notes == (("found", name.partition("/")[0]),)
    assert "--out" in problem.hint
    with pytest.raises(UsageError) as caught:
        remove_made(tmp_path)
    assert code_of(caught) == "not-a-build-folder"
    assert tree(tmp_path) == before


@pytest.mark.parametrize("link", [False, True])
def test_a_link_is_something_of_the_users(tmp_path: Path, link: bool) -> None:  # noqa: FBT001
    (tmp_path / "mine").symlink_to("nowhere" if link else "/")
    with pytest.raises(UsageError) as caught:
        claim(tmp_path)
    assert code_of(caught) == "not-a-build-folder"


def test_an_empty_folder_and_one_with_empty_folders_will_do(tmp_path: Path) -> None:
    """ninja makes the folders of outputs before it starts a build."""
    (tmp_path / "include" / "orch").mkdir(parents=True)
    (tmp_path / WORK).mkdir()
    built_names = {"firmware.elf", "include"}
    with exclusive(tmp_path):
        publish(tmp_path, OUTPUTS)
    assert recorded_names(tmp_path) == built_names
    assert (tmp_path / "include/a.h").read_bytes() == b"h"


@pytest.mark.parametrize("kind", ["file", "dangling", "link to a file"])
def test_no_folder_is_no_build_folder(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "out"
    (tmp_path / "file").write_text("mine")
    if kind == "file":
        path.write_text("mine")
    else:
        path.symlink_to("nowhere" if kind == "dangling" else "file")
    before = tree(tmp_path)
    for act in (claim, remove_made):
        with pytest.raises(UsageError) as caught:
            act(path)
        assert code_of(caught) == "not-a-build-folder"
    assert tree(tmp_path) == before


def test_a_link_to_a_folder_is_where_the_user_wants_builds(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to("disk")
    built(tmp_path / "out")
    assert published_files(tmp_path / "disk") == OUTPUTS
    assert remove_made(tmp_path / "out") == ()
    assert tree(tmp_path) == {"disk": "folder", "out": "-> disk"}
    (tmp_path / "disk" / "mine").write_text("mine")
    with pytest.raises(UsageError):
        claim(tmp_path / "out")


@pytest.mark.parametrize("make", [built, older])
def test_clean_removes_what_builds_made(tmp_path: Path, make: object) -> None:
    assert callable(make)
    folder = make(tmp_path / "out")
    publish_exported(folder, {"model/model.pte": b"x"})
    assert remove_made(folder) == ()
    assert not folder.exists()


@pytest.mark.parametrize("make", [built, older])
def test_clean_leaves_what_is_of_the_user_and_builds_go_on(tmp_path: Path, make: object) -> None:
    assert callable(make)
    folder = make(tmp_path / "out")
    (folder / "notes.txt").write_text("mine")
    (folder / "best.elf").symlink_to("current/firmware.elf")
    (folder / "include").unlink()
    (folder / "include").mkdir()
    (folder / "include" / "my.h").write_text("mine")
    assert remove_made(folder) == ("best.elf", "include", "notes.txt")
    assert set(tree(folder)) == {*("best.elf", "include", "include/my.h", "notes.txt", MARKER)}
    assert remove_made(folder) == ("best.elf", "include", "notes.txt")
    with pytest.raises(UsageError) as caught:
        built(folder)
    assert code_of(caught) == "name-taken"
    (folder / "include" / "my.h").unlink()
    with exclusive(folder):
        publish(folder, OUTPUTS)
    assert published_files(folder) == OUTPUTS
    assert (folder / "notes.txt").read_text() == "mine"


def test_clean_of_an_empty_folder_keeps_it(tmp_path: Path) -> None:
    assert remove_made(tmp_path) == ()
    assert tmp_path.is_dir()


@pytest.mark.parametrize("made", ["..", "../victim", "/", "sub/victim", ""])
def test_a_record_with_other_names_removes_nothing_else(tmp_path: Path, made: str) -> None:
    (tmp_path / "victim").write_text("mine")
    folder = built(tmp_path / "out")
    (folder / MARKER).write_text(json.dumps({"made": [made, 7, None]}))
    (folder / "sub").mkdir()
    (folder / "sub" / "victim").symlink_to("current/sub/victim")
    remove_made(folder)
    assert (tmp_path / "victim").read_text() == "mine"
    assert (folder / "sub" / "victim").is_symlink()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"made": 1}', "[" * 99999, "\xff"])
def test_a_damaged_record_is_found_again_by_the_links(tmp_path: Path, text: str) -> None:
    folder = built(tmp_path / "out")
    (folder / "mine").symlink_to("current/firmware.elf")
    (folder / MARKER).write_text(text, encoding="latin-1")
    assert recorded_names(folder) == {"firmware.elf", "include"}
    assert remove_made(folder) == ("mine",)


@pytest.mark.parametrize("name", [LOCK, WORK, STORE, MARKER, "current"])
@pytest.mark.parametrize("to", ["file", "folder", "nowhere"])
def test_a_link_in_the_place_of_what_is_ours_is_refused_by_name(
    tmp_path: Path, name: str, to: str
) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("mine")
    folder = built(tmp_path / "out")
    DISK.remove(folder / name)
    (folder / name).symlink_to(tmp_path / to)
    before = tree(tmp_path)
    for act in (built, remove_made):
        with pytest.raises(UsageError) as caught:
            act(folder)
        (problem,) = caught.value.diagnostics
        assert problem.code == "link-in-the-way"
        assert str(folder / name) in problem.message
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["obj", "obj/a.o", "models", "src", "stamp.json"])
def test_links_in_the_work_folder_are_refused_by_name(tmp_path: Path, name: str) -> None:
    (tmp_path / "victim").write_text("mine")
    folder = built(tmp_path / "out")
    DISK.remove(folder / WORK / name)
    (folder / WORK / name).symlink_to(tmp_path / "victim")
    with pytest.raises(UsageError) as caught, exclusive(folder):
        pass
    assert code_of(caught) == "link-in-the-way"
    assert str(folder / WORK / name) in str(caught.value)


def test_variants_have_links_of_their_own(tmp_path: Path) -> None:
    folder = built(tmp_path / "out")
    variant = built(folder / WORK / VARIANTS / "1234")
    refuse_links(folder)
    variant.with_name("5678").symlink_to(variant)
    with pytest.raises(UsageError) as caught:
        refuse_links(folder)
    assert "5678" in str(caught.value)


def test_the_lock_is_not_written_into(tmp_path: Path) -> None:
    """It may be another name of a file of the user's."""
    folder = built(tmp_path / "out")
    (tmp_path / "victim").write_text("mine")
    (folder / LOCK).unlink()
    (folder / LOCK).hardlink_to(tmp_path / "victim")
    with exclusive(folder):
        pass
    assert (tmp_path / "victim").read_text() == "mine"


@pytest.mark.parametrize("name", [LOCK, MARKER])
def test_pipes_are_no_files_of_ours(tmp_path: Path, name: str) -> None:
    folder = built(tmp_path / "out")
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(UsageError) as caught:
        claim(folder)
    assert code_of(caught) == "link-in-the-way"


@pytest.mark.parametrize("marked", [True, False])
def test_a_folder_that_cannot_be_written_is_named(
    tmp_path: Path,
    marked: bool,  # noqa: FBT001
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    if marked:
        built(folder)
    tmp_path.chmod(0o755)
    folder.chmod(0o555)
    with permissions_hold(), pytest.raises(PermissionError) as caught:
        claim(folder)
    assert caught.value.filename == str(folder)


def test_a_folder_that_is_removed_while_we_wait_is_made_again(tmp_path: Path) -> None:
    folder = built(tmp_path / "out")
    entered = []

    def build() -> None:
        with exclusive(folder):
            entered.append((folder / MARKER).is_file())

    with exclusive(folder):
        waiting = threading.Thread(target=build)
        waiting.start()
        waiting.join(0.2)
        assert entered == []
        shutil.rmtree(folder)
    waiting.join()
    assert entered == [True]


CLAIM = """\
import sys
from pathlib import Path
from orchestrator.shell.build_folder import exclusive
sys.stdin.readline()
with exclusive(Path(sys.argv[1])):
    names = Path(sys.argv[1], "names")
    names.mkdir(exist_ok=True)
    Path(names, sys.argv[2]).write_text("")
"""


def test_many_may_claim_a_new_folder_at_once(tmp_path: Path) -> None:
    for round_ in range(2):
        folder = tmp_path / str(round_)
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", CLAIM, str(folder), str(number)],
                stdin=subprocess.PIPE,
                cwd=Path(build_folder.__file__).parents[2],
            )
            for number in range(8)
        ]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write(b"go\n")
            process.stdin.flush()
        for process in processes:
            process.communicate()
        assert [process.returncode for process in processes] == [0] * 8
        assert len(list((folder / "names").iterdir())) == 8
