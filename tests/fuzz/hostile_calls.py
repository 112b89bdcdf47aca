"""Programs of one call whose arguments are not what the operator expects.

Recorded calls are the start: each takes its kernel as far as it goes. A few arguments
are then changed in a fact or for another kind, or swapped, or get sizes and numbers at
the limits.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, Final

from orchestrator.core.dtype import ALL, ScalarType
from tests.integration.argument_facts import variants
from tests.unit.method.recorded_calls import Call, Tensor

if TYPE_CHECKING:
    from random import Random

    from orchestrator.core.operator import OpSchema

_INTS: Final = (-1, 0, 1, 2, 7, 127, 2**31 - 1, 2**31, -(2**31), 2**63 - 1, -(2**63))
_FLOATS: Final = (0.0, -1.0, 0.5, 1e300, float("inf"), float("nan"))
_SIZES: Final = (-1, 0, 1, 2, 3, 5, 2**16, 2**31 - 1, -(2**31))
_MOST_BYTES: Final = 1 << 14
_MOST_DIMS: Final = 9
"""One more than the runtime has."""


def hostile(call: Call, schema: OpSchema, rng: Random) -> Call:
    """The call with one to four changes."""
    if rng.random() < 0.7:
        found = list(variants(call, schema))
        call = rng.choice(found) if found else call
    args = list(call.args)
    for _ in range(rng.randint(0, 3)):
        place = rng.randrange(len(args))
        change = rng.random()
        if change < 0.25:
            other = rng.randrange(len(args))
            args[place], args[other] = args[other], args[place]
        elif isinstance(args[place], Tensor) and change < 0.8:
            args[place] = _other_tensor(args[place], rng)
        else:
            args[place] = _anything(args, rng)
    return Call(call.operator, tuple(args))


def _other_tensor(tensor: Tensor, rng: Random) -> Tensor:
    """A tensor of other sizes, dtype or order, most of which can be loaded."""
    dtype = tensor.dtype if rng.random() < 0.5 else rng.choice(sorted(ALL))
    sizes = list(tensor.sizes)
    match rng.randrange(4):
        case 0:
            sizes = [rng.choice(_SIZES) for _ in range(rng.randrange(_MOST_DIMS + 1))]
        case 1 if sizes:
            sizes[rng.randrange(len(sizes))] = rng.choice(_SIZES)
        case 2:
            sizes.insert(rng.randrange(len(sizes) + 1), 1)
        case _:
            sizes = sizes[: rng.randrange(len(sizes) + 1)]
    if abs(prod(sizes)) * dtype.item_bytes > _MOST_BYTES:
        sizes = [max(-1, min(length, 2)) for length in sizes]
    order = list(range(len(sizes)))
    if rng.random() < 0.3:
        rng.shuffle(order)
    return replace(
        tensor, dtype=dtype, sizes=tuple(sizes), order=tuple(order), data=_items(dtype, sizes, rng)
    )


def _items(dtype: ScalarType, sizes: list[int], rng: Random) -> bytes:
    """Random bytes for a tensor that can be, none for others."""
    if any(length < 0 for length in sizes):
        return b""
    size = prod(sizes) * dtype.item_bytes
    if dtype == ScalarType.Bool:
        return bytes(rng.randrange(2) for _ in range(size))
    return rng.randbytes(size)


def _anything(args: list[Any], rng: Random) -> Any:
    """An argument of any kind."""
    ints = tuple(rng.choice(_INTS) for _ in range(rng.randrange(6)))
    known = [argument for argument in args if isinstance(argument, Tensor)]
    kinds = [
        None,
        rng.choice(_INTS),
        rng.choice(_FLOATS),
        rng.random() < 0.5,
        rng.choice(("", "none", "trunc", "x" * 40)),
        ints,
        tuple(float(number) for number in ints) or (0.5,),
        (True, False, True),
        *known,
        *((tensor,) * rng.randrange(1, 4) for tensor in known),
    ]
    return rng.choice(kinds)
