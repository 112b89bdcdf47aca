"""Parse and check the values of options."""

from __future__ import annotations

import argparse
from contextlib import suppress


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


def byte_count(text: str) -> int:
    """A number of bytes."""
    with suppress(ValueError):
        if 0 <= (number := int(text)) <= _MOST_BYTES:
            return number
    raise argparse.ArgumentTypeError(
        f"{text} is not a number of bytes from 0 to {_MOST_BYTES}"
    )


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
_MOST_BYTES = 1 << 48
_INDICES = 1 << 32  # the device reports an index in 32 bits
_MOST_KERNELS = 1_000_000
