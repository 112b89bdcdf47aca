"""Build folders of variants of a product, which reuse its objects.

They lie in the build's work folder and touch nothing that is published. A variant
starts as a copy of ninja's folder, with the times of all files, so that ninja compiles
only what differs; when the product was compiled again since, it is copied again.
A copy gets its final name when it is complete; a variant's build is atomic, too.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from orchestrator.shell.build_folder import EVALUATIONS, VARIANTS, WORK, claim
from orchestrator.shell.files import DISK
from orchestrator.shell.stamp import STAMP_NAME, shared_file

_KEPT = 4  # variants; each is a copy of the product's objects
_SEED = "seed"
_NOT_COPIED = (VARIANTS, EVALUATIONS, STAMP_NAME, shared_file(STAMP_NAME))


def variant_folder(work: Path, name: str) -> Path:
    """The build folder of a variant, ready for its build.

    Args:
        work: Work folder of the product, whose build folder is locked.
        name: Name of the variant; an existing folder is reused.
    """
    variants = work / VARIANTS
    folder = variants / hashlib.sha256(name.encode()).hexdigest()[:12]
    _seed(work, folder)
    _forget(variants, keep=folder)
    return folder


def _seed(work: Path, folder: Path) -> None:
    """Copy the product's folder for a variant, unless these objects were copied."""
    log = work / ".ninja_log"
    # ninja logs every compile and link step.
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
    """Copy ninja's folder with the times of its files, so that objects stay current."""
    shutil.copytree(
        work,
        copy,
        symlinks=True,
        ignore=lambda path, _: list(_NOT_COPIED) if path == str(work) else [],
    )


def _forget(variants: Path, *, keep: Path) -> None:
    """Remove the oldest variants."""
    keep.touch()
    others = [path for path in variants.iterdir() if path != keep]
    others.sort(key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for path in others[_KEPT - 1 :]:
        shutil.rmtree(path, ignore_errors=True)
