"""Attributes of other packages, temporarily replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_ABSENT = object()


class Patches:
    """Replacements that are reverted in reverse order."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def replace(self, owner: Any, name: str, new: Any) -> None:
        """Replace the value of an attribute that `owner` itself has.

        Raises:
            KeyError: It has none of that name.
        """
        # vars, not getattr: an inherited method or a bound classmethod must not be
        # written into the class when it is restored.
        self._before.append((owner, name, vars(owner)[name]))
        setattr(owner, name, new)

    def add(self, owner: Any, name: str, new: Any) -> None:
        """Add an attribute that `owner` itself does not have.

        Raises:
            KeyError: It has one of that name.
        """
        if name in vars(owner):
            raise KeyError(name)
        self._before.append((owner, name, _ABSENT))
        setattr(owner, name, new)

    def afterwards(self, undo: Callable[[], None]) -> None:
        """Call something once all later replacements are reverted."""
        self._before.append((None, "", undo))

    def restore(self) -> None:
        """Revert everything."""
        # Backwards: a method that was replaced twice ends as it was.
        while self._before:
            owner, name, value = self._before.pop()
            if owner is None:
                value()
            elif value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)
