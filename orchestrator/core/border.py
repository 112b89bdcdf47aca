"""Inputs and outputs as the profile wants them: quantized, or kept after a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

# 2**7: int8 -128..127 becomes uint8 0..255 with the order kept, so that only the zero
# point changes.
SIGN_OFFSET: Final = 128
"""From an int8 number to the uint8 number that stands for the same."""


class IoDtype(StrEnum):
    """Element type that the caller has for an input or output."""

    FLOAT32 = "float32"
    INT8 = "int8"
    UINT8 = "uint8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """An input of which the caller gives what is new of a window of time.

    Args:
        axis: The dimension that is time; from the end if it is negative.
        hop: Positions that come with a call.
    """

    axis: int
    hop: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IoPort:
    """What the profile says of one input or output of a model.

    Args:
        is_input: Whether it is an input; else it is an output.
        index: In the order of the method.
        dtype: What the caller has; None: what `ModelIo.quantized` says.
        reuse: Whether a run may write over the input.
        rows: Rows of the input that the caller gives at a time; 0: all of them.
        stream: How the input is a stream; None if the caller gives whole windows.
        align: Of its address, in bytes; 0: as all tensors.
    """

    is_input: bool
    index: int
    dtype: IoDtype | None = None
    reuse: bool = True
    rows: int = 0
    stream: Stream | None = None
    align: int = 0

    @property
    def name(self) -> str:
        """Its key in the profile, which is its name in the generated API."""
        return port_name(self.index, is_input=self.is_input)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelIo:
    """What the profile says of the inputs and outputs of a model.

    Args:
        quantized: Whether inputs and outputs that are floats become int8, unless
            `ports` says something else.
        ports: Inputs and outputs with something of their own.
    """

    quantized: bool = False
    ports: tuple[IoPort, ...] = ()

    @property
    def needs_passes(self) -> bool:
        """Whether passes over linked methods do what is said here."""
        return self.quantized or any(
            port.dtype is not None or not port.reuse or port.rows for port in self.ports
        )

    def alignments(self, inputs: Sequence[int], outputs: Sequence[int]) -> dict[int, int]:
        """By value index: alignments of a method's inputs and outputs."""
        found: dict[int, int] = {}
        for port in self.ports:
            values = inputs if port.is_input else outputs
            if port.align and port.index < len(values):
                value = values[port.index]
                found[value] = max(port.align, found.get(value, 0))
        return found

    def port(self, index: int, *, is_input: bool) -> IoPort:
        """What is said of an input or output."""
        for port in self.ports:
            if (port.index, port.is_input) == (index, is_input):
                return port
        return IoPort(is_input=is_input, index=index)


NO_IO: Final = ModelIo()
"""Inputs and outputs as the program has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """Integers that stand for real numbers: `(q - zero_point) * scale`.

    Args:
        scale: A float, as the program has it.
        zero_point: The integer that stands for 0.
        low: Least integer that quantizing gives.
        high: Largest.
    """

    scale: float
    zero_point: int
    low: int
    high: int

    def shifted(self, offset: int) -> Quantization:
        """This quantization for integers that are larger by an offset."""
        return Quantization(
            scale=self.scale,
            zero_point=self.zero_point + offset,
            low=self.low + offset,
            high=self.high + offset,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Border:
    """An input or output of a method that is not as the program had it.

    Args:
        is_input: Whether it is an input; else it is an output.
        index: In the order of the method.
        quantization: Of the int8 numbers of the method; None if the program had them
            as integers already, without a scale.
        is_unsigned: The caller has uint8, larger by 128 than the numbers of the method.
        is_kept: A run leaves the input as it is.
        rows: Rows of the input that the method takes at a time; 0: all of them.
        warm_calls: Of a stream: calls with which a whole window has come; else 0.
    """

    is_input: bool
    index: int
    quantization: Quantization | None = None
    is_unsigned: bool = False
    is_kept: bool = False
    rows: int = 0
    warm_calls: int = 0

    @property
    def caller_quantization(self) -> Quantization | None:
        """The quantization of the numbers that the caller has."""
        if self.quantization is None or not self.is_unsigned:
            return self.quantization
        return self.quantization.shifted(SIGN_OFFSET)


def port_name(index: int, *, is_input: bool) -> str:
    """Name of an input or output: `input0`."""
    return f"{'input' if is_input else 'output'}{index}"


def border_of(borders: tuple[Border, ...], index: int, *, is_input: bool) -> Border | None:
    """The border at an input or output, if there is one."""
    for border in borders:
        if (border.index, border.is_input) == (index, is_input):
            return border
    return None


def with_border(borders: tuple[Border, ...], new: Border) -> tuple[Border, ...]:
    """The borders with one in place of another at the same input or output."""
    old = border_of(borders, new.index, is_input=new.is_input)
    return (*(border for border in borders if border is not old), new)
