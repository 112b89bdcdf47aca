"""The facts about a product from which `why` and `why --not` answer."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace

from orchestrator.build import inputs, table
from orchestrator.build.engine import Build
from orchestrator.build.project import Project
from orchestrator.build.report_file import last_report
from orchestrator.catalog import Catalog
from orchestrator.errors import KernelError, MemoryPlanError, ModelError
from orchestrator.explain import Facts, Outcome
from orchestrator.measure.size import SizeReport
from orchestrator.selection.op_info import SelectedOperator
from orchestrator.selection.resolution import Resolution
from orchestrator.selection.resolve import resolve


def selection_facts(project: Project, build: Build) -> Facts:
    """Collect the facts for an answer; needs no compiler.

    Gaps do not raise: the facts hold them.

    Raises:
        OrchestratorError: A stage before resolve failed, or the report is
            damaged (`bad-report`).
    """
    before = selection = build[table.AGGREGATE]
    catalog, delegates = build[table.CATALOG], build[inputs.DELEGATES]
    every_dtype = build[inputs.DTYPES].select.value == "all"
    every_library = build[inputs.EVERY_LIBRARY]()

    def resolve_one(selected: SelectedOperator, catalog: Catalog) -> Outcome:
        try:
            resolution = resolve(
                # One operator at a time: its gaps do not hide those of others.
                replace(selection, operators=(selected,), delegates=(), every_operator=False),
                catalog,
                every_dtype=every_dtype,
                span_of=build[inputs.ORIGIN_SPAN],
                elsewhere=lambda: every_library,
            )
        except KernelError as error:
            return Outcome(gaps=error.diagnostics)
        return Outcome(bindings=tuple(b for o in resolution.operators for b in o.bindings))

    gaps = []
    try:
        resolution = build[table.RESOLVE]
        # Programs that cannot be built are shown as they are.
        # `why` answers about selection, which is known before memory is planned.
        with suppress(MemoryPlanError, ModelError):
            adapted = build[table.REPLAN]
            selection, resolution = adapted.selection, adapted.resolution
        allowed = {m.name for m in resolution.missing}
        gaps = [
            (selected.name, resolve_one(selected, catalog).gaps)
            for selected in selection.operators
            if str(selected.name) in allowed
        ]
    except KernelError:
        known = {code.backend for code in delegates}
        served = []
        for selected in selection.operators:
            if outcome := resolve_one(selected, catalog).gaps:
                gaps.append((selected.name, outcome))
            else:
                served.append(selected)
        resolution = resolve(
            replace(
                selection,
                operators=tuple(served),
                delegates=tuple(
                    (backend, origins)
                    for backend, origins in selection.delegates
                    if backend in known
                ),
            ),
            catalog,
            every_dtype=every_dtype,
            span_of=build[inputs.ORIGIN_SPAN],
            delegates=delegates,
        )
        # With `operators.all` an operator with gaps is linked although no call uses it;
        # it is shown as a gap.
        missing = {name for name, _ in gaps}
        resolution = Resolution(
            operators=tuple(o for o in resolution.operators if o.name not in missing),
            sources=resolution.sources,
            table_entries=tuple(e for e in resolution.table_entries if e.operator not in missing),
            delegates=resolution.delegates,
        )
    return Facts(
        profile=project.profile.name,
        file=str(project.profile.file),
        selection=selection,
        resolution=resolution,
        gaps=tuple(gaps),
        catalog=catalog,
        elsewhere=every_library,
        resolve=resolve_one,
        report=_report(project),
        named_data=tuple(
            (n, *d) for n, p in build[inputs.PROGRAMS].items() for d in p.delegate_data
        ),
        left_out=frozenset(
            {o.name for o in before.operators} - {o.name for o in selection.operators}
        ),
    )


def _report(project: Project) -> SizeReport | None:
    """The report of the last build; None if there is none."""
    is_built = os.path.lexists(project.reports / "report.json")
    return last_report(project)[1] if is_built else None
