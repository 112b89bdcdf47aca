"""Generated functions for inputs and outputs in memory of the caller."""

from __future__ import annotations

from collections.abc import Iterator
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
