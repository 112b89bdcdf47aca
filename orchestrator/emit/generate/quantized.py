"""Scales and functions of inputs and outputs that are quantized for the caller."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from orchestrator.emit.generate.ports import ApiMethod, Port


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
