"""Results as documents: data for JSON, made of frozen dataclasses and what they hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any


def document(value: object) -> Any:  # noqa: ANN401, PLR0911  # JSON; one per kind
    """A value as JSON data.

    Dataclasses become objects with their fields in order, unless they have a text of their
    own, as an operator has. Members of enums become their names, sets sorted lists, and
    numbers that JSON does not have texts: `inf`, `nan`, `(1+2j)`.
    """
    match value:
        case None | bool() | str():
            return value
        # Before int(): members of an IntEnum, such as dtypes, are integers too, and
        # would become their codes.
        case Enum():
            return value.name
        case int():
            return value
        case float():
            # json.dumps would write NaN and Infinity, which are no JSON: other parsers
            # reject them.
            return value if isfinite(value) else str(value)
        case tuple() | list():
            return [document(item) for item in value]
        case set() | frozenset():
            return [document(item) for item in sorted(value)]
        case Mapping():
            return {key: document(item) for key, item in value.items()}
    # A class that defines `__str__` has one spelling for messages, tables and JSON
    # alike.
    if is_dataclass(value) and type(value).__str__ is object.__str__:
        return picked(value, *(field.name for field in fields(value)))
    return str(value)


def picked(item: object, *names: str) -> dict[str, Any]:
    """Attributes of an item as a document, by their names."""
    return {name: document(getattr(item, name)) for name in names}
