"""Stages extract, aggregate and resolve: the selected operators and their kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from orchestrator.build.libraries import decoded
from orchestrator.build.reading import OperatorFile
from orchestrator.catalog import Catalog, LibraryText, read_catalog
from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.errors import Diagnostic, ProfileError, SourceSpan
from orchestrator.profile.kernels import DtypesTable, KernelsTable, OperatorsTable
from orchestrator.program.program import Program
from orchestrator.selection.extract import aggregate, check_library_overlap, check_overlap, extract
from orchestrator.selection.op_info import OpInfo, Origin, SelectedOperator, Selection
from orchestrator.selection.resolution import DelegateCode, Resolution
from orchestrator.selection.resolve import check_calls, resolve


def extract_program(*, model: str, program: Program) -> OpInfo:
    """Stage extract, for one model."""
    return extract(program, model=model)


def read_operator_lists(*, operator_files: Sequence[OperatorFile]) -> tuple[Selection, ...]:
    """The operators in files of `operators.include_yaml`. Raises ProfileError."""
    if not operator_files:
        return ()
    from orchestrator.selection.selection_yaml import read_operator_list  # noqa: PLC0415  # YAML

    lists: list[Selection] = []
    problems: list[Diagnostic] = []
    for file in operator_files:
        try:
            found = read_operator_list(
                decoded(file.data, file=file.path),
                file=file.path,
                origin=Origin(source="operators.include_yaml"),
            )
            lists.append(found)
        except ProfileError as error:
            note = ("named by", str(file.where))
            problems += [replace(d, notes=(*d.notes, note)) for d in error.diagnostics]
    # A file that is listed twice has each problem once.
    ProfileError.raise_if(tuple(dict.fromkeys(problems)))
    return tuple(lists)


def aggregate_selection(
    *,
    op_infos: Mapping[str, OpInfo],
    operators: OperatorsTable,
    selector: Selector,
    span: Callable[..., SourceSpan],
) -> Selection:
    """Stage aggregate. Raises ProfileError, and KernelError for an overlap."""
    infos = list(op_infos.values())
    if operators.overlap.value == "error":
        check_overlap(infos, where=span("operators", "overlap"))
    return selector(infos)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Selects the operators of models, and those that profile and lists name."""

    operators: OperatorsTable
    dtypes: DtypesTable
    operator_lists: Sequence[Selection]

    def __call__(self, infos: Iterable[OpInfo]) -> Selection:
        """The selection for the calls of models. Raises ProfileError."""
        listed = [operator for found in self.operator_lists for operator in found.operators]
        named = _named_by_profile(self.operators, self.dtypes)
        every = self.operators.every or any(f.every_operator for f in self.operator_lists)
        return replace(aggregate(infos, [*named, *listed]), every_operator=every)


def _named_by_profile(operators: OperatorsTable, dtypes: DtypesTable) -> Iterator[SelectedOperator]:
    """Operators that the profile names one by one."""
    include = Origin(source="operators.include")
    for name in operators.include:
        yield SelectedOperator(name=name, every_dtype=True, origins=(include,))
    by_key = Origin(source="dtypes.operators")
    for request in dtypes.operators:
        yield SelectedOperator(
            name=request.operator, keys=request.keys, dtypes=request.dtypes, origins=(by_key,)
        )


def read_kernels(
    *, library_texts: Sequence[LibraryText], kernels: KernelsTable, span: Callable[..., SourceSpan]
) -> Catalog:
    """Kernels of the profile's libraries. Raises ProfileError."""
    catalog = read_catalog(library_texts, kernels.operators)
    offered = dict(catalog.libraries)
    problems = [
        Diagnostic.of(
            "bad-choice",
            f"the kernel library {name} has no kernel of {operator}",
            where=span("kernels", "operators", str(operator)),
            expected=f"a library with a kernel of {operator}",
            hint=f'remove "{name}" there',
        )
        for operator, names in kernels.operators
        for name in names
        if all(kernel.operator != operator for kernel in offered.get(name, ()))
    ]
    ProfileError.raise_if(problems)
    return catalog


def name_offered(
    *, library_texts: Sequence[LibraryText], kernels: KernelsTable, span: Callable[..., SourceSpan]
) -> Callable[[], Mapping[str, OpSchema]]:
    """Gives the operators that have kernels; it raises ProfileError."""

    @cache
    def offered() -> Mapping[str, OpSchema]:
        catalog = read_kernels(library_texts=library_texts, kernels=kernels, span=span)
        return {str(n): catalog.offers(n)[0][0].schema for n in catalog.operators}

    return offered


def resolve_selection(
    *,
    programs: Mapping[str, Program],
    op_infos: Mapping[str, OpInfo],
    selection: Selection,
    catalog: Catalog,
    kernel_finder: KernelFinder,
    operators: OperatorsTable,
    span: Callable[..., SourceSpan],
    origin_span: Callable[[Origin], SourceSpan | None],
) -> Resolution:
    """Stage resolve. Raises KernelError with every gap."""
    if operators.overlap.value == "error":
        where = span("operators", "overlap")
        check_library_overlap(selection, catalog, where=where)
    resolution = kernel_finder(selection)
    check_calls(
        programs,
        op_infos.values(),
        resolution,
        catalog,
        span_of=origin_span,
        allow_missing=allowed_missing(operators),
    )
    return resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelFinder:
    """Finds kernels as the profile wants them."""

    catalog: Catalog
    delegates: Sequence[DelegateCode]
    operators: OperatorsTable
    dtypes: DtypesTable
    origin_span: Callable[[Origin], SourceSpan | None]
    every_library: Callable[[], Catalog]

    def __call__(self, selection: Selection) -> Resolution:
        """Kernels for a selection. Raises KernelError."""
        return resolve(
            selection,
            self.catalog,
            every_dtype=self.dtypes.select.value == "all",
            span_of=self.origin_span,
            elsewhere=self.every_library,
            allow_missing=allowed_missing(self.operators),
            delegates=self.delegates,
        )


def allowed_missing(operators: OperatorsTable) -> list[str]:
    """Names of operators and backends that `operators.allow_missing` can mean."""
    return [name for item in operators.allow_missing for name in allowed_names(item)]


def allowed_names(allowed: str) -> tuple[str, ...]:
    """The names that an item of `operators.allow_missing` can mean."""
    return (allowed, str(OperatorName.parse(allowed)))
