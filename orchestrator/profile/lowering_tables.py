"""Tables of models given as Python: how they are quantized, and Vela's options."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field, StrictBool, StrictStr

from orchestrator.profile.fields import choice, matching, problem
from orchestrator.profile.lowering import VELA_SET, Activations, Weights
from orchestrator.profile.paths import RelativePath  # pydantic reads it
from orchestrator.profile.table import Table


def _check_option(value: str) -> str:
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
