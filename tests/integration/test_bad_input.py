"""No traceback, one clear error, the right exit code, whatever a command is given."""

from __future__ import annotations

import json
import os
import re
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.main import run
from tests.conftest import model_bytes
from tests.integration.workspace import notes_of
from tests.permissions import permissions_hold
from tests.unit.running.corpus_products import host, product_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@dataclass(frozen=True, slots=True)
class Bad:
    """Something nobody should have typed, and the answer."""

    code: int
    problem: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path], object] | None = None


PROFILE = (
    'schema = 1\nname = "a"\n[target]\ncpu = "host"\ntoolchain = "zig"\n'
    '[[models]]\nname = "m"\npath = "m.pte"\n'
)


def _text(name: str, text: str | bytes) -> Callable[[Path], object]:
    data = text if isinstance(text, bytes) else text.encode()
    return lambda folder: (folder / name).write_bytes(data)


def _folder(name: str) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()

    return make


def _forbidden(name: str, mode: int = 0) -> Callable[[Path], object]:
    return lambda folder: (folder / name).chmod(mode)


def _product(folder: Path) -> None:
    """What a build leaves for `run` and `size`, just enough to get to the inputs."""
    (folder / "o").mkdir()
    text = product_text({"m": "add_mul"}, host())
    (folder / "o" / "product.json").write_text(text)


def _scenario(text: str | bytes) -> Callable[[Path], object]:
    def make(folder: Path) -> None:
        _product(folder)
        _text("s.json", text)(folder)

    return make


def _made(name: str, text: str) -> Callable[[Path], object]:
    """A file of a build."""

    def make(folder: Path) -> None:
        (folder / "o").mkdir()
        (folder / "o" / name).write_text(text)

    return make


def _edited(old: str, new: str) -> Callable[[Path], object]:
    assert old in PROFILE
    return _text("a.toml", PROFILE.replace(old, new))


RUN = ("run", "a.toml", "--out", "o")
BUILD = ("build", "a.toml")

