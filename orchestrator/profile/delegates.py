"""`[[delegates]]`: code of the user's that runs parts of models."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from orchestrator.profile.fields import (
    Backend,
    Define,
    Namespace,
    RelativePath,
    Size,
    SourcePattern,
    not_empty,
    parse_size,
    problem,
    shown,
)
from orchestrator.profile.table import Table

MOST_STATE_BYTES = 16 * 1024 * 1024


def _check_state(value: str) -> str:
    if (parse_size(value) or 0) <= MOST_STATE_BYTES:
        return value
    raise problem(
        "bad-size",
        f"{{key}} cannot be {shown(value)}",
        expected="at most 16 MiB",
        hint="tensors of a delegate can be arguments, which the exporter plans",
    )


def _check_namespace(value: str) -> str:
    if value != "orch":
        return value
    raise problem(
        "bad-value",
        f"{{key}} cannot be {shown(value)}",
        expected="a namespace of your own",
        hint="orch has functions of these names; write a namespace inside it",
    )


class DelegateTable(Table):
    """A delegate of your own; any number of them.

    docs/delegates.md tells how to write one.
    """

    backend: Backend = Field(
        description="Id of the backend in the programs, unique in the profile; "
        "`orchestrator inspect` shows it.",
        examples=["XnnpackBackend"],
    )
    namespace: Annotated[Namespace, AfterValidator(_check_namespace)] = Field(
        description="C++ namespace of its functions `init` and `execute`.",
        examples=["my_backend"],
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
        default=(),
        description="Macros of its sources.",
        examples=[["MY_BACKEND_TABLES=2"]],
    )
    state: Annotated[Size, AfterValidator(_check_state)] | None = Field(
        default=None,
        description="RAM that each part of a model keeps for it, exactly. "
        "Default: none.",
        examples=["12 B"],
    )
