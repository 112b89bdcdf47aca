"""`[[delegates]]`: code of the user's that runs parts of models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Annotated, Final

from pydantic import AfterValidator, Field, StrictBool, StrictStr

from orchestrator.core.spelling import size_text
from orchestrator.errors import Diagnostic
from orchestrator.profile.fields import (
    Define,
    Size,
    Symbol,
    key_text,
    matching,
    not_empty,
    only,
    problem,
    shown,
    sorted_set,
)
from orchestrator.profile.paths import Facts, RelativePath, SourcePattern
from orchestrator.profile.source_map import KeyPath
from orchestrator.profile.table import BrokenValueError, Table, sound

# 16 MiB, chosen by hand: far above the RAM of a microcontroller.
_MOST_STATE_BYTES: Final = 16 * 1024 * 1024


def _check_state(value: int) -> int:
    if value <= _MOST_STATE_BYTES:
        return value
    raise problem(
        "bad-size",
        f"{{key}} cannot be {shown(size_text(value))}",
        expected="at most 16 MiB",
        hint="tensors of a delegate can be arguments, which the exporter plans",
    )


class DelegateTable(Table):
    """A delegate of your own; any number of them.

    docs/delegates.md shows how to write one.
    """

    backend: Annotated[
        StrictStr,
        *matching(
            "backend",
            r"[A-Za-z_]\w*",
            expected="letters, digits and _, no digit first",
            hint="write it as the code does",
        ),
    ] = Field(
        description="Id of the backend in the programs, unique in the profile; "
        "`orchestrator inspect` shows it.",
        examples=["XnnpackBackend"],
    )
    namespace: Annotated[
        StrictStr,
        *matching(
            "namespace",
            r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*",
            expected="a C++ namespace such as my::backend",
            hint="write it as the code does",
        ),
        only(
            lambda name: name != "orch",
            expected="a namespace of your own",
            hint="orch has functions of these names; write a namespace inside it",
        ),
    ] = Field(
        description="C++ namespace of its functions `init` and `execute`.", examples=["my_backend"]
    )
    sources: Annotated[tuple[SourcePattern, ...], AfterValidator(not_empty)] = Field(
        description="C++ (`.cpp`, `.cc`, `.cxx`), C (`.c`) and assembler (`.S`) files "
        "that are compiled if a model needs the delegate; `*` stands for any part of a "
        "name, `**` for any folders.",
        examples=[["../my_backend/*.cpp"]],
        json_schema_extra={"minItems": 1},
    )
    include: tuple[RelativePath, ...] = Field(
        default=(),
        description="Folders in which its sources find headers, besides their own.",
        examples=[["../my_backend/include"]],
    )
    defines: tuple[Define, ...] = Field(
        default=(), description="Macros of its sources.", examples=[["MY_BACKEND_TABLES=2"]]
    )
    exports: Annotated[tuple[Symbol, ...], AfterValidator(sorted_set)] = Field(
        default=(),
        description="Functions and variables of its sources that the application "
        "uses, by their names in C. Other names are the product's own.",
        examples=[["my_backend_start"]],
    )
    state_bytes: Annotated[Size, AfterValidator(_check_state)] = Field(
        default_factory=int,
        alias="state",
        description="RAM that each part of a model keeps for it, exactly. Default: none.",
        examples=["12 B"],
    )
    named_data: StrictBool = Field(
        default=False,
        description="Whether it finds data by name (`handle.named`), in the program or "
        "in the data files of the model. Programs with such data are refused if no "
        "delegate of theirs takes it. 24 bytes of RAM more for each part.",
        examples=[True],
    )


def delegate_problems(delegates: Iterable[DelegateTable], facts: Facts) -> Iterator[Diagnostic]:
    """Problems of `[[delegates]]` beyond single values."""
    first: dict[str, int] = {}
    for index, table in sound(delegates):
        where: KeyPath = ("delegates", index)
        with suppress(BrokenValueError):
            yield from facts.missing_files(
                table.sources, *where, "sources", what="source", expected="a source of the delegate"
            )
        with suppress(BrokenValueError):
            place = first.setdefault(table.backend, index)
            if place == index:
                continue
            other: KeyPath = ("delegates", place)
            span = facts.span(*other, "backend")
            yield Diagnostic.of(
                "duplicate-delegate",
                f"two delegates serve the backend {shown(table.backend)}",
                where=facts.span(*where, "backend"),
                found=f"{key_text(other)} does too, {span}",
                expected="one delegate for each backend",
                hint="remove one of them",
            )