BAD = {
    # The command line
    "only json": Bad(2, "usage", ("--json",)),
    "unknown command": Bad(2, "usage", ("bake", "a.toml")),
    "unknown option": Bad(2, "usage", (*BUILD, "--fast")),
    "abbreviated option": Bad(2, "usage", (*BUILD, "--lock")),
    "no profile": Bad(2, "no-workspace", ("build",)),
    "two profiles": Bad(2, "usage", ("plan", "a.toml", "a.toml")),
    "one folder for two": Bad(2, "usage", (*BUILD, "a.toml", "--out", "o")),
    "no jobs": Bad(2, "usage", (*BUILD, "-j", "0")),
    "jobs in words": Bad(2, "usage", (*BUILD, "-j", "many")),
    "too many jobs": Bad(2, "usage", (*BUILD, "-j", "9" * 30)),
    "both kinds of lock": Bad(2, "usage", (*BUILD, "--locked", "--frozen")),
    "negative timeout": Bad(2, "usage", (*RUN, "--timeout", "-1")),
    "no number": Bad(2, "usage", (*RUN, "--atol", "nan")),
    "option without value": Bad(2, "usage", (*BUILD, "--out")),
    # Profiles
    "missing profile": Bad(3, "missing-file", ("check", "b.toml")),
    "folder as profile": Bad(3, "no-profile", ("check", ".")),
    "profile below a file": Bad(3, "unreadable-file", ("check", "a.toml/b")),
    "very long name": Bad(3, "unreadable-file", ("check", "a" * 5000)),
    "no text in name": Bad(3, "missing-file", ("check", "\udcff.toml")),
    "forbidden profile": Bad(3, "unreadable-file", BUILD, _forbidden("a.toml")),
    "binary profile": Bad(3, "not-utf8", BUILD, _text("a.toml", b"\xff\xfe\0")),
    "empty profile": Bad(3, "missing-key", BUILD, _text("a.toml", "")),
    "zero byte": Bad(3, "toml-syntax", BUILD, _edited('"a"', '"a\0"')),
    "zero as escape": Bad(3, "bad-value", BUILD, _edited('"a"', '"a\\u0000"')),
    "zero in a path": Bad(3, "bad-value", BUILD, _edited("m.pte", "m\\u0000")),
    "deep": Bad(3, "toml-syntax", BUILD, _text("a.toml", "a = " + "[" * 9999)),
    "long number": Bad(3, "toml-syntax", BUILD, _text("a.toml", "a = " + "9" * 9999)),
    "number as name": Bad(3, "wrong-type", BUILD, _edited('"a"', "1")),
    "table as list": Bad(3, "wrong-type", BUILD, _edited("[target]", "[[target]]")),
    "huge budget": Bad(
        3, "bad-size", BUILD, _text("a.toml", f'{PROFILE}[budget]\nram = "{"9" * 99} B"')
    ),
    "missing model": Bad(3, "missing-file", BUILD, _edited("m.pte", "n.pte")),
    "folder as model": Bad(3, "missing-file", BUILD, _folder("m.pte")),
    "missing base": Bad(3, "missing-file", BUILD, _edited("[target]", 'extends = "b"\n[target]')),
    "its own base": Bad(
        3, "bad-extends", BUILD, _edited("[target]", 'extends = "a.toml"\n[target]')
    ),
    # Models
    "forbidden model": Bad(4, "unreadable-model", BUILD, _forbidden("m.pte")),
    "empty model": Bad(4, "bad-program", BUILD, _text("m.pte", b"")),
    "text as model": Bad(4, "bad-program", BUILD, _text("m.pte", PROFILE)),
    "half a model": Bad(4, "bad-program", BUILD, _text("m.pte", model_bytes("mlp")[:1000])),
    "inspect nothing": Bad(4, "unreadable-model", ("inspect", "n.pte")),
    "inspect a folder": Bad(4, "unreadable-model", ("inspect", ".")),
    "inspect text": Bad(4, "bad-program", ("inspect", "a.toml")),
    # Folders
    "file as build folder": Bad(2, "not-a-build-folder", (*BUILD, "--out", "m.pte")),
    "this folder as build folder": Bad(2, "not-a-build-folder", (*BUILD, "--out", ".")),
    "link to nowhere": Bad(
        2, "not-a-build-folder", (*BUILD, "--out", "o"), lambda f: (f / "o").symlink_to("nowhere")
    ),
    "folder below a file": Bad(2, "system-error", (*BUILD, "--out", "m.pte/o")),
    "folder of the kernel": Bad(2, "system-error", (*BUILD, "--out", "/proc/o")),
    "forbidden folder": Bad(
        2, "system-error", (*BUILD, "--out", "o/p"), lambda f: (f / "o").mkdir(0o500)
    ),
    "clean a file": Bad(2, "not-a-build-folder", ("clean", "a.toml", "--out", "m.pte")),
    "clean something else": Bad(2, "not-a-build-folder", ("clean", "a.toml", "--out", ".")),
    # Locks
    "no lock": Bad(8, "stale-lock", (*BUILD, "--locked")),
    "no lock to check": Bad(8, "stale-lock", ("lock", "a.toml", "--check")),
    "binary lock": Bad(8, "bad-lock", (*BUILD, "--frozen"), _text("a.lock", b"\xff")),
    "lock of text": Bad(8, "bad-lock", (*BUILD, "--locked"), _text("a.lock", "hello")),
    "folder as lock": Bad(8, "bad-lock", (*BUILD, "--locked"), _folder("a.lock")),
    "deep lock": Bad(8, "bad-lock", (*BUILD, "--locked"), _text("a.lock", "a = " + "[" * 9999)),
    # Runs and reports
    "run before build": Bad(2, "not-built", (*RUN, "--no-build")),
    "size before build": Bad(2, "no-report", ("size", "a.toml", "--out", "o")),
    "no report": Bad(2, "bad-report", ("size", "a.toml", "--out", "o"), _made("report.json", "{}")),
    "report of text": Bad(
        2, "bad-report", ("size", "a.toml", "--out", "o"), _made("report.json", "hello")
    ),
    "deep report": Bad(
        2, "bad-report", ("size", "a.toml", "--out", "o"), _made("report.json", "[" * 99999)
    ),
    "no product": Bad(2, "bad-product", RUN, _made("product.json", "[]")),
    "missing scenario": Bad(2, "bad-scenario", (*RUN, "--scenario", "s.json"), _product),
    "folder as scenario": Bad(2, "bad-scenario", (*RUN, "--scenario", "o"), _product),
    "scenario of text": Bad(2, "bad-scenario", (*RUN, "--scenario", "s.json"), _scenario("hello")),
    "binary scenario": Bad(2, "bad-scenario", (*RUN, "--scenario", "s.json"), _scenario(b"\xff\0")),
    "deep scenario": Bad(2, "bad-scenario", (*RUN, "--scenario", "s.json"), _scenario("[" * 99999)),
    "scenario and input": Bad(2, "usage", (*RUN, "--scenario", "s.json", "--input", "x"), _product),
    "missing input": Bad(2, "bad-input", RUN, _product),
    "input that is no array": Bad(2, "bad-npy", (*RUN, "--input", "a.toml"), _product),
    "input that is not there": Bad(2, "bad-input", (*RUN, "--input", "x.npy"), _product),
    "unknown method": Bad(2, "bad-input", (*RUN, "--method", "sing", "--input", "x"), _product),
    "unknown model": Bad(2, "bad-input", (*RUN, "--model", "n", "--input", "x"), _product),
}


