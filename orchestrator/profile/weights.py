"""`[models.weights]`: weights of a model with fewer bits than its program has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, Field, StrictInt

from orchestrator.core.rounding import WeightRounding
from orchestrator.errors import Diagnostic
from orchestrator.profile.choices import Load
from orchestrator.profile.fields import bad_value, key_text
from orchestrator.profile.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.profile.rules import Facts
    from orchestrator.profile.source_map import KeyPath

_BITS: Final = (4,)
_GROUPS: Final = (32, 64, 128)


def _check_bits(value: int) -> int:
    if value in _BITS:
        return value
    raise bad_value(
        value, expected="4", hint="write bits = 4, or leave the table out for int8"
    )


def _check_group(value: int) -> int:
    if value in _GROUPS:
        return value
    raise bad_value(
        value,
        expected="32, 64 or 128",
        hint="write group = 32, or leave it out for one step of each output",
    )


class WeightsTable(Table):
    """Weights of a prelinked model in 4 bits: docs/howto-smaller-weights.md.

    This changes outputs; `evaluate` says how much.
    """

    bits: Annotated[StrictInt, AfterValidator(_check_bits)] = Field(
        json_schema_extra={"enum": list(_BITS)},
        description="Bits of the weights of int8 convolutions and matrix products.",
        examples=[4],
    )
    group: Annotated[StrictInt, AfterValidator(_check_group)] | None = Field(
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
        yield Diagnostic(
            code="bad-choice",
            message=f'{key_text(where)} requires load = "prelinked"',
            where=facts.span(*where),
            notes=(("found", "a program that the device loads, with int8 weights"),),
            hint='add load = "prelinked"',
        )
