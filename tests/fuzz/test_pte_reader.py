"""Damaged programs give a Program or a ModelError, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import ModelError
from orchestrator.pte.reader import read_program
from orchestrator.pte.values import TensorValue
from orchestrator.stages.extract import extract
from tests.conftest import model_bytes

if TYPE_CHECKING:
    from orchestrator.pte.program import Program

# Small programs that between them have every kind of value and instruction in the
# corpus, state, several methods and arenas, dynamic shapes, and a delegate.
_PROGRAMS: Final = [
    model_bytes(case)
    for case in (
        "add_mul",
        "cond_branch",
        "kv_cache",
        "list_arguments",
        "map_loop",
        "multi_method",
        "optional_arguments",
        "two_arenas",
        "xnnpack_partial",
    )
]
_CHANGES: Final = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.one_of(
            st.integers(0, 7).map(lambda bit: ("flip", bytes([1 << bit]))),
            st.sampled_from([b"\0", b"\1", b"\xff"]).map(lambda b: ("set", b)),
            st.sampled_from(
                [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\x80", b"\xff\xff\xff\x7f"]
            ).map(lambda b: ("set", b)),
            st.binary(min_size=1, max_size=8).map(lambda b: ("set", b)),
        ),
    ),
    min_size=1,
    max_size=6,
)


def _damage(
    data: bytes, changes: list[tuple[float, tuple[str, bytes]]], cut: float
) -> bytes:
    damaged = bytearray(data)
    for place, (how, value) in changes:
        at = int(place * (len(data) - len(value)))
        for index, byte in enumerate(value):
            if how == "flip":
                damaged[at + index] ^= byte
            else:
                damaged[at + index] = byte
    return bytes(damaged[: len(data) - int(cut * len(data))])


def _use(program: Program) -> None:
    """Do with a program what later stages do without checks."""
    extract(program, model="m")
    for method in program.methods:
        count = len(method.values)
        assert all(0 <= i < count for i in (*method.inputs, *method.outputs))
        for delegate in method.delegates:
            program.delegate_bytes(delegate)
        for value in method.values:
            if not isinstance(value, TensorValue):
                continue
            if value.is_constant or value.is_mutable_state:
                assert program.data_bytes(value).nbytes == value.size_bytes
            if value.allocation is not None:
                place = value.allocation
                end = place.offset_bytes + value.size_bytes
                assert 0 <= place.offset_bytes <= end
                assert end <= method.arena_bytes[place.memory_id]


@settings(derandomize=True, max_examples=2000, deadline=None, database=None)
@given(
    data=st.sampled_from(_PROGRAMS),
    changes=_CHANGES,
    cut=st.sampled_from([0.0, 0.0, 0.0, 0.01, 0.5]),
)
def test_a_damaged_program_is_read_or_refused(
    data: bytes, changes: list[tuple[float, tuple[str, bytes]]], cut: float
) -> None:
    try:
        program = read_program(_damage(data, changes, cut), file="m.pte")
    except ModelError:
        return
    _use(program)


@settings(derandomize=True, max_examples=300, deadline=None, database=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_refused(data: bytes) -> None:
    for start in (b"", b"\x08\0\0\0ET12", b"\x30\0\0\0ET12eh00\x20\0\0\0"):
        with pytest.raises(ModelError):
            read_program(start + data, file="m.pte")
