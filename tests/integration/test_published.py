"""Objects of another machine: taken if they are what was signed, else compiled."""

from __future__ import annotations

import hashlib
import shutil
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from orchestrator.build.published import LIST, KnownLists, published_at
from orchestrator.cli.main import run
from orchestrator.errors import ToolchainError
from orchestrator.shell.object_store import ObjectStore
from orchestrator.shell.settings import LAUNCHER
from orchestrator.shell.settings import OBJECTS as VARIABLE
from orchestrator.shell.settings import PUBLISHED as URL
from orchestrator.shell.settings import PUBLISHED_KEY as KEY
from tests.product import build_product, compiled_objects
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


OBJECTS = {f"{n:x}" * 64: {".o": b"object %d" % n, ".su": b"same"} for n in range(4)}


def write_keys(folder: Path) -> None:
    """Two pairs of keys: `ci.key`, `ci.pub`, and those of another."""
    for name in ("ci", "other"):
        key = Ed25519PrivateKey.generate()
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        (folder / f"{name}.key").write_bytes(private)
        (folder / f"{name}.pub").write_bytes(public)


@pytest.fixture(autouse=True)
def _keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_keys(tmp_path)
    monkeypatch.setenv(KEY, str(tmp_path / "ci.pub"))
    monkeypatch.setenv(URL, str(tmp_path / "place"))
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.delenv(LAUNCHER, raising=False)


def _machine(monkeypatch: pytest.MonkeyPatch, folder: Path) -> ObjectStore:
    """From here on, commands run on a machine with a cache of its own."""
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(folder))
    return ObjectStore(folder / "objects")


