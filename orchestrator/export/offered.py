"""Operators that have a kernel, and which of them an export asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping


class Offered:
    """Operators that the profile's libraries have kernels of.

    Notes every question: an export stays valid while the answers are the same, whatever
    else changes in the libraries.

    Args:
        names: Out variants, such as `aten::add.out`.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = frozenset(names)
        self.asked: dict[str, bool] = {}

    def __contains__(self, name: str) -> bool:
        """Whether an operator has a kernel."""
        return self.asked.setdefault(name, name in self._names)


def changed_answer(asked: Mapping[str, bool], names: Collection[str]) -> str:
    """What changed since an export asked for operators, "" if nothing.

    Args:
        asked: By operator: whether it had a kernel.
        names: The operators that have one now.
    """
    for name, had in sorted(asked.items()):
        if had is not (name in names):
            return f"{name} {'lost its' if had else 'now has a'} kernel"
    return ""
