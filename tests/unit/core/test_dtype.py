"""Element types."""

from __future__ import annotations

import re

import pytest

from orchestrator.core.dtype import (
    ALL,
    COMPLEX,
    FLOATING,
    INTEGRAL,
    REAL,
    ScalarType,
    dtype_names,
    parse_dtypes,
)


def test_codes_are_those_of_the_format() -> None:
    assert [d.value for d in ScalarType] == list(range(30))
    assert ScalarType(6) is ScalarType.Float
    assert ScalarType(29).name == "UInt64"


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        ("Bool", 1),
        ("Char", 1),
        ("Half", 2),
        ("BFloat16", 2),
        ("UInt16", 2),
        ("Float", 4),
        ("QInt32", 4),
        ("ComplexHalf", 4),
        ("Long", 8),
        ("Double", 8),
        ("UInt64", 8),
        ("ComplexDouble", 16),
    ],
)
def test_item_bytes(dtype: str, size: int) -> None:
    assert ScalarType[dtype].item_bytes == size


def test_every_dtype_has_a_size() -> None:
    assert {d.item_bytes for d in ScalarType} == {1, 2, 4, 8, 16}


def test_groups_add_up() -> None:
    assert INTEGRAL | FLOATING == REAL
    assert not INTEGRAL & FLOATING
    assert ScalarType.Bool not in REAL
    assert len(ALL) == 16
    assert REAL | COMPLEX | {ScalarType.Bool} < ALL
    assert not REAL & COMPLEX


def test_addresses_are_multiples_of_words_at_most() -> None:
    assert {ScalarType[n].alignment for n in ("ComplexDouble", "ComplexFloat")} == {8}
    assert ScalarType.ComplexHalf.alignment == ScalarType.Float.alignment == 4


def test_names_and_groups_are_read() -> None:
    assert parse_dtypes([]) == frozenset()
    assert parse_dtypes(["Bool", "floating"]) == FLOATING | {ScalarType.Bool}
    assert parse_dtypes(["real", "Float"]) == REAL


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Flaot", 'unknown dtype "Flaot", did you mean "Float"?'),
        ("zzz", 'unknown dtype "zzz"'),
        ("name", 'unknown dtype "name"'),
    ],
)
def test_unknown_name_is_refused(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        parse_dtypes(["Float", name])


def test_names_for_messages_are_in_order_of_the_codes() -> None:
    assert dtype_names(frozenset({ScalarType.Float, ScalarType.Int})) == "Int, Float"
    assert dtype_names(frozenset()) == "none"
