"""Programs made of linked methods: what is linked from them again is the same."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest

from orchestrator.catalog import LibraryText, read_catalog
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes import PASSES, UnlinkError, run_passes, try_link, unlink_program
from orchestrator.program.program import FreeCall, KernelCall
from orchestrator.program.values import TensorListValue, TensorValue
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.resolve import resolve
from orchestrator.shell.sources import library_file, library_names
from tests.conftest import CASES
from tests.unit.products import program_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from orchestrator.catalog import Catalog
    from orchestrator.program.program import Method, Program
    from orchestrator.selection.resolution import Resolution

LEFT_OUT = ("op_zoo_unary", "xnnpack_partial")
"""Some of their calls have no kernel."""
SMALL = ("views", "counter", "list_arguments", "transformer_block", "scan_loop")
SERVED = tuple(case for case in CASES if case not in LEFT_OUT)


@cache
def _catalog() -> Catalog:
    return read_catalog(
        [
            LibraryText(name=name, file=name, text=library_file(name).read_text())
            for name in library_names()
        ]
    )


def resolution_of_all(program: Program) -> Resolution:
    """Kernels for a program, from all libraries."""
    return resolve(
        aggregate([extract(program, model="m")], []),
        _catalog(),
        every_dtype=False,
        span_of=lambda _: None,
    )


@cache
def _linked(case: str) -> tuple[LinkedMethod, ...]:
    return _link(program_of(case))


def _link(program: Program) -> tuple[LinkedMethod, ...]:
    linkage = try_link(program, extract(program, model="m"), resolution_of_all(program))
    assert linkage.problems == ()
    return linkage.methods


def _meaning(method: LinkedMethod, count: int) -> object:
    """Everything but where instructions come from, and in which slot data lies."""
    values = tuple(
        replace(v, data_buffer_index=0) if isinstance(v, TensorValue) and v.is_constant else v
        for v in method.values[:count]
    )
    # Two outputs may be one value since.
    instructions = tuple(
        replace(i, outs=tuple(dict.fromkeys(i.outs))) if isinstance(i, LinkedCall) else i
        for i in method.instructions
    )
    return replace(method, values=values, instructions=instructions, origins=())


@pytest.mark.parametrize(
    ("case", "names"),
    [
        *((case, tuple(PASSES)) for case in SERVED),
        *((case, ()) for case in SERVED),
        *((case, (name,)) for case in SMALL for name in PASSES),
    ],
)
def test_a_program_says_what_its_methods_do(case: str, names: Sequence[str]) -> None:
    program = program_of(case)
    passed = [run_passes(method, names) for method in _linked(case)]
    found = unlink_program(program, passed)
    for before, after in zip(passed, _link(found), strict=True):
        count = len(before.values)
        assert _meaning(after, count) == _meaning(before, count)
        # Slots that are new hold what calls return.
        assert {type(v) for v in after.values[count:]} <= {TensorListValue}
    for old, new, linked in zip(program.methods, found.methods, passed, strict=True):
        assert not any(isinstance(i, FreeCall) for i in new.instructions)
        assert new.operators == tuple(o for o in old.operators if o in new.operators)
        assert {i.operator for i in new.instructions if isinstance(i, KernelCall)} == {
            *range(len(new.operators))
        }
        assert new.frames == tuple(old.frames[i] for i in linked.origins if old.frames)
        for instruction, origin in zip(new.instructions, linked.origins, strict=True):
            before_call = old.instructions[origin]
            if isinstance(instruction, KernelCall):
                assert isinstance(before_call, KernelCall)
                new_items = _items(new, instruction)
                for first, again in _twice(_items(old, before_call)):
                    assert new_items[first] == new_items[again]


def _items(method: Method, call: KernelCall) -> list[int]:
    """Values that a call has, and those in lists of tensors."""
    found: list[int] = []
    for index in call.args:
        value = method.values[index]
        found += value.items if isinstance(value, TensorListValue) else (index,)
    return found


def _twice(items: list[int]) -> Iterator[tuple[int, int]]:
    """Where a value stands that stands there again: what a call returns."""
    for again, item in enumerate(items):
        if items.index(item) != again:
            yield items.index(item), again


def test_lists_of_results_are_there_once() -> None:
    """Also if no pass has left those of the program out."""
    program = program_of("transformer_block")
    found = unlink_program(program, _linked("transformer_block"))
    assert found.methods[0].values[: len(program.methods[0].values)]
    lists = [v for v in program.methods[0].values if isinstance(v, TensorListValue)]
    assert [v for v in found.methods[0].values if isinstance(v, TensorListValue)] == (lists)


def test_external_constants_stay_outside() -> None:
    program = program_of("external_constants")
    methods = [run_passes(m, PASSES) for m in _linked("external_constants")]
    found = unlink_program(program, methods)
    assert {e.name for e in found.external} == {
        value.extra.qualified_name
        for value in found.methods[0].values
        if isinstance(value, TensorValue) and value.is_external and value.extra
    }
    assert found.external


def test_a_call_that_returns_something_else_is_refused() -> None:
    program = program_of("add_mul")
    (method,) = program.methods
    call = method.instructions[0]
    assert isinstance(call, KernelCall)
    # What it returns is an input.
    other = replace(call, args=(*call.args[:-1], method.inputs[-1]))
    assert method.inputs[-1] not in call.args
    changed = replace(method, instructions=(other, *method.instructions[1:]))
    program = replace(program, methods=(changed,))
    with pytest.raises(UnlinkError) as raised:
        unlink_program(program, _link(program))
    assert str(raised.value) == "a call returns something else than its outputs"


def test_nothing_is_left_of_a_call_that_was_folded() -> None:
    (method,) = _linked("ad_autoencoder_fp32")
    program = program_of("ad_autoencoder_fp32")
    found = unlink_program(program, [run_passes(method, PASSES)])
    assert [str(o) for o in found.methods[0].operators] == ["aten::addmm.out", "aten::relu.out"]
    assert sum(isinstance(i, LinkedCall) for i in method.instructions) == 29
    assert len(found.methods[0].instructions) == 19
    assert len(found.data) < len(program.data)
