"""Numbers as kernels compute them: floats of 32 bits."""

from __future__ import annotations

import struct

from orchestrator.method.passes.arguments import UnknownCallError


def float32(number: float) -> float:
    """A number rounded to the nearest float of 32 bits.

    Sums, products and quotients of two such floats are exact enough as Python's floats
    that this gives the float that a core computes.

    Raises:
        UnknownCallError: It is beyond all of them.
    """
    try:
        (rounded,) = struct.unpack("<f", struct.pack("<f", number))
    except OverflowError:
        raise UnknownCallError from None
    return float(rounded)


def float_bits(number: float) -> int:
    """The bits of a float of 32 bits, as a signed integer."""
    (bits,) = struct.unpack("<i", struct.pack("<f", number))
    return int(bits)
