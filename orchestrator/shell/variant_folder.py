"""Folders of builds beside a build: variants of a product, out of its objects.

They lie in the build's work folder and touch nothing that is published. A variant
starts as a copy of ninja's folder, with the times of all files, so that ninja compiles
only what is different; when the product was compiled anew since, the copy is made anew.
A copy gets its name when it is complete, and a variant's build is as atomic as any.
"""

from __future__ import annotations

import hashlib
import shutil
from typing import TYPE_CHECKING

from orchestrator.shell.build_folder import VARIANTS, WORK, claim
from orchestrator.shell.files import DISK
from orchestrator.shell.stamp import STAMP_NAME

if TYPE_CHECKING:
    from pathlib import Path

_KEPT = 4
_SEED = "seed"


def variant_folder(work: Path, name: str) -> Path:
    """The build folder of a variant, ready for its build.

    Args:
        work: Work folder of the product, whose build folder is locked.
        name: Of the variant; a folder of the same name is built upon.
    """
    variants = work / VARIANTS
    folder = variants / hashlib.sha256(name.encode()).hexdigest()[:12]
    _seed(work, folder)
    _forget(variants, keep=folder)
    return folder


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
    """Remove the variants that were built longest ago."""
    keep.touch()
    others = [path for path in variants.iterdir() if path != keep]
    others.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in others[_KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)