@contextmanager
def _held_back() -> Iterator[Path]:
    """An empty folder to work in, with permissions that hold for root as well."""
    with tempfile.TemporaryDirectory(prefix="orchestrator-test-") as name:
        folder = Path(name)
        before = Path.cwd()
        os.chdir(folder)
        try:
            with permissions_hold():
                yield folder
        finally:
            os.chdir(before)


DIAGNOSTIC = re.compile(
    r"error\[[a-z]+(-[a-z0-9]+)*\]: \S.*\n"
    r"(    .*\n)*"  # more lines of the message
    r"( +--> \S.*\n)?"
    r"( +\|\n *\d+ \| .*\n)?"
    r"( += [a-z ]+: .*\n(       .*\n)*)*"
    r"( +hint: \S.*\n( {8,}.*\n)*)?"
)


# Products that are made by hand are run as they are.
@pytest.mark.usefixtures("as_it_is")
@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_an_answer(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    bad = BAD[name]
    with _held_back() as folder:
        (folder / "a.toml").write_text(PROFILE)
        (folder / "m.pte").write_bytes(model_bytes("add_mul"))
        if bad.prepare:
            bad.prepare(folder)
        code = run(bad.arguments)
        said = capsys.readouterr()
        json_code = run([*bad.arguments, "--json"])
        document = json.loads(capsys.readouterr().out)
    assert code == json_code == document["exit_code"] == bad.code, said.err
    assert bad.problem in {d["code"] for d in document["diagnostics"]}
    assert "Traceback" not in said.out + said.err
    if "--json" not in bad.arguments:
        assert said.out == ""
    talk, found, rest = said.err.partition("error[")
    assert "error" not in talk
    rest = found + rest
    for diagnostic in document["diagnostics"]:
        assert diagnostic["message"]
        # Where the names that are possible are listed, they are the advice.
        assert diagnostic["hint"] or "expected" in dict(notes_of(diagnostic))
        match = DIAGNOSTIC.match(rest)
        assert match, rest
        rest = rest[match.end() :].removeprefix("\n")
    assert rest == ""
