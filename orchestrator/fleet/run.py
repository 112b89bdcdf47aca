"""Do a command for many products: here, in worker processes, or on other machines."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from orchestrator.build import BuildOptions, Shell
from orchestrator.fleet.kind import Kind
from orchestrator.fleet.outcome import Outcome
from orchestrator.fleet.pool import outcomes
from orchestrator.fleet.task import Task, Work
from orchestrator.workspace import Product


def run_tasks(
    products: Sequence[Product],
    workspace: Path,
    kind: Kind | Work,
    options: BuildOptions,
    *,
    shell: Shell,
    scheduler: str | None = None,
) -> Iterator[Outcome]:
    """Outcomes of all products, as they are known.

    Args:
        products: They.
        workspace: Their `orchestrator.toml`.
        kind: What is done.
        options: Of builds; `jobs` are the processes of all products at a time, None
            for one per core.
        shell: Tools for what is done in this process.
        scheduler: Address of a Dask scheduler whose workers do it.
    """
    if scheduler is not None:
        from orchestrator.fleet.scheduler import scheduled_outcomes  # noqa: PLC0415

        given = replace(options, jobs=options.jobs or 1)
        shared = workspace.absolute().parent / "build"
        shared.mkdir(exist_ok=True)
    else:
        cores = options.jobs or _usable_cores()
        workers = min(cores, len(products))
        given = replace(options, jobs=max(1, cores // workers))
        shared = None
    with TemporaryDirectory(prefix=".orchestrator-", dir=shared) as command:
        tasks = [
            Task(
                kind=kind,
                workspace=workspace,
                product=product,
                options=given,
                command=Path(command),
            )
            for product in products
        ]
        if scheduler is not None:
            yield from scheduled_outcomes(tasks, scheduler)
        else:
            yield from outcomes(tasks, workers=workers, shell=shell)


def _usable_cores() -> int:
    """Cores that this process may run on; where the system does not say, all."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
