"""Stage `resolve`: a kernel for every call, or every gap at once."""

from orchestrator.selection.resolve.bind import EVERY_OPERATOR, resolve
from orchestrator.selection.resolve.calls import check_calls, resolution_json

__all__ = ["EVERY_OPERATOR", "check_calls", "resolution_json", "resolve"]
