"""Stage `prelink`: the loader's work, done at build time."""

from orchestrator.stages.prelink.ledger import ledger_lines, ledger_of, not_run
from orchestrator.stages.prelink.link import link_program, try_link
from orchestrator.stages.prelink.passes import MAKES_CONSTANTS, PASSES, run_passes
from orchestrator.stages.prelink.unlink import (
    UnlinkError,
    WriteProofError,
    unlink_program,
)

__all__ = [
    "MAKES_CONSTANTS",
    "PASSES",
    "UnlinkError",
    "WriteProofError",
    "ledger_lines",
    "ledger_of",
    "link_program",
    "not_run",
    "run_passes",
    "try_link",
    "unlink_program",
]
