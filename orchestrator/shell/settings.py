"""How builds run here: the user's environment, and what a workspace sets beneath it.

Nothing here changes what a build makes. Each product has settings of its own, as
products of several workspaces may be built in one command.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

CACHE: Final = "ORCHESTRATOR_CACHE"
OBJECTS: Final = "ORCHESTRATOR_OBJECTS"
"""Most bytes of the store of objects: `512 MiB`; `off` for no store."""
PUBLISHED: Final = "ORCHESTRATOR_PUBLISHED"
"""Where objects and exports are published."""
PUBLISHED_KEY: Final = "ORCHESTRATOR_PUBLISHED_KEY"
"""File with the public key of who signed the list."""
LAUNCHER: Final = "ORCHESTRATOR_COMPILER_LAUNCHER"
STORAGE: Final = "CCACHE_REMOTE_STORAGE"
"""ccache's own variable: a Redis, an HTTP server or a folder that machines share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Values of the variables above; "" for those that nobody sets.

    Args:
        cache: Folder that builds share.
        objects: As written.
        published: URL or folder.
        published_key: A path.
        launcher: Name or path of a program.
        storage: As ccache writes it.
    """

    cache: Path
    objects: str
    published: str
    published_key: str
    launcher: str
    storage: str


def read_settings(workspace: Mapping[str, str] = MappingProxyType({})) -> Settings:
    """The settings of a product.

    Args:
        workspace: Variables that its workspace sets where the user did not.
    """
    # The user goes first. Values travel in a Settings, never through os.environ: `build
    # one/p.toml two/p.toml` once built the second product with the cache and the key of
    # the first one's workspace (tests/integration/test_settings.py).
    found = {**workspace, **os.environ}
    base = Path(found.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return Settings(
        cache=Path(found.get(CACHE) or base / "orchestrator"),
        objects=found.get(OBJECTS, ""),
        published=found.get(PUBLISHED, ""),
        published_key=found.get(PUBLISHED_KEY, ""),
        launcher=found.get(LAUNCHER, ""),
        storage=found.get(STORAGE, ""),
    )
