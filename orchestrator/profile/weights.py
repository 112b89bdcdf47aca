"""`[models.weights]`: weights of a model with fewer bits than its program has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import Field, StrictInt

from orchestrator.core.rounding import WeightRounding
from orchestrator.errors import Diagnostic
from orchestrator.profile.choices import Load
from orchestrator.profile.fields import key_text, one_of, only
from orchestrator.profile.table import Table

if TYPE_CHECKING:
    from orchestrator.profile.rules import Facts
    from orchestrator.profile.source_map import KeyPath

_Bits = Annotated[
    StrictInt, *one_of((4,), expected="4", hint="write bits = 4, or leave the table out for int8")
]
_GROUPS: Final = (32, 64, 128)
_Group = Annotated[
    StrictInt,
    only(
        _GROUPS.__contains__,
        expected="32, 64 or 128",
        hint="write group = 32, or leave it out for one step of each output",
    ),
]


class WeightsTable(Table):
    """Weights of a prelinked model in 4 bits: docs/howto-smaller-weights.md.

    This changes outputs; `evaluate` says how much.
    """

    bits: _Bits = Field(
        description="Bits of the weights of int8 convolutions and matrix products.", examples=[4]
    )
    group: _Group | None = Field(
        default=None,
        json_schema_extra={"enum": list(_GROUPS)},
        description="Inputs of a matrix product that share a step: fewer lose less, "
        "and take a byte for each output. Default: all inputs of an output.",
        examples=[32],
    )

    @property
    def rounding(self) -> WeightRounding:
        """The table as later stages take it."""
        return WeightRounding(group=self.group)


def weight_problems(load: Load, where: KeyPath, facts: Facts) -> Iterator[Diagnostic]:
    """Weights of a model that the device loads.

    Args:
        load: How the model is loaded.
        where: Path of the table.
        facts: Further facts.
    """
    if load is not Load.PRELINKED:
        yield Diagnostic.of(
            "bad-choice",
            f'{key_text(where)} requires load = "prelinked"',
            where=facts.span(*where),
            found="a program that the device loads, with int8 weights",
            hint='add load = "prelinked"',
        )
