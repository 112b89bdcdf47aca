"""Extract: which operators, kernel keys and delegates a program uses."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey, TensorMeta
from orchestrator.core.operator import NONE, OPTIONAL_ITEMS
from orchestrator.errors import Diagnostic, KernelError, SourceSpan
from orchestrator.program.prim_ops import ARG_KINDS
from orchestrator.program.program import DelegateCall, KernelCall, Method, Program
from orchestrator.program.values import OptionalTensorListValue, TensorListValue, TensorValue, Value
from orchestrator.selection.op_info import (
    CallPattern,
    DelegateUse,
    OpCall,
    OpInfo,
    Origin,
    SelectedOperator,
    Selection,
)

if TYPE_CHECKING:
    from orchestrator.catalog.entry import Catalog
    from orchestrator.core.operator import OperatorName


def extract(program: Program, *, model: str) -> OpInfo:
    """Operators, kernel keys and delegates of every method of a program.

    Args:
        program: As the reader gives it; its indices are trusted.
        model: Name of the model in the profile.

    Returns:
        Operators in the order each method lists them, calls in the order of the
        instructions, methods in the order of the program.

    Source: ExecuTorch `codegen/tools/gen_oplist.py` (what counts as used) and
    `runtime/kernel/operator_registry.h` (kernel keys).
    """
    operators, calls, delegates = [], [], []
    for method in program.methods:
        operators += [(method.name, operator) for operator in method.operators]
        shapes = _Shapes(method.values)
        used: set[int] = set()
        for index, instruction in enumerate(method.instructions):
            match instruction:
                case KernelCall(operator=operator, args=args):
                    calls.append(
                        OpCall(
                            operator=method.operators[operator],
                            pattern=shapes.pattern(args),
                            method=method.name,
                            instruction=index,
                        )
                    )
                case DelegateCall(delegate=delegate):
                    used.add(delegate)
                    delegates.append(_use(method, delegate, index))
                case _:
                    pass
        # The loader makes all of them ready, whether they are called or not.
        unused = sorted(set(range(len(method.delegates))) - used)
        delegates += [_use(method, delegate, -1) for delegate in unused]
    return OpInfo(
        model=model, operators=tuple(operators), calls=tuple(calls), delegates=tuple(delegates)
    )


def _use(method: Method, delegate: int, instruction: int) -> DelegateUse:
    return DelegateUse(
        backend=method.delegates[delegate].backend, method=method.name, instruction=instruction
    )


def call_pattern(values: tuple[Value, ...], args: tuple[int, ...]) -> CallPattern:
    """The kernel key of a call with these arguments, values given by index."""
    return _Shapes(values).pattern(args)


class _Shapes:
    """Letter and meta of each value of a method, worked out once."""

    def __init__(self, values: tuple[Value, ...]) -> None:
        self._letters = [ARG_KINDS.get(type(value), NONE) for value in values]
        self._metas = [
            TensorMeta(value.dtype, value.dim_order) if isinstance(value, TensorValue) else None
            for value in values
        ]
        self._further: dict[int, tuple[TensorMeta, ...]] = {}
        for index, value in enumerate(values):
            if isinstance(value, TensorListValue | OptionalTensorListValue):
                metas = [self._metas[item] for item in value.items if item >= 0]
                found = [meta for meta in metas if meta is not None]
                if len(found) < len(value.items):
                    self._letters[index] = OPTIONAL_ITEMS
                # The first tensor of a list stands for it in the kernel key.
                self._metas[index] = found[0] if found else None
                self._further[index] = tuple(found[1:])

    def pattern(self, args: tuple[int, ...]) -> CallPattern:
        metas = self._metas
        tensors = [
            (position, meta)
            for position, arg in enumerate(args)
            if (meta := metas[arg]) is not None
        ]
        letters = self._letters
        further = [
            (position, meta)
            for position, arg in enumerate(args)
            for meta in self._further.get(arg, ())
        ]
        return CallPattern(
            kinds="".join([letters[arg] for arg in args]),
            tensors=tuple(tensors),
            list_items=tuple(further),
        )


# Aggregate: the union of what models and profile ask for.


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
        # Sorted, so that the order of models and calls does not show in what is written.
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


# Operators of several models or libraries, where the profile forbids overlaps.


def check_overlap(infos: Iterable[OpInfo], *, where: SourceSpan) -> None:
    """Reject every operator that two models list or call, with any kernel keys.

    Args:
        infos: Operators each model uses, in any order.
        where: The profile line that forbids overlaps.

    Raises:
        KernelError: One `overlap` per operator, with all of its models.
    """
    models: dict[OperatorName, set[str]] = {}
    for info in infos:
        # A program may list operators that it does not call; both count as its own.
        called = (call.operator for call in info.calls)
        for name in (*(name for _, name in info.operators), *called):
            models.setdefault(name, set()).add(info.model)
    problems = [
        Diagnostic.of(
            "overlap",
            f"{len(names)} models use {operator}",
            where=where,
            found=", ".join(sorted(names)),
            expected='each operator from one model, as overlap = "error" says',
            hint='write overlap = "allow" to let models share kernels',
        )
        for operator, names in sorted(models.items())
        if len(names) > 1
    ]
    if problems:
        raise KernelError(problems)


def check_library_overlap(selection: Selection, catalog: Catalog, *, where: SourceSpan) -> None:
    """Reject every selected operator for which two libraries are tried.

    Args:
        selection: All requests.
        catalog: Kernels on offer.
        where: The profile line that forbids overlaps.

    Raises:
        KernelError: One `overlap` per operator, with all of its libraries.
    """
    names = {selected.name for selected in selection.operators}
    if selection.every_operator:
        names.update(catalog.operators)
    problems = []
    for operator in sorted(names):
        offers = catalog.offers(operator)
        if len(offers) > 1:
            first = [kernels[0] for kernels in offers]
            choice = f'"{operator}" = ["{first[0].library}"]'
            problems.append(
                Diagnostic(
                    code="overlap",
                    message=f"{len(offers)} kernel libraries have {operator}",
                    where=where,
                    notes=tuple(("found", f"{k.library}, {k.entry}") for k in first),
                    hint=f"choose one: {choice} in [kernels.operators]",
                )
            )
    if problems:
        raise KernelError(problems)
