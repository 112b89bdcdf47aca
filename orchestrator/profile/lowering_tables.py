"""Tables of models given as Python: how they are quantized, and Vela's options."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr

from orchestrator.core.rounding import WeightRounding
from orchestrator.errors import Diagnostic
from orchestrator.profile.choices import Load
from orchestrator.profile.fields import bad_value, choice, key_text, matching, one_of, only, problem
from orchestrator.profile.lowering import VELA_SET, Activations, Weights
from orchestrator.profile.paths import (
    Facts,
    RelativePath,  # pydantic reads it
)
from orchestrator.profile.source_map import KeyPath
from orchestrator.profile.table import Table


def _check_option(value: str) -> str:
    # Vela takes the last of two equal options: one from the profile would contradict
    # the key that the lock names.
    name = value.partition("=")[0]
    if name not in VELA_SET:
        return value
    raise problem(
        "bad-value",
        f"{{key}} cannot have {name}",
        expected="options that no key of the profile decides",
        hint="leave it out: lowering, system_config, memory_mode and config set it",
    )


_Section = Annotated[
    StrictStr,
    *matching(
        "section",
        r"[A-Za-z0-9_.-]+",
        expected="letters, digits, _, - and .",
        hint="write it as Vela's file has it",
    ),
]
_VelaOption = Annotated[
    StrictStr,
    *matching(
        "option",
        # No spaces: ExecuTorch's arm_vela.py joins all options to a line and splits it
        # at them.
        r"--[a-z][a-z0-9-]*(=[^\s=]+)?",
        expected="a long option of Vela, with = before its value",
        hint='write it as "--optimise=Size"',
    ),
    AfterValidator(_check_option),
]


class QuantizeTable(Table):
    """How a model given as Python is quantized, by ExecuTorch's own quantizers."""

    activations: Annotated[Activations, *choice(Activations)] = Field(
        default=Activations.INT8,
        description="Dtype of activations; `int16` is for `cortex-m` and Ethos-U.",
        examples=["int8"],
    )
    weights: Annotated[Weights, *choice(Weights)] = Field(
        default=Weights.PER_CHANNEL,
        description="Scales of int8 weights: one for each output channel, or one for "
        "all of a layer. Cortex-M has `per-channel` only for convolutions.",
        examples=["per-channel"],
    )
    dynamic: StrictBool = Field(
        default=False,
        description="Choose scales of activations at run time; for `xnnpack` and `portable`.",
        examples=[False],
    )


class VelaTable(Table):
    """How Vela compiles a model given as Python for Ethos-U."""

    system_config: _Section | None = Field(
        default=None,
        description="Clocks and memories of the system. Default: for U55 "
        "`Ethos_U55_High_End_Embedded`, U65 `Ethos_U65_High_End`, U85 "
        "`Ethos_U85_SYS_DRAM_Mid`.",
        examples=["Ethos_U55_Deep_Embedded"],
    )
    memory_mode: _Section | None = Field(
        default=None,
        description="Use of each memory. Default: for U55 `Shared_Sram`, U65 "
        "`Dedicated_Sram_384KB`, U85 `Sram_Only`.",
        examples=["Sram_Only"],
    )
    config: RelativePath | None = Field(
        default=None,
        description="The file with both, `.ini`. Default: Vela's own, `Arm/vela.ini`.",
        examples=["../boards/vela.ini"],
    )
    flags: tuple[_VelaOption, ...] = Field(
        default=(), description="More options of Vela.", examples=[["--optimise=Size"]]
    )


# `[models.weights]`: weights of a model with fewer bits than its program has.

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


# `[models.card]`: what only the user knows of a model, for the SBOM.


def _check_license(value: str) -> str:
    """The expression as SPDX writes it."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression  # noqa: PLC0415  # few profiles have one

    try:
        return canonicalize_license_expression(value)
    except InvalidLicenseExpression as error:
        raise bad_value(
            value,
            expected="a licence expression of SPDX, such as Apache-2.0 or MIT AND CC-BY-4.0",
            hint="https://spdx.org/licenses lists names; your own is LicenseRef-NAME",
        ) from error


class CardTable(Table):
    """What only you know of a model: docs/provenance.md.

    Nothing of it reaches the device.
    """

    license: Annotated[StrictStr, AfterValidator(_check_license)] | None = Field(
        default=None,
        description="Licence of the model, as an SPDX expression; one that SPDX does"
        " not list is `LicenseRef-NAME`. Default: not stated.",
        examples=["CC-BY-4.0"],
    )
    authors: tuple[StrictStr, ...] = Field(
        default=(), description="Who made it.", examples=[["Audio team"]]
    )
    datasets: tuple[StrictStr, ...] = Field(
        default=(), description="Data that it was trained on.", examples=[["Speech Commands v2"]]
    )
    intended_use: StrictStr | None = Field(
        default=None,
        description="What it is for. Default: not stated.",
        examples=["Twelve spoken words, within a metre"],
    )
    limitations: StrictStr | None = Field(
        default=None,
        description="Where it does not work. Default: not stated.",
        examples=["Speakers younger than ten"],
    )
