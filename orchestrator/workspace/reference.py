"""JSON Schema and reference page of `orchestrator.toml`, generated from its tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from orchestrator.profile.reference import (
    SchemaGenerator,
    json_schema,
    table_sections,
    without_null,
)
from orchestrator.workspace.load import NOT_INHERITED
from orchestrator.workspace.tables import WorkspaceTable

if TYPE_CHECKING:
    from collections.abc import Mapping

EXAMPLE = """\
#:schema schema/orchestrator.schema.json
schema = 1

[workspace]
profiles = ["products/*.toml"]
exclude = ["products/old-*.toml"]

[defaults.kernels]
libraries = ["cortex_m", "quantized", "portable"]

[defaults.scratch]
runtime_check = "always"

[matrix]
cpus = ["cortex-m4", "cortex-m55"]
optimize = ["size"]

[budgets]
flash = "256 KiB"

[cache]
path = ".cache"
published = "https://builds.example.com/objects"
published_key = "ci.pub"

[build]
launcher = "ccache"
"""
"""A file with every table; part of the reference page."""


def workspace_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of `orchestrator.toml`."""
    schema = without_null(
        WorkspaceTable.model_json_schema(
            by_alias=True, schema_generator=SchemaGenerator
        )
    )
    for part in (schema, *schema["$defs"].values()):
        part.pop("title")  # the class name
    profile = json_schema()
    definitions: Mapping[str, Any] = profile["$defs"]
    schema["$defs"] = {**definitions, **schema["$defs"]}
    schema["properties"]["defaults"] = {
        "type": "object",
        "description": schema["properties"]["defaults"]["description"],
        "additionalProperties": False,
        "properties": {
            key: value
            for key, value in profile["properties"].items()
            if key not in NOT_INHERITED
        },
    }
    return {
        "$schema": SchemaGenerator.schema_dialect,
        "title": "Orchestrator workspace",
        **schema,
    }


def workspace_schema_text() -> str:
    """Text of `schema/orchestrator.schema.json`."""
    return json.dumps(workspace_schema(), indent=2) + "\n"


_INTRODUCTION = """\
# orchestrator.toml

<!-- Generated from orchestrator/workspace/tables.py; a test keeps it current. -->

One file at the top of a repository with several products, see
[workspaces.md](workspaces.md). Unknown keys are errors, and all problems are reported
at once, each with its line. `orchestrator schema --workspace` prints the JSON Schema.

```toml
{example}```
"""


def workspace_page() -> str:
    """Text of `docs/orchestrator-toml.md`."""
    introduction = _INTRODUCTION.format(example=EXAMPLE)
    return "\n".join(
        [introduction, *table_sections(workspace_schema(), WorkspaceTable)]
    )
