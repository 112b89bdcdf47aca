"""Diagnostics of gaps; equal gaps of many calls become one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Final

from orchestrator.catalog.entry import Catalog
from orchestrator.catalog.expressions.condition import Refusal
from orchestrator.core.dtype import COMPLEX, dtype_names
from orchestrator.core.kernel import Kernel, KernelKey
from orchestrator.core.operator import OperatorName, nearest_operator, out_variant
from orchestrator.errors import Diagnostic, SourceSpan, did_you_mean
from orchestrator.selection.call import refused_dtypes, takes, tensor_names
from orchestrator.selection.op_info import CallPattern, Origin
from orchestrator.selection.resolution import Missing

_SHOWN = 4  # instructions, methods or keys named before "and N more"
_HINTS = {
    "is_channels_last": "export the model and its example inputs in channels-last"
    " memory format: .to(memory_format=torch.channels_last)"
}
"""What to do about a condition, by the function it calls."""
_DIM_ORDERS = {
    "same": "tensors of equal rank in one dim order",
    "contiguous": "tensors in order 0, 1, 2, ...",
}
Notes = tuple[tuple[str, str], ...]


@dataclass(slots=True)
class _Found:
    """What a gap of an operator or backend affects, with which kernel keys."""

    subject: str
    origins: set[Origin] = field(default_factory=set)
    keys: set[KernelKey] = field(default_factory=set)


# Chosen by hand: a program of hostile names had a comparison with every operator for each.
_MOST_HINTS: Final = 100
"""Gaps for which a name that is nearly the same is looked for, which takes long."""


class Gaps:
    """Collects gaps while the stage runs.

    Args:
        catalog: Kernels on offer.
        span_of: The profile line of a request.
        elsewhere: Kernels of libraries the profile does not use.
        allowed: Operators and backends that may have gaps.
    """

    def __init__(
        self,
        catalog: Catalog,
        span_of: Callable[[Origin], SourceSpan | None],
        elsewhere: Callable[[], Catalog] | None,
        allowed: Collection[str],
    ) -> None:
        self._catalog = catalog
        self._span_of = span_of
        # Cached: reading all lists takes longer than anything else here.
        self._elsewhere = elsewhere and cache(elsewhere)
        self._libraries = cache(self._operators_elsewhere)
        self._allowed = allowed
        self._found: dict[Diagnostic, _Found] = {}
        self._without_out: dict[OperatorName, set[Origin]] = {}

    def _add(  # the parts of a message
        self,
        subject: object,
        code: str,
        message: str,
        notes: Notes,
        hint: str,
        *,
        origins: Iterable[Origin],
        keys: Iterable[KernelKey] = (),
    ) -> None:
        gap = Diagnostic(code=code, message=message, notes=notes, hint=hint)
        found = self._found.setdefault(gap, _Found(str(subject)))
        found.origins.update(origins)
        found.keys.update(keys)

    def has(self, name: OperatorName) -> bool:
        """Whether an operator has a gap so far."""
        return any(found.subject == str(name) for found in self._found.values())

    def diagnostics(self) -> list[Diagnostic]:
        """Every gap that is not allowed, with place, key and origins."""
        result = []
        if self._without_out:
            gap = without_out_variants(self._without_out)
            self._found[gap] = _Found("", set().union(*self._without_out.values()))
        for gap, found in self._found.items():
            if found.subject in self._allowed:
                continue
            origins = sorted(found.origins)
            spans = (self._span_of(origin) for origin in origins)
            where = next((span for span in spans if span is not None), None)
            keys = (("key", _several(sorted(found.keys))),) if found.keys else ()
            notes = (*_needed_by(origins), *keys, *gap.notes)
            result.append(replace(gap, where=where, notes=notes))
        return result

    def missing(self) -> tuple[Missing, ...]:
        """Every gap that is allowed."""
        return tuple(
            sorted(
                Missing(
                    name=found.subject, reason=gap.message, origins=tuple(sorted(found.origins))
                )
                for gap, found in self._found.items()
                if found.subject in self._allowed
            )
        )

    def _operators_elsewhere(self) -> dict[OperatorName, str]:
        """The first library with a kernel, by operator."""
        others = self._elsewhere().libraries if self._elsewhere else ()
        # Reversed, so that the first library that has an operator is the one that stays.
        return {k.operator: name for name, kernels in reversed(others) for k in kernels}

    def no_kernel(
        self, name: OperatorName, origins: Iterable[Origin], keys: Iterable[KernelKey]
    ) -> None:
        """No library has the operator."""
        asked = tuple(origins)
        operators = self._catalog.operators
        is_called = any(origin.method for origin in asked)
        # One message for all of them: the whole program was exported so.
        if is_called and str(name) not in self._allowed and out_variant(name, operators):
            self._without_out[name] = set(asked)
            return
        libraries = ", ".join(library for library, _ in self._catalog.libraries)
        notes = [("known", f"no kernel in {libraries or 'any library: none is named'}")]
        hint = _REMEDIES.get(name.namespace, _OWN_OPERATOR)
        if name.namespace == "aten" and name.base in _DECOMPOSED:
            hint = _FROM_SOURCE
        if len(self._found) < _MOST_HINTS and (near := nearest_operator(name, operators)):
            # A model makes no slips: only another form of its operator is of use.
            if not is_called or _is_overload(near, name):
                notes.append(("nearest", str(near)))
            if not is_called:
                hint = f'did you mean "{near}"?'
        if library := self._libraries().get(name):
            hint = f'add "{library}" to kernels.libraries, it has a kernel for it'
        message = f"no kernel for {name}"
        self._add(name, "no-kernel", message, tuple(notes), hint, origins=asked, keys=keys)

    def call_mismatch(
        self, name: OperatorName, kernel: Kernel, reason: str, origins: Iterable[Origin]
    ) -> None:
        """A call does not have the arguments of the op schema."""
        self._add(
            name,
            "call-mismatch",
            f"a call of {name} does not fit its op schema",
            (("found", reason), ("expected", kernel.schema.text)),
            "export the model again with a version that has this form of the operator,"
            f" or correct the schema at {kernel.entry}",
            origins=origins,
        )

    def ambiguous(self, name: OperatorName, key: KernelKey, requests: Sequence[Request]) -> None:
        """Calls with one kernel key that no single kernel takes."""
        self._add(
            name,
            "ambiguous-kernel",
            f"calls of {name} with kernel key {key} need different kernels",
            (("known", "the device selects kernels by kernel key only"),),
            "list a library first that has one kernel for all of them",
            origins=[origin for request in requests for origin in request.origins],
        )

    def refused(self, kernel: Kernel, refusal: Refusal, found: str, origin: Origin) -> None:
        """A kernel would reject a call because of its arguments."""
        reason = f": {refusal.reason}" if refusal.reason else ""
        hint = next(
            (hint for name, hint in _HINTS.items() if name in refusal.condition),
            "change the model so that this call meets the condition, or remove it",
        )
        self._add(
            kernel.operator,
            "no-kernel-for-arguments",
            f"no kernel for {kernel.operator} with these arguments",
            (
                ("found", found),
                ("required", f"{refusal.condition}{reason}"),
                ("by", f"{kernel.function}, {kernel.entry}"),
            ),
            hint,
            origins=(origin,),
        )

    def no_delegate(self, backend: str, known: Collection[str], origins: Iterable[Origin]) -> None:
        """A program delegates a part to a backend that no delegate serves."""
        names = ", ".join(sorted(known))
        found = f"[[delegates]] serve {names}" if names else "no [[delegates]]"
        self._add(
            backend,
            "no-delegate",
            f"no delegate for backend {backend}",
            (("known", found),),
            did_you_mean(backend, known)
            or "link one with [[delegates]], see docs/delegates.md, or export the model"
            f" again without the partitioner of {backend}, so that its operators stay"
            " kernel calls",
            origins=origins,
        )

    def unserved(self, name: OperatorName, kernels: Sequence[Kernel], request: Request) -> None:
        """The operator has kernels, but none takes this call."""
        fallbacks = [kernel for kernel in kernels if not kernel.keys]
        if not fallbacks:
            self._no_key(name, kernels, request)
            return
        refusals = [
            (refused_dtypes(kernel, call), call, kernel)
            for kernel in fallbacks
            for call in request.calls
        ]
        # The kernel that lacks least: its message is the one to act on.
        refused, call, nearest = min(refusals, key=lambda r: len(r[0]))
        if not refused:
            self._no_dim_order(name, fallbacks, call, nearest, request)
            return
        dtypes = list(dict.fromkeys(dtype.name for _, dtype in refused))
        found = ", ".join(f"{argument} {dtype.name}" for argument, dtype in refused)
        arguments = list(dict.fromkeys(argument for argument, _ in refused))
        known = tuple(("known", _known_dtypes(k, arguments)) for k in fallbacks)
        hint = (
            f"export the model without {' and '.join(dtypes)} there, or add"
            f" {'it' if len(dtypes) == 1 else 'them'} to {nearest.function},"
            f" {nearest.entry}"
        )
        if {dtype for _, dtype in refused} & COMPLEX:
            hint = f"{_REAL_NUMBERS} {hint}"
        if library := self._library_with(name, request):
            hint = f'add "{library}" to kernels.libraries, it has a kernel for it'
        self._add(
            name,
            "no-kernel-for-dtype",
            f"no kernel for {name} with dtype {' and '.join(dtypes)}",
            (("found", found), *known),
            hint,
            origins=request.origins,
            keys=request.keys,
        )

    def _library_with(self, name: OperatorName, request: Request) -> str:
        """A library that the profile does not use, with a kernel; "" if none has."""
        others = self._elsewhere().libraries if self._elsewhere else ()
        for library, kernels in others:
            if any(k.operator == name and request.taken_by(k) for k in kernels):
                return library
        return ""

    def _no_dim_order(
        self,
        name: OperatorName,
        fallbacks: Sequence[Kernel],
        call: CallPattern,
        nearest: Kernel,
        request: Request,
    ) -> None:
        named = [
            (argument, ",".join(map(str, meta.dim_order)))
            for argument, meta in tensor_names(nearest.schema, call)
        ]
        orders = list(dict.fromkeys(order for _, order in named if order))
        found = "; ".join(f"{argument} {order or '0-d'}" for argument, order in named)
        known = tuple(
            ("known", f"{k.library} takes {_DIM_ORDERS[k.dim_orders]}")
            for k in fallbacks
            if k.dim_orders in _DIM_ORDERS
        )
        self._add(
            name,
            "no-kernel-for-dim-order",
            f"no kernel for {name} with dim order {' and '.join(orders)}",
            (("found", found), *known),
            "export the model in contiguous memory format, or let"
            f" {nearest.function} take other dim orders, {nearest.entry}",
            origins=request.origins,
            keys=request.keys,
        )

    def _no_key(self, name: OperatorName, kernels: Sequence[Kernel], request: Request) -> None:
        """Only specialised kernels are on offer."""
        wanted = [meta.dtype for meta in request.key.tensors]
        same_dtypes = any(
            [meta.dtype for meta in key.tensors] == wanted
            for kernel in kernels
            for key in kernel.keys
        )
        self._add(
            name,
            "no-kernel-for-dim-order" if same_dtypes else "no-kernel-for-dtype",
            f"no kernel for {name} with kernel key {request.key}",
            tuple(("known", f"{kernel.library} has {_several(kernel.keys)}") for kernel in kernels),
            "add a library with a fallback kernel for it, such as portable, or write"
            f" a kernel for this key, {kernels[0].entry}",
            origins=request.origins,
        )


def without_out_variants(names: Iterable[object]) -> Diagnostic:
    """The gap of a program that was exported without `ToOutVarPass`."""
    texts = sorted(map(str, names))
    return Diagnostic.of(
        "no-kernel",
        f"no kernel for {_several(texts)}: kernels write into an out argument",
        expected="the out variants, which ExecuTorch's ToOutVarPass calls",
        hint="export again without to_out_var_pass in ExecutorchBackendConfig, so that"
        " to_executorch runs this pass",
    )


def _known_dtypes(kernel: Kernel, arguments: Sequence[str]) -> str:
    """Dtypes a kernel takes for the arguments in question."""
    taken = [(name, dtypes) for name, dtypes in kernel.dtypes if name in arguments]
    texts = [f"{dtype_names(dtypes)} for {name}" for name, dtypes in taken]
    if len({dtypes for _, dtypes in taken}) == 1:
        texts = [f"{dtype_names(taken[0][1])} for {' and '.join(arguments)}"]
    return f"{kernel.library} takes {'; '.join(texts)}"


def _needed_by(origins: Sequence[Origin]) -> Notes:
    """One note per method or profile key, with the first instructions."""
    methods: dict[tuple[str, str], list[int]] = {}
    for origin in origins:
        calls = methods.setdefault((origin.source, origin.method), [])
        if origin.instruction >= 0:
            calls.append(origin.instruction)
    notes = []
    for (source, method), instructions in methods.items():
        text = f'model "{source}", method "{method}"' if method else source
        if instructions:
            word = "instruction" if len(instructions) == 1 else "instructions"
            text += f", {word} {_several(instructions)}"
        notes.append(("needed by", text))
    more = len(notes) - _SHOWN
    if more > 0:
        notes[_SHOWN:] = [("needed by", f"{more} more")]
    return tuple(notes)


def _several(items: Sequence[object]) -> str:
    shown = ", ".join(map(str, items[:_SHOWN]))
    more = len(items) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _is_overload(one: OperatorName, other: OperatorName) -> bool:
    return (one.namespace, one.base) == (other.namespace, other.base)


_REMEDIES: Final = {
    # A model given as Python is decomposed already: the first half is all that helps there.
    "aten": "compute it with operators that docs/operators.md lists, or add its kernel as"
    " docs/kernels.md shows; where you export yourself, exported.run_decompositions() or"
    " another lowering may do without it",
    "cortex_m": "export again with a version of ExecuTorch whose operators docs/operators.md lists",
    "quantized_decomposed": "docs/operators.md lists the quantized operators that have"
    " a kernel; quantize with another configuration, or leave this part in float",
    "torchao": 'give the model as Python (source = "FILE.py:CALLABLE" in the place of path) if only'
    " its weights are quantized, else quantize it otherwise; see docs/export.md",
}
"""What to do about an operator without kernel, by namespace."""
_DECOMPOSED: Final = frozenset(
    {
        *("addmv", "conv_tbc", "dequantize", "dist", "empty_permuted", "exp2"),
        *("fmax", "fmin", "ldexp", "native_channel_shuffle"),
    }
)
"""Operators that the export of a model's Python code computes with other kernels.

