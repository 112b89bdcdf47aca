"""What another machine published: `cas/` as in a store, and a signed list.

Who can write to the place can take files away, and nothing else: the list says which
bytes a key gave, and the build has the public key of who signed it. Whatever does not
fit, or cannot be reached, is compiled or exported. The package `fsspec` reads and
writes folders, HTTP, S3 and others by their URL; the extra `fleet` installs it, and
`s3` what it needs for S3.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from orchestrator.errors import Diagnostic, OrchestratorError, ToolchainError
from orchestrator.provenance.envelope import open_envelope, sign
from orchestrator.provenance.keys import read_private_key, read_public_key
from orchestrator.provenance.objects import (
    PublishedList,
    object_list,
    read_object_list,
)
from orchestrator.shell.distribution import pip_install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

    from orchestrator.shell.object_store import ObjectStore

URL: Final = "ORCHESTRATOR_PUBLISHED"
"""Where objects and exports are published."""
KEY: Final = "ORCHESTRATOR_PUBLISHED_KEY"
"""File with the public key of who signed the list."""
LIST: Final = "objects.dsse.json"
_CONNECT_S: Final = 10
_MOST_EXPORTS: Final = 8
"""Of one request."""


class KnownLists:
    """Lists of places, each read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, Path], PublishedList] = {}

    def at(self, url: str, key: Path) -> PublishedList:
        """The list of a place, if the key signed it. Raises what reading it raises."""
        if (url, key) not in self._known:
            self._known[url, key] = _list_at(url, key)
        return self._known[url, key]

    def forget(self, url: str, key: Path) -> None:
        """Treat a place as empty."""
        self._known[url, key] = PublishedList()


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedFiles:
    """What is published at a URL.

    Args:
        url: The place.
        key: File with the public key, in PEM.
        lists: Known ones.
        note: Gets a message if the place cannot be used.
    """

    url: str
    key: Path
    lists: KnownLists
    note: Callable[[str], None]

    def listed(self) -> Mapping[str, Mapping[str, str]]:
        """What steps give, by key: SHA-256 by suffix."""
        return self._list().objects

    def fetch(self, keys: Iterable[str]) -> Mapping[str, dict[str, bytes]]:
        """What steps gave, by key: bytes by suffix; only what fits its digest."""
        listed = self.listed()
        wanted = {key: listed[key] for key in keys if key in listed}
        bytes_of = self.read(d for files in wanted.values() for d in files.values())
        return {
            key: {suffix: bytes_of[d] for suffix, d in files.items()}
            for key, files in wanted.items()
            if bytes_of.keys() >= {*files.values()}
        }

    def exports(self, key: str) -> Sequence[Mapping[str, str]]:
        """Of each export of a request: SHA-256 by name of its files; newest first."""
        return self._list().exports.get(key, ())

    def read(self, digests: Iterable[str]) -> Mapping[str, bytes]:
        """Bytes by digest, of those that are there and fit."""
        try:
            return _files(self.url, sorted(set(digests)))
        except ToolchainError:
            raise
        except Exception as error:  # noqa: BLE001  # a store never fails a build
            self._give_up(error)
        return {}

    def _list(self) -> PublishedList:
        try:
            return self.lists.at(self.url, self.key)
        except ToolchainError:
            raise
        except Exception as error:  # noqa: BLE001
            self._give_up(error)
        return PublishedList()

    def _give_up(self, error: Exception) -> None:
        self.lists.forget(self.url, self.key)
        self.note(f"warning: published objects are not used: {_reason(error)}")


def published_at(
    lists: KnownLists, note: Callable[[str], None]
) -> PublishedFiles | None:
    """What is published where the environment says; None if it names no place.

    Raises:
        ToolchainError: There is no key to check it with.
    """
    url, key = os.environ.get(URL), os.environ.get(KEY)
    if not url:
        return None
    if not key:
        raise ToolchainError(
            Diagnostic(
                code="no-published-key",
                message=f"{URL} is set, {KEY} is not",
                notes=(("expected", "the public key of who publishes, in PEM"),),
                hint=f"set {KEY}, or `published_key` of [cache] in orchestrator.toml",
            )
        )
    return PublishedFiles(url=url, key=Path(key), lists=lists, note=note)


class Counts(NamedTuple):
    """How many of something are published."""

    listed: int
    new: int


def publish(
    store: ObjectStore,
    exports: Iterable[tuple[str, Mapping[str, bytes]]],
    url: str,
    pem: bytes,
    *,
    file: str,
    list_only: bool = False,
) -> tuple[Counts, Counts]:
    """Publish all objects of a store, and exports, besides what is published already.

    Args:
        store: Has the objects.
        exports: (key, bytes by name) of each, the oldest first.
        url: The place.
        pem: The private key to sign the list with.
        file: Of the key, for messages.
        list_only: Leave out the bytes of objects, which others have from elsewhere.

    Returns:
        Of objects, and of exports.

    Raises:
        LockError: The list that is there was signed with another key.
        UsageError: The key cannot sign.
        ToolchainError: The place is at a URL, and cannot be written.
        OSError: The place is a folder, and cannot be written.
    """
    key = read_private_key(pem, file=file)
    with _reached(url):
        return _publish(store, exports, url, key, file=file, list_only=list_only)


