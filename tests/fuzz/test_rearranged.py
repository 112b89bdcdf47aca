"""Programs that no exporter writes: the device survives them, and all agree on them."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.catalog.expressions.condition import refusal
from orchestrator.compat.check import check_compat
from orchestrator.compat.firmware import CALLER_TEXT, Firmware, FirmwareMethod
from orchestrator.memory.product import method_state_bytes
from orchestrator.program.encode import write_program
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import IntListValue, IntValue, StringValue, TensorListValue
from orchestrator.selection.call import MethodFacts, argument_facts, takes
from orchestrator.selection.extract import call_pattern, extract
from orchestrator.selection.op_info import Selection
from orchestrator.selection.resolve import resolve
from tests.conftest import model_bytes
from tests.cpp.support.device import ask
from tests.cpp.support.native import build, linked_catalog
from tests.cpp.support.verdicts import build_verdict, lacks_memory, messages_of, reader_verdict
from tests.fuzz.rearranged import rearranged, write
from tests.integration.argument_facts import is_settled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.program.program import Method
    from orchestrator.program.values import Value

pytestmark = pytest.mark.toolchain

_RUN: Final = 2_000
_COMPARED: Final = 1_500
_REFUSALS: Final = frozenset(
    {"InvalidArgument", "NotSupported", "ShapeTooLarge", "DtypeNotSelected"}
)
"""What a kernel answers that does not take a call."""
_TOO_OFTEN: Final = "calls and lists share their items too often"


def test_programs_that_plan_overlaps_do_no_harm(tmp_path: Path) -> None:
    """Run under sanitizers, with red zones around everything they may touch."""
    paths = write(tmp_path / "programs", 1, _RUN)
    done = subprocess.run(
        [build("fuzz_loader"), *paths],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stderr.count("Executed") == _RUN


def test_build_compat_and_device_agree(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """What a build accepts is loaded; what is loaded, `compat` says."""
    count = pytestconfig.getoption("--mutants") or _COMPARED
    paths = write(tmp_path / "programs", 1, count)
    entries = resolve(
        Selection(every_operator=True), linked_catalog(), every_dtype=True, span_of=lambda _: None
    ).table_entries
    firmware = Firmware(pointer_bytes=8, kernels=entries, methods=(), inline_constants=True)
    found = Counter[str]()
    for path, answer in zip(paths, ask(build("load_file"), paths), strict=True):
        data = path.read_bytes()
        assert reader_verdict(data) == () or answer.error != "Ok", path.name
        if reader_verdict(data):
            found["refused by the reader"] += 1
            continue
        accepts = not _compat(firmware, data)
        assert accepts == (answer.error == "Ok"), (path.name, answer.error)
        if not build_verdict(data) and not any(
            map(lacks_memory, read_program(data, file="m.pte").methods)
        ):
            assert accepts, path.name
            found["built"] += 1
        found["loaded"] += accepts
        found["ran"] += accepts and answer.methods[0].run == "Ok"
    assert found["loaded"] > 0.4 * count, found
    assert found["built"] > 0.3 * count, found
    assert found["ran"] > 0.2 * count, found


def _compat(firmware: Firmware, data: bytes) -> list[str]:
    """What `compat` says, with all the memory that the program asks for."""
    program = read_program(data, file="m.pte")
    places = tuple(
        FirmwareMethod(
            model="m",
            method=method.name,
            state_bytes=method_state_bytes(method, pointer_bytes=8),
            arena_bytes=method.arena_bytes[1:],
            inputs=(CALLER_TEXT,),
            outputs=(),
        )
        for method in program.methods
    )
    problems = check_compat(
        replace(firmware, methods=places),
        program,
        extract(program, model="m"),
        {m.name: method_state_bytes(m, pointer_bytes=8) for m in program.methods},
        model="m",
        file="m.pte",
    )
    # The interface is not that of the program, and no device looks at lifetimes.
    beside = {"other-interface", "unsound-plan"}
    return [d.message for d in problems if d.code not in beside]


# What calls and lists share is bounded, on both sides by the same number.


def _shared_arguments(method: Method, count: int) -> Method:
    call = KernelCall(operator=0, args=(0,) * count)
    return replace(method, instructions=(call,) * count)


def _shared_lists(method: Method, count: int) -> Method:
    number = len(method.values) - 1
    lists: tuple[Value, ...] = (IntListValue((number,) * count),) * count
    return replace(method, values=(*method.values, *lists))


def _list_of_many_calls(method: Method, count: int) -> Method:
    values = (*method.values, TensorListValue((0,) * 2 * count))
    call = KernelCall(operator=0, args=(len(values) - 1,))
    return replace(method, values=values, instructions=(call,) * count)


_SHARING: Final = [_shared_arguments, _shared_lists, _list_of_many_calls]


def _program(make: Callable[[Method, int], Method], count: int, padding: int = 0) -> bytes:
    program = read_program(model_bytes("add_mul"), file="m.pte")
    (method,) = program.methods
    text = StringValue("x" * padding)
    method = replace(method, values=(*method.values, text, IntValue(1)))
    return bytes(write_program(replace(program, methods=(make(method, count),))))


@pytest.mark.parametrize("make", _SHARING)
def test_what_may_be_shared_is_the_same_on_both_sides(
    make: Callable[[Method, int], Method], tmp_path: Path
) -> None:
    most = 100_000
    assert messages_of(reader_verdict(_program(make, 100))) == {_TOO_OFTEN}
    low, high = 0, most
    while low + 1 < high:
        middle = (low + high) // 2
        if reader_verdict(_program(make, 100, middle)):
            low = middle
        else:
            high = middle
    assert high < most
    paths = [tmp_path / "refused.pte", tmp_path / "accepted.pte"]
    for path, padding in zip(paths, (low, high), strict=True):
        path.write_bytes(_program(make, 100, padding))
    refused, accepted = ask(build("load_file"), paths, stand_ins=True)
    assert refused.error == "InvalidProgram"
    assert accepted.error == "Ok"


@pytest.mark.parametrize("make", _SHARING)
def test_the_loader_works_no_longer_than_the_file_is(
    make: Callable[[Method, int], Method], tmp_path: Path
) -> None:
    """Counted in comparisons, whatever is shared."""
    paths = [tmp_path / f"{count}.pte" for count in (500, 4000)]
    for path, count in zip(paths, (500, 4000), strict=True):
        path.write_bytes(_program(make, count))
    done = subprocess.run(
        [build("load_file"), "work", *paths],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    steps = [int(n) for n in re.findall(r"^InvalidProgram (\d+)$", done.stdout, re.MULTILINE)]
    sizes = [path.stat().st_size for path in paths]
    assert len(steps) == len(paths)
    for count, size in zip(steps, sizes, strict=True):
        assert count < 60 * size


def test_the_same_seed_is_the_same_program() -> None:
    assert rearranged(7) == rearranged(7)
    assert rearranged(7) != rearranged(8)


_DATA_DECIDES: Final = (
    *("choose_qparams", "index", "embedding", "sorted"),
    *("div.out_mode", "floor_divide", "fmod", "remainder"),
)
"""Operators that look at items: what these are is seen when the program runs."""


def test_the_build_knows_where_runs_end(tmp_path: Path) -> None:
    """Of each call that a run came to: conditions say what the kernel answered."""
    paths = write(tmp_path / "programs", 1, _COMPARED)
    kernels = {
        str(kernel.operator): kernel
        for _, offered in linked_catalog().libraries
        for kernel in offered
    }
    found = Counter[str]()
    for path, answer in zip(paths, ask(build("load_file"), paths), strict=True):
        if answer.error != "Ok":
            continue
        program = read_program(path.read_bytes(), file=path.name)
        method, end = program.methods[0], answer.methods[0].instruction
        if any(not isinstance(i, KernelCall) for i in method.instructions):
            continue  # it does not report which calls it reached
        facts = MethodFacts.of(method)
        for at, call in enumerate(method.instructions[: end + 1]):
            assert isinstance(call, KernelCall)
            kernel = kernels[str(method.operators[call.operator])]
            pattern = call_pattern(method.values, call.args)
            if not takes(kernel, pattern) or not is_settled(method, call, facts):
                continue
            arguments = argument_facts(
                method.values, call.args, kernel.schema, facts, program.data_bytes
            )
            refused = refusal(kernel.requires, kernel.schema, arguments)
            failed = at == end and answer.methods[0].run in _REFUSALS
            found["refused" if refused else "taken"] += 1
            if any(name in str(kernel.operator) for name in _DATA_DECIDES):
                assert refused is None or failed, (path.name, at, refused)
            else:
                assert (refused is not None) == failed, (path.name, at, refused)
    assert found["refused"] > 50, found
    assert found["taken"] > 50, found
