"""Objects that another machine published: `cas/` as in a store, and a signed list.

Who can write to the place can take objects away, and nothing else: the list says which
bytes a key gave, and the build has the public key of who signed it. Whatever does not
fit, or cannot be reached, is compiled. The package `fsspec` reads and writes folders,
HTTP, S3 and others by their URL; the extra `fleet` installs it.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orchestrator.errors import Diagnostic, OrchestratorError, ToolchainError
from orchestrator.provenance.envelope import open_envelope, sign
from orchestrator.provenance.keys import read_private_key, read_public_key
from orchestrator.provenance.objects import object_list, read_object_list
from orchestrator.shell.distribution import pip_install

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from orchestrator.shell.object_store import ObjectStore

URL: Final = "ORCHESTRATOR_PUBLISHED"
"""Where objects are published."""
KEY: Final = "ORCHESTRATOR_PUBLISHED_KEY"
"""File with the public key of who signed the list."""
LIST: Final = "objects.dsse.json"
_CONNECT_S: Final = 10


@dataclass(slots=True)
class PublishedObjects:
    """What is published at a URL. The list is read once.

    Args:
        url: The place.
        key: The public key, in PEM.
        note: Gets a message if the place cannot be used.
    """

    url: str
    key: Path
    note: Callable[[str], None]
    _listed: dict[str, dict[str, str]] | None = field(default=None, init=False)

    def fetch(self, keys: Iterable[str]) -> Mapping[str, dict[str, bytes]]:
        """What steps gave, by key: bytes by suffix; only what fits its digest."""
        found = {}
        try:
            if self._listed is None:
                self._listed = _list_at(self.url, self.key)
            wanted = {key: self._listed[key] for key in keys if key in self._listed}
            digests = sorted({d for files in wanted.values() for d in files.values()})
            bytes_of = _files(self.url, digests)
            for key, files in wanted.items():
                with suppress(KeyError):
                    found[key] = {suffix: bytes_of[d] for suffix, d in files.items()}
        except ToolchainError:
            raise
        except Exception as error:  # noqa: BLE001  # a store never fails a build
            self._listed = {}
            text = _reason(error)
            self.note(f"warning: published objects are not used: {text}")
        return found


def published_objects(note: Callable[[str], None]) -> PublishedObjects | None:
    """Those that the environment names; None if it names none.

    Raises:
        ToolchainError: There is no key to check them with.
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
    return PublishedObjects(url, Path(key), note)


def publish(store: ObjectStore, url: str, pem: bytes, *, file: str) -> tuple[int, int]:
    """Publish all objects of a store, besides those that are published already.

    Args:
        store: Has them.
        url: The place.
        pem: The private key to sign the list with.
        file: Of the key, for messages.

    Returns:
        How many objects are new, and how many are in the list.

    Raises:
        LockError: The list that is there was signed with another key.
        UsageError: The key cannot sign.
        OSError: The place cannot be written.
    """
    key = read_private_key(pem, file=file)
    place, root = _place(url)
    listed: dict[str, dict[str, str]] = {}
    with suppress(FileNotFoundError):
        data = place.cat_file(f"{root}/{LIST}")
        signed = open_envelope(data, key.public_key(), file=f"{url}/{LIST}")
        listed = read_object_list(signed.payload)
    new = 0
    for name in store.keys():  # noqa: SIM118  # not a mapping
        outputs = store.get(name)
        if outputs is None or name in listed:
            continue
        digests = {}
        for suffix, data in outputs.items():
            digest = hashlib.sha256(data).hexdigest()
            digests[suffix] = digest
            _write(place, _path(root, digest), data)
        listed[name] = digests
        new += 1
    envelope = sign(object_list(dict(sorted(listed.items()))), key, file=file)
    _write(place, f"{root}/{LIST}", envelope)
    return new, len(listed)


def _list_at(url: str, key: Path) -> dict[str, dict[str, str]]:
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
    read = place.cat([*paths], on_error="omit")
    found = {hashlib.sha256(data).hexdigest(): data for data in read.values()}
    return {digest: found[digest] for digest in paths.values() if digest in found}


def _path(root: str, digest: str) -> str:
    return f"{root}/cas/{digest[:2]}/{digest}"


def _write(place: Any, path: str, data: bytes) -> None:  # noqa: ANN401  # fsspec
    """Write a file; readers see all of it or nothing, where the place can do that."""
    place.makedirs(path.rpartition("/")[0], exist_ok=True)
    with place.transaction:
        place.pipe_file(path, data)


def _place(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it. Raises ToolchainError."""
    try:
        from fsspec.core import url_to_fs  # noqa: PLC0415

        options: dict[str, Any] = {}
        if url.startswith(("http://", "https://")):
            from aiohttp import ClientTimeout  # noqa: PLC0415

            # A machine that is gone delays builds no longer than that.
            timeout = ClientTimeout(sock_connect=_CONNECT_S)
            options = {"client_kwargs": {"timeout": timeout}}
        place, root = url_to_fs(url, **options)
    except (ImportError, ValueError) as error:
        raise ToolchainError(
            Diagnostic(
                code="published-unusable",
                message=f"{url} cannot be used for published objects",
                notes=(("found", str(error)),),
                hint=pip_install("fleet"),
            )
        ) from error
    return place, str(root).rstrip("/")


def _reason(error: Exception) -> str:
    if isinstance(error, OrchestratorError):
        return "; ".join(problem.message for problem in error.diagnostics)
    if isinstance(error, FileNotFoundError):
        return f"there is no {error.filename or error}"
    return f"{type(error).__name__}: {error}"
