"""Do many tasks in worker processes; results come as they are known.

Workers end with this process, whatever ends it: an error or a signal asks them to end,
and if it is killed, the system asks them (Linux). A worker that is asked unwinds, so
that its compilers end, and locks and build folders stay whole.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, ProcessPoolExecutor, wait
from functools import cache

from orchestrator.build import Shell
from orchestrator.errors import Diagnostic, ExitCode
from orchestrator.fleet.outcome import Outcome
from orchestrator.fleet.task import Task, Worker
from orchestrator.shell.process import PR_SET_PDEATHSIG
from orchestrator.shell.signals import ENDING, Ended, unwind_on_signals

_AHEAD = 2
"""Tasks that wait for each worker: enough that none is idle, few to be kept."""


def outcomes(tasks: Sequence[Task], *, workers: int, shell: Shell) -> Iterator[Outcome]:
    """The outcome of every task, as it is known.

    Args:
        tasks: They; each of another product.
        workers: Processes; one is this one.
        shell: Tools for tasks that are done in this process.
    """
    # In this process: a worker costs 0.3 s (decision 0034), and one product needs none.
    if workers <= 1:
        here = Worker(shell)
        yield from map(here.do, tasks)
        return
    left = {task.product.name: task for task in tasks}
    while left:
        suspects: list[Task] = []
        for outcome in _in_processes([*left.values()], workers, suspects):
            del left[outcome.product.name]
            yield outcome
        # A worker was killed. Who did it is found by giving each one of its own.
        for task in suspects:
            del left[task.product.name]
            alone = list(_in_processes([task], 1, []))
            yield from alone or [died(task)]


def died(task: Task) -> Outcome:
    """The outcome of a task whose worker was killed."""
    problem = Diagnostic.of(
        "worker-died",
        f"the process that worked on {task.product.name} was killed",
        expected="enough memory for what runs at a time",
        hint="run the command for this product alone, or with fewer jobs: -j 1",
    )
    return Outcome(product=task.product, exit_code=ExitCode.INTERNAL, problems=(problem,))


def _in_processes(tasks: Iterable[Task], workers: int, suspects: list[Task]) -> Iterator[Outcome]:
    """Outcomes until a worker dies; then `suspects` are those that it may have had."""
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(
        workers,
        # `fork` would copy locks, signal handlers and threads (decision 0034).
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
        initargs=(os.getpid(),),
    )
    waiting = iter(tasks)
    running: dict[Future[Outcome], Task] = {}
    try:
        while True:
            while len(running) < workers * _AHEAD:
                task = next(waiting, None)
                if task is None:
                    break
                running[executor.submit(_do, task)] = task
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                outcome = future.result()
                del running[future]
                yield outcome
    # The pool is broken as a whole if one worker dies; what others had finished counts.
    except BrokenExecutor:
        done = [f for f in running if f.done() and f.exception() is None]
        for future in done:
            del running[future]
            yield future.result()
        suspects += running.values()
    finally:
        if running:  # interrupted, or a worker died: end the others
            for process in set(multiprocessing.active_children()) - others:
                # SIGTERM, so that they unwind: their compilers end, locks and folders
                # stay whole.
                process.terminate()
        executor.shutdown(cancel_futures=True)


def _begin(parent: int) -> None:
    """Prepare a worker: it ends with its parent, and Ctrl-C is for the parent."""
    # Ctrl-C reaches all processes of the terminal; the parent tells workers to end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
        # The parent may have died before prctl: no signal comes then.
        if os.getppid() != parent:
            os._exit(1)  # it was gone already


@cache
def own_worker() -> Worker:
    """That of this process: what tasks share lives as long as the process."""
    return Worker(Shell())


def _do(task: Task) -> Outcome:
    """Do a task in a worker process."""
    try:
        # For each task: what ends a worker that waits needs no unwinding, see below.
        unwind_on_signals()
        try:
            return own_worker().do(task)
        finally:
            # While it waits, there is nothing to clean up.
            for number in set(ENDING) - {signal.SIGINT}:
                signal.signal(number, signal.SIG_DFL)
            # What interrupts a destructor is lost, and no other signal would come.
            parent = multiprocessing.parent_process()
            if parent is not None and not parent.is_alive():
                os._exit(1)
    except Ended as ended:
        os._exit(128 + ended.number)  # all is cleaned up
