"""Tests against ExecuTorch's own tools: a nox session of its own, `interop`."""

from __future__ import annotations

import os

from tests.tools import tools_required

# Where no test may be skipped for want of a tool, these run in their own session only.
collect_ignore_glob = (
    ["test_*.py"] if tools_required() and not os.environ.get("EXECUTORCH_PYTHON") else []
)
