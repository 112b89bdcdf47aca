"""When a product compares what flash holds with what was linked."""

from __future__ import annotations

from enum import StrEnum


class CheckImage(StrEnum):
    """Never, when the application asks, or also before a method's first call."""

    NEVER = "never"
    START = "start"
    LOAD = "load"
