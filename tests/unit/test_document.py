"""Values as JSON data."""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum

import pytest

from orchestrator.document import document, picked


class Colour(Enum):
    RED = object()


class Level(IntEnum):
    LOW = 1


class Word(StrEnum):
    GAP = "gap"


@dataclass(frozen=True)
class Point:
    x: int
    names: tuple[str, ...]

    @property
    def double(self) -> int:
        return 2 * self.x


@dataclass(frozen=True)
class Named(Point):
    def __str__(self) -> str:
        return f"at {self.x}"


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (None, None),
        (True, True),
        (3, 3),
        (2.5, 2.5),
        (float("-inf"), "-inf"),
        (float("nan"), "nan"),
        (1 + 2j, "(1+2j)"),
        (Colour.RED, "RED"),
        (Level.LOW, "LOW"),
        (Word.GAP, "gap"),
        ((1, (2, [3.5])), [1, [2, [3.5]]]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({"b": (1,), "a": float("inf")}, {"b": [1], "a": "inf"}),
        (Point(1, ("a",)), {"x": 1, "names": ["a"]}),
        (Named(1, ()), "at 1"),
    ],
)
def test_a_value(value: object, found: object) -> None:
    assert document(value) == found
    assert json.loads(json.dumps(document(value), allow_nan=False)) == found


def test_attributes_and_properties_by_name() -> None:
    assert list(picked(Point(4, ("a",)), "names", "double").items()) == [
        ("names", ["a"]),
        ("double", 8),
    ]


def test_the_order_is_that_of_the_value() -> None:
    assert list(document({"b": 1, "a": 2})) == ["b", "a"]
    assert list(document(Point(1, ()))) == ["x", "names"]
