"""Aggregate: the union of what models and profile ask for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey
from orchestrator.selection.op_info import CallPattern, OpInfo, Origin, SelectedOperator, Selection

if TYPE_CHECKING:
    from orchestrator.core.operator import OperatorName


def aggregate(infos: Iterable[OpInfo], extra: Iterable[SelectedOperator] = ()) -> Selection:
    """The union of everything that models use and that the profile requests.

    The order of the arguments does not matter, nor does naming something twice.

    Args:
        infos: Operators each model uses.
        extra: Operators requested outside models; names may repeat.

    Returns:
        Operators by name, each with every call pattern and everyone who asked for
        it; delegates by backend.
    """
    union_ = _Union()
    for info in infos:
        union_.add_info(info)
    for operator in extra:
        union_.add_operator(operator)
    return union_.selection()


def union(a: Selection, b: Selection) -> Selection:
    """The requests of `a` and `b`; commutative, associative and idempotent."""
    union_ = _Union()
    for selection in (a, b):
        for operator in selection.operators:
            union_.add_operator(operator)
        for backend, origins in selection.delegates:
            union_.delegates.setdefault(backend, set()).update(origins)
        union_.every_operator |= selection.every_operator
    return union_.selection()


class _Entry:
    """An operator while the union grows."""

    __slots__ = ("dtypes", "every_dtype", "keys", "origins", "patterns")

    def __init__(self) -> None:
        self.patterns: dict[CallPattern, set[Origin]] = {}
        self.keys: set[KernelKey] = set()
        self.dtypes: set[ScalarType] = set()
        self.origins: set[Origin] = set()
        self.every_dtype = False

    def finish(self, name: OperatorName) -> SelectedOperator:
        patterns = sorted(self.patterns.items(), key=lambda item: item[0])
        return SelectedOperator(
            name=name,
            patterns=tuple((p, tuple(sorted(origins))) for p, origins in patterns),
            keys=tuple(sorted(self.keys)),
            dtypes=tuple(sorted(self.dtypes)),
            every_dtype=self.every_dtype,
            origins=tuple(sorted(self.origins)),
        )


class _Union:
    def __init__(self) -> None:
        self.operators: dict[OperatorName, _Entry] = {}
        self.delegates: dict[str, set[Origin]] = {}
        self.every_operator = False

    def _entry(self, name: OperatorName) -> _Entry:
        entry = self.operators.get(name)
        if entry is None:
            entry = self.operators[name] = _Entry()
        return entry

    def add_info(self, info: OpInfo) -> None:
        for method, name in info.operators:
            self._entry(name).origins.add(Origin(info.model, method))
        for call in info.calls:
            patterns = self._entry(call.operator).patterns
            origin = Origin(info.model, call.method, call.instruction)
            patterns.setdefault(call.pattern, set()).add(origin)
        for use in info.delegates:
            origin = Origin(info.model, use.method, use.instruction)
            self.delegates.setdefault(use.backend, set()).add(origin)

    def add_operator(self, operator: SelectedOperator) -> None:
        entry = self._entry(operator.name)
        for pattern, origins in operator.patterns:
            entry.patterns.setdefault(pattern, set()).update(origins)
        entry.keys.update(operator.keys)
        entry.dtypes.update(operator.dtypes)
        entry.origins.update(operator.origins)
        entry.every_dtype |= operator.every_dtype

    def selection(self) -> Selection:
        operators = sorted(self.operators.items(), key=lambda item: item[0])
        delegates = sorted(self.delegates.items())
        return Selection(
            operators=tuple(entry.finish(name) for name, entry in operators),
            delegates=tuple((b, tuple(sorted(origins))) for b, origins in delegates),
            every_operator=self.every_operator,
        )
