"""Programs that are written: what is read from them, and where data lies."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.program.encode import write_program
from orchestrator.program.program import BufferDevice, CompileSpec, Delegate, NamedData
from orchestrator.program.reader import read_program
from orchestrator.program.values import DoubleListValue, DoubleValue, TensorValue
from tests.conftest import CASES, model_bytes
from tests.unit.program.program_writer import program_json
from tests.unit.program.program_writer import write_program as write_json

if TYPE_CHECKING:
    from orchestrator.core.lazy_bytes import Bytes
    from orchestrator.program.program import Method, Program

PLACES = {"header": None, "segments": (), "inline_constants": (), "inline_data": ()}
"""What says where in the file something lies."""


def _read(data: Bytes) -> Program:
    return read_program(data, file="model.pte")


def _facts(program: Program) -> Program:
    return replace(program, **PLACES)  # type: ignore[arg-type]  # a dict of several


def _data(program: Program) -> list[list[bytes]]:
    """All blocks of data, by kind."""
    inline = (program.inline_constants, program.inline_data)
    return [
        [bytes(program.segment_bytes(i)) for i in range(len(program.segments))],
        *([bytes(program.data[at : at + size]) for at, size in blocks] for blocks in inline),
    ]


def _check(program: Program) -> Program:
    """What is read from the program as it is written."""
    data = write_program(program)
    assert data == write_program(program)
    found = _read(data)
    assert _facts(found) == _facts(program)
    assert _data(found) == _data(program)
    assert write_program(found) == data
    return found


def _tensors(program: Program) -> list[TensorValue]:
    return [
        value
        for method in program.methods
        for value in method.values
        if isinstance(value, TensorValue) and (value.is_constant or value.is_mutable_state)
    ]


@pytest.mark.parametrize("case", CASES)
def test_what_was_written_reads_the_same(case: str) -> None:
    program = _read(model_bytes(case))
    found = _check(program)
    assert (found.header is None) == (program.header is None)
    for before, after in zip(_tensors(program), _tensors(found), strict=True):
        assert found.data_bytes(after) == program.data_bytes(before)
        assert not before.is_constant or found.data_offset(after) % 16 == 0
    for index, segment in enumerate(found.segments):
        if segment.size_bytes:
            step = math.gcd(program.segment_offset(index), 128)
            assert found.segment_offset(index) % step == 0
    # Vectors that are equal are there once.
    assert len(found.data) <= len(program.data)


def _with(case: str, **changes: object) -> Program:
    program = _read(model_bytes(case))
    method = replace(program.methods[0], **changes)  # type: ignore[arg-type]  # several
    return replace(program, methods=(method, *program.methods[1:]))


def test_numbers_that_equal_others_are_kept() -> None:
    values = (DoubleValue(-0.0), DoubleListValue((-0.0, 0.0, math.inf)))
    method = _read(model_bytes("add_mul")).methods[0]
    program = _with("add_mul", values=(*method.values, *values))
    found = _check(program).methods[0].values[-2:]
    assert repr(found) == repr(values)


def test_what_few_programs_have() -> None:
    devices = (BufferDevice(buffer_index=1, device_type=0, device_index=0),)
    program = _check(_with("mlp", arena_devices=devices))
    assert program.methods[0].arena_devices == devices
    named = (NamedData(key="key", segment_index=0),)
    assert _check(replace(program, named_data=named)).named_data == named


def _inline() -> Program:
    """Constants and data of a delegate inside the flatbuffer."""
    facts = program_json("mlp")
    program = _read(model_bytes("mlp"))
    sizes = {t.data_buffer_index: t.size_bytes for t in _tensors(program)}
    facts["constant_segment"] = None
    facts["segments"] = []
    facts["constant_buffer"] = [
        {"data": [n % 251 for n in range(sizes.get(index, 0))]} for index in range(max(sizes) + 1)
    ]
    facts["backend_delegate_data"] = [{"data": [1, 2, 3]}, {"data": [4] * 40}]
    return _read(write_json(facts))


def test_data_inside_the_flatbuffer() -> None:
    program = _inline()
    delegate = Delegate(
        backend="b",
        is_inline=True,
        data_index=1,
        compile_specs=(CompileSpec(key="k", value=b"\0\1"),),
    )
    method = replace(program.methods[0], delegates=(delegate,))
    found = _check(replace(program, methods=(method,)))
    assert found.header is None
    assert found.has_inline_constants
    assert found.delegate_bytes(delegate) == bytes([4] * 40)
    for at, size in (*found.inline_constants, *found.inline_data):
        assert size == 0 or at % 16 == 0


def _renumbered(program: Program, data: dict[bytes, int]) -> tuple[Method, ...]:
    """Methods whose constants are in another table."""
    return tuple(
        replace(
            method,
            values=tuple(
                replace(v, data_buffer_index=data[bytes(program.data_bytes(v))])
                if isinstance(v, TensorValue) and v.is_constant
                else v
                for v in method.values
            ),
        )
        for method in program.methods
    )


@pytest.mark.parametrize(
    "program",
    [
        *(pytest.param(_read(model_bytes(c)), id=c) for c in CASES),
        pytest.param(_inline(), id="inline"),
    ],
)
def test_constants_may_be_others(program: Program) -> None:
    constants = [t for t in _tensors(program) if t.is_constant]
    data = sorted({bytes(program.data_bytes(t)) for t in constants}, reverse=True)
    data.append(b"one more")
    methods = _renumbered(program, {d: i + 1 for i, d in enumerate(data)})
    new = write_program(replace(program, methods=methods), constants=data)
    found = _read(new)
    assert found.methods == methods
    assert found.has_inline_constants == program.has_inline_constants
    for before, after in zip(_tensors(program), _tensors(found), strict=True):
        assert found.data_bytes(after) == program.data_bytes(before)
        assert not before.is_constant or found.data_offset(after) % 16 == 0
    for old, new_method in zip(program.methods, found.methods, strict=True):
        for one, other in zip(old.delegates, new_method.delegates, strict=True):
            assert found.delegate_bytes(other) == program.delegate_bytes(one)


def test_constants_leave_a_segment_that_others_use() -> None:
    program = _read(model_bytes("mlp"))
    named = (NamedData(key="key", segment_index=0),)
    data = [bytes(program.data_bytes(t)) for t in _tensors(program)]
    methods = _renumbered(program, {d: i + 1 for i, d in enumerate(data)})
    shared = replace(program, methods=methods, named_data=named)
    found = _read(write_program(shared, constants=data))
    assert found.segment_bytes(0) == program.segment_bytes(0)
    assert found.constants is not None
    assert found.constants.segment_index == 1
    for before, after in zip(_tensors(program), _tensors(found), strict=True):
        assert found.data_bytes(after) == program.data_bytes(before)
