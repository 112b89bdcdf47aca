"""Data that delegates find by name: what of it can be had, without building."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from struct import pack

import pytest

from orchestrator.compat.check import check_compat
from orchestrator.compat.firmware import Firmware, FirmwareMethod
from orchestrator.core.dtype import ScalarType
from orchestrator.errors import ModelError
from orchestrator.program.external import StoredTensor, needed_keys, read_flat_tensors, with_data
from orchestrator.program.program import Delegate, Program
from orchestrator.program.reader import read_program
from orchestrator.selection.extract import extract
from tests.conftest import model_bytes

NAMED = Path(__file__).parents[2] / "data" / "delegate" / "named"
INSIDE = read_program((NAMED / "inside.pte").read_bytes(), file="inside")
OUTSIDE = read_program((NAMED / "outside.pte").read_bytes(), file="outside")
STORED = read_flat_tensors((NAMED / "weights.ptd").read_bytes(), file="weights")


def _with(program: Program, *stored: StoredTensor, takes: bool | None = True) -> Program:
    return with_data(
        program,
        {"m.ptd": stored} if stored else {},
        model="m",
        where=None,
        takes={} if takes is None else {"Named": takes},
    )


def _codes(program: Program, *stored: StoredTensor, takes: bool | None = True) -> list[str]:
    with pytest.raises(ModelError) as caught:
        _with(program, *stored, takes=takes)
    return [found.code for found in caught.value.diagnostics]


def test_data_of_files_is_part_of_the_program_as_data_inside_is() -> None:
    found = _with(OUTSIDE, *STORED)
    assert {e.name: bytes(e.data) for e in found.external} == {
        t.name: bytes(t.data) for t in STORED
    }
    assert {(e.dtype, e.is_constant) for e in found.external} == {(ScalarType.Byte, False)}
    assert sorted(found.delegate_data) == sorted(_with(INSIDE).delegate_data)
    # A tensor among them is what it is.
    tensor = replace(STORED[1], dtype=ScalarType.Float, sizes=(5,), dim_order=(0,))
    found = _with(OUTSIDE, STORED[0], tensor)
    assert {e.name: e.dtype for e in found.external}[tensor.name] is ScalarType.Float


def test_what_cannot_be_had_is_refused() -> None:
    assert _codes(INSIDE, takes=False) == ["delegate-data"]
    assert _codes(INSIDE, *STORED) == ["delegate-data"]
    assert _codes(OUTSIDE, *STORED, takes=False) == ["unused-data"]
    # A backend without a delegate is another problem.
    assert _with(INSIDE, takes=None) == INSIDE
    assert _with(OUTSIDE, *STORED, takes=None) == OUTSIDE


def _two(*backends: str) -> Program:
    (method,) = INSIDE.methods
    parts = tuple(replace(d, backend=b) for d, b in zip(method.delegates, backends, strict=True))
    return replace(INSIDE, methods=(replace(method, delegates=parts),))


def test_one_delegate_that_takes_it_is_enough() -> None:
    program = _two("Named", "Other")
    takes = {"Named": True, "Other": False}
    assert with_data(program, {}, model="m", where=None, takes=takes) == program
    with pytest.raises(ModelError):
        with_data(program, {}, model="m", where=None, takes=dict.fromkeys(takes, False))


@pytest.mark.parametrize(("takers", "count"), [({"Named"}, 0), (set(), 1)])
def test_an_update_is_judged_as_a_whole_as_in_a_build(takers: set[str], count: int) -> None:
    (one,) = _two("Named", "Named").methods
    (two,) = _two("Other", "Other").methods
    program = replace(INSIDE, methods=(one, replace(two, name="two")))
    names = [method.name for method in program.methods]
    firmware = Firmware(
        pointer_bytes=4,
        kernels=(),
        delegates=(("Named", 0), ("Other", 0)),
        takers=frozenset(takers),
        methods=tuple(
            FirmwareMethod(
                model="m", method=n, state_bytes=0, arena_bytes=(), inputs=(), outputs=()
            )
            for n in names
        ),
    )
    found = check_compat(
        firmware,
        program,
        extract(program, model="m"),
        dict.fromkeys(names, 0),
        model="m",
        file="new.pte",
    )
    assert [p.code for p in found].count("delegate-data") == count


def test_keys_that_xnnpack_asks_for() -> None:
    program = read_program(model_bytes("xnnpack_partial"), file="m")
    (method,) = program.methods
    keys = {named.key for named in program.named_data}
    assert needed_keys(program, method.delegates) == keys
    assert len(keys) == 4
    others = [replace(d, backend="Other") for d in method.delegates]
    assert needed_keys(program, others) == set()


def _block(name: bytes, data: bytes, *, is_key: int = 0) -> bytes:
    padded = data + bytes(-len(data) % 16)
    return pack("<16sIB11x", name, len(data), is_key) + padded


def test_keys_that_ethos_u_asks_for() -> None:
    key = b"0123456789abcdef" * 4
    data = b"".join(
        [
            _block(b"vela_bin_stream", b""),
            _block(b"cmd_data", bytes(20)),
            _block(b"weight_data", key, is_key=1),
            _block(b"vela_end_stream", b""),
        ]
    )
    program = replace(INSIDE, data=data, inline_data=((0, len(data)),), methods=())
    part = Delegate(backend="EthosUBackend", is_inline=True, data_index=0, compile_specs=())
    assert needed_keys(program, [part]) == {key.decode()}


def test_many_parts_of_the_same_bytes_are_read_once() -> None:
    size = 1 << 20
    program = replace(INSIDE, data=bytes(size), inline_data=((0, size),) * 2000, methods=())
    parts = [
        Delegate(backend="XnnpackBackend", is_inline=True, data_index=i, compile_specs=())
        for i in range(2000)
    ]
    started = time.monotonic()
    assert needed_keys(program, parts) == set()
    assert time.monotonic() - started < 2
