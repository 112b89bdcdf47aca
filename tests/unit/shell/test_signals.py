"""Signals: they unwind the program, once, and wait for steps that belong together."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from orchestrator import __main__ as start
from orchestrator.shell.signals import ENDING, undisturbed

ROOT = Path(__file__).parents[3]

UNWIND = """\
import os, signal, sys
from orchestrator.cli import main
from orchestrator.cli.commands import targets
from orchestrator.shell.signals import unwind_on_signals

def run(args, console):
    number = getattr(signal, sys.argv[1])
    try:
        os.kill(os.getpid(), number)
        print("went on")
    finally:
        os.kill(os.getpid(), number)  # impatience stops no cleaning up
        print("cleaned up", flush=True)

targets.run = run
unwind_on_signals()
sys.exit(main.run(["targets"]))
"""


def _run(number: str, *, ignored: bool = False) -> subprocess.CompletedProcess[str]:
    def dispose() -> None:
        # What runs the tests may ignore it (`nohup`).
        handler = signal.SIG_IGN if ignored else signal.SIG_DFL
        signal.signal(signal.Signals[number], handler)

    return subprocess.run(
        [sys.executable, "-c", UNWIND, number],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=dispose,  # there are no threads
    )


@pytest.mark.parametrize("number", [number.name for number in ENDING])
def test_a_signal_unwinds_and_gives_its_exit_code(number: str) -> None:
    done = _run(number)
    assert done.returncode == 128 + signal.Signals[number]
    assert done.stdout == "cleaned up\n"
    expected = "interrupted" if number == "SIGINT" else f"ended by {number}"
    assert done.stderr == f"{expected}\n"


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """By `nohup`, for one."""
    done = _run("SIGHUP", ignored=True)
    assert done.stdout.startswith("went on\ncleaned up\n")


@pytest.mark.parametrize("number", ENDING)
def test_signals_wait_for_steps_that_belong_together(number: signal.Signals) -> None:
    before = {n: signal.getsignal(n) for n in ENDING}
    steps = []
    arrived: list[int] = []
    old = signal.signal(number, lambda found, _: arrived.append(found))
    try:
        with undisturbed():
            steps.append("one")
            signal.raise_signal(number)
            assert arrived == []
            steps.append("two")
        assert (steps, arrived) == (["one", "two"], [number])
    finally:
        signal.signal(number, old)
    assert {n: signal.getsignal(n) for n in ENDING} == before


def test_other_threads_are_not_interrupted_anyway() -> None:
    done = []

    def work() -> None:
        with undisturbed():
            done.append(1)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert done == [1]


def test_an_interrupt_while_modules_are_loaded_has_no_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(_: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(start, "_run", interrupted)
    monkeypatch.setattr(start, "drop_output", lambda: None)
    assert start.main() == 130
