"""What-if: the cost of a product, and its cost with a change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from orchestrator.build import table
from orchestrator.build.product import build_variant, known_outputs
from orchestrator.build.project import Project, Shell, open_build
from orchestrator.build.report_file import last_report
from orchestrator.build.variant import Variant
from orchestrator.errors import UsageError
from orchestrator.measure.size import SizeReport
from orchestrator.shell.build_folder import exclusive


def what_if(project: Project, variant: Variant, shell: Shell) -> tuple[SizeReport, SizeReport]:
    """The cost of a product, and its cost with a change.

    The variant is really built. Outputs, lock and notes of the product do not
    change; another build of it waits.

    Raises:
        OrchestratorError: The product has no current build (`no-report`,
            `stale-build`), the change makes no sense (see `Variant.of`), or the variant
            cannot be built.
    """
    with built(project, shell) as now:
        profile = variant.of(project.profile, now.operators)
        return now, build_variant(project, profile, variant.text, shell).report


@contextmanager
def built(project: Project, shell: Shell) -> Iterator[SizeReport]:
    """The cost of a product; its build folder is locked meanwhile.

    Raises:
        UsageError: It is not built (`no-report`), or changed since (`stale-build`).
    """
    last_report(project)
    with exclusive(project.folder):
        build = open_build(project, shell)
        is_known = known_outputs(project, build) is not None
        report = build.remembered(table.MEASURE)
        if report is None or not (is_known or project.over_budget.is_dir()):
            raise UsageError.of(
                "stale-build",
                f"something changed since {project.profile.name} was built",
                found=f"an older build in {project.folder}",
                hint=f"run `orchestrator build {project.profile.named}` first",
            )
        yield report
