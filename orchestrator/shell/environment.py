"""The environment of compilers and ninja: only the variables that they need."""

from __future__ import annotations

import os
import sys

from orchestrator.shell.distribution import PACKAGE_FOLDER

PYTHON = "ORCHESTRATOR_EXPORT_PYTHON"
"""The interpreter that has PyTorch and ExecuTorch."""

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


def interpreter() -> str:
    """The Python that exports."""
    return os.environ.get(PYTHON) or sys.executable


def python_environment() -> dict[str, str]:
    """The environment of that Python: the user's, and it finds this package."""
    paths = [str(PACKAGE_FOLDER.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}


def program_folders() -> list[str]:
    """Where programs are looked for, in order."""
    return os.get_exec_path()
