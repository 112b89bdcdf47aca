"""Which of the user's files a process reads: those that it opens, imports and lists."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import Any

from orchestrator.export.failure import is_installed

_NOT_FILES = ("/proc/", "/sys/", "/dev/")
# Bytecode follows its source; distributions count by version and RECORD.
_NO_SOURCE = ("__pycache__", ".dist-info/", ".egg-info/")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC


class Observer:
    """Records from now on; Python cannot remove an audit hook.

    Args:
        ignored: Folders whose files do not count, such as that of Orchestrator.
    """

    def __init__(self, ignored: tuple[str, ...]) -> None:
        self._ignored = (*(f"{f}/" for f in ignored), *_NOT_FILES)
        self._temporary = f"{os.path.realpath(tempfile.gettempdir())}/"
        self._opened: set[str] = set()
        self._written: set[str] = set()
        self._listed: set[str] = set()
        self._active = True
        # Python's own report of every open, import and listing (PEP 578): nothing that
        # the user's code does in Python passes by. It also runs for our files, which
        # `_ignored` has.
        sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[object, ...]) -> None:
        if not self._active or event not in ("open", "os.listdir", "os.scandir"):
            return
        path = args[0]
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        # os.listdir() and os.scandir() without an argument list the current folder.
        if path is None:
            path = "."
        if not isinstance(path, (str, os.PathLike)):
            return  # a descriptor, whose file was opened before
        absolute = os.path.abspath(path)  # noqa: PTH100  # keeps links
        if event != "open":
            self._listed.add(absolute)
        # The audit event has (path, mode, flags); flags say what is done with it, also
        # where mode is None, as for os.open.
        elif isinstance(args[2], int) and args[2] & _WRITES:
            self._written.add(absolute)
        else:
            self._opened.add(absolute)

    def stop(self) -> None:
        """Stop recording."""
        self._active = False

    def files(self) -> list[str]:
        """Absolute paths of the user's files that were read; sorted.

        Modules count as their source, wherever Python found them compiled. Files that
        the process itself wrote are not inputs.
        """
        modules = [
            file
            # Modules that were imported before the hook was there, and those of frozen
            # importers.
            for module in list(sys.modules.values())
            if isinstance(file := getattr(module, "__file__", None), str)
        ]
        found = {
            os.path.abspath(path)  # noqa: PTH100
            # What the code writes itself, such as a cache, is no input of it.
            for path in (*modules, *(self._opened - self._written))
        }
        return sorted(p for p in found if self._counts(p) and Path(p).is_file())

    def folders(self) -> list[str]:
        """Absolute paths of folders whose files were listed; sorted."""
        found = self._listed
        return sorted(p for p in found if self._counts(p) and Path(p).is_dir())

    def _counts(self, path: str) -> bool:
        if path.startswith(self._ignored) or any(part in path for part in _NO_SOURCE):
            return False
        # A temporary file is gone at the next export: an entry that names it would
        # never be valid.
        made_here = path.startswith(self._temporary) and path in self._written
        return not made_here and not is_installed(path)


# Audit events for files that readers in C++ and Rust open without Python.

# These open files by their path in C++ or Rust; docs/export.md says that no others are
# noticed.
_READERS = (
    # torch.export.load, torch.jit.load, safetensors.torch.load_file
    ("torch._C", "PyTorchFileReader", 0),
    ("torch._C", "import_ir_module", 1),
    ("safetensors", "safe_open", 0),
)
"""(module, function or class, position of the path)."""


class Readers:
    """Lets them raise Python's audit event for files that are opened.

    Modules that imported them earlier do not see the change, so this runs before the
    user's code.
    """

    def __init__(self) -> None:
        before = set(sys.modules)
        self._used: set[str] = set()
        for module_name, name, position in _READERS:
            with suppress(ImportError, AttributeError):
                module = importlib.import_module(module_name)
                reader = getattr(module, name)
                setattr(module, name, self._telling(reader, module_name, position))
        added = {name.partition(".")[0] for name in set(sys.modules) - before}
        self._added = {name for name in added if name not in before}

    @property
    def unused(self) -> set[str]:
        """Packages that only this module imported, with readers never called."""
        return self._added - {name.partition(".")[0] for name in self._used}

    def _telling(
        self, reader: Callable[..., Any], module: str, position: int
    ) -> Callable[..., Any]:
        # updated=(): attributes of a class are not those of a function.
        @wraps(reader, updated=())
        def recording(*args: Any, **kwargs: Any) -> Any:
            self._used.add(module)
            values = [*args, *kwargs.values()]
            path = values[position] if position < len(values) else None
            if isinstance(path, (str, os.PathLike)):
                sys.audit("open", os.fspath(path), "r", os.O_RDONLY)
            return reader(*args, **kwargs)

        return recording
