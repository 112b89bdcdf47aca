"""Data files: read with nothing trusted, and compared with the program."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.errors import Diagnostic, ModelError, SourceSpan
from orchestrator.program.external import StoredTensor, read_flat_tensors, with_data
from orchestrator.program.program import Delegate
from orchestrator.program.reader import read_program
from orchestrator.program.values import Allocation, TensorValue
from tests.conftest import CORPUS, model_bytes

if TYPE_CHECKING:
    from orchestrator.program.program import Program

CASE = "external_constants"
DATA = (CORPUS / CASE / "_default_external_constant.ptd").read_bytes()
PROGRAM = read_program(model_bytes(CASE), file=CASE)
STORED = read_flat_tensors(DATA, file="m.ptd")
WHERE = SourceSpan(file="a.toml", line=3, text="path")


def _with(*stored: StoredTensor, program: Program = PROGRAM, again: bool = False) -> Program:
    files = {"m.ptd": stored} | ({"n.ptd": stored[:1]} if again else {})
    return with_data(program, files, model="m", where=WHERE)


def test_tensors_are_those_that_the_program_names() -> None:
    program = _with(*STORED)
    wanted = {
        v.extra.qualified_name: v
        for m in program.methods
        for v in m.values
        if isinstance(v, TensorValue) and v.is_external and v.extra
    }
    assert {t.name for t in STORED} >= set(wanted)
    assert len(program.external) == len(wanted) == 4
    for name, value in wanted.items():
        (stored,) = (t for t in STORED if t.name == name)
        assert program.has_data(value)
        assert bytes(program.data_bytes(value)) == stored.data
        assert len(stored.data) == value.size_bytes
        assert not PROGRAM.has_data(value)
    # Not in alphabetical order of the file: begins and ends are those of ExecuTorch.
    assert all(bytes(t.data) in DATA for t in STORED)


def _notes(*stored: StoredTensor, **more: object) -> tuple[tuple[str, str], ...]:
    with pytest.raises(ModelError) as caught:
        _with(*stored, **more)  # type: ignore[arg-type]  # handed on
    (found,) = caught.value.diagnostics
    assert found == Diagnostic(
        code="external-data",
        message='data of model "m" does not fit the program',
        where=WHERE,
        notes=found.notes,
        hint="name the .ptd files that were exported with the program in `data` of its [[models]]",
    )
    return found.notes


def test_everything_that_does_not_fit_is_in_one_error() -> None:
    a, b, c, d = sorted(STORED, key=lambda t: t.name)
    notes = _notes(
        replace(a, dtype=ScalarType.Int),
        replace(b, sizes=(1, *b.sizes), dim_order=(*b.dim_order, len(b.sizes))),
        replace(c, dtype=None, sizes=(), dim_order=()),
    )
    assert notes[0] == (
        f'"{a.name}"',
        f"is Int {list(a.sizes)} in m.ptd, and Float {list(a.sizes)} in the program",
    )
    assert notes[1][1].startswith(f"is Float {[1, *b.sizes]} in m.ptd")
    assert notes[2][1].startswith(f"is {len(c.data)} bytes of no tensor in m.ptd")
    assert notes[3] == (f'"{d.name}"', "is not there: the profile names m.ptd")
    assert len(notes) == 4


def test_a_name_in_two_files_is_refused() -> None:
    ((name, text),) = _notes(*STORED, again=True)
    assert name == f'"{STORED[0].name}"'
    assert text == "is there twice: in m.ptd and in n.ptd"


def test_dim_orders_are_compared() -> None:
    tensor = next(t for t in STORED if len(t.sizes) == 2)
    others = [t for t in STORED if t is not tensor]
    ((_, text),) = _notes(*others, replace(tensor, dim_order=(1, 0)))
    assert "in order [1, 0] in m.ptd" in text


def _changed(**change: object) -> Program:
    (method,) = PROGRAM.methods
    first = next(v for v in method.values if isinstance(v, TensorValue) and v.is_external)
    values = list(method.values)
    values.append(replace(first, **change))  # type: ignore[arg-type]  # any field
    return replace(PROGRAM, methods=(replace(method, values=tuple(values)),))


def test_one_name_is_one_constant() -> None:
    ((_, text),) = _notes(*STORED, program=_changed(sizes=(7,)))
    assert text.startswith("is Float ")
    place = Allocation(memory_id=1, offset_bytes=0)
    ((_, text),) = _notes(*STORED, program=_changed(allocation=place))
    assert text == "is not a constant: its initial state lies outside"


def test_without_data_files_that_is_said() -> None:
    with pytest.raises(ModelError) as caught:
        with_data(PROGRAM, {}, model="m", where=None)
    notes = caught.value.diagnostics[0].notes
    assert {text for _, text in notes} == {"is not there: the profile names no data file"}
    none = replace(PROGRAM, methods=())
    assert with_data(none, {}, model="m", where=None) == none


def test_a_backend_without_delegate_is_said_too() -> None:
    (method,) = PROGRAM.methods
    part = Delegate(backend="Npu", is_inline=True, data_index=0, compile_specs=())
    program = replace(PROGRAM, methods=(replace(method, delegates=(part,)),))
    for takes in ({}, {"Npu": False}):
        with pytest.raises(ModelError) as caught:
            with_data(program, {}, model="m", where=None, takes=takes)
        (found,) = caught.value.diagnostics
        said = ('"Npu"', "is a backend without delegate") in found.notes
        assert said == ("see docs/delegates.md" in found.hint) == (not takes)
    # Where the data is there, the kernels' stage says it, with its place.
    assert _with(*STORED, program=program).external


@pytest.mark.parametrize(
    ("at", "byte", "message"),
    [
        (4, 0, "not an ExecuTorch data file"),
        (8, 0, "the header is none"),
        (12, 0, "the header is none"),
        (27, 1, "the flatbuffer does not lie inside the file"),
        (33, 255, "the segments do not lie behind the flatbuffer, inside the file"),
        (43, 1, "the segments do not lie behind the flatbuffer, inside the file"),
    ],
)
def test_a_damaged_header_is_refused(at: int, byte: int, message: str) -> None:
    data = bytearray(DATA)
    data[at] = byte
    with pytest.raises(ModelError) as caught:
        read_flat_tensors(bytes(data), file="m.ptd")
    (found,) = caught.value.diagnostics
    assert (found.code, found.message) == ("bad-program", message)


def test_hostile_bytes_do_no_harm() -> None:
    """Whatever the bytes: an error, or tensors within the file."""
    random_ = random.Random(1)  # noqa: S311  # no secret
    refused = 0
    for length in range(0, len(DATA), 7):
        with pytest.raises(ModelError):
            read_flat_tensors(DATA[:length], file="m.ptd")
    for _ in range(4000):
        data = bytearray(DATA)
        for _ in range(random_.randint(1, 4)):
            data[random_.randrange(0x200)] = random_.choice((0, 1, 4, 127, 255))
        try:
            found = read_flat_tensors(bytes(data), file="m.ptd")
        except ModelError:
            refused += 1
            continue
        assert all(bytes(t.data) in bytes(data) for t in found)
    assert 1000 < refused < 4000
