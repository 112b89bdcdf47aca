"""The environment of compilers and ninja: only the variables that they need."""

from __future__ import annotations

import os

ALLOWED = (
    # Finding programs and their shared libraries.
    "PATH",
    "LD_LIBRARY_PATH",
    # Temporary files and caches.
    "HOME",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_CACHE_HOME",
    "CCACHE_DIR",
    # The jobs of a make that runs us.
    "MAKEFLAGS",
)
"""Variables that reach a compiler; docs/reproducibility.md lists them.

A list of allowed variables: compilers have many variables that change what they
compile (`CPATH`, `GCC_EXEC_PREFIX`, `CCC_OVERRIDE_OPTIONS`, `SOURCE_DATE_EPOCH`), and
each version may add more.
"""


def compiler_environment() -> dict[str, str]:
    """Environment of every program whose output reaches a product."""
    kept = {name: os.environ[name] for name in ALLOWED if name in os.environ}
    return {**kept, "LC_ALL": "C"}
