"""`[models.io]`: inputs and outputs that are int8 for the caller, or kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import ConfigDict, Field, StrictBool, StrictInt, model_validator

from orchestrator.core.border import IoDtype, IoPort, ModelIo, Stream
from orchestrator.errors import Diagnostic
from orchestrator.profile.choices import Load
from orchestrator.profile.fields import Alignment, choice, key_text, problem, whole_number
from orchestrator.profile.paths import Facts
from orchestrator.profile.source_map import KeyPath
from orchestrator.profile.table import BrokenValueError, Table

# Nine digits at most: `int` of very many digits is an error of Python. Programs have at
# most 4,096 ports (program/).
_PORT: Final = "(input|output)(0|[1-9][0-9]{0,8})"
_MOST_ROWS: Final = 65535
# kTensorDimensionLimit of ExecuTorch. Which dimensions an input has is known once the
# program is read, and told then.
_MOST_DIMS: Final = 16


class StreamTable(Table):
    """An input that is a stream: each call gets what is new of a window of time."""

    axis: Annotated[
        StrictInt,
        *whole_number(-_MOST_DIMS, _MOST_DIMS - 1, hint="write the dimension that is time"),
    ] = Field(
        description="The dimension of the input that is time; negative numbers count "
        "from the last one, -1.",
        examples=[2],
    )
    hop: Annotated[
        StrictInt,
        # Sizes are int32 in the runtime.
        *whole_number(1, (1 << 31) - 1, hint="write how many positions come with each call"),
    ] = Field(description="Positions along this dimension that come with each call.", examples=[1])

    @property
    def stream(self) -> Stream:
        """The table as later stages take it."""
        return Stream(axis=self.axis, hop=self.hop)


class IoPortTable(Table):
    """An input or output: `input0 = "int8"` is short for `{ dtype = "int8" }`."""

    dtype: Annotated[IoDtype, *choice(IoDtype)] | None = Field(
        default=None,
        description="Element type for the caller. `int8`: the call that quantizes "
        "or dequantizes there is removed. `uint8`, of an input: likewise, of numbers "
        "larger by 128. `float32`: as in the program. Default: what `quantized` says.",
        examples=["int8"],
    )
    reuse: StrictBool = Field(
        default=True,
        description="Whether a run may write over the input. `false`: it can be read, "
        "and run again, afterwards.",
        examples=[False],
    )
    rows: (
        Annotated[
            StrictInt,
            *whole_number(
                1, _MOST_ROWS, hint="write how many rows come at a time, or leave it out for all"
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="Rows of the input that the application gives at a time, as a "
        "camera does: the input is never whole in memory. For prelinked models: "
        "docs/howto-rows.md. Default: all rows at once.",
        examples=[8],
    )
    align: Alignment | None = Field(
        default=None,
        description="Of its address, in bytes, for DMA: a line of the cache. Arenas "
        "are aligned as much: docs/runtime.md. Default: 16.",
        examples=[32],
    )
    stream: StreamTable | None = Field(
        default=None,
        description="The model keeps what it needs of the past, and a call gets what "
        "is new: docs/howto-streaming.md. Default: each call gets a whole window.",
    )

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: object) -> object:
        # Before validation, so that the line and the checks of the long form are those
        # of the short one.
        return {"dtype": value} if isinstance(value, str) else value


def _schema_of_ports(schema: dict[str, Any]) -> None:
    """Make the schema of dynamic keys that of inputs and outputs."""
    table = schema["additionalProperties"]
    short = {"type": "string", "enum": [str(dtype) for dtype in IoDtype]}
    # pydantic has no schema for keys that match a pattern: it says that any key may
    # have such a table.
    schema["patternProperties"] = {f"^{_PORT}$": {"anyOf": [short, table]}}
    schema["additionalProperties"] = False


class IoTable(Table):
    """Inputs and outputs of a model: `input0`, `output1`; docs/howto-int8-io.md."""

    model_config = ConfigDict(extra="allow", json_schema_extra=_schema_of_ports)
    __pydantic_extra__: dict[str, IoPortTable]
    any_key: ClassVar[tuple[str, type[Table]] | None] = ("input0", IoPortTable)

    quantized: StrictBool = Field(
        default=False,
        description="All inputs and outputs that are floats in the program are int8 "
        "for the caller, unless they have a key of their own.",
        examples=[True],
    )

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: object) -> object:
        if isinstance(value, dict):
            for key in value:
                if key != "quantized" and not re.fullmatch(_PORT, str(key)):
                    raise problem(
                        "unknown-key",
                        f'unknown key "{key}" in {{key}}',
                        expected="quantized, or an input or output of the model",
                        hint="write input0 for the first input, output0 for the first output",
                    )
        return value

    @property
    def ports(self) -> dict[str, IoPortTable]:
        """Inputs and outputs by key."""
        return self.__pydantic_extra__ or {}

    def whole(self) -> Self:
        """The table without inputs that come by rows."""
        ports = {k: p.model_copy(update={"rows": None}) for k, p in self.ports.items()}
        table = self.model_copy()
        table.__pydantic_extra__ = ports
        return table

    @property
    def io(self) -> ModelIo:
        """The table as later stages take it."""
        found = []
        for key, port in self.ports.items():
            side, index = re.fullmatch(_PORT, key).groups()  # type: ignore[union-attr]  # checked
            found.append(
                IoPort(
                    is_input=side == "input",
                    index=int(index),
                    dtype=port.dtype,
                    reuse=port.reuse,
                    rows=port.rows or 0,
                    stream=None if port.stream is None else port.stream.stream,
                    align=port.align or 0,
                )
            )
        # Keys of a build are made of the tuple: the order in which the profile writes
        # ports must not matter.
        found.sort(key=lambda port: (not port.is_input, port.index))
        return ModelIo(quantized=self.quantized, ports=tuple(found))


def io_problems(table: IoTable, load: Load, where: KeyPath, facts: Facts) -> Iterator[Diagnostic]:
    """Keys of outputs that are for inputs, and inputs that cannot come by rows.

    Args:
        table: The table.
        load: How its model is loaded.
        where: Path of the table.
        facts: Further facts.
    """
    streams = []
    for key, port in table.ports.items():
        path = (*where, key)
        with suppress(BrokenValueError):
            streams += [key] if port.stream is not None else []
        if key.startswith("input"):
            with suppress(BrokenValueError):
                yield from _rows_problems(port, load, path, facts)
            continue
        with suppress(BrokenValueError):
            for name in ("reuse", "rows", "stream"):
                if name in port.written_keys:
                    yield Diagnostic.of(
                        "bad-choice",
                        f"{key_text((*path, name))} is for inputs",
                        where=facts.span(*path, name),
                        found="an output, which stays until the next run",
                        hint=f"leave {name} out",
                    )
            if port.dtype is IoDtype.UINT8:
                yield Diagnostic.of(
                    "bad-choice",
                    f'{key_text(path)} cannot be "uint8"',
                    where=facts.span(*path),
                    expected="int8, or float32; uint8 is for images",
                    hint='write "int8"',
                )
    # A stream has one time: what two windows with hops of their own share is not
    # defined.
    if len(streams) > 1:
        first, second = streams[:2]
        yield Diagnostic.of(
            "bad-choice",
            f"{key_text((*where, second))} cannot be a stream as well",
            where=facts.span(*where, second, "stream"),
            found=f"{first}, {facts.span(*where, first, 'stream')}",
            hint="give whole windows of the other input, or join both in the model",
        )


def _rows_problems(
    port: IoPortTable, load: Load, path: KeyPath, facts: Facts
) -> Iterator[Diagnostic]:
    """An input that comes by rows, of a model that is loaded; or that is kept."""
    if port.rows is None:
        return
    if port.stream is not None:
        yield Diagnostic.of(
            "bad-choice",
            f"{key_text(path)} cannot come by rows and be a stream",
            where=facts.span(*path, "stream"),
            found=f"rows, {facts.span(*path, 'rows')}",
            hint="leave one of them out: a stream computes what is new at once",
        )
    if load is not Load.PRELINKED:
        yield Diagnostic.of(
            "bad-choice",
            f"{key_text((*path, 'rows'))} is for prelinked models",
            where=facts.span(*path, "rows"),
            found=f'load = "{load}"',
            hint='write load = "prelinked"',
        )
    if not port.reuse:
        yield Diagnostic.of(
            "bad-choice",
            f"{key_text(path)} cannot be kept and come by rows",
            where=facts.span(*path, "reuse"),
            found=f"rows, {facts.span(*path, 'rows')}",
            hint="leave one of them out: rows are gone when no operator needs them",
        )


def skip_problems(skipped: Sequence[str], where: KeyPath, facts: Facts) -> Iterator[Diagnostic]:
    """A model with a table whose passes the profile skips."""
    if skipped:
        yield Diagnostic.of(
            "bad-choice",
            f"passes.skip has {skipped[0]}, which does what {key_text(where)} says",
            where=facts.span("passes", "skip"),
            found=f"{key_text(where)}, {facts.span(*where)}",
            hint=f"take {skipped[0]} out of skip, or leave out models.{where[-1]}",
        )
