"""The tables of `orchestrator.toml`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, Field, StrictInt, StrictStr, WithJsonSchema

from orchestrator.profile.fields import bad_value, not_empty, text_schema
from orchestrator.profile.matrix import MatrixTable
from orchestrator.profile.paths import RelativePath, is_relative_path
from orchestrator.profile.table import Table
from orchestrator.profile.tables import SCHEMA_VERSION, BudgetTable, check_schema


def _check_pattern(value: str) -> str:
    if is_relative_path(value) and ".." not in value.split("/"):
        return value
    raise bad_value(
        value,
        expected="a pattern of files below the folder of orchestrator.toml, with /"
        " between folders",
        hint='write it as seen from there, such as "products/*.toml"',
    )


_Pattern = Annotated[
    StrictStr, AfterValidator(_check_pattern), text_schema("pattern", r"[^/\\][^\\]*")
]


class MembersTable(Table):
    """Which profiles are in the workspace."""

    profiles: Annotated[tuple[_Pattern, ...], AfterValidator(not_empty)] = Field(
        description="Patterns of profiles: `*` is any text within a folder or file "
        "name, `**` any folders. Files that only serve others as `extends`, without "
        "`name`, are not products.",
        examples=[["products/*.toml"]],
    )
    exclude: tuple[_Pattern, ...] = Field(
        default=(),
        description="Patterns of files that are no members after all.",
        examples=[["products/old/*.toml"]],
    )


class CacheTable(Table):
    """What builds on this machine share."""

    path: RelativePath | None = Field(
        default=None,
        description="Folder of the cache of commands without PROFILE, unless "
        "`ORCHESTRATOR_CACHE` is set. "
        "Default: `orchestrator` in the user's folder for caches.",
        examples=[".cache"],
    )


class WorkspaceTable(Table):
    """A workspace: many products of one repository."""

    schema_: Annotated[
        StrictInt,
        AfterValidator(check_schema),
        WithJsonSchema({"type": "integer", "const": SCHEMA_VERSION}),
    ] = Field(
        alias="schema",
        description="Version of the format.",
        examples=[SCHEMA_VERSION],
    )
    workspace: MembersTable = Field(description="Which profiles are in the workspace.")
    defaults: dict[str, Any] = Field(
        default={},
        description="Tables of profiles that all members inherit, as from a base: "
        "[profile.md](profile.md). The profile and its base win, key by key; paths "
        "are relative to this file. Default: nothing.",
        examples=[{"scratch": {"runtime_check": "always"}}],
    )
    matrix: MatrixTable = Field(
        default=MatrixTable(), description="Targets of all profiles."
    )
    budgets: BudgetTable = Field(
        default=BudgetTable(),
        description="`budget` of all profiles that have none of their own.",
    )
    cache: CacheTable = Field(
        default=CacheTable(), description="What builds on this machine share."
    )
