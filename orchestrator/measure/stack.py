"""Worst stack use, estimated from the frame sizes that compilers write (`.su`).

The estimate follows how the firmware is built: start-up and application call either
the loader or the executor; the executor calls one kernel; kernels call helpers. Of
each of these, it takes all functions at once, since their call graph is not known.
That is an upper bound as long as

- no function calls itself, directly or through others (the runtime has none that do);
- of the instances of one template, or of one lambda, one at a time is on the stack:
  they count once, with the largest frame;
- the toolchain's own functions, whose frames nobody tells, are small.

Interrupts and what a product does around the call of a model come on top.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from orchestrator.measure.size import StackEstimate, StackPart

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from orchestrator.measure.size import SizeSymbol

_PLACE: Final = re.compile(r"^(.*?:\d+(?::\d+)?):(.*)$")
_CLONE: Final = re.compile(r"\.(?:part|constprop|isra|cold|lto_priv)\b.*$")
_FUNCTION: Final = re.compile(r"([A-Za-z_]\w*)(?:\(|$)")
_UNSURE: Final = re.compile(r"\b(?:operator|decltype|noexcept)\b|\(\*")
"""Declarations whose first parenthesis need not follow the function's name."""
_COLUMNS: Final = 3
"""Place and function, bytes, qualifiers; separated by tabs."""

_HELPERS: Final = re.compile(r"^runtime/(src/(tensor|error|status|math)|freestanding/)")
_LOADER: Final = re.compile(r"^runtime/src/(load|program|find_kernel)")
_EXECUTOR: Final = re.compile(r"^runtime/src/executor")
_MODEL: Final = re.compile(r"^runtime/src/model")
_ENTRY: Final = re.compile(r"^runtime/(app|platform)/")
_KERNEL: Final = re.compile(r"^kernels/")
_API: Final = re.compile(r"^gen/src/api")


@dataclass(frozen=True, slots=True)
class _Frame:
    """One function of an object: where it is defined, what its frame takes."""

    place: str
    function: str
    size_bytes: int
    is_dynamic: bool


def estimate_stack(
    stack_usage: Mapping[str, str],
    symbols: Sequence[SizeSymbol],
    *,
    reserve_bytes: int,
) -> StackEstimate:
    """Estimate the worst stack use of the firmware.

    Args:
        stack_usage: Texts of the `.su` files by source, `kernels/portable/op_add.cpp`.
        symbols: Of the firmware: what is not linked does not count. Without any, all
            functions do.
        reserve_bytes: What the linker script reserves; 0 on hosts.
    """
    linked = _linked_names(symbols)
    frames = {
        source: [f for f in _frames(text) if linked(f.function)]
        for source, text in sorted(stack_usage.items())
    }
    parts = _parts(frames)
    return StackEstimate(
        stack_bytes=sum(p.stack_bytes for p in parts),
        reserve_bytes=reserve_bytes,
        parts=parts,
        dynamic=tuple(
            f"{source}: {frame.function}"
            for source, found in frames.items()
            for frame in found
            if frame.is_dynamic
        ),
        unknown=tuple(
            sorted(
                s.name for s in symbols if s.is_function and s.object not in stack_usage
            )
        ),
    )


def _parts(frames: Mapping[str, Sequence[_Frame]]) -> tuple[StackPart, ...]:
    """Who is on the stack in the worst case."""

    def of(pattern: re.Pattern[str]) -> Sequence[str]:
        return [s for s in frames if pattern.match(s)]

    def together(sources: Iterable[str]) -> int:
        return sum(_source_bytes(frames[s]) for s in sources)

    # A product calls one function of the API; the runner calls the model itself.
    api = max((f.size_bytes for s in of(_API) for f in frames[s]), default=0)
    runner = together(of(_ENTRY))
    entry = (
        StackPart(name="application and platform", stack_bytes=runner)
        if runner >= api
        else StackPart(name="api", stack_bytes=api)
    )
    load = [StackPart(name="loader", stack_bytes=together(of(_LOADER)))]
    run = [StackPart(name="executor", stack_bytes=together(of(_EXECUTOR)))]
    kernels = sorted((-together([s]), s) for s in of(_KERNEL))
    if kernels:
        run.append(StackPart(name=kernels[0][1], stack_bytes=-kernels[0][0]))
    worst = max(load, run, key=lambda parts: sum(p.stack_bytes for p in parts))
    return (
        entry,
        StackPart(name="model", stack_bytes=together(of(_MODEL))),
        *worst,
        StackPart(name="helpers", stack_bytes=together(of(_HELPERS))),
    )


def _source_bytes(frames: Iterable[_Frame]) -> int:
    """All functions of a source at once; instances of one place count once."""
    largest: dict[str, int] = {}
    for frame in frames:
        largest[frame.place] = max(frame.size_bytes, largest.get(frame.place, 0))
    return sum(largest.values())


def _frames(text: str) -> Iterable[_Frame]:
    """Functions of a `.su` file of gcc or clang; other lines are skipped."""
    for line in text.splitlines():
        columns = line.split("\t")
        if len(columns) != _COLUMNS or not columns[1].isdigit():
            continue
        found = _PLACE.match(columns[0])
        place, function = found.groups() if found else (columns[0], columns[0])
        # A clone can be called by what it was split off: it counts on its own.
        clone = _CLONE.search(function)
        yield _Frame(
            place=place + (clone[0] if clone else ""),
            function=function,
            size_bytes=int(columns[1]),
            # "dynamic,bounded": the number is the bound.
            is_dynamic=columns[2] == "dynamic",
        )


def _linked_names(symbols: Sequence[SizeSymbol]) -> Callable[[str], bool]:
    """Whether a function of a `.su` file may be in the firmware.

    clang names the symbol, gcc writes the declaration: its own name occurs in the
    symbol. Where that is not sure, the function counts.
    """
    names = {n for s in symbols if s.is_function for n in (s.symbol, *s.aliases)}
    everything = "\n".join(sorted(names))

    def linked(function: str) -> bool:
        if not names or function in names:
            return True
        if function.startswith("_Z"):
            return False
        plain = function.replace("{anonymous}", "").replace("(anonymous namespace)", "")
        found = _FUNCTION.search(plain)
        if found is None or _UNSURE.search(plain):
            return True
        return found[1] in everything

    return linked
