"""Why something is not in a product, and how to add it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import Kernel
from orchestrator.core.operator import OperatorName, nearest_operator
from orchestrator.errors import Diagnostic, UsageError, did_you_mean
from orchestrator.explain.facts import Facts
from orchestrator.explain.names import meaning_of, operator_in_full, unknown_name
from orchestrator.explain.why import Requester, requesters_of
from orchestrator.selection.op_info import Origin, SelectedOperator
from orchestrator.selection.resolution import Binding


class Reason(StrEnum):
    """Why something is not in a product."""

    GAP = "gap"
    NEVER_CALLED = "never-called"
    LEFT_OUT = "left-out"
    NOT_ASKED = "not-asked"
    OTHER_LIBRARY = "other-library"
    NO_KERNEL = "no-kernel"
    OTHER_KERNEL = "other-kernel"
    NOT_INSTANTIATED = "not-instantiated"
    DTYPE_REFUSED = "dtype-refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """Why one operator, kernel or dtype is not in a product.

    Args:
        operator: The operator, or the backend of a delegate.
        reason: Why it, or the kernel or dtype, is not in.
        message: The reason in words.
        listed_by: Methods that list the operator without calling it.
        serving: Kernels that serve the operator now.
        adds: Kernels, with dtypes, that the remedy would link.
        gaps: Problems that the build fails with.
        nearest_used: Operator of the product with nearly the same name.
        nearest_known: The same among all that libraries have.
        remedy: What to write where; "" if the gaps have hints.
    """

    operator: OperatorName | str
    reason: Reason
    message: str
    listed_by: tuple[Requester, ...] = ()
    serving: tuple[Binding, ...] = ()
    adds: tuple[Binding, ...] = ()
    gaps: tuple[Diagnostic, ...] = ()
    nearest_used: OperatorName | None = None
    nearest_known: OperatorName | None = None
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyNot:
    """Why a name is not in a product."""

    profile: str
    name: str
    dtype: ScalarType | None
    absences: tuple[Absence, ...]


def why_not(name: str, facts: Facts, *, dtype: str | None = None) -> WhyNot:
    """Why an operator, a kernel, or a dtype of one is not in the product.

    Args:
        name: As in `meaning_of`; a full operator name may be unknown.
        facts: Of the product.
        dtype: Name of a dtype that is missing.

    Raises:
        UsageError: Nothing has this name (`unknown-name`), or what has it is in the
            product (`in-product`).
    """
    wanted = None if dtype is None else _dtype(dtype)
    meaning = meaning_of(name, facts)
    full = operator_in_full(name)
    if not meaning.is_known and full is None:
        raise unknown_name(name, facts)
    if meaning.kernels:
        absences = _of_kernels(meaning.kernels, facts, wanted)
    elif meaning.parts:
        absences = []
    elif meaning.backends:
        absences = _of_backends(meaning.backends, facts)
    else:
        operators = meaning.operators or ((full,) if full else ())
        found = (_of_operator(operator, facts, wanted) for operator in operators)
        absences = [absence for absence in found if absence is not None]
    if not absences:
        raise _is_in(name, facts, dtype=None if meaning.parts else wanted)
    return WhyNot(profile=facts.profile, name=name, dtype=wanted, absences=tuple(absences))


def _of_backends(backends: tuple[str, ...], facts: Facts) -> list[Absence]:
    """Why backends that models need have no delegate."""
    linked = facts.resolution.delegate_states
    return [
        Absence(
            operator=backend,
            reason=Reason.GAP,
            message=f"{backend} is requested and has no delegate: [[delegates]] does not name one",
            listed_by=requesters_of(origins),
            remedy="link one with [[delegates]], or export without its partitioner",
        )
        for backend, origins in facts.selection.delegates
        if backend in backends and backend not in linked
    ]


def _is_in(name: str, facts: Facts, *, dtype: ScalarType | None) -> UsageError:
    what = f"{name} with {dtype.name}" if dtype is not None else name
    return UsageError.of(
        "in-product",
        f"{what} is in {facts.profile}",
        hint=f"run `orchestrator why {facts.file} {name}`",
    )


def _dtype(name: str) -> ScalarType:
    if name in ScalarType.__members__:
        return ScalarType[name]
    by_small_name = {known.lower(): known for known in ScalarType.__members__}
    known = by_small_name.get(name.lower())
    raise UsageError.of(
        "unknown-name",
        f'"{name}" is not a dtype',
        known=", ".join(ScalarType.__members__),
        hint=did_you_mean(known or name, ScalarType.__members__) or "write it like Float",
    )


def _of_kernels(
    kernels: tuple[Kernel, ...], facts: Facts, dtype: ScalarType | None
) -> list[Absence]:
    """A function or a source is in as soon as one of its kernels is."""
    bound = [(o, b) for o, b in facts.bound if b.kernel in kernels]
    if bound:
        if dtype is None:
            return []
        found = [
            _of_dtype(operator, tuple(b for o, b in bound if o == operator), facts, dtype)
            for operator in dict.fromkeys(o for o, _ in bound)
        ]
        return [absence for absence in found if absence is not None]
    absences = []
    for kernel in kernels:
        operator = kernel.operator
        absence = _of_operator(operator, facts, dtype=None)
        if absence is None:
            serving = tuple(b for o, b in facts.bound if o == operator)
            names = " and ".join(b.kernel.function for b in serving)
            absence = Absence(
                operator=operator,
                reason=Reason.OTHER_KERNEL,
                message=f"{kernel.function} is not in {facts.profile}:"
                f" {operator} is served by {names}",
                serving=serving,
                remedy=_in_place_of(kernel, serving, facts),
            )
        if absence not in absences:
            absences.append(absence)
    return absences


def _in_place_of(kernel: Kernel, serving: tuple[Binding, ...], facts: Facts) -> str:
    """How to use a kernel instead of those that serve its operator now."""
    called = {key for binding in serving for key in binding.keys}
    if kernel.keys and not called & set(kernel.keys):
        return f"it takes calls with kernel key {kernel.keys[0]}: no call has one"
    if kernel.library not in {library for library, _ in facts.catalog.libraries}:
        return f'to have it, name "{kernel.library}" first in kernels.libraries'
    if all(kernel.library != binding.kernel.library for binding in serving):
        return f'to have it, move "{kernel.library}" to the front of kernels.libraries'
    return "every call has a kernel specialised for its kernel key"


def _then(name: OperatorName, facts: Facts) -> str:
    """The consequence of a gap for a build."""
    if any(missing.name == str(name) for missing in facts.resolution.missing):
        return "the profile allows that"
    return "the build fails"


def _of_operator(name: OperatorName, facts: Facts, dtype: ScalarType | None) -> Absence | None:
    """Why an operator, or a dtype of it, is not in; None if it is."""
    serving = tuple(b for o, b in facts.bound if o == name)
    if serving:
        return None if dtype is None else _of_dtype(name, serving, facts, dtype)
    if gaps := dict(facts.gaps).get(name):
        return Absence(
            operator=name,
            reason=Reason.GAP,
            message=f"{name} is requested and has no kernel: {_then(name, facts)}",
            gaps=gaps,
        )
    in_product = [o.name for o in facts.resolution.operators]
    selected = next((s for s in facts.selection.operators if s.name == name), None)
    listed_by = requesters_of(selected.origins) if selected else ()
    reason, text = Reason.NOT_ASKED, "no model uses it and the profile does not request it"
    if name in facts.left_out:
        reason, text = Reason.LEFT_OUT, "passes removed all its calls"
    elif listed_by:
        reason, text = Reason.NEVER_CALLED, "it is listed, but no instruction calls it"
    absence = Absence(
        operator=name,
        reason=reason,
        message=f"{name} is not in {facts.profile}: {text}",
        listed_by=listed_by,
        nearest_used=nearest_operator(name, in_product),
    )
    include = SelectedOperator(name=name, every_dtype=True, origins=(Origin("operators.include"),))
    write = f'"{name}" to operators.include'
    if facts.catalog.offers(name):
        # By the stage that a build runs: a remedy that is printed links what it says.
        outcome = facts.resolve(include, facts.catalog)
        return replace(absence, adds=outcome.bindings, remedy=f"to have it, add {write}")
    if facts.elsewhere.offers(name):
        outcome = facts.resolve(include, facts.elsewhere)
        libraries = dict.fromkeys(b.kernel.library for b in outcome.bindings)
        quoted = " and ".join(f'"{library}"' for library in libraries)
        return replace(
            absence,
            reason=Reason.OTHER_LIBRARY,
            message=f"{absence.message}; no library of the profile has it",
            adds=outcome.bindings,
            remedy=f"to have it, add {quoted} to kernels.libraries and {write}",
        )
    return replace(
        absence,
        reason=Reason.NO_KERNEL,
        message=f"{absence.message}; no kernel library has it",
        nearest_known=nearest_operator(name, facts.elsewhere.operators),
        remedy="docs/kernels.md shows how to add a kernel",
    )


def _of_dtype(
    name: OperatorName, serving: tuple[Binding, ...], facts: Facts, dtype: ScalarType
) -> Absence | None:
    """Why a dtype is not instantiated; None if it is."""
    if any(dtype in binding.dtypes for binding in serving):
        return None
    selected = next(
        (s for s in facts.selection.operators if s.name == name), SelectedOperator(name=name)
    )
    key = Origin("dtypes.operators")
    outcome = facts.resolve(
        replace(
            selected,
            dtypes=tuple(sorted({*selected.dtypes, dtype})),
            origins=tuple(sorted({*selected.origins, key})),
        ),
        facts.catalog,
    )
    absence = Absence(
        operator=name,
        reason=Reason.NOT_INSTANTIATED,
        message=f"{name} is in {facts.profile}, but without {dtype.name}: nothing requests it",
        serving=serving,
        adds=outcome.bindings,
        remedy=f'to have it, add "{dtype.name}" to the list "{name}" in [dtypes.operators]',
    )
    if not outcome.gaps:
        return absence
    kernel = serving[-1].kernel
    return replace(
        absence,
        reason=Reason.DTYPE_REFUSED,
        message=f"{name} is in {facts.profile}, but without {dtype.name}: no kernel"
        " takes it in all arguments",
        gaps=outcome.gaps,
        remedy=f"to have it, add {dtype.name} to {kernel.function} and to"
        f" {kernel.entry}; see docs/kernels.md",
    )
