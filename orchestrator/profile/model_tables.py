"""`[[models]]`: programs, and Python code that programs are made of."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    WithJsonSchema,
)

from orchestrator.profile.checked import Load
from orchestrator.profile.fields import (
    ModelName,
    RelativePath,
    RelativePattern,
    choice,
    problem,
    shown,
)
from orchestrator.profile.lowering import LOWERINGS, Activations, Weights
from orchestrator.profile.region_tables import (  # pydantic reads them
    ArenaRegions,  # noqa: TC001
    TensorTable,  # noqa: TC001
)
from orchestrator.profile.source_fields import (  # pydantic reads them
    ModelPath,  # noqa: TC001
    PythonCallable,  # noqa: TC001
    Section,  # noqa: TC001
    VelaOption,  # noqa: TC001
)
from orchestrator.profile.table import Table

_MOST_INSTRUCTIONS: Final = 2**32 - 1
"""The runtime counts them in 32 bits."""


def _check_instructions(value: int) -> int:
    if 0 <= value <= _MOST_INSTRUCTIONS:
        return value
    raise problem(
        "bad-value",
        f"{{key}} cannot be {shown(value)}",
        expected=f"an integer from 0 to {_MOST_INSTRUCTIONS}",
        hint="write how many instructions a run may take; 0 is no limit",
    )


InstructionCount = Annotated[
    StrictInt,
    AfterValidator(_check_instructions),
    WithJsonSchema({"type": "integer", "minimum": 0, "maximum": _MOST_INSTRUCTIONS}),
]


class QuantizeTable(Table):
    """How a model given as Python is quantized, by ExecuTorch's own quantizers."""

    activations: Annotated[StrictStr, *choice(Activations)] = Field(
        default="int8",
        description="Dtype of activations; `int16` is for Ethos-U.",
        examples=["int8"],
    )
    weights: Annotated[StrictStr, *choice(Weights)] = Field(
        default="per-channel",
        description="Scales of int8 weights: one for each output channel, or one for "
        "all of a layer. Cortex-M has `per-channel` for convolutions alone.",
        examples=["per-channel"],
    )
    dynamic: StrictBool = Field(
        default=False,
        description="Choose scales of activations at run time; for `xnnpack` and "
        "`portable`.",
        examples=[False],
    )


class VelaTable(Table):
    """How Vela compiles a model given as Python for Ethos-U."""

    system_config: Section | None = Field(
        default=None,
        description="Clocks and memories of the system. Default: for U55 "
        "`Ethos_U55_High_End_Embedded`, U65 `Ethos_U65_High_End`, U85 "
        "`Ethos_U85_SYS_DRAM_Mid`.",
        examples=["Ethos_U55_Deep_Embedded"],
    )
    memory_mode: Section | None = Field(
        default=None,
        description="Which memory is for what. Default: for U55 `Shared_Sram`, U65 "
        "`Dedicated_Sram_384KB`, U85 `Sram_Only`.",
        examples=["Sram_Only"],
    )
    config: RelativePath | None = Field(
        default=None,
        description="The file with both, `.ini`. Default: Vela's own, `Arm/vela.ini`.",
        examples=["../boards/vela.ini"],
    )
    flags: tuple[VelaOption, ...] = Field(
        default=(),
        description="More options of Vela.",
        examples=[["--optimise=Size"]],
    )


class ModelTable(Table):
    """A model of the product; any number of them."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["path"]}, {"required": ["source"]}],
            "dependentRequired": {
                key: ["source"] for key in ("lowering", "quantize", "vela", "reads")
            },
        }
    )

    name: ModelName | None = Field(
        default=None,
        description="Name in generated code and reports, unique in the profile. "
        "Default: the file name without its suffix.",
        examples=["person"],
    )
    path: ModelPath | None = Field(
        default=None,
        description="The exported program, a `.pte` file. Either this or `source`. "
        "May be absolute: then the profile is one for this machine, with a warning.",
        examples=["../models/vww_int8.pte"],
    )
    source: PythonCallable | None = Field(
        default=None,
        description="Python file and a callable in it that gives the model; the build "
        "exports it for the target: docs/export.md.",
        examples=["../models/vww.py:build"],
    )
    lowering: Annotated[StrictStr, *choice(LOWERINGS, "unknown-lowering")] | None = (
        Field(
            default=None,
            description="With `source`: what the model is lowered for. `portable`: "
            "kernels alone. `cortex-m`: int8 kernels. `xnnpack`, `ethos-u55-128` and "
            "its like: a delegate. Default: `portable`.",
            examples=["cortex-m"],
        )
    )
    quantize: QuantizeTable | None = Field(
        default=None,
        description="With `source`: quantize the model. Default: it stays as it is.",
    )
    vela: VelaTable | None = Field(
        default=None,
        description="With `source` and a lowering for Ethos-U: what Vela is told.",
    )
    reads: tuple[RelativePattern, ...] = Field(
        default=(),
        description="With `source`: files, or patterns of files, that its code reads "
        "other than with Python's own `open` and `import`, which are noticed.",
        examples=[["../models/vww.onnx"]],
    )
    region: ModelName | None = Field(
        default=None,
        description="Memory of the board that its arenas lie in. Default: the first "
        "that they fit.",
        examples=["dtcm"],
    )
    regions: ArenaRegions | None = Field(
        default=None,
        description="The same for single arenas, by memory id of the program. "
        "Default: what `region` says.",
        examples=[{"1": "dtcm", "2": "sram"}],
    )
    tensors: tuple[TensorTable, ...] = Field(
        default=(),
        description="Single tensors that lie in another memory than their arena.",
    )
    data: tuple[ModelPath, ...] = Field(
        default=(),
        description="Files with the constants that the program leaves outside, `.ptd`. "
        "The build checks name, dtype and size of each, and links them.",
        examples=[["../models/vww_int8.ptd"]],
    )
    load: Annotated[StrictStr, *choice(Load)] = Field(
        default="pte",
        description="`pte`: the device loads the program, which lies in its flash. "
        "`prelinked`: the build has done that, the device starts with constant tables.",
        examples=["pte"],
    )
    max_instructions: InstructionCount | None = Field(
        default=None,
        description='With `load = "pte"`: how many instructions of the program a run'
        " executes before it ends with `InstructionLimit`, so that no program loops for"
        " ever. 0: any number. Default: 1000000.",
        examples=[20000],
    )
