"""Where this machine keeps what several builds share, and digests of files."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path

from orchestrator.shell.files import read_own_json, write_atomic

_CHUNK_BYTES = 1 << 20


def cache_folder() -> Path:
    """`$ORCHESTRATOR_CACHE`, else `$XDG_CACHE_HOME/orchestrator` or ~/.cache."""
    own = os.environ.get("ORCHESTRATOR_CACHE")
    if own:
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "orchestrator"


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def program_digest(path: Path) -> str:
    """SHA-256 of a program; remembered by path, size and time, as some are large."""
    real = path.resolve()
    stat = real.stat()
    key = f"{real}|{stat.st_size}|{stat.st_mtime_ns}"
    store = cache_folder() / "programs.json"
    loaded = read_own_json(store)
    known: dict[str, str] = {}
    if isinstance(loaded, dict):
        known = {k: v for k, v in loaded.items() if isinstance(v, str)}
    if key not in known:
        known[key] = file_digest(real)
        with suppress(OSError):
            write_atomic(store, json.dumps(known, indent=1, sort_keys=True).encode())
    return known[key]
