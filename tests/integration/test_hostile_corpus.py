"""Every damaged program of the corpus: what the build says of it and what the device.

The device is the loader with every kernel there is, under sanitizers.
"""

from __future__ import annotations

import json
import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

import pytest

from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from tests.conftest import CORPUS, model_bytes
from tests.cpp.support.device import Answer, ask
from tests.cpp.support.native import ROOT, build
from tests.cpp.support.running import run_method
from tests.cpp.support.verdicts import ERRORS, allowed_errors, build_verdict, reader_verdict
from tests.unit.program.program_writer import program_json, write_program

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.program.program import Program

pytestmark = pytest.mark.toolchain

BAD: Final = CORPUS / "bad"
_SECTION: Final = "## What the device says"
INDEX: Final[dict[str, dict[str, Any]]] = {
    entry["file"].removesuffix(".pte"): entry
    for entry in json.loads((BAD / "index.json").read_text())["files"]
}

VERDICTS: Final = {
    "empty": ("bad-program", "not an ExecuTorch program", "InvalidProgram"),
    "one_byte": ("bad-program", "not an ExecuTorch program", "InvalidProgram"),
    "seven_bytes": ("bad-program", "not an ExecuTorch program", "InvalidProgram"),
    "cut_header": ("bad-program", "the extended header is cut off", "InvalidProgram"),
    "cut_flatbuffer": (
        "bad-program",
        "the flatbuffer does not lie inside the file",
        "InvalidProgram",
    ),
    "cut_flatbuffer_end": ("bad-program", "an offset points outside the program", "InvalidProgram"),
    "cut_segments": ("bad-program", "the file is too short for its segments", "InvalidProgram"),
    "cut_tail": ("bad-program", "the file is too short for its segments", "InvalidProgram"),
    "random_bytes": ("bad-program", "not an ExecuTorch program", "UnsupportedProgram"),
    "random_with_identifier": (
        "bad-program",
        "an offset points outside the program",
        "InvalidProgram",
    ),
    "random_after_head": ("bad-program", "an offset points outside the program", "InvalidProgram"),
    "identifier": ("bad-program", "not an ExecuTorch program", "UnsupportedProgram"),
    "root_offset": ("bad-program", "an offset points outside the program", "InvalidProgram"),
    "header_magic": (
        "bad-program",
        "a segment ends after the segment data of the file",
        "DelegateMissing",
    ),
    "header_length_zero": (
        "bad-program",
        "the extended header has an impossible length",
        "InvalidProgram",
    ),
    "header_length_huge": (
        "bad-program",
        "the extended header has an impossible length",
        "InvalidProgram",
    ),
    "header_program_size": (
        "bad-program",
        "the flatbuffer does not lie inside the file",
        "InvalidProgram",
    ),
    "header_segment_base": (
        "bad-program",
        "the file is too short for its segments",
        "InvalidProgram",
    ),
    "header_segment_overlap": (
        "bad-program",
        "the segments overlap the flatbuffer",
        "InvalidProgram",
    ),
    "header_segment_size": (
        "bad-program",
        "the file is too short for its segments",
        "InvalidProgram",
    ),
    "plans_huge": ("bad-program", "a vector runs past the end of the program", "InvalidProgram"),
    "values_huge": ("bad-program", "a vector runs past the end of the program", "InvalidProgram"),
    "instructions_huge": (
        "bad-program",
        "a vector runs past the end of the program",
        "InvalidProgram",
    ),
    "name_offset": ("bad-program", "an offset points outside the program", "InvalidProgram"),
    "self_offset": ("bad-program", "an offset points outside the program", "InvalidProgram"),
    "cycle": ("bad-program", "an offset points outside the program", "InvalidProgram"),
    "vtable_offset": ("bad-program", "a vtable lies outside the program", "InvalidProgram"),
    "op_index_high": (
        "bad-program",
        "an instruction calls an operator or delegate that is not listed",
        "InvalidProgram",
    ),
    "op_index_negative": (
        "bad-program",
        "an instruction calls an operator or delegate that is not listed",
        "InvalidProgram",
    ),
    "arg_high": ("bad-program", "a value is named that does not exist", "InvalidProgram"),
    "arg_negative": ("bad-program", "a value is named that does not exist", "InvalidProgram"),
    "args_huge": ("bad-program", "a vector runs past the end of the program", "InvalidProgram"),
    "args_none": ("bad-program", "a call has an impossible number of arguments", "InvalidProgram"),
    "arg_kind": (
        "call-mismatch",
        "a call of aten::split_with_sizes_copy.out does not fit its op schema",
        "InvalidProgram",
    ),
    "value_kind": ("newer-program", "a value is of an unknown kind", "UnsupportedProgram"),
    "input_index": ("bad-program", "a value is named that does not exist", "InvalidProgram"),
    "output_index": ("bad-program", "a value is named that does not exist", "InvalidProgram"),
    "unknown_operator": ("no-kernel", "no kernel for aten::no.out", "OperatorMissing"),
    "intlist_item": ("bad-program", "a list has an item that it cannot have", "InvalidProgram"),
    "tensorlist_item": ("bad-program", "a list has an item that it cannot have", "InvalidProgram"),
    "jump_far": ("bad-program", "a jump leads out of the method", "InvalidProgram"),
    "jump_condition": ("bad-program", "a value is named that does not exist", "InvalidProgram"),
    "move_from": ("bad-program", "a value is named that does not exist", "InvalidProgram"),
    "scalar_type": ("bad-program", "a tensor has an unknown dtype", "UnsupportedProgram"),
    "size_negative": ("bad-program", "a tensor has a negative size", "InvalidProgram"),
    "size_overflow": ("bad-program", "a tensor is impossibly large", "InvalidProgram"),
    "size_big": ("bad-program", "a tensor is planned past the end of its arena", "InvalidProgram"),
    "dim_order_repeat": (
        "bad-program",
        "the dim order of a tensor is not a permutation of its dimensions",
        "InvalidProgram",
    ),
    "dim_order_range": (
        "bad-program",
        "the dim order of a tensor is not a permutation of its dimensions",
        "InvalidProgram",
    ),
    "planned_offset": (
        "bad-program",
        "a tensor is planned past the end of its arena",
        "InvalidProgram",
    ),
    "planned_offset_edge": (
        "bad-program",
        "a tensor is planned past the end of its arena",
        "InvalidProgram",
    ),
    "memory_id": (
        "bad-program",
        "a tensor is planned into an arena that is not there",
        "InvalidProgram",
    ),
    "constant_index": (
        "bad-program",
        "a tensor has data that is not in the program",
        "InvalidProgram",
    ),
    "constant_offset": ("bad-program", "the data of a tensor leaves its segment", "InvalidProgram"),
    "segment_offset": (
        "bad-program",
        "a segment ends after the segment data of the file",
        "DelegateMissing",
    ),
    "arena_negative": ("bad-program", "an arena has an impossible size", "InvalidProgram"),
    "arena_zero": (
        "bad-program",
        "a tensor is planned past the end of its arena",
        "InvalidProgram",
    ),
    "delegate_id": ("no-delegate", "no delegate for backend NoSuchBackendN", "DelegateMissing"),
    "old_constant_buffer": ("", "", "Ok"),
    "bit_flip_0": ("bad-program", "an offset points outside the program", "InvalidProgram"),
    "bit_flip_1": ("bad-program", "an offset points outside the program", "InvalidProgram"),
    "bit_flip_2": ("bad-program", "an offset points outside the program", "DelegateMissing"),
    "bit_flip_3": ("bad-program", "a list has an item that it cannot have", "InvalidProgram"),
    "bit_flip_4": ("bad-program", "an offset points outside the program", "InvalidProgram"),
    "bit_flip_5": ("bad-program", "an offset points outside the program", "InvalidProgram"),
    "bit_flip_6": ("bad-program", "an offset points outside the program", "InvalidProgram"),
    "bit_flip_7": ("bad-program", "an offset points outside the program", "Ok"),
}
"""By file: code and message of the build's first diagnostic, and what the device says
of loading the methods that the good file has. Empty: the build takes the program."""

