"""Generated functions for an input of which the caller gives some rows at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from orchestrator.emit.generate.names import cpp_name
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.emit.generate.ports import ApiMethod, Port


_TEXT: Final = """
/* {name} comes by rows and is never whole in memory. Begin a run, and push the rows
 * from the first to the last, as many at a time as you like: the run goes on whenever
 * {rows} have come. finish returns OK when the outputs are there, InvalidArgument if
 * rows are missing, as push_rows does if there are more than that. Rows are copied. A
 * run can be given up: begin the next one. */
"""


def rows_declarations(method: ApiMethod, port: Port) -> str:
    """Constants and declarations of the header."""
    base = method.base
    upper = f"{base.upper()}_{port.name.upper()}"
    return (
        f"{_TEXT.format(name=port.name, rows=port.rows)}"
        f"#define {upper}_ROWS {port.row_count}\n"
        f"#define {upper}_ROW_COUNT {port.row_items}\n"
        f"orch_status {base}_begin(void);\n"
        f"orch_status {base}_push_rows(const {port.c_type}* rows, uint32_t count);\n"
        f"orch_status {base}_finish(void);"
    )


def cpp_rows(method: ApiMethod, port: Port) -> Iterator[str]:
    """The same in C++."""
    name = method.method.name
    for end, parameters, arguments in (
        ("begin", "", ""),
        ("push_rows", f"const {port.c_type}* rows, uint32_t count", "rows, count"),
        ("finish", "", ""),
    ):
        yield (
            f"inline orch_status {cpp_name(f'{name}_{end}')}({parameters}) {{\n"
            f"  return ::{method.base}_{end}({arguments});\n"
            "}\n"
        )


def row_of(port: Port) -> str:
    """The last arguments of `orch::push_rows`."""
    assert isinstance(port.value, TensorValue)  # noqa: S101  # rows of images
    row_bytes = port.row_items * port.value.dtype.item_bytes
    return f"{row_bytes}, {str(port.is_unsigned).lower()}"


def rows_functions(entry: str, method: ApiMethod, port: Port) -> Iterator[str]:
    """Definitions of the functions."""
    base = method.base
    yield f"orch_status {base}_begin() {{"
    yield f"  return status(orch::begin_rows({entry}));"
    yield "}"
    yield ""
    yield (f"orch_status {base}_push_rows(const {port.c_type}* rows, uint32_t count) {{")
    yield f"  return status(orch::push_rows({entry}, rows, count,"
    yield f"                                {row_of(port)}));"
    yield "}"
    yield ""
    yield f"orch_status {base}_finish() {{"
    yield f"  return status(orch::finish_rows({entry}));"
    yield "}"
    yield ""
