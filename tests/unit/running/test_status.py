"""A status of a device in words."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from orchestrator.errors import UsageError
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.program.program import Frame, KernelCall, MoveCall
from orchestrator.running.protocol import NO_INSTRUCTION, DeviceError
from orchestrator.running.status import Place, explain_status, find_place, parse_status
from orchestrator.shell.sources import native_root
from tests.conftest import CASES
from tests.unit.products import program_of

STATUS_H = (native_root() / "runtime/include/orch/status.h").read_text()
PROGRAMS = {"sums": program_of("add_mul"), "parts": program_of("multi_method")}
(ADD_MUL,) = PROGRAMS["sums"].methods


@pytest.mark.parametrize("error", DeviceError)
def test_a_status_has_a_number_and_names(error: DeviceError) -> None:
    in_c = "ORCH" + re.sub("([A-Z])", r"_\1", error.name).upper()
    assert in_c in STATUS_H
    for text in (str(int(error)), error.name, error.name.lower(), in_c):
        assert parse_status(text) is error


@pytest.mark.parametrize("text", ["", "99", "-1", "1.0", "²", "ORCH_", "Shape", "0x1", "9" * 5000])
def test_what_is_no_status_is_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_status(text)
    (problem,) = caught.value.diagnostics
    assert problem.code == "unknown-status"
    assert problem.message == f"{text} is not a status of the runtime"


def _find(
    model: str | None = None, method: str | None = None, instruction: int | None = None
) -> Place:
    return find_place(PROGRAMS, model=model, method=method, instruction=instruction)


def test_places_are_found() -> None:
    assert _find("sums") == Place(model="sums", method=ADD_MUL)
    assert _find("sums", "forward", NO_INSTRUCTION).instruction is None
    only = [m.name for m in PROGRAMS["parts"].methods if m.name != "forward"]
    assert _find(method=only[0]).model == "parts"
    place = _find("sums", "forward", 1)
    assert place.operator == str(ADD_MUL.operators[1])
    assert place.text == (
        f'model "sums", method "forward": instruction 1, which calls {ADD_MUL.operators[1]}'
    )


@pytest.mark.parametrize(
    ("model", "method", "instruction", "code", "message"),
    [
        ("sum", None, None, "unknown-model", 'there is no model "sum"'),
        ("sums", "forwards", None, "unknown-method", 'there is no method "forwards"'),
        (None, None, None, "unknown-method", "several methods match"),
        ("parts", None, None, "unknown-method", "several methods match"),
        (
            *("sums", None, 99, "unknown-instruction"),
            'there is no instruction 99 in model "sums", method "forward"',
        ),
    ],
)
def test_what_there_is_not_is_refused(
    model: str | None, method: str | None, instruction: int | None, code: str, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        _find(model, method, instruction)
    (problem,) = caught.value.diagnostics
    assert (problem.code, problem.message) == (code, message)
    assert problem.hint
    assert problem.notes


def test_a_product_without_models_has_no_place() -> None:
    with pytest.raises(UsageError) as caught:
        find_place({}, model=None, method=None, instruction=None)
    assert caught.value.diagnostics[0].message == "the product has no method"


@pytest.mark.parametrize("case", CASES)
def test_every_instruction_has_a_sentence(case: str) -> None:
    for method in program_of(case).methods:
        for index, instruction in enumerate(method.instructions):
            place = Place(model="m", method=method, instruction=index)
            assert bool(place.operator) == isinstance(instruction, KernelCall)
            for error in DeviceError:
                found = explain_status(error, place, state_bytes=77)
                assert found.sentence.startswith(
                    f'model "m", method "{method.name}": instruction {index}, which '
                )
                assert f"{error.name} ({int(error)})" in found.sentence
                assert found.remedy in found.sentence or error is DeviceError.Ok
                assert found.remedy


def test_an_instruction_of_a_prelinked_model_is_one_of_its_own() -> None:
    """Passes take instructions out, so that the program's indices do not hold."""
    call = LinkedCall(
        operator=ADD_MUL.operators[-1], function="f", args=(0,), accesses=(), outs=(0,)
    )
    linked = LinkedMethod(
        model="sums",
        name="forward",
        values=(),
        instructions=(MoveCall(source=0, target=1), call),
        inputs=(),
        outputs=(),
        data=(),
        origins=(0, 2),
    )

    def find(instruction: int) -> Place:
        return find_place(
            PROGRAMS, model="sums", method=None, instruction=instruction, linked={"sums": [linked]}
        )

    assert find(1).operator == str(ADD_MUL.operators[-1])
    assert find(1).text.endswith(
        f"instruction 1 (2 of the program), which calls {ADD_MUL.operators[-1]}"
    )
    assert find(0).operator == ""
    assert find(0).text.endswith("instruction 0, which moves a value")
    frames = [(Frame(filename=f, line=7, name="forward", context="x"),) for f in "abc"]
    exported = replace(ADD_MUL, frames=tuple(frames))
    assert replace(find(1), method=exported).source == "c:7"
    assert (find(0).origin, find(1).origin) == (0, 2)
    with pytest.raises(UsageError) as caught:
        find(2)
    assert caught.value.diagnostics[0].notes == (("expected", "less than 2"),)


def test_remedies_have_the_numbers_of_the_method() -> None:
    place = Place(model="sums", method=ADD_MUL)
    found = explain_status(DeviceError.StateTooSmall, place, state_bytes=1234)
    assert found.remedy == "give the method state 1,234 bytes"
    found = explain_status(DeviceError.ArenaTooSmall, place, state_bytes=0)
    assert found.remedy == (f"give each arena its size (arena 1: {ADD_MUL.arena_bytes[1]:,} bytes)")
    method = program_of("dynamic_batch").method("forward")
    found = explain_status(
        DeviceError.ShapeTooLarge, Place(model="m", method=method), state_bytes=0
    )
    assert re.fullmatch(
        r"give inputs of at most these sizes: input 0 \[\d+, \d+\]; if they are no"
        r" larger, the program plans too little for small ones: .*`source`",
        found.remedy,
    )
    for of, unknown in ((method, True), (ADD_MUL, False)):
        places = (Place(model="m", method=of, instruction=at) for at in range(9))
        place = next(place for place in places if place.operator)
        found = explain_status(DeviceError.InvalidArgument, place, state_bytes=0)
        said = found.remedy.endswith("; a .pte does not say how small inputs may be")
        assert said is unknown


def test_what_the_profile_lets_be_missing_is_named() -> None:
    operator = str(ADD_MUL.operators[0])
    found = explain_status(
        DeviceError.OperatorMissing,
        Place(model="sums", method=ADD_MUL),
        state_bytes=0,
        missing=("my::other.out", operator),
    )
    assert found.sentence == (
        'model "sums", method "forward", failed with OperatorMissing (3), an operator'
        f" of the program is not linked: the profile allows {operator} to be missing;"
        " add what serves it"
    )


def test_success_needs_no_remedy() -> None:
    place = Place(model="sums", method=ADD_MUL)
    assert explain_status(DeviceError.Ok, place, state_bytes=0).sentence == (
        'model "sums", method "forward": Ok (0), success'
    )
