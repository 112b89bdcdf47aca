"""Many firmwares built and measured, two at a time."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from benchmarks import counting
from benchmarks.table import Findings, NotMeasuredError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Key = TypeVar("Key")
Measured = TypeVar("Measured")


def measure_all(
    keys: Iterable[Key],
    measure: Callable[[Path, Key, Path | None], Measured | str],
    findings: Findings,
) -> list[Measured]:
    """What is measured of each; why something is not goes to the findings.

    Args:
        keys: What is told apart.
        measure: Builds and measures one in a folder it may use, with QEMU's plugin if
            there is one; a text says why nothing could be measured.
        findings: Gets the reasons.
    """
    try:
        plugin: Path | None = counting.plugin_file()
    except NotMeasuredError as missing:
        plugin = None
        findings.missing.append(f"instructions: {missing}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with ThreadPoolExecutor(max_workers=2) as pool:
            found = list(pool.map(lambda key: measure(folder, key, plugin), keys))
    findings.missing += [reason for reason in found if isinstance(reason, str)]
    return [m for m in found if not isinstance(m, str)]
