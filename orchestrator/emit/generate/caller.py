"""Generated functions for inputs and outputs in memory of the caller."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from orchestrator.emit.generate.names import cpp_name
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.emit.generate.ports import ApiMethod, Port

FORWARD_TEXT: Final = """
/* Runs the method. What is in your memory is read and written in place; the rest is
 * copied in and out. Misaligned: an array must lie at a multiple of the size of its
 * elements. Arrays must not overlap. The method keeps no pointer to them. */
"""
SET_TEXT: Final = """
/* Sets the memory of an input or output: at a multiple of the size of its elements, of
 * the size in the constants above. It stays set until other memory or null is set, or
 * the function above runs. A run without all of them returns MemoryNotSet. */
"""


def set_parameter(port: Port, *, bound: str = "") -> str:
    """The parameter: a pointer, or with a bound a reference to an array in C++."""
    value = port.value
    assert isinstance(value, TensorValue)  # noqa: S101  # only tensors are given
    const = "const " if port.is_input else ""
    c_type = port.c_type
    if not bound:
        return f"{const}{c_type}* memory"
    return f"{const}{c_type} (&memory)[{bound.format(value.numel)}]"


def set_declarations(method: ApiMethod) -> Iterator[str]:
    """Declarations of the header."""
    for port in method.given:
        name = f"{method.base}_set_{port.name}"
        yield f"orch_status {name}({set_parameter(port)});"


def cpp_setters(method: ApiMethod) -> Iterator[str]:
    """The same in C++, for arrays of checked length."""
    for port in method.given:
        name = f"{method.base}_set_{port.name}"
        own = cpp_name(f"{method.method.name}_set_{port.name}")
        yield (
            f"inline orch_status {own}({set_parameter(port, bound='{}')}) {{\n"
            f"  return ::{name}(memory);\n"
            "}\n"
        )


def set_function(entry: str, method: ApiMethod, port: Port) -> Iterator[str]:
    """Definition of the function that sets a port's memory."""
    side = "input" if port.is_input else "output"
    name = f"{method.base}_set_{port.name}"
    yield f"orch_status {name}({set_parameter(port)}) {{"
    yield f"  const orch::ModelMethod& method = {entry};"
    yield "  orch::Error error = orch::prepare(method);"
    yield "  if (error == orch::Error::Ok) {"
    yield f"    error = orch::set_memory(orch::{side}(method, {port.index}), memory);"
    yield "  }"
    yield "  return status(error);"
    yield "}"


def set_memory(port: Port) -> Iterator[str]:
    """Sets a port's memory to the array that the run function got."""
    side = "input" if port.is_input else "output"
    yield "  if (error == orch::Error::Ok) {"
    yield f"    error = orch::set_memory(orch::{side}(method, {port.index}),"
    yield f"                             {port.name});"
    yield "  }"


def check_memory(method: ApiMethod) -> Iterator[str]:
    """Before a run: check that all ports have their memory."""
    if method.given:
        yield "  if (error == orch::Error::Ok) error = orch::check_memory(method);"


def clear_memory(method: ApiMethod) -> Iterator[str]:
    """After a run: forget the caller's arrays, which may be gone at the next run."""
    if method.given:
        yield "  if (method.loaded->state_used != 0) orch::clear_memory(method);"


# Generated functions for an input of which the caller gives some rows at a time.

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


# Scales and functions of inputs and outputs that are quantized for the caller.


def has_quantization(methods: Iterable[ApiMethod]) -> bool:
    """Whether the header needs `orch/quantize.h`."""
    return any(port.quantization for method in methods for port in method.ports)


def quantization_lines(method: ApiMethod, port: Port) -> Iterator[str]:
    """Scale and zero point of a port, and the function for one number."""
    found = port.quantization
    if found is None:
        return
    upper = f"{method.base.upper()}_{port.name.upper()}"
    scale, zero_point = f"{upper}_SCALE", f"{upper}_ZERO_POINT"
    yield "/* It stands for (number - zero point) * scale. */"
    yield f"#define {scale} {_float_text(found.scale)}"
    yield f"#define {zero_point} {_int_text(found.zero_point)}"
    name = f"{method.base}_{port.name}_{port.verb}"
    if not port.is_input:
        yield (
            f"static inline float {name}({port.c_type} number) {{\n"
            f"  return orch_dequantize(number, {scale},\n"
            f"                         {zero_point});\n"
            "}"
        )
        return
    limits = f"{_int_text(found.low)}, {_int_text(found.high)}"
    yield (
        f"static inline {port.c_type} {name}(float value) {{\n"
        f"  return ORCH_AS({port.c_type}, orch_quantize(value, {scale},\n"
        f"                                {zero_point}, {limits}));\n"
        "}"
    )


def before_run(inputs: Sequence[Port]) -> list[str]:
    """Turns inputs that the caller has as uint8 into the int8 of the method."""
    return [f"    orch::flip_signs({port.place}.tensor());" for port in inputs if port.is_unsigned]


def after_run(inputs: Sequence[Port]) -> list[str]:
    """Turns those back that the caller may read after the run."""
    return before_run([port for port in inputs if port.is_kept])


def _float_text(value: float) -> str:
    """A float as C has it; kernels use scales as floats."""
    (single,) = struct.unpack("<f", struct.pack("<f", value))
    text = f"{single:.9g}"
    return f"{text}f" if {*text} & {*".e"} else f"{text}.0f"


def _int_text(value: int) -> str:
    return str(value) if value >= 0 else f"({value})"
