"""Parse and check the values of options."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING

from orchestrator.core.sizes import parse_size

if TYPE_CHECKING:
    from orchestrator.evaluation.fit import Quantization


def finite_number(text: str) -> float:
    """A number from 0 on."""
    with suppress(ValueError):
        if 0 <= (number := float(text)) < float("inf"):
            return number
    raise argparse.ArgumentTypeError(f"{text} is not a finite number of at least 0")


def job_count(text: str) -> int:
    """A count of at least one."""
    with suppress(ValueError):
        if 1 <= (number := int(text)) <= _MOST_JOBS:
            return number
    raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to {_MOST_JOBS}")


def port_number(text: str) -> int:
    """A TCP port."""
    with suppress(ValueError):
        if 1 <= (number := int(text)) <= _MOST_PORTS:
            return number
    raise argparse.ArgumentTypeError(f"{text} is not a port from 1 to {_MOST_PORTS}")


def instruction_index(text: str) -> int:
    """Index of an instruction, in any base."""
    with suppress(ValueError):
        if 0 <= (number := int(text, 0)) < _INDICES:
            return number
    raise argparse.ArgumentTypeError(f"{text} is not the index of an instruction")


def memory_size(text: str) -> int:
    """Bytes of a size such as `256 MiB`."""
    if (size := parse_size(text)) is not None:
        return size
    raise argparse.ArgumentTypeError(f"{text!r} is not a size such as 256 MiB")


def byte_count(text: str) -> int:
    """A number of bytes."""
    with suppress(ValueError):
        if 0 <= (number := int(text)) <= _MOST_BYTES:
            return number
    raise argparse.ArgumentTypeError(
        f"{text} is not a number of bytes from 0 to {_MOST_BYTES}"
    )


def sample_range(text: str) -> tuple[int, int | None]:
    """`BEGIN:END`, either of which may be left out; a number alone is the end."""
    begin, colon, end = text.rpartition(":")
    if not colon:
        begin, end = "", text
    numbers = [_index(part) if part else None for part in (begin, end)]
    first, last = numbers[0] or 0, numbers[1]
    if not text.strip(":") or (last is not None and last <= first):
        raise argparse.ArgumentTypeError(
            f"{text} is not a part of the samples, such as 100:200, 100: or :100"
        )
    return first, last


def _index(text: str) -> int:
    if text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text} is not the number of a sample")


def class_names(text: str) -> tuple[str, ...]:
    """Names between commas."""
    names = tuple(name.strip() for name in text.split(","))
    if all(names):
        return names
    raise argparse.ArgumentTypeError(f"{text} has a class without a name")


def quantization(text: str) -> Quantization:
    """Scale and zero point."""
    from orchestrator.evaluation.fit import Quantization  # noqa: PLC0415  # numpy

    scale, _, zero_point = text.partition(",")
    with suppress(ValueError):
        found = Quantization(scale=float(scale), zero_point=int(zero_point))
        if 0 < found.scale < float("inf") and abs(found.zero_point) <= _MOST_ZERO_POINT:
            return found
    raise argparse.ArgumentTypeError(
        f"{text} is not a scale above 0 and a zero point, such as 0.0625,-128"
    )


def count(text: str) -> int:
    """A count, which may be 0."""
    return _count(text)


def prim_op_count(text: str) -> int | str:
    """A number of prim ops, or `listed`."""
    return text if text == "listed" else _count(text)


def _count(text: str) -> int:
    with suppress(ValueError):
        if 0 <= (number := int(text)) <= _MOST_KERNELS:
            return number
    raise argparse.ArgumentTypeError(
        f"{text} is not a number from 0 to {_MOST_KERNELS}"
    )


_MOST_JOBS = 1000
_MOST_PORTS = 65_535
_MOST_DIGITS = 16
_MOST_ZERO_POINT = 1 << 15
_MOST_BYTES = 1 << 48
_INDICES = 1 << 32  # the device reports an index in 32 bits
_MOST_KERNELS = 1_000_000


def shard(text: str) -> tuple[int, int]:
    """`1/4`: part 1 of 4."""
    number, slash, count = text.partition("/")
    is_number = slash and number.isdecimal() and count.isdecimal()
    if is_number and 1 <= int(number) <= int(count) <= _MOST_JOBS:
        return int(number), int(count)
    raise argparse.ArgumentTypeError(
        f"{text} is not a part such as 1/4: the first of four"
    )
