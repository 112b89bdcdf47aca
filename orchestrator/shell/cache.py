"""The cache that builds on this machine share, and digests of files."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

from orchestrator.shell.files import read_own_json, write_atomic
from orchestrator.shell.settings import read_settings
from orchestrator.shell.stamp import State, state_of

_DIGEST: Final = re.compile("[0-9a-f]{64}")


def cache_folder() -> Path:
    """The cache where no product is concerned, which has settings of its own."""
    return read_settings().cache


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        # Reads in pieces: zig has 185 MB.
        return hashlib.file_digest(file, "sha256").hexdigest()


# Builds that write a lock do not trust the cache in files, and would hash zig's 185 MB
# each: 0.17 s of processor time, of 0.48 s for a small product. In one process, as of
# `watch` or a command for many products, once is enough.
@functools.cache
def _digest_in_state(path: str, _state: tuple[int, ...]) -> str:
    """Digest of a file, computed by this process once for each state of it."""
    return file_digest(Path(path))


def program_digest(path: Path, *, trust_cache: bool = True, cache: Path | None = None) -> str:
    """SHA-256 of a program, from the cache if possible: some programs are large.

    A cached digest holds for one state of the file: size, times, inode.

    Args:
        path: The program.
        trust_cache: Accept a digest from the cache. Anyone who can write there decides
            what it is, so digests for a lock, or to compare with one, are computed.
        cache: The product's; None for `cache_folder`.
    """
    real = str(path.resolve())
    state = state_of(real)
    store = (cache or cache_folder()) / "programs.json"
    known = _remembered(store)
    if trust_cache and real in known and known[real][0] == state:
        return known[real][1]
    found = _digest_in_state(real, tuple(state))
    # Not noted if the program was replaced while it was read: the digest would be that
    # of neither.
    if known.get(real) != (state, found) and state_of(real) == state:
        known[real] = (state, found)
        with suppress(OSError):
            write_atomic(store, json.dumps(known, indent=1, sort_keys=True).encode())
    return found


def _remembered(store: Path) -> dict[str, tuple[State, str]]:
    """States and digests of programs by path; damaged entries are left out."""
    found: dict[str, tuple[State, str]] = {}
    loaded = read_own_json(store)
    for path, entry in loaded.items() if isinstance(loaded, dict) else ():
        match entry:
            case [list(state), str(digest)] if _DIGEST.fullmatch(digest):
                found[path] = (state, digest)
    return found