_BY_THE_RESOLVER: Final = {"arg_kind", "unknown_operator", "delegate_id"}
"""Well-formed programs, which the reader takes: their calls are what is wrong."""

_UP_TO_THE_DELEGATE: Final = {
    "bit_flip_2": "no tensor has its data in the flatbuffer, where the damage is",
    "delegate_id": "the delegate itself is what is damaged",
    "header_magic": "no segment is there, the delegate's neither",
    "segment_offset": "the segment of the delegate's data lies outside the file",
}
"""Programs that call a delegate. The runtime has none: that is what it finds first, and
the damage behind it is the reader's alone."""

_HARMLESS: Final = {
    "bit_flip_7": "the count of methods grew by 64: the first one is as it was",
    "old_constant_buffer": "constants in the flatbuffer, as before ExecuTorch 0.7",
}
"""Damage that the loader does not come upon on its way to the method it loads, and what
is none to us."""


@pytest.fixture(scope="module")
def load_file() -> Path:
    return build("load_file")


@pytest.fixture(scope="module")
def answers(load_file: Path) -> dict[str, Answer]:
    """What the device says of every file."""
    found = ask(load_file, [BAD / f"{name}.pte" for name in INDEX])
    return dict(zip(INDEX, found, strict=True))


def _good(name: str) -> Program:
    case = INDEX[name]["made_from"]
    return read_program(model_bytes(case), file=case)


