"""The classes of passes that replay graphs: ExecuTorch's, and PyTorch's own copy."""

from __future__ import annotations

from typing import Any, Final

from executorch.exir import pass_base as executorch_base
from torch._export import pass_base as torch_base

# ExecuTorch copied PyTorch's class and PyTorch then deprecated its own, which some of
# its passes still use.
BASES: Final[tuple[Any, ...]] = (
    executorch_base._ExportPassBase,
    torch_base._ExportPassBaseDeprecatedDoNotUse,
)
"""Their methods pass on every node unchanged."""
PROXIES: Final[dict[Any, Any]] = {
    BASES[0]: executorch_base.ProxyValue,
    BASES[1]: torch_base.ProxyValue,
}
"""Values during a replay, with the node that they come from."""
PROXY_KINDS: Final = tuple(PROXIES.values())
TRACERS: Final = (*(base.ExportTracer for base in BASES), executorch_base.ExportPass.ExportTracer)
INTERPRETERS: Final = (
    *(base.ExportInterpreter for base in BASES),
    executorch_base.ExportPass.ExportInterpreter,
)