@contextmanager
def _reached(url: str) -> Iterator[None]:
    """Say what is wrong with a URL: each kind of place has errors of its own."""
    try:
        yield
    except OrchestratorError:
        raise
    except Exception as error:
        if "://" not in url:
            raise
        hint = "check the URL, the network, and that it may be written"
        if _is_s3(url):
            hint = "check that the bucket exists, AWS_ACCESS_KEY_ID and its secret, and"
            hint += " AWS_ENDPOINT_URL where the server is not Amazon's"
        raise _unusable(url, _reason(error), hint) from error


def _publish(
    store: ObjectStore,
    exports: Iterable[tuple[str, Mapping[str, bytes]]],
    url: str,
    key: PrivateKeyTypes,
    *,
    file: str,
    list_only: bool,
) -> tuple[Counts, Counts]:
    place, root = _place(url)
    before = PublishedList()
    with suppress(FileNotFoundError):
        data = place.cat_file(f"{root}/{LIST}")
        signed = open_envelope(data, key.public_key(), file=f"{url}/{LIST}")
        before = read_object_list(signed.payload)

    def write(files: Mapping[str, bytes]) -> None:
        for data in files.values():
            _write(place, _path(root, hashlib.sha256(data).hexdigest()), data)

    objects = dict(before.objects)
    for name in store.keys():  # noqa: SIM118  # not a mapping
        if name not in objects and (outputs := store.get(name)):
            objects[name] = _digests(outputs)
            if not list_only:
                write(outputs)
    listed = {name: [*found] for name, found in before.exports.items()}
    new = 0
    for name, files in exports:
        known, digests = listed.get(name, []), _digests(files)
        if digests not in known:
            write(files)
            listed[name] = [digests, *known][:_MOST_EXPORTS]
            new += 1
    found = PublishedList(
        objects=dict(sorted(objects.items())), exports=dict(sorted(listed.items()))
    )
    _write(place, f"{root}/{LIST}", sign(object_list(found), key, file=file))
    return (
        Counts(len(objects), len(objects) - len(before.objects)),
        Counts(sum(map(len, listed.values())), new),
    )


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def _list_at(url: str, key: Path) -> PublishedList:
    place, root = _place(url)
    public = read_public_key(key.read_bytes(), file=str(key))
    data = place.cat_file(f"{root}/{LIST}")
    return read_object_list(open_envelope(data, public, file=f"{url}/{LIST}").payload)


def _files(url: str, digests: Iterable[str]) -> dict[str, bytes]:
    """Bytes by digest, of those that are there and fit."""
    place, root = _place(url)
    paths = {_path(root, digest): digest for digest in digests}
    if not paths:
        return {}
    read = place.cat([*paths], on_error="return").values()
    for problem in read:
        # What is missing was pruned; otherwise all that is left would fail as well.
        if isinstance(problem, Exception) and not isinstance(
            problem, FileNotFoundError
        ):
            raise problem
    found = {hashlib.sha256(b).hexdigest(): b for b in read if isinstance(b, bytes)}
    return {digest: found[digest] for digest in paths.values() if digest in found}


def _path(root: str, digest: str) -> str:
    return f"{root}/cas/{digest[:2]}/{digest}"


def _write(place: Any, path: str, data: bytes) -> None:  # noqa: ANN401  # fsspec
    """Write a file; readers see all of it or nothing, where the place can do that."""
    if "s3" not in place.protocol:  # it has no folders, and this would make a bucket
        place.makedirs(path.rpartition("/")[0], exist_ok=True)
    with place.transaction:
        place.pipe_file(path, data)


def _place(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. Raises ToolchainError."""
    if url.startswith(("redis://", "rediss://")):
        found = "fsspec has no file system for Redis"
        hint = (
            "use a folder, HTTP or S3; objects alone can come from a Redis by ccache,"
        )
        raise _unusable(url, found, f"{hint} see docs/fleet.md")
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415

        options: dict[str, Any] = {}
        if url.startswith(("http://", "https://")):
            from aiohttp import ClientTimeout  # noqa: PLC0415

            # A machine that is gone delays builds no longer than that.
            timeout = ClientTimeout(sock_connect=_CONNECT_S)
            options = {"client_kwargs": {"timeout": timeout}}
        elif _is_s3(url):
            # It tries again five times by itself, and so does s3fs around it.
            once = {"connect_timeout": _CONNECT_S, "retries": {"max_attempts": 0}}
            options = {"config_kwargs": once}
        place, root = url_to_fs(url, **options)
    except (ImportError, ValueError) as error:
        extra = "s3" if _is_s3(url) else "fleet"
        raise _unusable(url, str(error), pip_install(extra)) from error
    return place, str(root).rstrip("/")


def _is_s3(url: str) -> bool:
    return url.startswith(("s3://", "s3a://"))


def _unusable(url: str, found: str, hint: str) -> ToolchainError:
    return ToolchainError(
        Diagnostic(
            code="published-unusable",
            message=f"{url} cannot be used for published objects",
            notes=(("found", found),),
            hint=hint,
        )
    )


def _reason(error: Exception) -> str:
    if isinstance(error, OrchestratorError):
        return "; ".join(problem.message for problem in error.diagnostics)
    if isinstance(error, FileNotFoundError):
        return f"there is no {error.filename or error}"
    return f"{type(error).__name__}: {error}"
