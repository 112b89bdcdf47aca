"""What dynamic sizes cost: arenas are planned for the largest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from orchestrator.core.bounds import SizeBound, bounds_of
from orchestrator.method.effects import MethodEffects
from orchestrator.method.lifetimes import Lifetime, lifetimes, live_bytes
from orchestrator.program.values import TensorValue


def dynamic_costs(effects: MethodEffects, bounds: tuple[SizeBound, ...]) -> Iterator[str]:
    """What a method would need with the least sizes of its inputs.

    Programs do not say which dimensions change. One that may, such as a batch, is a
    factor of all tensors of dynamic sizes, and these are taken to shrink with it. One
    that shrinks faster, such as scores of attention, makes the figure too large.

    Args:
        effects: Of the method, its memory planned.
        bounds: Least sizes of its inputs, where the export knew them; others are 1.
    """
    planned = {
        i: value
        for i, value in enumerate(effects.values)
        if isinstance(value, TensorValue) and value.allocation
    }
    dynamic = {i: value for i, value in planned.items() if value.is_dynamic}
    arenas = {v.allocation.memory_id for v in planned.values() if v.allocation}
    lives = [lifetimes(effects, arena) for arena in sorted(arenas)]
    for number, index in enumerate(effects.inputs):
        for dim, most in enumerate(dynamic[index].sizes if index in dynamic else ()):
            known = (b.least for b in bounds_of(bounds, number) if b.dim == dim)
            least = next(known, 1)
            if most <= least or any(v.numel % most for v in dynamic.values()):
                continue
            shrunk = [
                [
                    replace(v, end=v.begin + (v.end - v.begin) * least // most)
                    if v.index in dynamic
                    else v
                    for v in arena
                ]
                for arena in lives
            ]
            yield (
                f"input {number}: if dimension {dim} is dynamic, up to {most} there"
                f" costs {_peak(lives) - _peak(shrunk):,} bytes: with {least},"
                f" {_peak(shrunk):,} are live"
            )


def _peak(arenas: Sequence[Sequence[Lifetime]]) -> int:
    return sum(max((n for _, n in live_bytes(arena)), default=0) for arena in arenas)