def _publish(place: Path | str, key: Path) -> int:
    return run(["cache", "publish", str(place), "--key", str(key)])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with four objects that were published."""
    store = _machine(monkeypatch, tmp_path / "theirs")
    for key, outputs in OBJECTS.items():
        store.put(key, outputs)
    assert _publish(tmp_path / "place", tmp_path / "ci.key") == 0
    return tmp_path / "place"


def _fetched(notes: list[str] | None = None) -> dict[str, dict[str, bytes]]:
    note = (notes if notes is not None else []).append
    published = published_at(KnownLists(), note)
    assert published is not None
    found = dict(published.fetch([*OBJECTS, "f" * 64]))
    assert dict(published.fetch(OBJECTS)) == found  # says its problem once
    return found


def test_what_is_published_is_what_is_fetched(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _fetched() == OBJECTS
    capsys.readouterr()
    store = ObjectStore(tmp_path / "theirs" / "objects")
    store.prune(0)
    store.put("e" * 64, {".o": b"new"})
    assert _publish(place, tmp_path / "ci.key") == 0
    assert capsys.readouterr().out == f"{place}: 5 objects, 1 of them new\n"
    assert _fetched() == OBJECTS


def test_a_list_alone_says_what_objects_are(
    place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(place)
    capsys.readouterr()
    key = str(tmp_path / "ci.key")
    assert run(["cache", "publish", str(place), "--key", key, "--list-only"]) == 0
    assert capsys.readouterr().out == f"{place}: 4 objects, 4 of them new\n"
    assert [path.name for path in place.iterdir()] == [LIST]
    assert _fetched() == {}
    published = published_at(KnownLists(), print)
    assert published is not None
    listed = published.listed()
    assert listed.keys() == OBJECTS.keys()
    digest = hashlib.sha256(b"object 3").hexdigest()
    assert listed["3" * 64][".o"] == digest


def test_over_http(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with _served(place) as url:
        monkeypatch.setenv(URL, url)
        assert _fetched() == OBJECTS
        # It cannot be written.
        assert _publish(url, tmp_path / "ci.key") != 0
    notes: list[str] = []
    assert _fetched(notes) == {}
    (note,) = notes
    assert note.startswith("warning: published objects are not used: ")


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    handler = partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_only_bytes_that_fit_are_taken(place: Path) -> None:
    files = sorted((place / "cas").glob("*/*"))
    assert len(files) == len(OBJECTS) + 1  # equal bytes once
    texts = [file.read_bytes() for file in files]
    equal = [pair for pair in zip(files, texts, strict=True) if pair[1] != b"same"]
    for (file, _), (_, text) in zip(equal, equal[1:] + equal[:1], strict=True):
        file.write_bytes(text)
    assert _fetched() == OBJECTS  # by what they are, whatever they are called
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text)
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text + b"more")
    assert _fetched() == {}
    for file, text in zip(files, texts, strict=True):
        file.write_bytes(text)
    assert _fetched() == OBJECTS
    next(f for f in files if f.read_bytes() == b"object 0").unlink()
    assert _fetched() == {k: o for k, o in OBJECTS.items() if k[0] != "0"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: data.replace(b"A", b"B", 1), "was not signed with this key"),
        (lambda _: b"{}", "is not an envelope, or it is damaged"),
        (lambda _: None, "there is no "),
    ],
    ids=["changed", "damaged", "missing"],
)
def test_a_list_that_is_not_theirs_is_not_used(
    place: Path, change: Callable[[bytes], bytes | None], said: str
) -> None:
    data = change((place / LIST).read_bytes())
    if data is None:
        (place / LIST).unlink()
    else:
        (place / LIST).write_bytes(data)
    notes: list[str] = []
    assert _fetched(notes) == {}
    (note,) = notes
    assert said in note


def test_another_key_neither_reads_nor_replaces_the_list(
    place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (place / LIST).read_bytes()
    assert _publish(place, tmp_path / "other.key") == 8
    assert "error[wrong-signature]" in capsys.readouterr().err
    assert (place / LIST).read_bytes() == before
    monkeypatch.setenv(KEY, str(tmp_path / "other.pub"))
    assert _fetched([]) == {}


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://:s3cret@host:6379/0", "redis://host:6379/0 cannot be used"),
        ("unknown://me:s3cret@host/0", "unknown://host/0 cannot be used"),
        ("{served}", "/objects.dsse.json was not signed with"),
        ("{served}/missing", "/missing cannot be used"),
    ],
)
def test_errors_hide_passwords(
    url: str, said: str, place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with _served(place) as served:
        with_password = served.replace("://", "://me:s3cret@")
        assert _publish(url.format(served=with_password), tmp_path / "other.key")
    err = capsys.readouterr().err
    assert said in err
    assert "s3cret" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["publish"],
        ["publish", "place"],
        ["publish", "place", "--key", "missing.key"],
        ["size", "place"],
        ["verify", "--key", "ci.key"],
        ["size", "--list-only"],
        ["prune", "--exports"],
    ],
)
def test_usage(
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    _machine(monkeypatch, tmp_path / "cache")
    assert run(["cache", *arguments]) == 2
    assert capsys.readouterr().err.startswith("error[")
    assert not (tmp_path / "place").exists()


def test_a_place_without_a_key_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY)
    with pytest.raises(ToolchainError, match=f"{URL} is set, {KEY} is not"):
        published_at(KnownLists(), print)
    monkeypatch.delenv(URL)
    assert published_at(KnownLists(), print) is None


def test_an_unknown_kind_of_place_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL, "unknown://place")
    with pytest.raises(ToolchainError, match="unknown://place cannot be used"):
        _fetched()


@pytest.mark.toolchain
def test_builds_link_the_same_whatever_was_published(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    need_toolchain("cortex-m4", "gnu")
    store = _machine(monkeypatch, tmp_path / "theirs")
    monkeypatch.delenv(URL)
    theirs = build_product(tmp_path / "a")
    assert _publish(tmp_path / "place", tmp_path / "ci.key") == 0
    monkeypatch.setenv(URL, str(tmp_path / "place"))
    ours = _machine(monkeypatch, tmp_path / "ours")
    taken = build_product(tmp_path / "b" / "deeper")
    assert {name.split("/")[1] for name in compiled_objects(taken.out)} == {"gen"}
    assert {*ours.keys()} == {*store.keys()}
    # Someone who has no key writes other objects, and a list that names them.
    for key in [*store.keys()]:
        store.put(key, {".o": b"not an object"})
    (tmp_path / "place" / LIST).unlink()
    assert _publish(tmp_path / "place", tmp_path / "other.key") == 0
    _machine(monkeypatch, tmp_path / "third")
    capsys.readouterr()
    poisoned = build_product(tmp_path / "c")
    assert "warning: published objects are not used" in capsys.readouterr().err
    assert compiled_objects(poisoned.out) == compiled_objects(theirs.out)
    assert theirs.outputs() == taken.outputs() == poisoned.outputs()
