"""Numbers of structs by their path: names of structs in structs are joined by dots."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from orchestrator.method.linked import Numbers

Members: TypeAlias = "tuple[tuple[str, Numbers], ...]"


def number_at(members: Members, path: str) -> int:
    """A whole number of a struct."""
    value = _at(members, path)
    assert isinstance(value, int)  # noqa: S101  # its struct says so
    return value


def real_at(members: Members, path: str) -> float:
    """A number of a struct."""
    value = _at(members, path)
    assert not isinstance(value, tuple)  # noqa: S101  # its struct says so
    return value


def _at(members: Members, path: str) -> Numbers:
    value: Numbers = members
    for name in path.split("."):
        assert isinstance(value, tuple)  # noqa: S101  # its struct says so
        value = dict(value)[name]
    return value


def edited(members: Members, changed: Mapping[str, int]) -> Members:
    """The members of a struct with other numbers at some paths."""
    found: list[tuple[str, Numbers]] = []
    for name, value in members:
        inner = {
            path.removeprefix(f"{name}."): number
            for path, number in changed.items()
            if path.startswith(f"{name}.")
        }
        new: Numbers = changed.get(name, value)
        found.append((name, edited(value, inner) if inner and isinstance(value, tuple) else new))
    return tuple(found)
