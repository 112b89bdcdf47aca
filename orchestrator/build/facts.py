"""What is known of a product, for `why` and `why-not`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from orchestrator.build.selecting import product_resolution, product_selection
from orchestrator.errors import (
    Diagnostic,
    KernelError,
    MemoryPlanError,
    ModelError,
    UsageError,
)
from orchestrator.explain import Facts, Outcome
from orchestrator.selection.resolution import Resolution
from orchestrator.shell.files import read_text_file

if TYPE_CHECKING:
    from orchestrator.build.stages import Stages
    from orchestrator.catalog import Catalog
    from orchestrator.measure.size import SizeReport
    from orchestrator.selection.op_info import SelectedOperator


def selection_facts(stages: Stages) -> Facts:
    """Everything an answer is made of; needs no compiler.

    Gaps do not raise: the facts hold them.

    Raises:
        OrchestratorError: Of whatever comes before stage resolve; a report that is
            damaged (`bad-report`).
    """
    plan = stages.plan(with_toolchain=False)
    before = selection = stages.selection(plan)
    every_library = stages.every_library()

    def resolve_one(selected: SelectedOperator, catalog: Catalog) -> Outcome:
        from orchestrator.selection.resolve import resolve  # noqa: PLC0415

        try:
            resolution = resolve(
                replace(
                    selection, operators=(selected,), delegates=(), every_operator=False
                ),
                catalog,
                every_dtype=stages.profile.dtypes.select.value == "all",
                span_of=stages.span_of,
                elsewhere=lambda: every_library,
            )
        except KernelError as error:
            return Outcome(gaps=error.diagnostics)
        return Outcome(
            bindings=tuple(b for o in resolution.operators for b in o.bindings)
        )

    gaps = []
    try:
        resolution = stages.resolution(plan)
        # Of programs that cannot be built, as they are.
        with suppress(MemoryPlanError, ModelError):
            selection = product_selection(stages, plan)
            resolution = product_resolution(stages, plan)
        allowed = {m.name for m in resolution.missing}
        gaps = [
            (selected.name, resolve_one(selected, stages.catalog).gaps)
            for selected in selection.operators
            if str(selected.name) in allowed
        ]
    except KernelError:
        from orchestrator.selection.resolve import resolve  # noqa: PLC0415

        known = {code.backend for code in stages.libraries.delegates}
        served = []
        for selected in selection.operators:
            if outcome := resolve_one(selected, stages.catalog).gaps:
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
            stages.catalog,
            every_dtype=stages.profile.dtypes.select.value == "all",
            span_of=stages.span_of,
            delegates=stages.libraries.delegates,
        )
        # With operators.all those with gaps are linked for no call; they are gaps.
        missing = {name for name, _ in gaps}
        resolution = Resolution(
            operators=tuple(o for o in resolution.operators if o.name not in missing),
            sources=resolution.sources,
            table_entries=tuple(
                e for e in resolution.table_entries if e.operator not in missing
            ),
            delegates=resolution.delegates,
        )
    return Facts(
        profile=stages.profile.name,
        file=str(stages.profile.file),
        selection=selection,
        resolution=resolution,
        gaps=tuple(gaps),
        catalog=stages.catalog,
        elsewhere=every_library,
        resolve=resolve_one,
        report=_report(stages),
        left_out=frozenset(
            {o.name for o in before.operators} - {o.name for o in selection.operators}
        ),
    )


def _report(stages: Stages) -> SizeReport | None:
    """What the last build costs; None if there is none."""
    from orchestrator.measure.report import read_report  # noqa: PLC0415

    path = stages.folder / "report.json"
    try:
        text = read_text_file(path)
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            Diagnostic(
                code="no-report",
                message=f"{path} cannot be read",
                notes=(("found", getattr(error, "strerror", None) or str(error)),),
                hint=f"run `orchestrator build {stages.profile.file}` first",
            )
        ) from error
    return read_report(text, file=str(path))
