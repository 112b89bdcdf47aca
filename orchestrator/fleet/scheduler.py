"""Do many tasks on the workers of a Dask scheduler; results come as they are known.

Workers are ordinary `dask worker` processes, on any machine that has the same
Orchestrator, and the workspace in the same folder. Outputs lie there when a task is
done; only outcomes go over the network. If a worker is killed, the system ends its
compilers, and another worker does its task again.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from numpy import __version__ as numpy_version

import orchestrator
from orchestrator.errors import ToolchainError
from orchestrator.fleet.outcome import Outcome
from orchestrator.fleet.pool import died, own_worker
from orchestrator.fleet.task import Task
from orchestrator.shell.distribution import extra_needed
from orchestrator.shell.files import write_atomic
from orchestrator.shell.sources import native_files, native_root, package_files

if TYPE_CHECKING:
    from distributed import Client


# Seconds. Chosen by hand.
_CONNECT_S: Final = 10
_ONE_TASK = threading.Lock()
"""One task at a time in each worker: builds are not made for threads."""


def scheduled_outcomes(tasks: Sequence[Task], address: str) -> Iterator[Outcome]:
    """The outcome of every task, as it is known.

    Args:
        tasks: They, all of one workspace; each of another product.
        address: Of the scheduler: `tcp://HOST:8786`.

    Raises:
        ToolchainError: The scheduler or its workers cannot be used.
    """
    with extra_needed("fleet", "for --scheduler"):
        import distributed  # noqa: PLC0415  # an extra
    lost = (OSError, distributed.client.FutureCancelledError)
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # we say it
    try:
        client = distributed.Client(address, timeout=_CONNECT_S)  # type: ignore[no-untyped-call]
        with client:
            yield from _on_workers(client, address, tasks)
    except lost as error:
        text = f"{type(error).__name__}: {error}"
        raise _unusable(address, text.splitlines()[0]) from error


def _on_workers(client: Client, address: str, tasks: Sequence[Task]) -> Iterator[Outcome]:
    """Outcomes of tasks that a client of `distributed` submits."""
    import distributed  # noqa: PLC0415  # it is there

    usable = _usable_workers(client, address, tasks[0].workspace.absolute())
    folder = Path.cwd()
    task_of = {
        client.submit(
            _do,
            task,
            folder,
            # Dask takes tasks of one key for the same and gives the result of an
            # earlier command.
            key=f"{task.kind} {task.product.name} {secrets.token_hex(8)}",
            workers=usable,
            pure=False,
        ): task
        for task in tasks
    }
    for future in distributed.as_completed(task_of):  # type: ignore[no-untyped-call]
        task = task_of[future]
        try:
            yield future.result()
        except distributed.KilledWorker:
            yield died(task)


def _usable_workers(client: Client, address: str, workspace: Path) -> list[str]:
    """Addresses of workers that are as this process is.

    Raises:
        ToolchainError: There is none.
    """
    probe = workspace.parent / "build" / f".probe-{secrets.token_hex(8)}"
    probe.parent.mkdir(exist_ok=True)
    # A new name each time: a file of an earlier command may be in a cache of NFS.
    write_atomic(probe, b"")
    try:
        found = client.run(_facts, str(probe), on_error="return")
    finally:
        probe.unlink()
    if not found:
        raise _unusable(address, "it has no worker")
    own = {**own_facts(), "workspace": "there"}
    others = {worker: _difference(own, facts) for worker, facts in found.items() if facts != own}
    if len(others) < len(found):
        return [worker for worker in found if worker not in others]
    worker, text = next(iter(others.items()))
    raise _unusable(address, f"worker {worker}: {text}")


def _difference(own: Mapping[str, str], facts: object) -> str:
    """How a worker differs."""
    if not isinstance(facts, dict):
        return str(facts)  # an error, such as of an import
    name = next(name for name in own if facts.get(name) != own[name])
    return f"{name} {facts.get(name)}, here {own[name]}"


def _unusable(address: str, found: str) -> ToolchainError:
    return ToolchainError.of(
        "no-scheduler",
        f"the scheduler at {address} cannot be used",
        found=found,
        hint="start `dask scheduler`, and on each machine `dask worker` in the same"
        " environment, with the workspace in the same folder; see docs/fleet.md",
    )


@cache
def own_facts() -> dict[str, str]:
    """What has to be the same on all machines: it decides about bytes."""
    # By content, not by version: a checkout with changes has the same version.
    whole = hashlib.sha256()
    for path in package_files():
        whole.update(path.read_bytes())
    for name in native_files():
        whole.update((native_root() / name).read_bytes())
    return {
        "Orchestrator": orchestrator.__version__,
        "digest": whole.hexdigest(),
        "numpy": numpy_version,
    }


def _facts(probe: str) -> dict[str, str]:
    """Those of a worker, which runs this."""
    found = "there" if Path(probe).exists() else "not there"
    return {**own_facts(), "workspace": found}


def _do(task: Task, folder: Path) -> Outcome:
    """Do a task as if in a folder; a worker runs this, in one of its threads."""
    # The current folder is that of the process: paths of profiles start there.
    with _ONE_TASK, chdir(folder):
        return own_worker().do(task)
