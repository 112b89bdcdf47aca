"""How tables of prelinked methods are laid out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.emit.compile.plan import (
    has_source,
    method_flags,
    port_switches,
    table_switches,
    value_flags,
)
from orchestrator.emit.generate.prelinked import argument_table, prelinked_block
from orchestrator.method.compact import WIDE, WIDE_TABLES, TableLayout, table_layout
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import BoolValue, IntListValue, IntValue, OptionalTensorListValue
from tests.unit.method.methods import Builder, tensor
from tests.unit.products import program_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.method.linked import LinkedInstruction, LinkedMethod
    from orchestrator.program.values import Value

SMALLEST = TableLayout(
    index_bytes=1,
    dynamic_sizes=False,
    control_flow=False,
    initial_bytes=False,
    initial_zeros=False,
    volumes=False,
)


def _method(values: int = 2, calls: int = 1, args: int = 2, change: str = "") -> LinkedMethod:
    """Calls with many arguments, in a method with many values."""
    builder = Builder()
    first = builder.tensor((2, 3), 0)
    for _ in range(values - 1):
        builder.value(IntValue(7))
    for _ in range(calls):
        builder.call("aten::add.out", *([first] * args))
    method = builder.method()
    code: dict[str, LinkedInstruction] = {
        "move": MoveCall(source=1, target=1),
        "jump": JumpFalseCall(condition=1, destination=0),
    }
    dynamic = tensor((2, 3), 0, dynamic=True)
    extra: dict[str, Value] = {
        "dynamic": dynamic,
        "dynamic, not in order": replace(dynamic, dim_order=(1, 0)),
        "not in order": replace(tensor((2, 3), 0), dim_order=(1, 0)),
        "jump": BoolValue(value=True),
    }
    if change in extra:
        method = replace(method, values=(*method.values, extra[change]))
    if change in code:
        method = replace(method, instructions=(*method.instructions, code[change]))
    if change == "state":
        method = replace(method, data=((0, bytes(6)),))
    return method


@pytest.mark.parametrize(
    ("made", "layout"),
    [
        (_method, SMALLEST),
        (lambda: _method(values=255), SMALLEST),
        (lambda: _method(values=256), replace(SMALLEST, index_bytes=2)),
        (lambda: _method(values=65_535), replace(SMALLEST, index_bytes=2)),
        (lambda: _method(values=65_536), WIDE_TABLES),
        (lambda: _method(args=255), SMALLEST),
        (lambda: _method(args=256), WIDE_TABLES),
        (lambda: _method(calls=257, args=255), SMALLEST),
        (lambda: _method(calls=258, args=255), WIDE_TABLES),
        (lambda: _method(calls=65_535, args=1), SMALLEST),
        (lambda: _method(calls=65_536, args=0), WIDE_TABLES),
        (lambda: _method(change="not in order"), SMALLEST),
        (lambda: _method(change="dynamic, not in order"), WIDE_TABLES),
        (
            lambda: _method(change="dynamic"),
            replace(SMALLEST, dynamic_sizes=True, initial_bytes=True),
        ),
        (lambda: _method(change="jump"), replace(SMALLEST, control_flow=True)),
        (lambda: _method(change="move"), replace(SMALLEST, control_flow=True, initial_bytes=True)),
        (
            lambda: _method(change="state"),
            replace(SMALLEST, initial_bytes=True, initial_zeros=True),
        ),
    ],
)
def test_tables_are_as_compact_as_methods_allow(
    made: Callable[[], LinkedMethod], layout: TableLayout
) -> None:
    method = made()
    assert table_layout(["m"], {"m": [method]}) == layout
    assert table_layout(["m", "small"], {"m": [method], "small": [_method()]}) == layout


def test_a_program_that_is_loaded_needs_its_own_indices() -> None:
    assert table_layout(["m", "loaded"], {"m": [_method()]}) == WIDE_TABLES
    assert table_layout([], {}) == WIDE_TABLES
    assert not WIDE_TABLES.compact
    assert SMALLEST.compact


def test_slots_of_compact_tables_are_smaller() -> None:
    method = _method(values=5, change="move")
    assert method.state_bytes(pointer_bytes=4, compact=False) == 5 * 16
    assert method.state_bytes(pointer_bytes=4, compact=True) == 5 * 12
    assert method.state_bytes(pointer_bytes=8, compact=True) == 5 * 24
    constant = _method(change="dynamic")
    assert constant.state_bytes(pointer_bytes=4, compact=True) == 4 * 3


def test_equal_argument_lists_are_there_once() -> None:
    builder = Builder()
    a, b = builder.tensor((2,), 0), builder.tensor((2,), 8)
    for args in ((a, b), (b, a), (a, b), (a,)):
        builder.call("aten::add.out", *args)
    table, starts = argument_table(builder.method())
    assert table == (a, b, b, a, a)
    assert starts == {(a, b): 0, (b, a): 2, (a,): 4}


@pytest.mark.parametrize(
    ("index_bytes", "c_type", "none", "sizes", "packed"),
    [
        (1, "uint8_t", 255, "{2, 3, 1}", bytes((1, 0))),
        (2, "uint16_t", 65_535, "{2, 3, 1}", bytes((1, 0, 0, 0))),
        (WIDE, "int32_t", -1, "{2, 3}", None),
    ],
)
def test_indices_are_as_wide_as_the_layout_says(
    index_bytes: int, c_type: str, none: int, sizes: str, packed: bytes | None
) -> None:
    builder = Builder()
    one = builder.value(replace(tensor((2, 3), 0), dim_order=(1, 0)))
    listed = builder.value(OptionalTensorListValue((-1, one)))
    builder.call("aten::cat.out", listed, one)
    method = builder.method(inputs=(one,), outputs=(one,))
    made = prelinked_block(method, "b", {}, layout=TableLayout(index_bytes=index_bytes))
    tables = {
        (line.split()[1], line.partition(" = ")[2])
        for line in made.text.splitlines()
        if "_table" in line.partition(" = ")[0]
    }
    assert (c_type, f"{{{none}, {one}}};") in tables  # the list
    assert (c_type, f"{{{one}}};") in tables  # inputs and outputs
    assert ("int32_t", f"{sizes};") in tables  # a dim order lies behind them
    assert made.instructions == ("b_code.instructions" if packed else "b_instructions")
    assert dict(made.blocks).get("b_code.args") == packed


def test_an_order_of_five_dimensions_takes_two_words() -> None:
    builder = Builder()
    order = (4, 0, 1, 2, 3)
    builder.value(replace(tensor((1, 2, 3, 4, 5), 0), dim_order=order))
    text = prelinked_block(builder.method(), "b", {}, layout=TableLayout(index_bytes=1)).text
    assert f"{{1, 2, 3, 4, 5, {0x02010004}, 3}}" in text


def test_sources_and_macros_follow_the_layout() -> None:
    loader = [
        f"src/{name}.cpp" for name in ("find_kernel", "load_method", "load_values", "program")
    ]
    for source in (*loader, "src/executor.cpp"):
        assert has_source(source, WIDE_TABLES, delegates=False)
        assert has_source(source, SMALLEST, delegates=False) == (source not in loader)
    delegates = "src/load_delegates.cpp"
    assert has_source(delegates, WIDE_TABLES, delegates=True)
    assert not has_source(delegates, WIDE_TABLES, delegates=False)
    assert value_flags(WIDE_TABLES) == method_flags(WIDE_TABLES) == ()
    prepared = replace(SMALLEST, index_bytes=2, kernel_calls=False)
    assert value_flags(prepared) == ("-DORCH_INDEX_BYTES=2", "-DORCH_DYNAMIC_SIZES=0")
    assert method_flags(prepared) == ("-DORCH_KERNEL_CALLS=0",)
    for name, macro in (("executor", "CONTROL_FLOW"), ("model", "INITIAL_BYTES")):
        source = f"runtime/src/{name}.cpp"
        assert table_switches(source, WIDE_TABLES) == ()
        assert table_switches(source, SMALLEST) == (f"-DORCH_{macro}=0",)
    copies = replace(SMALLEST, initial_bytes=True)
    assert table_switches("runtime/src/model.cpp", copies) == ("-DORCH_INITIAL_ZEROS=0",)
    assert table_switches("runtime/src/error.cpp", SMALLEST) == ()


def test_the_application_handles_what_goes_in_and_out() -> None:
    program = program_of("add_mul")
    (method,) = program.methods
    listed = replace(
        method, values=(*method.values, IntListValue((0,))), outputs=(len(method.values),)
    )
    assert port_switches([]) == ()
    assert port_switches([program]) == ("-DORCH_TENSORS_ONLY=1",)
    assert port_switches([program, program_of("item_scalar")]) == ()
    lists = replace(program, methods=(listed,))
    assert port_switches([program, lists]) == ("-DORCH_LISTS=1",)


def test_state_that_starts_with_zeros_needs_no_flash() -> None:
    b = Builder()
    state = b.tensor((4,), 0, state=True)
    weight = b.tensor((4,), None)
    out = b.tensor((4,), 16)
    b.call("aten::add.out", state, weight, out)
    method = b.method((), (out,))
    held = dict(method.data)
    assert set(method.constants) == {held[state], held[weight]}
    zeros = bytes(len(held[state]))
    # The same zeros as a constant are read where they are: in flash.
    for index, kept in ((state, {held[weight]}), (weight, {held[state], zeros})):
        data = tuple((i, zeros if i == index else d) for i, d in method.data)
        changed = replace(method, data=data)
        assert set(changed.constants) == kept
        assert changed.has_initial_bytes
        assert changed.has_initial_zeros == (index == state)
