"""Tables of the profile about what the runtime does besides running models."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StrictBool, StrictStr

from orchestrator.profile.fields import choice
from orchestrator.profile.integrity import CheckImage
from orchestrator.profile.table import Table


class TraceTable(Table):
    """Hooks around every instruction, to measure on the device: docs/runtime.md."""

    enable: StrictBool = Field(
        default=False,
        description="The executor reads the product's counter before and after every "
        "instruction, and hands both over; a product links only with the two "
        "functions of `orch/trace.h`.",
        examples=[True],
    )


class IntegrityTable(Table):
    """Checksums that tell whether flash holds what was linked: docs/runtime.md."""

    check: Annotated[StrictStr, *choice(CheckImage)] = Field(
        default="never",
        description="`start`: the API has functions that compare, for the application "
        "to call. `load`: besides, the first call of each method compares what it "
        "uses. Where flash is damaged the status is `ImageDamaged`.",
        examples=["start"],
    )
