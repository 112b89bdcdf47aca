"""Bytes that are read when they are needed mean the same as bytes at hand."""

from __future__ import annotations

import hashlib
import pickle
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core import lazy_bytes
from orchestrator.core.lazy_bytes import (
    LARGE,
    HeldBytes,
    JoinedBytes,
    LazyBytes,
    chunks_of,
    joined,
    part_of,
    settled,
    sha256_of,
)


def test_what_is_equal_is_of_one_type() -> None:
    small, large = bytes(LARGE - 1), bytes(LARGE)
    for data in (small, HeldBytes(small), JoinedBytes([small]), memoryview(small)):
        assert settled(data) == small
    for lazy in (large, HeldBytes(large), JoinedBytes([large]), memoryview(large)):
        assert settled(lazy) == settled(large)
        assert hash(settled(lazy)) == hash(settled(large))
    assert settled(large) != large


def test_a_digest_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    data = HeldBytes(b"abc")
    assert sha256_of(data) == hashlib.sha256(b"abc").hexdigest() == sha256_of(b"abc")
    monkeypatch.setattr(HeldBytes, "chunks", None)
    assert sha256_of(data) == sha256_of(b"abc")


def test_a_whole_part_is_the_same_object() -> None:
    one, other = settled(bytes(LARGE)), settled(b"\1" * LARGE)
    both = joined([one, other])
    assert part_of(both, 0, LARGE) is one
    assert part_of(both, LARGE, LARGE) is other
    assert both[:] is both


@given(parts=st.lists(st.binary(max_size=40), min_size=1), data=st.data())
def test_parts_of_joined_bytes(parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(parts)
    begin = data.draw(st.integers(0, len(whole)))
    size = data.draw(st.integers(0, len(whole) - begin))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lazy_bytes, "LARGE", 8)
        found = joined(parts)
        assert isinstance(found, LazyBytes) == (len(whole) >= 8)
        assert bytes(found) == b"".join(chunks_of(found)) == whole
        part = part_of(found, begin, size)
        assert bytes(part) == whole[begin : begin + size]
        assert isinstance(part, LazyBytes) == (size >= 8)
        assert bytes(pickle.loads(pickle.dumps(found))) == whole  # noqa: S301


def test_only_ranges_are_taken() -> None:
    with pytest.raises(ValueError, match="gaps"):
        HeldBytes(b"abc")[::2]
    assert repr(HeldBytes(b"abc")) == "<HeldBytes: 3 bytes>"
    assert HeldBytes(b"abc")[2:1] == b""


def test_any_part_of_several_is_found() -> None:
    random = Random(1)  # noqa: S311  # the same in every run
    for _ in range(1000):
        parts = [random.randbytes(random.randint(0, 5)) for _ in range(6)]
        whole = b"".join(parts)
        begin, end = sorted(random.choices(range(len(whole) + 1), k=2))
        assert bytes(JoinedBytes(parts).part(begin, end)) == whole[begin:end]
