"""Quantizing and dequantizing with one scale, items side by side.

As quantize_row and dequantize_row of kernels/util/affine.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.core.dtype import ScalarType
from orchestrator.method.passes.arguments import need
from orchestrator.method.passes.preparing.form import Form
from orchestrator.method.passes.preparing.items import lie_alike
from orchestrator.method.passes.preparing.numbers import float32
from orchestrator.program.values import TensorValue

if TYPE_CHECKING:
    from orchestrator.method.passes.arguments import Arguments
    from orchestrator.method.passes.preparing.form import Preparer

_NEAR: Final = 1 << 21
"""Largest zero point of floats that are limited before they are rounded."""
_SMALLEST, _LARGEST = 2.0**-64, 2.0**64
"""Between these are scales with which vectors give the same bits."""
_NAMES: Final = {
    "cortex_m": {ScalarType.Char: "char", ScalarType.Short: "short"},
    "quantized": {ScalarType.Byte: "byte", ScalarType.Char: "char", ScalarType.Short: "short"},
}


def _has_vectors(isa: str, dtype: ScalarType, scale: float) -> bool:
    is_vector = isa == "mve" and dtype is ScalarType.Char
    return is_vector and _SMALLEST < scale < _LARGEST


def _named(library: str, what: str, dtype: ScalarType, vectors: str) -> str:
    need(dtype in _NAMES[library])
    return f"orch::{library}::{what}_{_NAMES[library][dtype]}{vectors}"


def _items(x: TensorValue, y: TensorValue) -> tuple[str, int]:
    need(lie_alike(x, y))
    return "count", x.numel


def _quantize(library: str) -> Preparer:
    def prepare(arguments: Arguments, isa: str) -> Form:
        x, y = arguments.tensor(0), arguments.tensor(6)
        scale = float32(arguments.real(1))
        zero, low, high = (arguments.number(n) for n in (2, 3, 4))
        need(x.dtype is ScalarType.Float and scale != 0)
        inverse = float32(1 / scale)
        if _has_vectors(isa, y.dtype, scale):
            struct, vectors = "orch::QuantizeVectorsCall", "_vectors"
            numbers = [inverse, float32(zero), float32(low), float32(high)]
            affine = (*zip(("inverse", "zero_point", "low", "high"), numbers, strict=True),)
        else:
            need(abs(zero) <= _NEAR)
            struct, vectors = "orch::QuantizeNearCall", ""
            affine = (
                ("inverse", inverse),
                ("low", float32(low - zero)),
                ("high", float32(high - zero)),
                ("zero_point", zero),
            )
        return Form(
            function=_named(library, "quantize", y.dtype, vectors),
            struct=struct,
            memory=(("input", 0), ("out", 6)),
            numbers=(_items(x, y), ("affine", affine)),
        )

    return prepare


def _dequantize(library: str, out: int) -> Preparer:
    def prepare(arguments: Arguments, isa: str) -> Form:
        x, y = arguments.tensor(0), arguments.tensor(out)
        scale, zero = float32(arguments.real(1)), arguments.number(2)
        need(y.dtype is ScalarType.Float)
        vectors = "_vectors" if _has_vectors(isa, x.dtype, scale) else ""
        return Form(
            function=_named(library, "dequantize", x.dtype, vectors),
            struct="orch::DequantizeCall",
            memory=(("input", 0), ("out", out)),
            numbers=(_items(x, y), ("zero_point", zero), ("scale", scale)),
        )

    return prepare


AFFINE: Final[Mapping[str, Preparer]] = MappingProxyType(
    {
        "orch::cortex_m::quantize_per_tensor_out": _quantize("cortex_m"),
        "orch::quantized::quantize_per_tensor_out": _quantize("quantized"),
        "orch::cortex_m::dequantize_per_tensor_out": _dequantize("cortex_m", 6),
        "orch::quantized::dequantize_per_tensor_out": _dequantize("quantized", 7),
    }
)
