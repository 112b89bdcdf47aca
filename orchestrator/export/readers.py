"""Audit events for files that readers in C++ and Rust open without Python."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

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
        @wraps(reader, updated=())
        def recording(*args: Any, **kwargs: Any) -> Any:
            self._used.add(module)
            values = [*args, *kwargs.values()]
            path = values[position] if position < len(values) else None
            if isinstance(path, (str, os.PathLike)):
                sys.audit("open", os.fspath(path), "r", os.O_RDONLY)
            return reader(*args, **kwargs)

        return recording
