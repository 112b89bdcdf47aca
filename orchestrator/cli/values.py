"""Values of options: what reads and checks the text that the user gives."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

from orchestrator.core.spelling import packed_version, parse_size
from orchestrator.running.device import SERVERS, Device, device_of
from orchestrator.update import MOST

if TYPE_CHECKING:
    from orchestrator.evaluation.fit import Quantization

_Reader: TypeAlias = Callable[[str], int]


def finite_number(text: str) -> float:
    """A number from 0 on."""
    with suppress(ValueError):
        if 0 <= (number := float(text)) < float("inf"):
            return number
    raise ArgumentTypeError(f"{text} is not a finite number of at least 0")


def _whole(first: int, last: int, problem: str = "", *, base: int = 10) -> _Reader:
    """What reads a whole number within bounds."""
    expected = problem or f"a number from {first} to {last}"

    def read(text: str) -> int:
        with suppress(ValueError):
            if first <= (number := int(text, base)) <= last:
                return number
        raise ArgumentTypeError(f"{text} is not {expected}")

    return read


# Chosen by hand: they catch typing errors, before ninja or Python fails at them.
_MOST_JOBS = 1000
_MOST_DIGITS = 16
_MOST_ZERO_POINT = 1 << 15
_MOST_BYTES = 1 << 48

job_count = _whole(1, _MOST_JOBS)
port_number = _whole(1, 65_535, "a port from 1 to 65535")
# The device reports an index in 32 bits.
instruction_index = _whole(0, (1 << 32) - 1, "the index of an instruction", base=0)
byte_count = _whole(0, _MOST_BYTES, f"a number of bytes from 0 to {_MOST_BYTES}")
count = _whole(0, 1_000_000)


def device(text: str) -> Device:
    """A device such as `uart:/dev/ttyACM0`."""
    with suppress(ValueError):
        return device_of(text)
    raise ArgumentTypeError(
        f"{text!r} is not uart:PORT, gdb:HOST:PORT, uf2:DIR, probe, or one of"
        f" {', '.join(f'probe:{name}' for name in SERVERS)}"
    )


def memory_size(text: str) -> int:
    """Bytes of a size such as `256 MiB`."""
    if (size := parse_size(text)) is not None:
        return size
    raise ArgumentTypeError(f"{text!r} is not a size such as 256 MiB")


def sample_range(text: str) -> tuple[int, int | None]:
    """`BEGIN:END`, either of which may be left out; a number alone is the end."""
    begin, colon, end = text.rpartition(":")
    if not colon:
        begin, end = "", text
    numbers = [_index(part) if part else None for part in (begin, end)]
    first, last = numbers[0] or 0, numbers[1]
    if not text.strip(":") or (last is not None and last <= first):
        raise ArgumentTypeError(
            f"{text} is not a part of the samples, such as 100:200, 100: or :100"
        )
    return first, last


def _index(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS:
        return int(text)
    raise ArgumentTypeError(f"{text} is not the number of a sample")


def names(text: str) -> tuple[str, ...]:
    """Names between commas."""
    found = tuple(name.strip() for name in text.split(","))
    if all(found):
        return found
    raise ArgumentTypeError(f"{text} has an empty name")


def pixel_range(text: str) -> tuple[float, float]:
    """What black and white become."""
    with suppress(ValueError):
        low, high = map(float, text.split(","))
        if abs(low) < float("inf") and abs(high) < float("inf") and low != high:
            return low, high
    raise ArgumentTypeError(f"{text} is not two numbers such as 0,255")


def quantization(text: str) -> Quantization:
    """Scale and zero point."""
    from orchestrator.evaluation.fit import Quantization  # noqa: PLC0415  # numpy

    scale, _, zero_point = text.partition(",")
    with suppress(ValueError):
        found = Quantization(scale=float(scale), zero_point=int(zero_point))
        if 0 < found.scale < float("inf") and abs(found.zero_point) <= _MOST_ZERO_POINT:
            return found
    raise ArgumentTypeError(f"{text} is not a scale above 0 and a zero point, such as 0.0625,-128")


def prim_op_count(text: str) -> int | str:
    """A number of prim ops, or `listed`."""
    return text if text == "listed" else count(text)


def shard(text: str) -> tuple[int, int]:
    """`1/4`: part 1 of 4."""
    number, slash, parts = text.partition("/")
    is_number = slash and number.isdecimal() and parts.isdecimal()
    if is_number and 1 <= int(number) <= int(parts) <= _MOST_JOBS:
        return int(number), int(parts)
    raise ArgumentTypeError(f"{text} is not a part such as 1/4: the first of four")


_VERSION = re.compile(r"(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)")


def version(text: str) -> str:
    """A version of three numbers."""
    if _VERSION.fullmatch(text):
        return text
    raise ArgumentTypeError(f"{text!r} is not MAJOR.MINOR.PATCH")


def model_version(text: str) -> int:
    """The version of an update."""
    if text.isascii() and text.isdigit() and int(text) <= MOST:
        return int(text)
    raise ArgumentTypeError(f"{text!r} is not a number from 0 to {MOST}")


def firmware_version(text: str) -> str:
    """A version that 32 bits hold."""
    if packed_version(text) is not None:
        return text
    raise ArgumentTypeError(f"{text!r} is not MAJOR.MINOR.PATCH")
