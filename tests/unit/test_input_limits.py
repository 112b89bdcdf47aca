"""Files that are none, or that are far too large: refused at once, by name."""

from __future__ import annotations

import json
import os
import socket
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.catalog import Catalog, read_catalog
from orchestrator.cli.fastpath import unchanged_build
from orchestrator.cli.main import run
from orchestrator.profile.document import MOST_VALUES
from orchestrator.shell import cache, files
from orchestrator.shell.files import read_file, read_own_json, read_text_file
from tests.conftest import model_bytes

if TYPE_CHECKING:
    from pathlib import Path

PROFILE = (
    'schema = 1\nname = "p"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
    '[[models]]\nname = "m"\npath = "m.pte"\n'
)
DEEP = "[" * 100_000 + "]" * 100_000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.pte").write_bytes(model_bytes("add_mul"))
    (tmp_path / "p.toml").write_text(PROFILE)
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    return tmp_path


def problems(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, Any]:
    """Exit code and diagnostics of a command."""
    capsys.readouterr()
    code = run([*arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)["diagnostics"]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("fifo", "it is a pipe, not a file"),
        ("folder", "it is a folder, not a file"),
        ("/dev/zero", "it is a device, not a file"),
    ],
)
@pytest.mark.parametrize(
    "command",
    [
        ("check", "{}"),
        ("inspect", "{}"),
        ("memory-plan", "{}"),
        ("scratch", "--check", "{}"),
        ("size", "p.toml", "--diff", "{}"),
        ("oplist", "--yaml", "{}", "--output", "o.yaml"),
    ],
    ids=lambda c: c[0],
)
def test_what_is_no_file(
    command: tuple[str, ...],
    name: str,
    found: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if command[0] == "size":
        (folder / "build" / "p").mkdir(parents=True)
        (folder / "build" / "p" / "report.json").symlink_to(folder / name)
    code, (problem,) = problems(capsys, *(word.format(name) for word in command))
    assert code in (2, 3, 4)
    if (name, command[0]) == ("folder", "check"):
        found = "a folder"
    assert {"label": "found", "text": found} in problem["notes"]


def test_what_is_no_file_in_a_profile(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dev = os.path.relpath("/dev/zero", folder)
    for name in ("fifo", "folder", dev):
        (folder / "p.toml").write_text(PROFILE.replace("m.pte", name))
        code, (problem,) = problems(capsys, "check", "p.toml")
        assert (code, problem["code"]) == (3, "missing-file")
    (folder / "p.toml").write_text(f'extends = "{dev}"\n{PROFILE}')
    code, (problem,) = problems(capsys, "check", "p.toml")
    assert (code, problem["code"]) == (3, "unreadable-file")
    assert problem["where"]["line"] == 1
    assert problem["notes"][0]["text"] == "it is a device, not a file"


def test_a_socket_is_no_file(folder: Path) -> None:
    with socket.socket(socket.AF_UNIX) as own:
        own.bind("s")
        with pytest.raises(OSError, match="it is a socket, not a file"):
            read_file(folder / "s")


@pytest.mark.parametrize("name", ["-", "/dev/fd/{}"])
def test_a_profile_from_a_pipe(name: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del folder
    read, write = os.pipe()
    os.write(write, PROFILE.encode())
    os.close(write)
    name = name.format(read)
    assert not unchanged_build([name])  # which leaves the pipe as it is
    stdin = os.dup(0)
    os.dup2(read, 0)
    try:
        assert run(["check", name]) == 0
        assert capsys.readouterr().out.startswith("p: everything fits: ")
        code, (problem,) = problems(capsys, "lock", name)
        assert (code, problem["hint"]) == (2, "name the lock with --lock FILE")
    finally:
        os.dup2(stdin, 0)
        os.close(stdin)
        os.close(read)


def test_a_pipe_without_end(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    del folder
    monkeypatch.setattr("orchestrator.shell.files.MOST_PROFILE_BYTES", 100)
    read, write = os.pipe()
    os.write(write, b"#" * 101)
    code, (problem,) = problems(capsys, "check", f"/dev/fd/{read}")
    assert (code, problem["code"]) == (3, "unreadable-file")
    assert "more than 100 bytes" in str(problem["notes"])
    os.close(read)
    os.close(write)


def test_sizes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "f"
    path.write_bytes(b"\xef\xbb\xbfa\r\nb")
    assert read_file(path, most_bytes=8)[-4:] == b"a\r\nb"[-4:]
    assert read_text_file(path, encoding="utf-8-sig") == "a\nb"
    with pytest.raises(OSError, match="7 bytes, more than 6"):
        read_file(path, most_bytes=6)
    monkeypatch.setattr(files, "MOST_BYTES", 1)
    assert read_own_json(path) is None


def test_a_profile_that_is_too_large(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "p.toml").write_text(PROFILE + "#" * (1 << 20))
    code, (problem,) = problems(capsys, "check", "p.toml")
    assert (code, problem["code"]) == (3, "unreadable-file")
    assert problem["hint"].startswith("a profile describes one product")


@pytest.mark.parametrize(
    "more",
    [
        "".join(f"k{i:x}=1\n" for i in range(MOST_VALUES)),
        "k=[" + "1," * MOST_VALUES + "]",
        # Nearly a MiB; a parser takes a quarter of a minute for it.
        "".join(f"[k{i:x}{'.a' * 900}]\n" for i in range(500)),
        "k={" + ",".join(f"k{i}=1" for i in range(MOST_VALUES)) + "}",
    ],
    ids=["keys", "items", "depth", "inline"],
)
def test_too_many_values(more: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "p.toml").write_text(PROFILE + more)
    code, (problem,) = problems(capsys, "check", "p.toml")
    assert (code, problem["code"]) == (3, "too-many-values")


def test_hints_read_the_libraries_once(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = []

    def counted(*arguments: Any) -> Catalog:
        reads.append(arguments)
        return read_catalog(*arguments)

    for module in ("selecting", "reading"):
        monkeypatch.setattr(f"orchestrator.build.{module}.read_catalog", counted)
    names = ", ".join(f'"my::op{i}"' for i in range(20))
    (folder / "p.toml").write_text(f"{PROFILE}[operators]\ninclude = [{names}]\n")
    code, found = problems(capsys, "check", "p.toml")
    assert (code, len(found)) == (5, 20)
    assert len(reads) == 2  # what is linked, and what could be


@pytest.mark.parametrize("text", [DEEP, '{"a": ' + DEEP + "}", "{", "[1]", "\0"])
def test_damaged_notes_of_earlier_runs(
    text: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(folder / "cache"))
    own = cache.cache_folder() / "programs.json"
    for path in (own, folder / "build" / "p" / ".work" / "stages.json"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "build" / "p" / ".work" / "stamp.json").write_text(text)
    assert cache.program_digest(folder / "m.pte") == cache.file_digest(folder / "m.pte")
    assert run(["plan", "p.toml"]) == 0
    for name in ("report.json", "firmware.json", "product.json"):
        (folder / "build" / "p" / name).write_text(text)
    for command in (
        ("size", "p.toml"),
        ("size", "p.toml", "--diff", "build/p/report.json"),
        ("compat", "build/p", "m.pte"),
        ("run", "p.toml", "--no-build"),
        ("why", "p.toml", "aten::add.out"),
    ):
        assert run(list(command)) in (0, 2), command
    capsys.readouterr()


def test_absolute_paths_of_models(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PROFILE.replace("m.pte", f"{folder}/m.pte")
    (folder / "p.toml").write_text(text)
    assert run(["check", "p.toml"]) == 0
    assert capsys.readouterr().err == (
        f"warning[absolute-path]: model m is at {folder}/m.pte: profile and lock are"
        " for this machine alone\n"
    )
    (folder / "p.toml").write_text(text.replace("/m.pte", "/gone.pte"))
    code, (problem,) = problems(capsys, "check", "p.toml")
    assert (code, problem["code"]) == (3, "missing-file")
    # Its name is that of the file, as with other paths.
    (folder / "p.toml").write_text(text.replace('name = "m"\n', ""))
    assert run(["check", "p.toml"]) == 0


def test_lists_that_are_too_large(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "l.yaml").write_text("#" * (files.MOST_LIST_BYTES + 1))
    found = "4,194,305 bytes, more than 4,194,304"
    custom = '[[kernels.custom]]\nname = "own"\nfunctions = "l.yaml"\n'
    for more in ('[operators]\ninclude_yaml = ["l.yaml"]\n', custom):
        (folder / "p.toml").write_text(PROFILE + more)
        code, (problem,) = problems(capsys, "check", "p.toml")
        assert (code, problem["code"]) == (3, "unreadable-file")
        assert problem["notes"][0] == {"label": "found", "text": found}
    code, (problem,) = problems(capsys, "oplist", "--yaml", "l.yaml", "--output", "o.yaml")
    assert (code, problem["code"]) == (2, "unreadable-file")
    # Data of a program may be larger, but not a pipe.
    (folder / "p.toml").write_text(f'{PROFILE}data = ["fifo"]\n')
    code, (problem,) = problems(capsys, "check", "p.toml")
    assert (code, problem["code"]) == (3, "missing-file")


def test_pictures_hold_no_control_characters(folder: Path) -> None:
    (folder / "b.csv").write_text("id,lower,upper,size\na\x1b[2J<b>,0,1,64\n")
    assert run(["memory-plan", "b.csv", "--svg", "b.svg"]) == 0
    picture = (folder / "b.svg").read_text()
    assert "\x1b" not in picture
    assert r"a\u001b[2J&lt;b&gt;" in picture
