"""The tables of `orchestrator.toml`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, StrictInt, StrictStr, WithJsonSchema

from orchestrator.profile.fields import bad_value, not_empty, text_schema
from orchestrator.profile.paths import RelativePath, is_relative_path
from orchestrator.profile.table import Table
from orchestrator.profile.tables import SCHEMA_VERSION, BudgetTable, check_schema
from orchestrator.profile.target import MatrixTable

# Characters. Chosen by hand; tests/unit/workspace/test_load.py holds both bounds.
_LONGEST = 1000
_MOST_PARTS = 50
"""Python goes through a pattern recursively."""


def _check_pattern(value: str) -> str:
    parts = value.split("/")
    if (
        is_relative_path(value)
        and len(parts) <= _MOST_PARTS
        and len(value) <= _LONGEST
        and ".." not in parts
        # Python 3.11 walks a tree once more for each way to divide a path among them.
        and value.count("**") == parts.count("**") <= 1
    ):
        return value
    raise bad_value(
        value,
        expected="a pattern of files below the folder of orchestrator.toml, with /"
        f" between folders; at most {_LONGEST} characters in {_MOST_PARTS} parts, `**`"
        " once, as a part of its own",
        hint='write it as seen from there, such as "products/*.toml"',
    )


_Pattern = Annotated[
    StrictStr, AfterValidator(_check_pattern), text_schema("pattern", r"[^/\\][^\\]*")
]


def _check_place(value: str) -> str:
    if "://" in value or is_relative_path(value) or value.startswith("/"):
        return value
    raise bad_value(
        value,
        expected="a URL, or a folder with / between names",
        hint="such as https://builds.example.com/objects or ../objects",
    )


class MembersTable(Table):
    """Which profiles are in the workspace."""

    profiles: Annotated[tuple[_Pattern, ...], AfterValidator(not_empty)] = Field(
        description="Patterns of profiles: `*` is any text within a folder or file "
        "name, `**` any folders, once. Files that only serve others as `extends`, "
        "without `name`, are not products.",
        examples=[["products/*.toml"]],
    )
    exclude: tuple[_Pattern, ...] = Field(
        default=(),
        description="Patterns of files that are no members after all.",
        examples=[["products/old/*.toml"]],
    )


class CacheTable(Table):
    """What builds share, on this machine and with others."""

    path: RelativePath | None = Field(
        default=None,
        description="Folder of the cache, unless `ORCHESTRATOR_CACHE` is set. "
        "Default: `orchestrator` in the user's folder for caches.",
        examples=[".cache"],
    )
    published: Annotated[StrictStr, AfterValidator(_check_place)] | None = Field(
        default=None,
        description="Where objects are [published](fleet.md), unless "
        "`ORCHESTRATOR_PUBLISHED` is set: a URL that fsspec knows, or a folder. "
        "Needs `published_key`. Default: nowhere.",
        examples=["https://builds.example.com/objects"],
    )
    published_key: RelativePath | None = Field(
        default=None,
        description="Public key of who publishes objects, in PEM, unless "
        "`ORCHESTRATOR_PUBLISHED_KEY` is set. Default: none.",
        examples=["ci.pub"],
    )


class BuildTable(Table):
    """How builds run; nothing here changes their outputs."""

    launcher: Literal["ccache"] | None = Field(
        default=None,
        description="Program that starts the compiler, unless "
        "`ORCHESTRATOR_COMPILER_LAUNCHER` is set: see "
        "[reproducibility.md](reproducibility.md#objects-from-ccache). Default: none.",
        examples=["ccache"],
    )


class WorkspaceTable(Table):
    """A workspace: many products of one repository."""

    schema_: Annotated[
        StrictInt,
        AfterValidator(check_schema),
        WithJsonSchema({"type": "integer", "const": SCHEMA_VERSION}),
    ] = Field(alias="schema", description="Version of the format.", examples=[SCHEMA_VERSION])
    workspace: MembersTable = Field(description="Which profiles are in the workspace.")
    defaults: dict[str, Any] = Field(
        default={},
        description="Tables of profiles that all members inherit, as from a base: "
        "[profile.md](profile.md). The profile and its base win, key by key; paths "
        "are relative to this file. Default: nothing.",
        examples=[{"scratch": {"runtime_check": "always"}}],
    )
    matrix: MatrixTable = Field(default=MatrixTable(), description="Targets of all profiles.")
    budgets: BudgetTable = Field(
        default=BudgetTable(), description="`budget` of all profiles that have none of their own."
    )
    cache: CacheTable = Field(default=CacheTable(), description="What builds share.")
    build: BuildTable = Field(default=BuildTable(), description="How builds run.")
