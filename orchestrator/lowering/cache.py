"""PyTorch's dispatch cache also serves the quantizer's operators.

It keeps the results of PyTorch's own operators on fake tensors, and dispatches those of
all other libraries each time. Operators of the libraries below also read only metadata
and plain arguments. Their results are dropped at the end.

Source: PyTorch 2.13 `torch/_subclasses/fake_tensor.py`, `FakeTensorMode`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode, _BypassDispatchCache
from torch.utils import _pytree as pytree

from orchestrator.lowering.memo import depends_on_metadata

if TYPE_CHECKING:
    from orchestrator.lowering.patches import Patches

LIBRARIES: Final = frozenset({"quantized_decomposed", "EDGE_DO_NOT_DECOMP"})
"""The quantizer's, and ExecuTorch's names for operators of PyTorch."""
_NOT_BUILT_IN: Final = "non-builtin"


class Cache:
    """The cache's results for those libraries."""

    def __init__(self) -> None:
        self._before: dict[Any, Any] = {}

    def install(self, patches: Patches) -> None:
        """Let the cache serve them until the patches are reverted."""
        self._before = _taken()
        patches.afterwards(self._forget)
        original = FakeTensorMode._validate_cache_key

        def validate(self: Any, func: Any, args: Any, kwargs: Any) -> None:
            try:
                original(self, func, args, kwargs)
            except _BypassDispatchCache as bypass:
                if bypass.reason != _NOT_BUILT_IN or not _serves(func, args, kwargs):
                    raise

        patches.replace(FakeTensorMode, "_validate_cache_key", validate)

    def _forget(self) -> None:
        """Restore the earlier entries and drop all others."""
        _taken()
        FakeTensorMode.cache.update(self._before)


def _serves(func: Any, args: Any, kwargs: Any) -> bool:
    return (
        isinstance(func, OpOverload)
        and func.namespace in LIBRARIES
        and not func.is_view
        and depends_on_metadata(func)
        and not any(map(_is_symbolic, pytree.tree_leaves((args, kwargs))))
    )


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(value._has_symbolic_sizes_strides)
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def _taken() -> dict[Any, Any]:
    """Remove and return the cache's entries for those libraries."""
    kept = FakeTensorMode.cache
    found = [key for key in kept if getattr(key.key[0], "namespace", "") in LIBRARIES]
    return {key: kept.pop(key) for key in found}
