"""Tracks which pass runs, for the ledger.

Passes and pass managers are classes that define `__call__`, or inherit it; those that
are imported later are found when they are made.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import executorch.exir.pass_manager  # noqa: F401  # so that its classes are known
import torch
from executorch.exir.program import _program
from torch.fx.passes.infra.pass_base import PassBase
from torch.fx.passes.infra.pass_manager import PassManager

from orchestrator.lowering.mechanisms import Ledger, PassLedger
from orchestrator.lowering.patches import Patches

# Its manager overrides `transform` and has no `__call__`.
_CORTEX_M: Final = "executorch.backends.cortex_m.passes.cortex_m_pass_manager"


class Passes:
    """The pass that runs now, and what it did so far.

    Args:
        ledger: Gets an entry for each run.
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._managers: list[tuple[int | None, str]] = []
        self._running: list[tuple[Any, PassLedger]] = []
        self._since = 0.0
        self._outside = PassLedger("")
        self.now = self._outside
        """The counts of the current run."""

    def total(self, name: str) -> int:
        """A count over all passes and outside them."""
        runs = (*self._ledger.passes, self._outside)
        return sum(getattr(run, name) for run in runs)

    def install(self, patches: Patches) -> None:
        """Watch passes until the patches are reverted."""
        _wrap_calls(PassBase, self._run_pass, patches)
        _wrap_calls(PassManager, self._run_manager, patches)
        # A function that runs passes one by one, without a manager: the ledger needs a
        # name for it.
        self._scope(_program, "_generate_edge_program", "to_edge", patches)
        cortex_m = sys.modules.get(_CORTEX_M)
        if cortex_m is not None:
            owner = cortex_m.CortexMPassManager
            self._scope(owner, "transform", owner.__name__, patches)

    def _run_manager(self, call: Callable[..., Any], manager: Any, *args: Any) -> Any:
        if self._managers and (self._managers[-1][0] in {id(manager), None}):
            return call(manager, *args)
        with self._managing(id(manager), type(manager).__name__):
            return call(manager, *args)

    @contextmanager
    def _managing(self, number: int | None, name: str) -> Iterator[None]:
        """A run of a pass manager or, without a number, of a similar function."""
        self._managers.append((number, name))
        try:
            yield
        finally:
            self._managers.pop()

    def _scope(self, owner: Any, function: str, name: str, patches: Patches) -> None:
        """Let the ledger name a function like a pass manager."""
        call = vars(owner)[function]

        def managed(*args: Any, **kwargs: Any) -> Any:
            with self._managing(None, name):
                return call(*args, **kwargs)

        patches.replace(owner, function, managed)

    def _run_pass(self, call: Callable[..., Any], own: Any, *args: Any) -> Any:
        # super().__call__ of the same pass is one run, not two.
        if self._running and self._running[-1][0] is own:
            return call(own, *args)
        manager = self._managers[-1][1] if self._managers else ""
        run = PassLedger(type(own).__name__, manager)
        self._ledger.passes.append(run)
        self._running.append((own, run))
        self._switch(run)
        try:
            result = call(own, *args)
        finally:
            self._running.pop()
            self._switch(self._running[-1][1] if self._running else self._outside)
        if result is not None and not result.modified:
            run.skipped = "found nothing to change"
        return result

    def _switch(self, run: PassLedger) -> None:
        """Count time and work for another run."""
        # Time is counted where the running pass changes, so that a pass that runs
        # others has its own part only.
        now = time.process_time()
        self.now.cpu_s += now - self._since
        self.now, self._since = run, now


def classes_of(base: type) -> Iterator[type]:
    """A class and all its subclasses, each once."""
    found: list[type] = [base]
    # The list grows while it is read: subclasses of subclasses.
    for owner in found:
        subclasses: list[type] = owner.__subclasses__()
        for made in subclasses:
            if made not in found:
                found.append(made)
    yield from found


def _wrap_calls(base: type, run: Callable[..., Any], patches: Patches) -> None:
    """Pass each call of an instance of a class, or of a subclass, to `run`."""

    def wrap(owner: type) -> None:
        call = vars(owner).get("__call__")
        if call is not None:
            patches.replace(owner, "__call__", lambda own, *a, **k: run(_with(call, k), own, *a))

    before = base.__init_subclass__

    def made(cls: type, /, **words: Any) -> None:
        before(**words)
        wrap(cls)

    for owner in classes_of(base):
        wrap(owner)
    # Backends define their passes when they are imported, which may be in the middle of
    # a lowering.
    patches.add(base, "__init_subclass__", classmethod(made))


def _with(call: Callable[..., Any], words: dict[str, Any]) -> Callable[..., Any]:
    return (lambda *args: call(*args, **words)) if words else call


# PyTorch's sequence number for gradient records.
#
# Dispatching with gradients counts on, and nodes of graphs are numbered by that (`seq_nr`). If a
# result is known without dispatching, the number advances by as much.
#
# Source: PyTorch 2.13 `torch/csrc/autograd/function.h`, `Node`: each one that is made takes the
# next number.


def sequence_number() -> int:
    """The next number."""
    return int(torch.autograd._get_sequence_nr())


def advance(count: int) -> None:
    """Consume `count` numbers."""
    for _ in range(count):
        # Making a gradient function takes the next number; no call sets it.
        torch._C._functions.UndefinedGrad()
