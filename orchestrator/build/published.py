"""What another machine published: `cas/` as in a store, and a signed list.

Who can write to the place can take files away, and nothing else: the list says which
bytes a key gave, and the build has the public key of who signed it. Whatever does not
fit, or cannot be reached, is compiled or exported. The package `fsspec` reads and
writes folders, HTTP, S3 and others by their URL; the extra `fleet` installs it, and
`s3` what it needs for S3.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import Any, Final, NamedTuple, TypeVar

from orchestrator.errors import OrchestratorError, ToolchainError
from orchestrator.provenance.envelope import (
    PublishedList,
    object_list,
    open_envelope,
    read_object_list,
    read_private_key,
    read_public_key,
    sign,
)
from orchestrator.shell.files import read_file, reason_of
from orchestrator.shell.object_store import ObjectStore
from orchestrator.shell.places import Waits, is_s3, place_at, read_files, shown, unusable
from orchestrator.shell.settings import PUBLISHED, PUBLISHED_KEY, Settings, read_settings

_T = TypeVar("_T")
LIST: Final = "objects.dsse.json"
MOST_LIST_BYTES: Final = 16 << 20
"""Most bytes of a list, read before its signature is checked: 30,000 objects."""
# 1 MiB, far above any key: the path comes from the environment and may be anything.
_MOST_KEY_BYTES: Final = 1 << 20
# As many as the cache of a machine keeps (`_MOST_ENTRIES` in shell/exported.py).
_MOST_EXPORTS: Final = 8
"""Most exports that are remembered for one request."""


class KnownLists:
    """Lists of places, each read once, and the places that are not asked again.

    Args:
        waits: How long a place may take.
        given_up: Folder where the processes of a command note such places; None if
            there is only one process.
    """

    def __init__(self, waits: Waits | None = None, given_up: Path | None = None) -> None:
        self.waits = waits or Waits()
        self._folder = given_up
        self._known: dict[tuple[str, Path], PublishedList] = {}
        self._left_s: dict[str, float] = {}

    def at(self, url: str, key: Path) -> PublishedList:
        """The list of a place, if the key signed it; an empty one if it is given up.

        Raises what reading it raises.
        """
        mark = self._mark(url, key)
        # Another process of this command waited in vain already: a dead place costs a
        # command its time once, not once per worker.
        if mark is not None and mark.exists():
            return PublishedList()
        if (url, key) not in self._known:
            # One reading for each place and key, as several workspaces of one command
            # may name one place with other keys.
            data = _list_bytes(url, self.waits)
            pem = read_file(key, most_bytes=_MOST_KEY_BYTES)
            public = read_public_key(pem, file=str(key))
            signed = open_envelope(data, public, file=shown(f"{url}/{LIST}"))
            self._known[url, key] = read_object_list(signed.payload)
        return self._known[url, key]

    def read(self, url: str, sizes: Mapping[str, int]) -> dict[str, bytes]:
        """Bytes by digest, of those that are there and fit. Raises what reading raises.

        All requests to a place have together the time that one has: were each slow, a
        command would take minutes for each model.
        """
        waits, begin = self.waits, monotonic()
        # A place that answers each request in 29 s would delay a command by minutes for
        # each model.
        if (left_s := self._left_s.get(url, waits.total_s)) <= 0:
            raise TimeoutError(f"too slow: {waits.total_s:g} s in all")
        limited = replace(waits, total_s=min(left_s, waits.total_s))
        found = _files(url, sizes, limited)
        left_s += sum(map(len, found.values())) / waits.bytes_per_s
        self._left_s[url] = left_s - (monotonic() - begin)
        return found

    def give_up(self, url: str, key: Path) -> bool:
        """Treat a place as empty from now on; whether no other process has said so."""
        self._known[url, key] = PublishedList()
        if (mark := self._mark(url, key)) is not None:
            try:
                mark.touch(exist_ok=False)
            except FileExistsError:
                return False
            except OSError:
                pass  # each process finds out by itself
        return True

    def _mark(self, url: str, key: Path) -> Path | None:
        name = hashlib.sha256(f"{url}\n{key}".encode()).hexdigest()
        return None if self._folder is None else self._folder / name


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
        """The exports of a request, newest first: SHA-256 by name of each file."""
        return self._list().exports.get(key, ())

    def read(self, digests: Iterable[str]) -> Mapping[str, bytes]:
        """Bytes by digest, of those that are there and fit."""
        sizes = self._list().sizes
        wanted = {d: sizes[d] for d in sorted(set(digests)) if d in sizes}
        return self._got(lambda: self.lists.read(self.url, wanted)) or {}

    def _list(self) -> PublishedList:
        found = self._got(lambda: self.lists.at(self.url, self.key))
        return found or PublishedList()

    def _got(self, get: Callable[[], _T]) -> _T | None:
        """What the place gives; None, and a note, if it cannot be used any more."""
        try:
            return get()
        except ToolchainError:
            raise
        # Errors of fsspec, aiohttp, botocore and whatever a URL brings.
        except Exception as error:  # noqa: BLE001  # a store never fails a build
            # One warning for the whole command.
            if self.lists.give_up(self.url, self.key):
                what = shown(f"{self.url}: {_reason(error)}")
                self.note(f"warning: published objects are not used: {what}")
        return None


def published_at(
    lists: KnownLists, note: Callable[[str], None], settings: Settings | None = None
) -> PublishedFiles | None:
    """What is published where settings say; None if they name no place.

    Raises:
        ToolchainError: There is no key to check it with.
    """
    settings = settings or read_settings()
    url, key = settings.published, settings.published_key
    if not url:
        return None
    if not key:
        raise ToolchainError.of(
            "no-published-key",
            f"{PUBLISHED} is set, {PUBLISHED_KEY} is not",
            expected="the public key of who publishes, in PEM",
            hint=f"set {PUBLISHED_KEY}, or `published_key` of [cache] in orchestrator.toml",
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
        waits = Waits()
        place, root = place_at(url, waits)
        # What is listed stays listed: others rely on it, and its files are not removed.
        before = PublishedList()
        with suppress(FileNotFoundError):
            data = _list_bytes(url, waits)
            signed = open_envelope(data, key.public_key(), file=shown(f"{url}/{LIST}"))
            before = read_object_list(signed.payload)

        def write(files: Mapping[str, bytes]) -> None:
            for data in files.values():
                _write(place, _path(root, hashlib.sha256(data).hexdigest()), data)

        objects, sizes = dict(before.objects), dict(before.sizes)
        for name in store.keys():  # noqa: SIM118  # not a mapping
            # `get` checks digests: a damaged object would be signed otherwise.
            if name not in objects and (outputs := store.get(name)):
                objects[name] = _digests(outputs)
                sizes |= _sizes(outputs)
                if not list_only:
                    write(outputs)
        listed = {name: [*found] for name, found in before.exports.items()}
        new = 0
        for name, files in exports:
            known, digests = listed.get(name, []), _digests(files)
            if digests not in known:
                write(files)
                sizes |= _sizes(files)
                # Newest first, as `fetch` takes the first that fits.
                listed[name] = [digests, *known][:_MOST_EXPORTS]
                new += 1
        named = chain(objects.values(), *listed.values())
        used = sorted({digest for files in named for digest in files.values()})
        found = PublishedList(
            objects=dict(sorted(objects.items())),
            exports=dict(sorted(listed.items())),
            sizes={digest: sizes[digest] for digest in used},
        )
        data = sign(object_list(found), key, file=file)
        if len(data) > MOST_LIST_BYTES:
            most = f"its list would have {len(data):,} bytes of {MOST_LIST_BYTES:,}"
            raise unusable(url, most, "publish to a new place, from a smaller store")
        # The list last: what it names is there, whoever reads in between.
        _write(place, f"{root}/{LIST}", data)
        return (
            Counts(len(objects), len(objects) - len(before.objects)),
            Counts(sum(map(len, listed.values())), new),
        )


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
        if is_s3(url):
            hint = "check that the bucket exists, AWS_ACCESS_KEY_ID and its secret, and"
            hint += " AWS_ENDPOINT_URL where the server is not Amazon's"
        raise unusable(url, _reason(error), hint) from error


def _sizes(files: Mapping[str, bytes]) -> dict[str, int]:
    return {hashlib.sha256(data).hexdigest(): len(data) for data in files.values()}


def _digests(files: Mapping[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def _list_bytes(url: str, waits: Waits) -> bytes:
    """The list of a place. Raises what reading it raises."""
    place, root = place_at(url, waits)
    path = f"{root}/{LIST}"
    # Nothing is signed yet: neither its size nor how long it takes.
    # A place could otherwise buy time by sending bytes that no signature covers.
    whole = replace(waits, bytes_per_s=0)
    found = read_files(place, {path: MOST_LIST_BYTES}, whole)
    if path not in found:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    if len(found[path]) > MOST_LIST_BYTES:
        raise ValueError(f"{LIST} has more than {MOST_LIST_BYTES:,} bytes")
    return found[path]


def _files(url: str, sizes: Mapping[str, int], waits: Waits) -> dict[str, bytes]:
    """Bytes by digest, of those that are there and fit."""
    if not sizes:
        return {}
    place, root = place_at(url, waits)
    most = {_path(root, digest): size for digest, size in sizes.items()}
    read = read_files(place, most, waits)
    # By what the bytes are, not by the path that they came from.
    found = {hashlib.sha256(data).hexdigest(): data for data in read.values()}
    return {digest: found[digest] for digest in sizes if digest in found}


def _path(root: str, digest: str) -> str:
    return f"{root}/cas/{digest[:2]}/{digest}"


def _write(place: Any, path: str, data: bytes) -> None:  # noqa: ANN401  # fsspec
    """Write a file; readers see all of it or nothing, where the place can do that."""
    if "s3" not in place.protocol:  # it has no folders, and this would make a bucket
        place.makedirs(path.rpartition("/")[0], exist_ok=True)
    # Local files and some others then appear under their name when they are complete.
    with place.transaction:
        place.pipe_file(path, data)


def _reason(error: Exception) -> str:
    if isinstance(error, OrchestratorError):
        return "; ".join(problem.message for problem in error.diagnostics)
    if isinstance(error, FileNotFoundError):
        return f"there is no {error.filename or error}"
    if isinstance(error, (TimeoutError, ValueError)):
        return str(error)
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {reason_of(error)}"
    return f"{type(error).__name__}: {error}"
