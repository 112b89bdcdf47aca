"""Calls to kernels, library by library."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.catalog.entry import Catalog
from orchestrator.catalog.scratch_arguments import missing_size, scratch_arguments
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import Kernel, KernelKey, TensorMeta
from orchestrator.errors import Diagnostic, KernelError, SourceSpan
from orchestrator.selection.call import calls_of_key, misfit, takes, tensor_names
from orchestrator.selection.op_info import CallPattern, Origin, SelectedOperator, Selection
from orchestrator.selection.resolution import (
    Binding,
    DelegateCode,
    Resolution,
    ResolvedDelegate,
    ResolvedOperator,
    TableEntry,
)
from orchestrator.selection.resolve.gaps import Gaps, Request

EVERY_OPERATOR = Origin(source="operators.all")
"""Origin of kernels that only `Selection.every_operator` selects."""


def resolve(
    selection: Selection,
    catalog: Catalog,
    *,
    every_dtype: bool,
    span_of: Callable[[Origin], SourceSpan | None],
    elsewhere: Callable[[], Catalog] | None = None,
    allow_missing: Collection[str] = (),
    delegates: Collection[DelegateCode] = (),
) -> Resolution:
    """Find a kernel for everything that is selected.

    A call goes to the first library, in the catalog's order, that has a kernel
    specialised for its kernel key or else a fallback kernel that takes its dtypes and
    dim orders. All calls of one operator with one kernel key share a kernel, because
    the device distinguishes them only by key. An operator that a program lists but
    never calls needs none.

    Args:
        selection: What models and profile ask for, in any order.
        catalog: Kernels on offer.
        every_dtype: Instantiate every dtype a chosen kernel has (`dtypes.select` is
            "all"), not only those of known calls.
        span_of: The profile line of a request.
        elsewhere: Kernels of libraries the profile does not use, for hints; called
            only if an operator is unknown.
        allow_missing: Operators and backends whose gaps are no errors. Calls of such an
            operator find a kernel on the device if they are served.
        delegates: Those of the profile.

    Returns:
        Kernels and delegates to link; on the device every call of `selection` finds the
        kernel it was given here.

    Raises:
        KernelError: Every gap: `no-kernel`, `no-kernel-for-dtype`,
            `no-kernel-for-dim-order`, `call-mismatch`, `ambiguous-kernel` and
            `no-delegate`; else `duplicate-function`; else `missing-scratch-size`.
    """
    gaps = Gaps(catalog, span_of, elsewhere, allow_missing)
    wanted = {selected.name: selected for selected in selection.operators}
    if selection.every_operator:
        for name in catalog.operators:
            wanted.setdefault(name, SelectedOperator(name=name))
    operators = []
    entries: list[TableEntry] = []
    for name in sorted(wanted, key=str):
        linker = _Linker(
            wanted[name],
            catalog.offers(name),
            every_kernel=selection.every_operator,
            every_dtype=every_dtype,
        )
        bindings = linker.link(gaps)
        if bindings:
            schema = bindings[0].kernel.schema
            operators.append(ResolvedOperator(name=name, schema=schema, bindings=bindings))
            entries += linker.entries(bindings)
    known = {code.backend: code for code in delegates}
    linked = []
    for backend, origins in sorted(selection.delegates):
        if backend in known:
            linked.append(ResolvedDelegate(code=known[backend], origins=tuple(sorted(origins))))
        else:
            gaps.no_delegate(backend, known, origins)
    if problems := gaps.diagnostics():
        raise KernelError(problems)
    used: dict[str, set[str]] = {}
    for binding in (b for operator in operators for b in operator.bindings):
        used.setdefault(binding.kernel.library, set()).update(binding.kernel.sources)
    # Only once there are no gaps: what is linked then is certain.
    if problems := duplicate_functions(catalog, used) or _missing_sizes(operators):
        raise KernelError(problems)
    return Resolution(
        operators=tuple(operators),
        sources=tuple((name, tuple(sorted(used[name]))) for name in sorted(used)),
        table_entries=tuple(entries),
        missing=gaps.missing(),
        delegates=tuple(linked),
    )


def _missing_sizes(operators: Iterable[ResolvedOperator]) -> list[Diagnostic]:
    """Entries of linked kernels with scratch arguments and no sizes for them."""
    kernels = [b.kernel for operator in operators for b in operator.bindings]
    return [
        missing_size(kernel)
        for kernel in {kernel.entry: kernel for kernel in kernels}.values()
        if len(kernel.scratch) < len(scratch_arguments(kernel.schema))
    ]


@dataclass(slots=True)
class _Link:
    """What a kernel is linked for."""

    calls: list[CallPattern] = field(default_factory=list)
    keys: set[KernelKey] = field(default_factory=set)
    origins: set[Origin] = field(default_factory=set)


def _call_with(kernel: Kernel, dtype: ScalarType, listed: tuple[ScalarType, ...]) -> CallPattern:
    """A call that has a dtype in every deciding argument that takes it.

    Deciding arguments that do not take it, such as the output of a conversion, have
    those of the `listed` dtypes that they take; other arguments have all of theirs. If
    there are none, or if no argument takes it, the call has `dtype` there, and the
    kernel does not serve the call.
    """
    taken = dict(kernel.dtypes)
    arguments = enumerate(kernel.schema.arguments)
    named = [(i, a.name) for i, a in arguments if a.name in taken]
    deciding = [n for _, n in named if n in kernel.dtype_arguments]
    partners = listed if any(dtype in taken[n] for n in deciding) else ()
    given = {
        n: [dtype] * (dtype in taken[n]) or [d for d in partners if d in taken[n]] or [dtype]
        for n in deciding
    }
    return CallPattern(
        kinds="",
        tensors=tuple((i, TensorMeta(given[n][0], ())) for i, n in named if n in given),
        list_items=tuple(
            (i, TensorMeta(other, ()))
            for i, n in named
            for other in (given[n][1:] if n in given else sorted(taken[n]))
        ),
    )


class _Linker:
    """Links kernels of one operator.

    Kernels are named by their index in the order in which they are tried.
    """

    def __init__(
        self,
        selected: SelectedOperator,
        offers: tuple[tuple[Kernel, ...], ...],
        *,
        every_kernel: bool,
        every_dtype: bool,
    ) -> None:
        self.selected = selected
        self.kernels = [
            kernel
            for of_library in offers
            # A library's specialised kernels are tried before its fallback, but a library named
            # first wins with either.
            for kernel in sorted(of_library, key=lambda k: (not k.keys, k.keys))
        ]
        self.every_kernel = every_kernel or selected.every_dtype
        self.every_dtype = every_dtype or self.every_kernel
        self.links: dict[int, _Link] = {}
        # The device's table: kernel by key; None for all other keys.
        self.slots: dict[KernelKey | None, int] = {}
        outside = {o for o in selected.origins if not o.method}
        self.outside = outside | ({EVERY_OPERATOR} if every_kernel else set())

    def link(self, gaps: Gaps) -> tuple[Binding, ...]:
        """Bind every call, or note the gaps."""
        selected = self.selected
        needed = bool(selected.patterns or selected.keys or selected.dtypes or selected.every_dtype)
        if needed and not self.kernels:
            called = {o for _, origins in selected.patterns for o in origins}
            gaps.no_kernel(selected.name, called | self.outside, selected.all_keys)
        if not self.kernels or not (needed or self.every_kernel):
            return ()
        claims = self._bind(gaps)
        self._fill_slots(claims, by_key_only=gaps.has(selected.name))
        return tuple(
            self._binding(self.kernels[index], link) for index, link in sorted(self.links.items())
        )

    def _requests(self, gaps: Gaps) -> dict[KernelKey, list[Request]]:
        name = self.selected.name
        # All kernels of an operator have its schema: the catalog has checked that.
        kernel = self.kernels[0]
        requests: dict[KernelKey, list[Request]] = {}
        for call, origins in sorted(self.selected.patterns):
            if reason := misfit(kernel.schema, call.kinds):
                gaps.call_mismatch(name, kernel, reason, origins)
            else:
                request = Request(key=call.key, calls=(call,), origins=origins)
                requests.setdefault(call.key, []).append(request)
        for key in sorted(self.selected.keys):
            origins = tuple(sorted(self.outside))
            if calls := calls_of_key(kernel.schema, key):
                request = Request(key=key, calls=calls, origins=origins)
                requests.setdefault(key, []).append(request)
            else:
                reason = f"kernel key {key} does not have its tensors"
                gaps.call_mismatch(name, kernel, reason, origins)
        return requests

    def _bind(self, gaps: Gaps) -> dict[KernelKey, int]:
        """Kernel of each requested kernel key."""
        claims = {}
        for key, requests in self._requests(gaps).items():
            chosen = self._choose(requests)
            if chosen is None:
                # Each of them may be served, and all of them by no single kernel.
                alone = [r for r in requests if self._choose([r]) is None]
                for request in alone:
                    gaps.unserved(self.selected.name, self.kernels, request)
                if not alone:
                    gaps.ambiguous(self.selected.name, key, requests)
                continue
            claims[key] = chosen
            link = self.links.setdefault(chosen, _Link())
            link.keys.add(key)
            for request in requests:
                link.calls += request.taken_by(self.kernels[chosen])
                link.origins.update(request.origins)
        for dtype in self.selected.dtypes:
            self._bind_dtype(dtype, gaps)
        return claims

    def _bind_dtype(self, dtype: ScalarType, gaps: Gaps) -> None:
        """Link the first fallback kernel that takes a dtype, in any dim order."""
        origins = tuple(sorted(self.outside))
        for index, kernel in enumerate(self.kernels):
            call = _call_with(kernel, dtype, self.selected.dtypes)
            if not kernel.keys and takes(kernel, call):
                link = self.links.setdefault(index, _Link())
                link.calls.append(call)
                link.origins.update(origins)
                return
        call = _call_with(self.kernels[0], dtype, self.selected.dtypes)
        request = Request(key=call.key, calls=(call,), origins=origins, is_dtype=True)
        gaps.unserved(self.selected.name, self.kernels, request)

    def _choose(self, requests: Sequence[Request]) -> int | None:
        """The first kernel that serves all of them."""
        for index, kernel in enumerate(self.kernels):
            if all(request.taken_by(kernel) for request in requests):
                return index
        return None

    def _fill_slots(self, claims: dict[KernelKey, int], *, by_key_only: bool) -> None:
        """Decide by what the device finds each kernel.

        Only the first fallback kernel is found without a key. Calls of the others are
        found by their keys, since the device does not check whether the first accepts
        them. The same holds for calls that no kernel serves: if there are any, every
        call is found by its key.
        """
        # A fallback in the table would also be found by the calls that have a gap.
        if by_key_only:
            self.slots = dict(claims.items())
            unfound = self.links.keys() - self.slots.values()
            self.links = {i: k for i, k in self.links.items() if i not in unfound}
            return
        kernels = self.kernels
        fallbacks = [
            index
            for index, kernel in enumerate(kernels)
            if not kernel.keys and (self.every_kernel or index in self.links)
        ]
        for key, index in claims.items():
            # Calls of the first fallback need no entries: what has none goes there.
            if kernels[index].keys or index != fallbacks[0]:
                self.slots[key] = index
        for index, kernel in enumerate(kernels):
            if self.every_kernel or (self.every_dtype and index in self.links):
                # A kernel tried earlier has these keys.
                taken = claims.keys() | self.slots.keys()
                self._add(index, [key for key in kernel.keys if key not in taken])
        if fallbacks:
            self.slots[None] = fallbacks[0]
            if self.every_kernel:
                link = self.links.setdefault(fallbacks[0], _Link())
                link.origins |= self.outside

    def _add(self, index: int, keys: list[KernelKey]) -> None:
        """Let the device find a kernel by keys that no call of the product has."""
        for key in keys:
            link = self.links.setdefault(index, _Link())
            link.keys.add(key)
            if self.every_kernel:
                link.origins |= self.outside
            self.slots[key] = index

    def _binding(self, kernel: Kernel, link: _Link) -> Binding:
        deciding = set(kernel.dtype_arguments)
        of_argument: dict[str, set[ScalarType]] = {n: set() for n in deciding}
        table_dtypes = set()
        for call in link.calls:
            metas = (*call.tensors, *call.list_items)
            # The device checks all tensors of a call, code depends on those that decide.
            table_dtypes |= {meta.dtype for _, meta in metas}
            for name, meta in tensor_names(kernel.schema, call):
                if name in deciding:
                    of_argument[name].add(meta.dtype)
        if self.every_dtype:
            for name, taken in kernel.dtypes:
                table_dtypes |= taken
                if name in deciding:
                    of_argument[name] |= taken
        return Binding(
            kernel=kernel,
            keys=tuple(sorted(link.keys)),
            dtypes=kernel.closure.union(*of_argument.values()),
            argument_dtypes=tuple(
                (name, frozenset(of_argument[name])) for name in kernel.argument_sets
            ),
            table_dtypes=frozenset(table_dtypes),
            every_dtype=self.every_dtype,
            origins=tuple(sorted(link.origins)),
        )

    def entries(self, bindings: tuple[Binding, ...]) -> list[TableEntry]:
        """Entries of the kernel table: by key in order, then the fallback."""
        of_kernel = dict(zip(sorted(self.links), bindings, strict=True))
        keys = sorted(key for key in self.slots if key is not None)
        last: list[KernelKey | None] = [None] if None in self.slots else []
        return [
            TableEntry(
                operator=self.selected.name,
                key=key,
                function=of_kernel[self.slots[key]].kernel.function,
                signature=of_kernel[self.slots[key]].kernel.schema.signature,
                dtypes=of_kernel[self.slots[key]].table_dtypes,
            )
            for key in (*keys, *last)
        ]


def duplicate_functions(catalog: Catalog, used: Mapping[str, Collection[str]]) -> list[Diagnostic]:
    """Functions that sources of two libraries define: they cannot be linked together.

    Args:
        catalog: Kernels on offer.
        used: By library: the sources that are compiled.
    """
    first: dict[str, Kernel] = {}
    problems: dict[str, Diagnostic] = {}
    for library, kernels in catalog.libraries:
        for kernel in kernels:
            if set(kernel.sources).isdisjoint(used.get(library, ())):
                continue
            other = first.setdefault(kernel.function, kernel)
            if other.library != library:
                problems[kernel.function] = Diagnostic.of(
                    "duplicate-function",
                    f"two libraries define {kernel.function}",
                    first=f"{other.operator} in {other.entry}",
                    again=f"{kernel.operator} in {kernel.entry}",
                    hint=f"give {library} its own namespace",
                )
    return list(problems.values())
