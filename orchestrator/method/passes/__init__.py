"""Stage `prelink`: run passes over linked methods."""

from orchestrator.method.link import link_program, try_link
from orchestrator.method.passes.border import BorderError
from orchestrator.method.passes.ledger_lines import OPTIONAL, ledger_lines, ledger_of, not_run
from orchestrator.method.passes.passes import MAKES_CONSTANTS, PASSES, run_passes
from orchestrator.method.unlink import UnlinkError, WriteProofError, unlink_program

__all__ = [
    "MAKES_CONSTANTS",
    "OPTIONAL",
    "PASSES",
    "BorderError",
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
