"""Stage `prelink`: the loader's work, done at build time."""

from orchestrator.stages.prelink.ledger import ledger_lines, ledger_of
from orchestrator.stages.prelink.link import link_program
from orchestrator.stages.prelink.passes import PASSES, run_passes

__all__ = ["PASSES", "ledger_lines", "ledger_of", "link_program", "run_passes"]
