"""Objects that are published in S3, by a server of it on this machine."""

from __future__ import annotations

import urllib.request
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.build.published import LIST, KnownLists, published_at
from orchestrator.cli.main import run
from orchestrator.errors import ToolchainError
from orchestrator.shell.object_store import ObjectStore
from orchestrator.shell.settings import LAUNCHER
from orchestrator.shell.settings import OBJECTS as VARIABLE
from orchestrator.shell.settings import PUBLISHED as URL
from orchestrator.shell.settings import PUBLISHED_KEY as KEY
from tests.integration.test_published import OBJECTS, write_keys

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

s3fs = pytest.importorskip("s3fs")
server_of_moto = pytest.importorskip("moto.server")

PLACE = "s3://builds/objects"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server with the bucket `builds`, and what the commands need to use it."""
    write_keys(tmp_path)
    for name in (VARIABLE, LAUNCHER, "AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    server = server_of_moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (
        (KEY, str(tmp_path / "ci.pub")),
        (URL, PLACE),
        ("ORCHESTRATOR_CACHE", str(tmp_path / "cache")),
        ("AWS_ENDPOINT_URL", f"http://{host}:{port}"),
        ("AWS_ACCESS_KEY_ID", "user"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_CONFIG_FILE", "/dev/null"),
        ("AWS_SHARED_CREDENTIALS_FILE", "/dev/null"),
    ):
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    urllib.request.urlopen(f"http://{host}:{port}/moto-api/reset", data=b"").close()
    s3fs.S3FileSystem().mkdir("builds")
    store = ObjectStore(tmp_path / "cache" / "objects")
    for key, outputs in OBJECTS.items():
        store.put(key, outputs)
    yield server
    server.stop()
    s3fs.S3FileSystem.clear_instance_cache()


def _publish(tmp_path: Path, url: str = PLACE) -> int:
    return run(["cache", "publish", url, "--key", str(tmp_path / "ci.key")])


def _fetched(notes: list[str]) -> dict[str, dict[str, bytes]]:
    published = published_at(KnownLists(), notes.append)
    assert published is not None
    found = dict(published.fetch([*OBJECTS, "f" * 64]))
    assert dict(published.fetch(OBJECTS)) == found  # says its problem once
    return found


@pytest.mark.usefixtures("server")
def test_what_is_published_is_what_is_fetched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _publish(tmp_path) == 0
    assert capsys.readouterr().out == f"{PLACE}: 4 objects, 4 of them new\n"
    notes: list[str] = []
    assert _fetched(notes) == OBJECTS
    assert _publish(tmp_path) == 0
    assert capsys.readouterr().out == f"{PLACE}: 4 objects, 0 of them new\n"
    # Who can write there can take objects away, and nothing else.
    place = s3fs.S3FileSystem()
    files = sorted(place.find("builds/objects/cas"))
    assert len(files) == len(OBJECTS) + 1  # equal bytes once
    for file in files:
        if place.cat_file(file) == b"object 0":
            place.rm_file(file)
        elif place.cat_file(file) == b"object 1":
            place.pipe_file(file, b"other bytes")
    assert _fetched(notes) == {k: o for k, o in OBJECTS.items() if k[0] in "23"}
    assert notes == []
    place.pipe_file(f"builds/objects/{LIST}", b"{}")
    assert _fetched(notes) == {}
    assert len(notes) == 1


@pytest.mark.usefixtures("server")
def test_a_bucket_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _publish(tmp_path, "s3://missing/objects") == 7
    said = capsys.readouterr().err
    assert "error[published-unusable]: s3://missing/objects cannot" in said
    assert "bucket" in said
    assert s3fs.S3FileSystem().ls("") == ["builds"]  # no bucket was created
    monkeypatch.setenv(URL, "s3://missing/objects")
    notes: list[str] = []
    assert _fetched(notes) == {}
    assert len(notes) == 1


@pytest.mark.usefixtures("server")
def test_credentials_that_are_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _publish(tmp_path) == 0
    capsys.readouterr()
    setting = "moto.settings.INITIAL_NO_AUTH_ACTION_COUNT"
    monkeypatch.setattr(setting, 0)  # from here on, they are checked
    notes: list[str] = []
    assert _publish(tmp_path) == 7
    assert "error[published-unusable]" in capsys.readouterr().err
    assert _fetched(notes) == {}
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    s3fs.S3FileSystem.clear_instance_cache()
    assert _publish(tmp_path) == 7
    assert "error[published-unusable]" in capsys.readouterr().err
    assert len(notes) == 1


def test_a_server_that_stops_in_the_middle(
    server: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _publish(tmp_path) == 0
    notes: list[str] = []
    lists = KnownLists()
    published = published_at(lists, notes.append)
    assert published is not None
    assert published.listed().keys() == OBJECTS.keys()
    server.stop()
    assert published.fetch(OBJECTS) == {}
    (note,) = notes
    assert note.startswith("warning: published objects are not used: ")
    assert published.fetch(OBJECTS) == {}
    assert notes == [note]
    capsys.readouterr()
    assert _publish(tmp_path) == 7
    assert "error[published-unusable]" in capsys.readouterr().err


def test_without_what_s3_needs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL, PLACE)
    monkeypatch.setenv(KEY, str(tmp_path / "ci.pub"))

    def not_installed(*_: object, **__: object) -> None:
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr("fsspec.core.url_to_fs", not_installed)
    with pytest.raises(ToolchainError) as raised:
        _fetched([])
    assert "[s3]" in str(raised.value.diagnostics[0].hint)


def test_redis_is_no_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(URL, "redis://cache.example.com")
    monkeypatch.setenv(KEY, str(tmp_path / "ci.pub"))
    with pytest.raises(ToolchainError) as raised:
        _fetched([])
    assert "ccache" in str(raised.value.diagnostics[0].hint)
