"""The profile's table about memory of single calls."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictStr

from orchestrator.planner.policy import RuntimeCheck, ScratchPolicy
from orchestrator.profile.fields import choice
from orchestrator.profile.table import Table


class ScratchTable(Table):
    """Memory that kernels need during a call only: docs/memory.md."""

    policy: Annotated[StrictStr, *choice(ScratchPolicy)] = Field(
        default="plan",
        description="`plan`: each call gets what its kernel needs on this target. "
        "`verify`: what the program has must be exactly that. `keep`: the program is "
        "trusted.",
        examples=["plan"],
    )
    runtime_check: Annotated[StrictStr, *choice(RuntimeCheck)] = Field(
        default="debug",
        description="Kernels compare their scratch memory with what they need before "
        'they write to it: `never`, with `optimize = "debug"` only, or `always`.',
        examples=["always"],
    )
