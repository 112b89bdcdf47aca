"""A program is verified once in a run of a pass manager.

A pass manager verifies a program before its passes and after them. The result of one
run is the input of the next, so the first check adds nothing. It is verified after each
pass if a pass manager requests it (`run_checks_after_each_pass`), and everywhere with
the variable `ORCHESTRATOR_LOWERING_CHECKS=1`.

Source: ExecuTorch 1.5 `exir/pass_manager.py`, `ExportedProgramPassManager`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from executorch.exir.pass_manager import ExportedProgramPassManager

if TYPE_CHECKING:
    from orchestrator.lowering.patches import Patches

VARIABLE: Final = "ORCHESTRATOR_LOWERING_CHECKS"
"""Set to 1: programs are verified before, after and between passes."""


def verify_once(patches: Patches) -> None:
    """Verify only at the end of a run, until the patches are reverted."""
    every = os.environ.get(VARIABLE, "") == "1"
    call = ExportedProgramPassManager.__call__
    check = ExportedProgramPassManager.check
    starting: list[Any] = []

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if every:
            before, self.run_checks_after_each_pass = (
                self.run_checks_after_each_pass,
                True,
            )
            try:
                return call(self, *args, **kwargs)
            finally:
                self.run_checks_after_each_pass = before
        if not self.run_checks_after_each_pass:
            starting.append(self)
        try:
            return call(self, *args, **kwargs)
        finally:
            if starting and starting[-1] is self:
                starting.pop()

    def check_later(self: Any, exported_program: Any) -> None:
        if starting and starting[-1] is self:
            starting.pop()
        else:
            check(self, exported_program)

    patches.replace(ExportedProgramPassManager, "__call__", run)
    patches.replace(ExportedProgramPassManager, "check", check_later)
