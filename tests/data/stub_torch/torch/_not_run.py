"""Modules of passes that are imported and not run: there is no graph for them."""

import importlib.abc
import importlib.machinery
import sys
from unittest.mock import MagicMock

NAMES = (
    "executorch.exir.dialects",
    "executorch.exir.pass_base",
    "executorch.exir.passes",
    "executorch.exir.program",
    "torch._decomp",
    "torch._ops",
    "torch.func",
    "torch.fx.experimental",
    "torch.fx.traceback",
    "torch.utils._sympy",
)
"""Those and what is below them; another module that the stub lacks is missing."""


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        """An empty package."""
        del path, target
        if f"{fullname}.".startswith(tuple(f"{name}." for name in NAMES)):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def exec_module(self, module):
        """Give it any name."""
        module.__getattr__ = any_name


def any_name(name):
    """An empty class if it is capitalized, else a mock."""
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {}) if name[0].isupper() else MagicMock(name=name)


sys.meta_path.append(_Finder())  # last: files of the stub are preferred
