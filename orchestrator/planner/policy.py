"""How memory is planned: the choices of a profile."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Planner(StrEnum):
    """Who decides where planned tensors lie."""

    BEST = "best"
    GREEDY = "greedy"
    KEEP = "keep"
    SEPARATE = "separate"


class Fuse(StrEnum):
    """Whether operators run by rows, where that takes less memory."""

    OFF = "off"
    AUTO = "auto"
    SMALLEST = "smallest"


class Recompute(StrEnum):
    """What may be computed a second time, where that takes less memory."""

    OFF = "off"
    SKIPS = "skips"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fusing:
    """How far operators may run by rows.

    Args:
        max_slowdown: By which part a run may become slower, about; None: any.
        max_again: By which part as long skips are computed again; 0: none are.
    """

    max_slowdown: float | None = None
    max_again: float = 0


class ScratchPolicy(StrEnum):
    """Who decides how much scratch memory calls get."""

    PLAN = "plan"
    VERIFY = "verify"
    KEEP = "keep"


class RuntimeCheck(StrEnum):
    """In which builds kernels compare their scratch memory with what they need."""

    NEVER = "never"
    DEBUG = "debug"
    ALWAYS = "always"

    def applies(self, optimize: str) -> bool:
        """Whether a build compares that is optimized for this."""
        debug = self is RuntimeCheck.DEBUG and optimize == "debug"
        return debug or self is RuntimeCheck.ALWAYS


class SharedState(StrEnum):
    """Whether the methods of a model share their state."""

    YES = "yes"
    NO = "no"
