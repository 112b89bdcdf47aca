"""Builds beside a build: variants of a product, out of its objects.

They lie in the build's work folder and touch nothing that is published. A variant
starts as a copy of ninja's folder, with the times of all files, so that ninja compiles
only what is different; when the product was compiled anew since, the copy is made anew.
A copy gets its name when it is complete, and a variant's build is as atomic as any.
"""

from __future__ import annotations

import hashlib
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestrator.build.inputs import BuildOptions
from orchestrator.errors import Diagnostic, UsageError
from orchestrator.shell.build_folder import VARIANTS, WORK, claim, exclusive
from orchestrator.shell.files import DISK
from orchestrator.shell.stamp import STAMP_NAME

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from orchestrator.build.pipeline import Pipeline
    from orchestrator.build.variant import Variant
    from orchestrator.measure.size import SizeReport
    from orchestrator.profile import Profile
    from orchestrator.shell.reporter import Reporter

_KEPT = 4
_SEED = "seed"


def what_if(
    base: Pipeline, variant: Variant, reporter: Reporter
) -> tuple[SizeReport, SizeReport]:
    """What a product costs, and what it would cost with a change.

    The variant is really built. Outputs, lock and notes of the product stay as they
    are; another build of it waits.

    Raises:
        OrchestratorError: The product is not built as it is now (`no-report`,
            `stale-build`), the change makes no sense (see `Variant.of`), or the variant
            cannot be built.
    """
    with built(base) as now:
        profile = variant.of(base.profile, now.operators)
        return now, build_beside(base, profile, variant.text, reporter)


@contextmanager
def built(base: Pipeline) -> Iterator[SizeReport]:
    """What a product costs; its build folder is locked meanwhile.

    Raises:
        UsageError: It is not built (`no-report`), or not as it is now (`stale-build`).
    """
    remedy = f"run `orchestrator build {base.profile.file}` first"
    if not (base.folder / "report.json").is_file():
        raise UsageError(
            Diagnostic(
                code="no-report",
                message=f"{base.profile.name} is not built",
                notes=(("expected", f"{base.folder / 'report.json'}"),),
                hint=remedy,
            )
        )
    with exclusive(base.folder):
        now = base.current_report()
        if now is None:
            raise UsageError(
                Diagnostic(
                    code="stale-build",
                    message=f"something changed since {base.profile.name} was built",
                    notes=(("found", f"an older build in {base.folder}"),),
                    hint=remedy,
                )
            )
        yield now


def build_beside(
    base: Pipeline, profile: Profile, name: str, reporter: Reporter
) -> SizeReport:
    """Size of a variant, as `variant_beside` builds it."""
    return variant_beside(base, profile, name, reporter)[1]


def variant_beside(
    base: Pipeline, profile: Profile, name: str, reporter: Reporter
) -> tuple[Path, SizeReport]:
    """Build a variant of a product whose build folder is locked.

    Args:
        base: The product; its objects are used where they fit.
        profile: Of the variant.
        name: Of the variant; one of the same name is built upon.
        reporter: Hears of the steps that run.

    Returns:
        The variant's build folder, whole while the product's is locked, and its size.

    Raises:
        OrchestratorError: Of the stage that failed.
    """
    variants = base.work / VARIANTS
    folder = variants / hashlib.sha256(name.encode()).hexdigest()[:12]
    _seed(base.work, folder)
    _forget(variants, keep=folder)
    options = BuildOptions(out=folder, jobs=base.options.jobs, write_lock=False)
    return folder, type(base)(profile, options).build(_Steps(reporter)).report


class _Steps:
    """Tells of the steps only: what there is to say of the product was said of it."""

    def __init__(self, reporter: Reporter) -> None:
        self.stage = reporter.stage
        self.skipped = reporter.skipped
        self.progress = reporter.progress
        self.close = reporter.close

    def note(self, text: str) -> None:
        """Ignore."""

    def explained(self, text: str) -> None:
        """Ignore."""


def _seed(work: Path, folder: Path) -> None:
    """Make a variant's folder out of the product's, unless it came of these objects."""
    log = work / ".ninja_log"
    # Whatever was compiled or linked since is in there.
    mark = hashlib.sha256(log.read_bytes() if log.exists() else b"").hexdigest()
    seed = folder / _SEED
    if seed.is_file() and seed.read_text() == mark:
        return
    staging = folder.with_name(f"{folder.name}.tmp")
    for old in (staging, folder):
        DISK.remove(old)
    claim(staging)
    copy_work(work, staging / WORK)
    (staging / _SEED).write_text(mark)
    staging.replace(folder)


def copy_work(work: Path, copy: Path) -> None:
    """Copy ninja's folder with the times of its files, so that nothing is stale."""
    shutil.copytree(
        work,
        copy,
        symlinks=True,
        ignore=lambda path, _: [VARIANTS, STAMP_NAME] if path == str(work) else [],
    )


def _forget(variants: Path, *, keep: Path) -> None:
    """Remove the variants that were not asked about for longest."""
    keep.touch()
    others = [path for path in variants.iterdir() if path != keep]
    others.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in others[_KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)
