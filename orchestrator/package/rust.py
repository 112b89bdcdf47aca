"""Methods of a product as functions of Rust."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from orchestrator.emit.generate.ports import ApiMethod, Port, accessor, api_methods
from orchestrator.memory.plan import identifier
from orchestrator.program.interface import NUMBER_LISTS
from orchestrator.program.program import Program
from orchestrator.program.values import StringValue, TensorValue

_NUMBERS: Final = {"float": "f32", "double": "f64"}
# As in the C API: a bool is uint8_t there.
_SCALARS: Final = {"int": ("i64", "1"), "double": ("f64", "0.5"), "bool": ("u8", "1")}
_TAKEN: Final = "self_test"
"""What the product's own function is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RustMethod:
    """A method with the text of its declarations and calls.

    Args:
        name: `model.method`.
        base: Name of its function in C.
        rust_name: Name of its function in Rust.
        ffi_parameters: Of the function in C.
        parameters: Of the function in Rust.
        arguments: Of its call of C.
        example: Statements that declare arguments.
        example_arguments: Of the example's call.
    """

    name: str
    base: str
    rust_name: str
    ffi_parameters: str
    parameters: str
    arguments: str
    example: tuple[str, ...]
    example_arguments: str


@dataclass(frozen=True, slots=True)
class _Parameter:
    ffi: str
    rust: str
    argument: str
    example: str
    given: str


def rust_methods(profile: str, programs: Mapping[str, Program]) -> tuple[RustMethod, ...]:
    """Methods whose parameters are arrays of fixed size, and numbers.

    The others are left out: their functions are in the C header.
    """
    found = (_method(method) for method in api_methods(profile, programs))
    return tuple(method for method in found if method is not None)


def _method(method: ApiMethod) -> RustMethod | None:
    parameters = [_parameter(port) for port in method.ports]
    known = [parameter for parameter in parameters if parameter is not None]
    if len(known) != len(parameters):
        return None
    name = identifier(f"{method.model}_{method.method.name}").lower()
    return RustMethod(
        name=f"{method.model}.{method.method.name}",
        base=method.base,
        rust_name=f"{name}_" if name == _TAKEN else name,
        ffi_parameters=", ".join(p.ffi for p in known),
        parameters=", ".join(p.rust for p in known),
        arguments=", ".join(p.argument for p in known),
        example=tuple(p.example for p in known if p.example),
        example_arguments=", ".join(p.given for p in known),
    )


def _parameter(port: Port) -> _Parameter | None:
    value, name = port.value, port.name
    if isinstance(value, TensorValue):
        item = _number(port.c_type)
        # Sizes that change and memory of the caller have no type of Rust that says what
        # is allowed.
        if item is None or value.is_dynamic or port.is_given:
            return None
        array = f"[{item}; {max(value.numel, 1)}]"
        zeros = f"[0 as {item}; {max(value.numel, 1)}]"
        if port.is_input:
            return _Parameter(
                f"{name}: *const {item}",
                f"{name}: &{array}",
                f"{name}.as_ptr()",
                f"let {name} = {zeros};",
                f"&{name}",
            )
        return _Parameter(
            f"{name}: *mut {item}",
            f"{name}: &mut {array}",
            f"{name}.as_mut_ptr()",
            f"let mut {name} = {zeros};",
            f"&mut {name}",
        )
    if isinstance(value, (StringValue, *NUMBER_LISTS)):
        return None
    item, example = _SCALARS[accessor(value)]
    if port.is_input:
        return _Parameter(f"{name}: {item}", f"{name}: {item}", name, "", example)
    return _Parameter(
        f"{name}: *mut {item}",
        f"{name}: &mut {item}",
        name,
        f"let mut {name} = 0 as {item};",
        f"&mut {name}",
    )


def _number(c_type: str) -> str | None:
    """The type of Rust; None for complex numbers."""
    if match := re.fullmatch(r"(u?)int(\d+)_t", c_type):
        return f"{match[1] or 'i'}{match[2]}"
    return _NUMBERS.get(c_type)
