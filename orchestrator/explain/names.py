"""What a name stands for: operators, kernels, parts or symbols of the firmware."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from orchestrator.core.kernel import Kernel
from orchestrator.core.operator import OperatorName
from orchestrator.errors import UsageError, did_you_mean
from orchestrator.explain.facts import Facts
from orchestrator.measure.size import Contributor, SizeReport, SizeSymbol

_TEMPLATE = re.compile(r"<[^<>]*>")


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What a name stands for; at most one of them is not empty.

    Args:
        operators: Sorted by their text.
        kernels: Implemented by the function or source of this name.
        parts: Contributors of the firmware, each with its symbols of this name.
        backends: Ids of backends that models need.
    """

    operators: tuple[OperatorName, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    parts: tuple[tuple[Contributor, tuple[SizeSymbol, ...]], ...] = ()
    backends: tuple[str, ...] = ()

    @property
    def is_known(self) -> bool:
        """It stands for something."""
        return bool(self.operators or self.kernels or self.parts or self.backends)


def meaning_of(name: str, facts: Facts) -> Meaning:
    """What a name stands for.

    Operators come first, then backends of delegates, functions of kernels, their
    sources, and last the parts and symbols of the last build.
    """
    if operators := _operators(name, facts.operators):
        return Meaning(operators=operators)
    if backends := tuple(b for b, _ in facts.selection.delegates if b == name):
        return Meaning(backends=backends)
    by_function = tuple(k for k in facts.kernels if f"::{k.function}".endswith(f"::{name}"))
    if by_function:
        return Meaning(kernels=by_function)
    if by_source := tuple(k for k in facts.kernels if _is_source_of(name, k)):
        return Meaning(kernels=by_source)
    return Meaning(parts=_parts(name, facts.report) if facts.report else ())


def operator_in_full(name: str) -> OperatorName | None:
    """The operator of a name that has a namespace or an overload, known or not."""
    try:
        return OperatorName.parse(name) if {":", "."} & set(name) else None
    except ValueError:
        return None


def unknown_name(name: str, facts: Facts) -> UsageError:
    """Nothing has this name."""
    known = {backend for backend, _ in facts.selection.delegates}
    for operator in facts.operators:
        text = str(operator)
        known |= {text, text.partition("::")[2], operator.base}
    for kernel in facts.kernels:
        known |= {kernel.function, kernel.function.rpartition("::")[2]}
        known |= {PurePosixPath(source).stem for source in kernel.sources}
    if facts.report is not None:
        known |= {c.name for c in facts.report.contributors}
        for symbol in facts.report.symbols:
            plain = _plain(symbol.name)
            known |= {symbol.name, symbol.symbol, plain, plain.rpartition("::")[2]}
    built = facts.report is not None
    return UsageError.of(
        "unknown-name",
        f'nothing is named "{name}"',
        searched="operators, kernels, sources"
        + (" and symbols of the last build" if built else ""),
        hint=did_you_mean(name, known - {""})
        or (
            "name an operator like aten::add.out, a kernel or a symbol"
            if built
            else f"`orchestrator build {facts.file}` makes symbols known"
        ),
    )


def _operators(name: str, known: Iterable[OperatorName]) -> tuple[OperatorName, ...]:
    """Operators of a name that may lack namespace and overload."""
    try:
        asked = OperatorName.parse(name)
    except ValueError:
        return ()
    found = tuple(
        operator
        for operator in known
        if operator.base == asked.base
        and ("::" not in name or operator.namespace == asked.namespace)
        and ("." not in name or operator.overload == asked.overload)
    )
    return (asked,) if "::" in name and asked in found else found


def _is_source_of(name: str, kernel: Kernel) -> bool:
    """`op_add`, `op_add.cpp`, `op_add.cpp.o`, each with its library or folder."""
    wanted = name.removeprefix("obj/").removeprefix("kernels/")
    wanted = wanted.removesuffix(".o").removesuffix(".cpp")
    for source in kernel.sources:
        path = PurePosixPath(source).with_suffix("")
        if wanted in (path.name, str(path), f"{kernel.library}/{path}"):
            return True
    return False


def _parts(name: str, report: SizeReport) -> tuple[tuple[Contributor, tuple[SizeSymbol, ...]], ...]:
    symbols = [s for s in report.symbols if name in (s.name, s.symbol, *s.aliases)]
    if not symbols:
        symbols = [s for s in report.symbols if f"::{_plain(s.name)}".endswith(f"::{name}")]
    sources = {
        (s.kind, s.contributor)
        for s in report.symbols
        if s.object and name in (s.object, PurePosixPath(s.object).name)
    }
    found = []
    for part in report.contributors:
        inside = tuple(s for s in symbols if (s.kind, s.contributor) == (part.kind, part.name))
        is_named = name in (part.name, PurePosixPath(part.name).name)
        if inside or is_named or (part.kind, part.name) in sources:
            found.append((part, inside))
    return tuple(found)


def _plain(name: str) -> str:
    """A qualified name without template arguments."""
    # From the inside out: a regular expression cannot match nested brackets.
    while (shorter := _TEMPLATE.sub("", name)) != name:
        name = shorter
    return name
