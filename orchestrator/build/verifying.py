"""Build a product twice, and compare every published byte."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

from orchestrator.build.exporting import ExportChoice
from orchestrator.build.judging import need_equal
from orchestrator.build.locking import MACHINE_FILES
from orchestrator.build.product import BuildReport, build_product
from orchestrator.build.project import BuildOptions, Project, Shell
from orchestrator.errors import (
    Diagnostic,
    ReproducibilityError,
    SourceSpan,
    ToolchainError,
    UsageError,
)
from orchestrator.profile.tables import Profile
from orchestrator.shell.publish import published_files


def build_twice(
    profile: Profile, options: BuildOptions, shell: Shell
) -> tuple[BuildReport, list[str]]:
    """Build in place and in a fresh folder; every published byte must be the same.

    The product must also give the outputs of its program, where something here runs it.

    Args:
        profile: Of the product.
        options: Its build folder and jobs.
        shell: Tools to build with.

    Returns:
        Report of the build in place, and the files that were compared.

    Raises:
        ReproducibilityError: Some differ (`not-reproducible`).
        MismatchError: Outputs differ (`differs-from-program`).
        OrchestratorError: Of the stage that failed.
    """
    exact = replace(options, write_lock=False, trust_cache=False)
    with tempfile.TemporaryDirectory(prefix="orchestrator-verify-") as name:
        # A deeper folder, so that a difference in path lengths shows as well.
        elsewhere = Path(name) / "another" / "folder"
        here = build_product(Project(profile, exact), shell)
        exports = ExportChoice(cache=Path(name) / "exports")
        fresh = replace(exact, out=elsewhere, export=exports)
        build_product(Project(profile, fresh), shell)
        ours, theirs = published_files(here.folder), published_files(elsewhere)
    compared = sorted((ours.keys() | theirs.keys()) - MACHINE_FILES)
    different = [n for n in compared if ours.get(n) != theirs.get(n)]
    if different:
        raise ReproducibilityError(
            Diagnostic(
                code="not-reproducible",
                message=f"{len(different)} files differ between two builds",
                where=SourceSpan(file=str(profile.file)),
                notes=tuple(("differs", n) for n in different),
                hint="find what reaches the file from outside the profile: paths,"
                " times or the environment",
            )
        )
    try:
        need_equal(Project(profile, exact), shell)
    except (ToolchainError, UsageError) as error:
        codes = {problem.code for problem in error.diagnostics}
        if not codes <= {"no-emulator", "nothing-to-test", "unsupported-system"}:
            raise
        why = "; ".join(problem.message for problem in error.diagnostics)
        shell.reporter.note(f"not compared with its program: {why}")
    return here, compared
