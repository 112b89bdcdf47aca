"""Signals that end the program: they raise, so that it cleans up."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ENDING = tuple(
    number
    for number in signal.Signals
    if number.name in ("SIGINT", "SIGTERM", "SIGHUP")  # Windows has no SIGHUP
)


# BaseException, as KeyboardInterrupt: `except Exception` must not swallow it.
class Ended(BaseException):
    """A signal requested that the program end.

    Args:
        number: Number of the signal.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        super().__init__(signal.Signals(number).name)


def unwind_on_signals() -> None:
    """Have the signals raise `Ended`, except those that are ignored (`nohup`)."""
    for number in ENDING:
        # A shell starts `nohup` and background jobs with signals ignored, and means it.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    # Once is enough: another signal must not interrupt the clean-up.
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    raise Ended(number)


@contextmanager
def undisturbed() -> Iterator[None]:
    """Defer these signals to the end of a few steps that belong together."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread is interrupted by signals
        return
    arrived: list[int] = []
    before = {
        number: signal.signal(number, lambda found, _: arrived.append(found))
        for number in ENDING
        if signal.getsignal(number) is not signal.SIG_IGN
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        if arrived:
            # After the handlers are back: the signal then does what it would have done.
            signal.raise_signal(arrived[0])
