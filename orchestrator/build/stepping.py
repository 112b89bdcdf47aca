"""How long single steps of a run take, by estimates: for the header, and for a limit.

Imports numpy, as `adapter` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf
from typing import Final

from orchestrator.errors import Diagnostic, SourceSpan
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.passes.packing.kernels import KERNELS
from orchestrator.method.replan import Adapted
from orchestrator.method.rows.bands import RowCall
from orchestrator.method.rows.costs import is_estimated, whole_cost
from orchestrator.method.rows.extracted import UnknownNetworkError, network_of
from orchestrator.method.rows.strips import of_several, with_phases_apart
from orchestrator.method.windows import Core
from orchestrator.targets.cores import Target
from orchestrator.targets.timing import TIMINGS

_STEP: Final = 250
"""Instructions of `..._step` and the executor beside those of a kernel, about."""


def cycles_each(target: Target) -> float:
    """Estimated cycles per instruction of a kernel; 0 if there is no estimate."""
    timing = TIMINGS.get(target.cpu.name)
    return timing.kernels[target.isa.name] if timing else 0


def most_instructions(target: Target, cycles: int | None) -> float:
    """Instructions of a kernel that fit into a step of some cycles; None: any."""
    each = cycles_each(target)
    # In instructions, as row plans count: the cycles of a step are `(_STEP + cost) *
    # each`, solved for the cost.
    return cycles / each - _STEP if cycles is not None and each else inf


def step_cycles(method: LinkedMethod, target: Target) -> list[int | None]:
    """Estimated cycles of each step of a method; None without an estimate."""
    each, core = cycles_each(target), _core(target)
    costs = [
        _cost(method, call, core) if isinstance(call, LinkedCall) else 0
        for call in method.instructions
    ]
    return [round((_STEP + cost) * each) if each and cost is not None else None for cost in costs]


def longest_steps(
    models: Mapping[str, Sequence[LinkedMethod]], target: Target
) -> dict[tuple[str, str], int | tuple[str, ...]]:
    """By model and method: cycles of its longest step, or operators without an estimate.

    Nothing of a method without instructions, or on a core without estimates.
    """
    found: dict[tuple[str, str], int | tuple[str, ...]] = {}
    for model, methods in models.items():
        for method in methods:
            known, unknown = [], set()
            for call, cycles in zip(method.instructions, step_cycles(method, target), strict=True):
                if cycles is not None:
                    known.append(cycles)
                elif cycles_each(target) and isinstance(call, LinkedCall):
                    unknown.add(str(call.operator))
            if known or unknown:
                found[model, method.name] = tuple(sorted(unknown)) or max(known)
    return found


def _core(target: Target) -> Core:
    return Core(target.isa.name, target.optimize == "speed")


def _cost(method: LinkedMethod, call: LinkedCall, core: Core) -> int | None:
    """Estimated instructions of a call; None without an estimate."""
    if not is_estimated(call, core):
        return None
    calls = [call]
    if of_several(method, call):  # a sum of calls, with limits as well as without
        kernel = replace(KERNELS[call.function], is_limited=False)
        call = replace(call, function=kernel.function)
        method = replace(method, instructions=(call,), origins=(0,))
        method = with_phases_apart(method)
        calls = [method.call(number) for number in range(len(method.instructions))]
    # Estimates are per band of rows; a call that is no image is one row.
    rows = max((image.rows for image in RowCall.of(method, call).outs), default=1)
    return sum(whole_cost(RowCall.of(method, one), core, rows) for one in calls)


def step_problems(
    models: Mapping[str, Adapted], most_cycles: int, target: Target, where: SourceSpan
) -> Iterator[Diagnostic]:
    """Problems of steps that exceed the limit, or have no estimate."""
    for model, adapted in models.items():
        if adapted.linked is None or not cycles_each(target):
            yield Diagnostic.of(
                "step-unknown",
                f'there is no estimate of cycles for model "{model}"',
                where=where,
                found="loaded" if cycles_each(target) else target.cpu.name,
                known=f'load = "prelinked", on {", ".join(TIMINGS)}',
                hint="leave max_step_cycles out",
            )
            continue
        for method in adapted.linked:
            yield from _long(method, most_cycles, target, where)


def _long(
    method: LinkedMethod, most_cycles: int, target: Target, where: SourceSpan
) -> Iterator[Diagnostic]:
    """Problems of a method: one for each operator of the program."""
    title = f'model "{method.model}", method {method.name}'
    worst: dict[int, tuple[int, str]] = {}
    unknown: set[str] = set()
    steps = step_cycles(method, target)
    for origin, call, cycles in zip(method.origins, method.instructions, steps, strict=True):
        name = str(call.operator) if isinstance(call, LinkedCall) else "a jump"
        if cycles is None:
            unknown.add(name)
        elif cycles > most_cycles:
            worst[origin] = max(worst.get(origin, (0, "")), (cycles, name))
    # How much one `push_rows` computes depends on how many rows it is given, which only
    # a run knows.
    if any(port.rows for port in method.io.ports):
        unknown = {"an input that comes by rows: `..._push_rows` computes what it can"}
    if unknown:
        yield Diagnostic.of(
            "step-unknown",
            f"there is no estimate of cycles for steps of {title}",
            where=where,
            found=", ".join(sorted(unknown)),
            known="int8 operators of cortex_m, quantizing and copies, if prepared",
            hint="leave max_step_cycles out",
        )
    why = "the call computes a single row, or needs all of its input at once"
    if not method.by_rows:
        try:
            network_of(method, _core(target))
        except UnknownNetworkError as error:
            why = f"calls of the method are not split: {error}"
    for origin, (cycles, name) in sorted(worst.items()):
        yield Diagnostic.of(
            "step-too-long",
            f"a step of {title}, takes about {cycles:,} cycles",
            where=where,
            found=f"{name}, instruction {origin}",
            allowed=f"{most_cycles:,} cycles",
            reason=why,
            hint=f"raise max_step_cycles to {max(worst.values())[0]}, which the longest step of"
            " the method takes, or more",
        )
