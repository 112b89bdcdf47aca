"""Files that are read past Python: readers in C++ and Rust say so from now on."""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from functools import wraps
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_READERS = (
    # torch.export.load, torch.jit.load, safetensors.torch.load_file
    ("torch._C", "PyTorchFileReader", 0),
    ("torch._C", "import_ir_module", 1),
    ("safetensors", "safe_open", 0),
)
"""(module, function or class, position of the path)."""


def tell_of_files() -> None:
    """Let them raise Python's audit event for files that are opened.

    Modules that took them before are not changed: this comes before the user's code.
    """
    for module_name, name, position in _READERS:
        with suppress(ImportError, AttributeError):
            module = importlib.import_module(module_name)
            setattr(module, name, _telling(getattr(module, name), position))


def _telling(reader: Callable[..., Any], position: int) -> Callable[..., Any]:
    @wraps(reader, updated=())
    def told(*args: Any, **kwargs: Any) -> Any:
        values = [*args, *kwargs.values()]
        if position < len(values) and isinstance(values[position], (str, os.PathLike)):
            sys.audit("open", os.fspath(values[position]), "r", os.O_RDONLY)
        return reader(*args, **kwargs)

    return told
