"""Requests for kernels: calls of models, and keys and dtypes of the profile."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.core.kernel import Kernel, KernelKey
from orchestrator.selection.call import takes
from orchestrator.selection.op_info import CallPattern, Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call, or one kernel key requested outside models.

    Args:
        key: Its kernel key.
        calls: The call; for a key, every call it can stand for.
        origins: What requests it.
        is_dtype: It is for a dtype in any dim order, and the key made up.
    """

    key: KernelKey
    calls: tuple[CallPattern, ...]
    origins: tuple[Origin, ...]
    is_dtype: bool = False

    @property
    def keys(self) -> tuple[KernelKey, ...]:
        """Kernel key to show; none if there is no real one."""
        return () if self.is_dtype else (self.key,)

    def taken_by(self, kernel: Kernel) -> list[CallPattern]:
        """Calls that a kernel serves."""
        return [call for call in self.calls if takes(kernel, call)]
