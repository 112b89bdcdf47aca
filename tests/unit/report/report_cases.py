"""Facts of corpus programs for the tests of the page, without a compiler."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from orchestrator.catalog import Catalog, LibraryText, read_catalog
from orchestrator.measure.size import ContributorKind, SizeReport
from orchestrator.method.passes import PASSES, link_program, run_passes
from orchestrator.report import ReportFacts, report_facts
from orchestrator.selection.extract import aggregate, extract
from orchestrator.selection.resolution import Resolution
from orchestrator.selection.resolve import resolve
from orchestrator.shell import sources
from tests.unit.measure.measure_cases import case as linked_case
from tests.unit.products import memory_of, program_of, target_of

NO_KERNELS = frozenset({"xnnpack_partial"})
"""Cases that no library serves."""


@cache
def _catalog() -> Catalog:
    """All kernels of the project."""
    names = sorted(sources.library_names())
    texts = {name: sources.library_file(name).read_text() for name in names}
    return read_catalog([LibraryText(name=n, file=n, text=text) for n, text in texts.items()])


def _resolution(*cases: str) -> Resolution:
    infos = [extract(program_of(case), model=case) for case in cases]
    return resolve(aggregate(infos, []), _catalog(), every_dtype=False, span_of=lambda _: None)


def size_of(cpu: str, models: dict[str, int]) -> SizeReport:
    """A measured firmware with other models in it."""
    report = linked_case({"host": "host-zig", "cortex-m55": "m55-zig"}[cpu]).measure()
    others = [c for c in report.contributors if c.kind is not ContributorKind.MODEL]
    (model, *_) = (c for c in report.contributors if c.kind is ContributorKind.MODEL)
    found = [replace(model, name=name, flash_bytes=count) for name, count in models.items()]
    flash = sum(c.flash_bytes for c in (*found, *others))
    return replace(
        report,
        contributors=(*found, *others),
        totals=replace(report.totals, flash_bytes=flash, model_bytes=sum(models.values())),
    )


@cache
def facts_of(
    *cases: str, cpu: str = "host", prelinked: bool = False, budget: int | None = None
) -> ReportFacts:
    """The facts of a product with the programs of these cases."""
    programs = {case: program_of(case) for case in cases}
    target = target_of(cpu, "zig")
    memory = memory_of(programs, target)
    has_kernels = NO_KERNELS.isdisjoint(cases)
    resolution = _resolution(*cases) if cases and has_kernels else Resolution()
    linked = {}
    if prelinked:
        for case, program in programs.items():
            info = extract(program, model=case)
            methods = link_program(program, info, resolution, where=None)
            linked[case] = tuple(
                run_passes(
                    *(m, list(PASSES)),
                    planned=False,
                    plans=True,
                    isa={"cortex-m55": "mve"}.get(cpu, ""),
                )
                for m in methods
            )
    size = size_of(cpu, {m.model: m.program_bytes for m in memory.models})
    return report_facts(
        size=size,
        memory=memory,
        originals=programs,
        programs=programs,
        linked=linked,
        rewritten={},
        resolution=resolution,
        board=target.board,
        budget_flash=budget,
        budget_ram=budget,
    )
