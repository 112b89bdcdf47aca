"""What the delegates of a method take in its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from orchestrator.memory.plan import DelegateState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.program.program import Method

_STATE_WORD: Final = 8


def delegate_states(
    method: Method, delegates: Mapping[str, int]
) -> tuple[DelegateState, ...]:
    """Of each part that a linked delegate runs, in the program's order."""
    return tuple(
        DelegateState(backend=d.backend, state_bytes=delegates[d.backend])
        for d in method.delegates
        if d.backend in delegates
    )


def with_delegates(
    size_bytes: int,
    method: Method,
    *,
    pointer_bytes: int,
    delegates: Mapping[str, int],
) -> int:
    """Size of a method state with handles and states of the method's delegates.

    Args:
        size_bytes: Without them.
        method: Of the program.
        pointer_bytes: Of the target.
        delegates: State bytes of the delegates of the product, by backend. A product
            without any knows nothing of the delegates of a method.

    Source: `DelegateHandle` and `kDelegateStateAlignment` in
    runtime/include/orch/delegate.h; layout in runtime/src/load_delegates.cpp.
    """
    if delegates:
        size_bytes += len(method.delegates) * 4 * pointer_bytes
    states = [delegates.get(d.backend, 0) for d in method.delegates]
    if not any(states):
        return size_bytes
    return sum(-(-part // _STATE_WORD) * _STATE_WORD for part in (size_bytes, *states))
