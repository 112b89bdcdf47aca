"""The steps of a method by rows in C++."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from orchestrator.emit.artifact import row_comment
from orchestrator.method.compact import TableLayout
from orchestrator.method.linked import LinkedCall, LinkedMethod, Prepared
from orchestrator.method.steps import HEADER, StepTable, StepTemplate
from orchestrator.program.values import TensorValue


def template_name(base: str, number: int) -> str:
    """Name of the struct of a template."""
    return f"{base}_template{number}"


def steps_block(
    method: LinkedMethod,
    table: StepTable,
    base: str,
    layout: TableLayout,
    array: Callable[[str, Sequence[int]], str],
) -> Iterator[str]:
    """Definitions of a table, in the namespace orch; the structs come before.

    Args:
        method: The method.
        table: Its steps.
        base: Prefix of its names.
        layout: Of the tables of all methods of the product.
        array: Gives the name of a constant array of a C type.
    """
    rows = []
    for number, template in enumerate(table.templates):
        name = template_name(base, number)
        prepared = _prepared(method, template)
        pairs = [n for a in template.addresses for n in (a.pointer, a.unit)]
        changed = array("uint16_t", [*pairs, *template.words]) or "nullptr"
        shapes = array("int32_t", template.shapes) or "nullptr"
        counts = (
            len(template.addresses),
            len(template.words),
            len(prepared.memory) + (prepared.shape is not None),
            len(numbers_of(prepared)),
            _header(prepared) if template.header_words else 0,
            template.header_words,
        )
        rows.append(f"    {{&{name}, {changed}, {shapes}, {', '.join(map(str, counts))}}}")
    count = len(rows)
    joined = ",\n".join(rows)
    yield f"constexpr StepTemplate {base}_templates[{count}] = {{\n{joined}}};"
    yield f"alignas(void*) uint8_t {base}_step[step_bytes({base}_templates)];"
    size = sum(map(len, table.steps))
    lines = "\n".join(
        f"{_comment(method, number)}    {', '.join(map(str, step))},"
        for number, step in enumerate(table.steps)
    )
    yield f"constexpr uint8_t {base}_steps[{size}] = {{\n{lines}}};"
    run = ""
    if layout.given_rows:
        run = ",\n    nullptr, 0, 0"
    if table.given is not None:
        yield f"RowRun {base}_run;"
        run = f",\n    &{base}_run, {table.given}, {_input_bytes(method)}"
    yield (
        f"constexpr StepTable {base}_step_table = {{\n"
        f"    {{{base}_steps}}, {base}_templates, {base}_step{run}}};"
    )


def step_bytes(table: StepTable) -> bytes:
    """The bytes of all steps."""
    return b"".join(table.steps)


def numbers_of(prepared: Prepared) -> list[object]:
    """The numbers of a struct, those of structs in it as well."""
    found: list[object] = []
    rest: list[object] = [*prepared.numbers]
    while rest:
        item = rest.pop(0)
        if isinstance(item, tuple) and isinstance(item[1], tuple):
            rest = [*item[1], *rest]
        else:
            found.append(item)
    return found


def _input_bytes(method: LinkedMethod) -> int:
    """Bytes of the input that comes by rows, which is the only one."""
    value = method.values[method.inputs[0]]
    assert isinstance(value, TensorValue)  # noqa: S101  # the plan says so
    return value.size_bytes


def _header(prepared: Prepared) -> int:
    """Which address of a struct is that of the header, from 1."""
    return [name for name, _ in prepared.memory].index(HEADER) + 1


def _prepared(method: LinkedMethod, template: StepTemplate) -> Prepared:
    call = method.instructions[template.instruction]
    assert isinstance(call, LinkedCall)  # noqa: S101  # methods by rows have no others
    assert call.prepared is not None  # noqa: S101  # the same
    return call.prepared


def _comment(method: LinkedMethod, number: int) -> str:
    call = method.instructions[number]
    assert isinstance(call, LinkedCall)  # noqa: S101  # as above
    return row_comment(f"{number}: {call.operator}")
