"""JSON Schema of `orchestrator.toml`, generated from its tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from orchestrator.profile.reference import SchemaGenerator, json_schema, without_null
from orchestrator.workspace.load import NOT_INHERITED
from orchestrator.workspace.tables import WorkspaceTable


def workspace_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of `orchestrator.toml`."""
    schema = without_null(
        WorkspaceTable.model_json_schema(by_alias=True, schema_generator=SchemaGenerator)
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
            key: value for key, value in profile["properties"].items() if key not in NOT_INHERITED
        },
    }
    return {"$schema": SchemaGenerator.schema_dialect, "title": "Orchestrator workspace", **schema}


def workspace_schema_text() -> str:
    """Text of `schema/orchestrator.schema.json`."""
    return json.dumps(workspace_schema(), indent=2) + "\n"
