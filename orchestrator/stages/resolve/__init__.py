"""Stage `resolve`: a kernel for every call, or every gap at once."""

from orchestrator.stages.resolve.bind import EVERY_OPERATOR, resolve
from orchestrator.stages.resolve.calls import check_calls
from orchestrator.stages.resolve.report import resolution_json

__all__ = ["EVERY_OPERATOR", "check_calls", "resolution_json", "resolve"]
