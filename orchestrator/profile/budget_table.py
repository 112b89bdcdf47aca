"""The table of the profile about bounds that a build must keep."""

from __future__ import annotations

from pydantic import Field

from orchestrator.profile.fields import Size  # noqa: TC001  # pydantic reads it
from orchestrator.profile.table import Table


class BudgetTable(Table):
    """Bounds; a build that exceeds one fails and names the culprits."""

    flash: Size | None = Field(
        default=None,
        description="Most flash the firmware may use. Default: no bound.",
        examples=["96 KiB"],
    )
    ram: Size | None = Field(
        default=None,
        description="Most RAM the firmware may use. Default: no bound.",
        examples=["64 KiB"],
    )
