"""Why something is in a product."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey
from orchestrator.core.operator import OperatorName
from orchestrator.errors import UsageError
from orchestrator.explain.facts import Facts
from orchestrator.explain.names import meaning_of, unknown_name
from orchestrator.measure.size import Contributor, SizeSymbol
from orchestrator.measure.size import ContributorKind as Kind
from orchestrator.selection.call import calls_of_key, takes, tensor_names
from orchestrator.selection.op_info import Origin
from orchestrator.selection.resolution import Binding, DelegateCode

REASONS: Final[Mapping[Kind, str]] = MappingProxyType(
    {
        Kind.MODEL: "the program of a model: [[models]] names it",
        Kind.KERNEL: "serves requested operators",
        Kind.KERNEL_TABLE: "the kernel table: where the loader finds kernels",
        Kind.DELEGATE: "runs parts of models: [[delegates]] names it",
        Kind.RUNTIME: "part of the runtime: linked code calls it",
        Kind.API: "generated: the functions your application calls",
        Kind.APPLICATION: "serves `orchestrator run`; only in firmware.elf",
        Kind.PLATFORM: "start-up and input/output for `run`; only in firmware.elf",
        Kind.MEMORY_FUNCTIONS: "functions that compilers call, in place of a C library",
        Kind.TOOLCHAIN: "from the toolchain's library: code that it compiled calls it",
        Kind.CONSTANTS: "equal constants of several objects, merged by the linker",
        Kind.ARENA: "planned tensors of a method, as its memory plan places them",
        Kind.METHOD_STATE: "state of a loaded method",
        Kind.STACK: "reserved by the linker script",
        Kind.OTHER: "origin unknown: the linker's map does not name it",
        Kind.PADDING: "alignment between the other parts",
    }
)
"""Why parts of a kind are in a firmware."""

# Names of sources in runtime/src: a new one has the reason of its kind until it stands
# here.
RUNTIME_REASONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "load_method": "the loader: methods are loaded from their programs",
        "load_values": "the loader: values and tensors are read from programs",
        "load_delegates": "the loader: initialises delegates and finds their bytes",
        "find_kernel": "the loader: looks up each instruction's kernel in the table",
        "program": "the loader: programs are checked before they are used",
        "model": "always: the generated API loads and runs methods through it",
        "executor": "always: runs the instructions of loaded methods",
        "tensor": "always: sizes and strides of tensors, for loader and kernels",
        "math": "mathematical functions that linked kernels call",
        "math_double": "mathematical functions that linked kernels call for Double",
        "random": "the generator of random numbers that linked kernels call",
    }
)
"""Why parts of the runtime are in, by the names of their sources."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requester:
    """What requests a kernel: a method of a model, or a key of the profile.

    Args:
        source: Model, or key such as `operators.include`.
        method: "" for a key.
        instructions: Calls, in order; empty for a key.
    """

    source: str
    method: str
    instructions: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelUse:
    """A kernel that is linked for an operator.

    Args:
        operator: What it serves.
        binding: The kernel and what it is linked for.
        table_keys: By what the device finds it; None stands for any other key.
        closure_dtypes: Dtypes that no call has, but the kernel needs internally.
        requesters: What needs it, sorted.
        shared_with: Other operators of the product from the same sources.
        parts: What its sources cost; None if nothing is built.
    """

    operator: OperatorName
    binding: Binding
    table_keys: tuple[KernelKey | None, ...]
    closure_dtypes: frozenset[ScalarType]
    requesters: tuple[Requester, ...]
    shared_with: tuple[OperatorName, ...]
    parts: tuple[Contributor, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateUse:
    """A delegate that is linked.

    Args:
        code: What it is.
        requesters: What needs it, sorted.
        data: What it can find by name: model, key and bytes.
        parts: What its sources cost; None if nothing is built.
    """

    code: DelegateCode
    requesters: tuple[Requester, ...]
    data: tuple[tuple[str, str, int], ...]
    parts: tuple[Contributor, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartUse:
    """A part of the firmware.

    Args:
        part: What it is and costs.
        reason: Why it is in.
        symbols: Its symbols of the given name; the largest first.
        operators: Of a kernel's source: what it is linked for.
    """

    part: Contributor
    reason: str
    symbols: tuple[SizeSymbol, ...]
    operators: tuple[OperatorName, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why a name is in a product; `kernels` are those of the parts, too."""

    profile: str
    file: str
    name: str
    built: bool
    kernels: tuple[KernelUse, ...]
    parts: tuple[PartUse, ...] = ()
    delegates: tuple[DelegateUse, ...] = ()


def why(name: str, facts: Facts) -> Why:
    """Why an operator, kernel, delegate, source or symbol is in the product.

    Args:
        name: As in `meaning_of`.
        facts: Of the product.

    Raises:
        UsageError: Nothing has this name (`unknown-name`), or what has it is not in
            the product (`not-in-product`).
    """
    meaning = meaning_of(name, facts)
    if not meaning.is_known:
        raise unknown_name(name, facts)
    parts = tuple(
        PartUse(
            part=part,
            reason=reason_of(part),
            symbols=symbols,
            operators=tuple(dict.fromkeys(o for o, b in facts.bound if _costs(b, part, facts))),
        )
        for part, symbols in meaning.parts
    )
    uses = tuple(
        _use(operator, binding, facts)
        for operator, binding in facts.bound
        if operator in meaning.operators
        or binding.kernel in meaning.kernels
        or any(_costs(binding, use.part, facts) for use in parts)
    )
    delegates = tuple(
        DelegateUse(
            code=delegate.code,
            requesters=requesters_of(delegate.origins),
            data=facts.data_of(delegate),
            parts=facts.delegate_costs(delegate.code.backend),
        )
        for delegate in facts.resolution.delegates
        if delegate.code.backend in meaning.backends
    )
    if not uses and not parts and not delegates:
        raise UsageError.of(
            "not-in-product",
            f"{name} is not in {facts.profile}",
            hint=f"run `orchestrator why --not {facts.file} {name}`",
        )
    return Why(
        profile=facts.profile,
        file=facts.file,
        name=name,
        built=facts.report is not None,
        kernels=uses,
        parts=parts,
        delegates=delegates,
    )


def requesters_of(origins: Iterable[Origin]) -> tuple[Requester, ...]:
    """One entry per method and per key of the profile; `origins` are sorted."""
    found: dict[tuple[str, str], list[int]] = {}
    for origin in origins:
        calls = found.setdefault((origin.source, origin.method), [])
        if origin.instruction >= 0:
            calls.append(origin.instruction)
    return tuple(
        Requester(source=source, method=method, instructions=tuple(calls))
        for (source, method), calls in found.items()
    )


def reason_of(part: Contributor) -> str:
    """Why a part is in a firmware."""
    if part.kind is Kind.RUNTIME:
        return RUNTIME_REASONS.get(part.name, REASONS[part.kind])
    return REASONS[part.kind]


def _costs(binding: Binding, part: Contributor, facts: Facts) -> bool:
    """Whether a part is what a kernel costs."""
    return part in (facts.costs(binding.kernel) or ())


def _use(operator: OperatorName, binding: Binding, facts: Facts) -> KernelUse:
    kernel = binding.kernel
    same_sources = {
        other
        for other, bound in facts.bound
        if bound.kernel.library == kernel.library
        and set(bound.kernel.sources) & set(kernel.sources)
    }
    return KernelUse(
        operator=operator,
        binding=binding,
        table_keys=tuple(
            entry.key
            for entry in facts.resolution.table_entries
            if (entry.operator, entry.function) == (operator, kernel.function)
        ),
        closure_dtypes=binding.dtypes - _dtypes_of_calls(operator, binding, facts),
        requesters=requesters_of(binding.origins),
        shared_with=tuple(sorted(same_sources - {operator}, key=str)),
        parts=facts.costs(kernel),
    )


def _dtypes_of_calls(operator: OperatorName, binding: Binding, facts: Facts) -> set[ScalarType]:
    """Dtypes that the kernel's code depends on and that are requested."""
    kernel, deciding = binding.kernel, set(binding.kernel.dtype_arguments)
    found: set[ScalarType] = set()
    if binding.every_dtype:
        for name, dtypes in kernel.dtypes:
            found |= dtypes if name in deciding else set()
    for selected in facts.selection.operators:
        if selected.name != operator:
            continue
        calls = [call for call, _ in selected.patterns if call.key in binding.keys]
        for key in set(selected.keys) & set(binding.keys):
            calls += calls_of_key(kernel.schema, key)
        for call in calls:
            if takes(kernel, call):
                named = tensor_names(kernel.schema, call)
                found |= {meta.dtype for name, meta in named if name in deciding}
        if not kernel.keys:
            found |= set(selected.dtypes)
    return found
