"""`[[delegates]]`: code of the user's that runs parts of models."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import AfterValidator, Field

from orchestrator.errors import Diagnostic
from orchestrator.profile.fields import (
    Backend,
    Define,
    Namespace,
    RelativePath,
    Size,
    SourcePattern,
    key_text,
    missing_sources,
    not_empty,
    problem,
    shown,
    size_text,
)
from orchestrator.profile.table import BrokenValueError, Table, sound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from orchestrator.profile.source_map import FindSpan, KeyPath

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
    state_bytes: Annotated[Size, AfterValidator(_check_state)] = Field(
        default_factory=int,
        alias="state",
        description="RAM that each part of a model keeps for it, exactly. "
        "Default: none.",
        examples=["12 B"],
    )


def delegate_problems(
    delegates: Iterable[DelegateTable],
    span: FindSpan,
    is_file: Callable[[Path], bool],
) -> Iterator[Diagnostic]:
    """Every problem of `[[delegates]]` that single values do not show.

    Args:
        delegates: Of the profile.
        span: Where a key path was written.
        is_file: Whether a path is a file; may raise `OSError`.
    """
    first: dict[str, int] = {}
    for index, table in sound(delegates):
        where: KeyPath = ("delegates", index)
        with suppress(BrokenValueError):
            yield from missing_sources(
                sound(table.sources), where, span, is_file, owner="the delegate"
            )
        with suppress(BrokenValueError):
            place = first.setdefault(table.backend, index)
            if place != index:
                other: KeyPath = ("delegates", place)
                yield Diagnostic(
                    code="duplicate-delegate",
                    message=f"two delegates serve the backend {shown(table.backend)}",
                    where=span(*where, "backend"),
                    notes=(
                        (
                            "found",
                            f"{key_text(other)} does too, {span(*other, 'backend')}",
                        ),
                        ("expected", "one delegate for each backend"),
                    ),
                    hint="remove one of them",
                )
