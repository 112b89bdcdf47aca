"""Tables of the profile about the memories of a board, and what lies where."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field, StrictInt, StrictStr

from orchestrator.planner.policy import Planner
from orchestrator.profile.fields import (
    ModelName,
    Size,
    choice,
    not_empty,
    problem,
    shown,
)
from orchestrator.profile.table import Table
from orchestrator.targets.regions import Concurrency, TensorKind

ADDRESS_END = 1 << 32


class RegionKind(StrEnum):
    """What a memory is for."""

    FLASH = "flash"
    RAM = "ram"


def is_address(value: object) -> bool:
    """Whether a value is an address of 32 bits."""
    return type(value) is int and 0 <= value < ADDRESS_END


def _check_address(value: int) -> int:
    if is_address(value):
        return value
    raise problem(
        "bad-value",
        f"{{key}} cannot be {value:#x}",
        expected="an address of 32 bits",
        hint="write it as in the manual of the chip, origin = 0x20000000",
    )


def _check_ids(value: dict[str, str]) -> dict[str, str]:
    for key in value:
        if not (key.isascii() and key.isdigit() and not key.startswith("0")):
            raise problem(
                "bad-value",
                f"{{key}} has the key {shown(key)}",
                expected='memory ids of the program, regions = {1 = "dtcm"}',
                hint="`orchestrator inspect` shows the memory ids of a program",
            )
    return value


_TENSOR = f"({'|'.join(TensorKind)}) (0|[1-9][0-9]{{0,8}})"


def _check_tensor(value: str) -> str:
    if re.fullmatch(_TENSOR, value):
        return value
    raise problem(
        "bad-value",
        f"{{key}} cannot be {shown(value)}",
        expected="input, output or value, and a number",
        hint='write tensor = "input 0"; `orchestrator inspect --json` lists them',
    )


Address = Annotated[
    StrictInt,
    AfterValidator(_check_address),
    Field(json_schema_extra={"minimum": 0, "maximum": ADDRESS_END - 1}),
]
ArenaRegions = Annotated[
    dict[str, ModelName],
    AfterValidator(not_empty),
    AfterValidator(_check_ids),
    Field(
        json_schema_extra={
            "minProperties": 1,
            "propertyNames": {"pattern": "^[1-9][0-9]*$"},
        }
    ),
]


TensorName = Annotated[
    StrictStr,
    AfterValidator(_check_tensor),
    Field(json_schema_extra={"pattern": f"^{_TENSOR}$"}),
]


class TensorTable(Table):
    """A tensor of a model that lies in a memory of its own choice: docs/memory.md."""

    tensor: TensorName = Field(
        description="Which one: `input` or `output` and its number, or `value` and its "
        "index in the program. `orchestrator inspect --json` lists them.",
        examples=["input 0"],
    )
    method: StrictStr | None = Field(
        default=None,
        description="Whose tensor. Default: that of every method.",
        examples=["forward"],
    )
    region: ModelName = Field(
        description="Memory of the board that it lies in.", examples=["dtcm"]
    )


class RegionTable(Table):
    """A memory of the board; any number of them: docs/targets.md.

    With an `origin` in one of them, they are all memories of a board of your own;
    without, they limit what is used of the board's.
    """

    name: ModelName = Field(
        description="Name of the memory; without `origin`, that of one of the board's.",
        examples=["dtcm"],
    )
    size: Size = Field(
        description="How much of it there is, or may be used.", examples=["256 KiB"]
    )
    origin: Address | None = Field(
        default=None,
        description="First address. Default: that of the board's memory.",
        examples=[0x20000000],
    )
    kind: Annotated[StrictStr, *choice(RegionKind)] | None = Field(
        default=None,
        description="`flash`: code and constants. `ram`: everything that changes. "
        "Default: `ram`; without `origin`, that of the board's memory.",
        examples=["ram"],
    )


class MemoryTable(Table):
    """Memories of the board, and where planned tensors lie in them: docs/memory.md."""

    planner: Annotated[StrictStr, *choice(Planner)] = Field(
        default="best",
        description="`best`: the smallest plan that any planner finds. `greedy`: only "
        "the fast planners. `keep`: the offsets in the program.",
        examples=["best"],
    )
    concurrency: Annotated[StrictStr, *choice(Concurrency)] = Field(
        default="parallel",
        description="`parallel`: every method has its arenas for itself. `sequential`: "
        "methods never run at the same time, and their arenas overlap: inputs and "
        "outputs of a method are lost when another one runs.",
        examples=["sequential"],
    )
    regions: tuple[RegionTable, ...] = Field(
        default=(), description="Memories of the board."
    )
