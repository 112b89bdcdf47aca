"""A wire that spoils bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from random import Random


def spoiled(data: bytes, random: Random, rate: float) -> bytes:
    """What arrives: of some bytes a bit changed, some are lost, doubled, new or swapped."""
    out = bytearray()
    for byte in data:
        out.append(byte)
        if random.random() < rate:
            match random.randrange(5):
                case 0:
                    out[-1] ^= 1 << random.randrange(8)
                case 1:
                    out.pop()
                case 2:
                    out.append(byte)
                case 3:
                    out.append(random.randrange(256))
                case _:
                    out[-2:] = out[-2:][::-1]
    return bytes(out)
