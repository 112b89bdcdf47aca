"""What every table of the profile is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Table(BaseModel):
    """A table of the profile: nothing unknown, nothing changed later."""

    model_config = ConfigDict(frozen=True, extra="forbid")