Source: those of PyTorch's operator database without a kernel whose export by
`export/decompose.py` leaves none; tests/interop/test_decompose.py has the functions.
"""
_FROM_SOURCE: Final = (
    'give the model as Python (source = "FILE.py:CALLABLE" in the place of path):'
    " export then computes it with operators that have a kernel; see docs/export.md"
)
_REAL_NUMBERS: Final = (
    "compute it with real numbers, as torch.complex(z.abs().log(), z.angle()) for torch.log(z); or"
)
_OWN_OPERATOR: Final = "add its kernel with [[kernels.custom]]; docs/kernels.md shows how"


# Requests for kernels: calls of models, and keys and dtypes of the profile.


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One call, or one kernel key requested outside models.

    Args:
        key: Its kernel key.
        calls: The call; for a key, every call it can stand for.
        origins: What requests it.
        is_dtype: It is for a dtype in any dim order, and the key made up.
    """

    key: KernelKey
    calls: tuple[CallPattern, ...]
    origins: tuple[Origin, ...]
    is_dtype: bool = False

    @property
    def keys(self) -> tuple[KernelKey, ...]:
        """Kernel key to show; none if there is no real one."""
        return () if self.is_dtype else (self.key,)

    def taken_by(self, kernel: Kernel) -> list[CallPattern]:
        """Calls that a kernel serves."""
        return [call for call in self.calls if takes(kernel, call)]