def _first_error(answer: Answer, count: int) -> str:
    """The first error of opening and of as many methods."""
    errors = [answer.opened, *(m.error for m in answer.methods[:count])]
    return next((error for error in errors if error != "Ok"), "Ok")


def test_every_file_has_a_verdict() -> None:
    assert sorted(VERDICTS) == sorted(INDEX)
    assert sorted(VERDICTS) == sorted(path.stem for path in BAD.glob("*.pte"))


@pytest.mark.parametrize("name", VERDICTS)
def test_a_damaged_program_is_refused_by_both(name: str, answers: dict[str, Answer]) -> None:
    code, message, error = VERDICTS[name]
    data = (BAD / f"{name}.pte").read_bytes()
    diagnostics = build_verdict(data)
    if not code:
        assert not diagnostics
        assert name in _HARMLESS
        assert _first_error(answers[name], len(_good(name).methods)) == error
        return
    first = diagnostics[0]
    assert (first.code, first.message) == (code, message)
    assert first.notes
    assert first.hint
    assert bool(reader_verdict(data)) == (name not in _BY_THE_RESOLVER)
    assert _first_error(answers[name], len(_good(name).methods)) == error
    if name in _UP_TO_THE_DELEGATE:
        assert error == "DelegateMissing"
    elif name in _HARMLESS:
        assert error == "Ok"
    else:
        assert error in allowed_errors(data, [first])


@pytest.mark.parametrize("name", _HARMLESS)
def test_where_damage_does_no_harm_outputs_are_those_of_the_good_file(
    name: str, load_file: Path, tmp_path: Path
) -> None:
    case = INDEX[name]["made_from"]
    runs = json.loads((CORPUS / case / "case.json").read_text())["runs"]
    files = (BAD / f"{name}.pte", CORPUS / case / "model.pte")
    for run in runs:
        method = _good(name).method(run["method"])
        bad, good = (
            run_method(load_file, file, method, run, case=case, folder=tmp_path) for file in files
        )
        assert bad == good


def test_the_documentation_has_the_correspondence() -> None:
    text = (ROOT / "docs" / "errors.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| `(.*)` \|$", text.partition(_SECTION)[2], re.MULTILINE)
    assert {code: frozenset({error}) for error, code in rows} == ERRORS


