"""Keys of named data that delegates certainly ask for.

Programs do not say which of their named data a delegate needs. XNNPACK and Ethos-U name
it by SHA-256 in what they get, behind a zero; other backends keep it to themselves.

Source: ExecuTorch `backends/xnnpack/operators/node_visitor.py`, where scales have a
prefix, and `backends/arm/arm_vela.py`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.program.program import Delegate, Program

_BACKENDS: Final = ("XnnpackBackend", "EthosUBackend")
_KEY: Final = re.compile(rb"\0((?:scale_)?[0-9a-f]{64})")


def needed_keys(program: Program, delegates: Iterable[Delegate]) -> set[str]:
    """The keys that stand in what these delegates of a program get."""
    known = [d for d in delegates if d.backend in _BACKENDS]
    found: set[str] = set()
    # Segments may overlap: no more is read than the file has.
    left = program.size_bytes
    for delegate in {(d.is_inline, d.data_index): d for d in known}.values():
        data = program.delegate_bytes(delegate)
        left -= len(data)
        if left >= 0:
            found.update(key.decode() for key in _KEY.findall(bytes(data)))
    return found