# Bytes that mean nothing.

_ONE_BIT: Final = ("add_mul", "cond_branch", "list_arguments")
"""Programs of which each byte is changed in turn."""


def _facts(program: Program) -> object:
    """All that a program says: its facts, and the bytes of its constants."""
    data = [
        bytes(program.data_bytes(value))
        for method in program.methods
        for value in method.values
        if isinstance(value, TensorValue) and (value.is_constant or value.is_mutable_state)
    ]
    return (program.methods, program.segments, program.constants, data)


def _changed(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]


@pytest.mark.parametrize("case", _ONE_BIT)
def test_a_bit_that_means_nothing_changes_nothing(
    case: str, load_file: Path, tmp_path: Path
) -> None:
    """Where the reader finds the same program, the device gives the same outputs."""
    data = model_bytes(case)
    facts = _facts(read_program(data, file=case))
    paths = []
    for at in range(len(data)):
        mutant = _changed(data, at)
        if reader_verdict(mutant):
            continue
        if _facts(read_program(mutant, file=case)) == facts:
            path = tmp_path / f"{at}.pte"
            path.write_bytes(mutant)
            paths.append(path)
    assert len(paths) > len(data) // 20
    assert {answer.error for answer in ask(load_file, paths)} == {"Ok"}
    run = json.loads((CORPUS / case / "case.json").read_text())["runs"][0]
    method = read_program(data, file=case).method(run["method"])
    good, *others = (
        run_method(load_file, path, method, run, case=case, folder=tmp_path)
        for path in (CORPUS / case / "model.pte", *paths[:: max(1, len(paths) // 40)])
    )
    assert set(others) == {good}


def _answers(load_file: Path, folder: Path, program: dict[str, Any]) -> tuple[str, str]:
    """What the reader says of a program, and the device."""
    data = write_program(program)
    path = folder / "m.pte"
    path.write_bytes(data)
    (answer,) = ask(load_file, [path])
    (diagnostic,) = reader_verdict(data)
    return f"{diagnostic.code}: {diagnostic.message}", answer.error


# Disagreements found by comparing damaged programs, each with what both say now.


def test_a_dim_order_of_another_length_is_damage_for_both(load_file: Path, tmp_path: Path) -> None:
    """However many dimensions there are: not a program that asks for too many."""
    program = deepcopy(program_json("add_mul"))
    tensor = program["execution_plan"][0]["values"][0]["val"]
    tensor["sizes"] = [1] * 9
    assert _answers(load_file, tmp_path, program) == (
        "bad-program: the dim order of a tensor is not a permutation of its dimensions",
        "InvalidProgram",
    )
    tensor["dim_order"] = list(range(9))
    assert _answers(load_file, tmp_path, program) == (
        "unsupported-program: a tensor has too many dimensions",
        "UnsupportedProgram",
    )


def test_how_a_tensor_is_stored_comes_before_how_its_size_changes(
    load_file: Path, tmp_path: Path
) -> None:
    program = deepcopy(program_json("add_mul"))
    tensor = program["execution_plan"][0]["values"][0]["val"]
    tensor["shape_dynamism"] = 7
    assert _answers(load_file, tmp_path, program) == (
        "bad-program: a tensor has an unknown dynamism",
        "InvalidProgram",
    )
    tensor["storage_offset"] = 4
    assert _answers(load_file, tmp_path, program) == (
        "unsupported-program: a tensor is not stored densely from the start of its buffer",
        "UnsupportedProgram",
    )


def test_a_method_without_a_chain_is_not_supported(load_file: Path, tmp_path: Path) -> None:
    program = deepcopy(program_json("add_mul"))
    method = program["execution_plan"][0]
    several: list[Any] = [None, [], method["chains"] * 2]
    for method["chains"] in several:
        assert _answers(load_file, tmp_path, program) == (
            "unsupported-program: a method has not exactly one chain of instructions",
            "UnsupportedProgram",
        )
