"""JSON Schema of the profile, generated from its tables."""

from __future__ import annotations

import json
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from orchestrator.profile.tables import ProfileTable


class SchemaGenerator(GenerateJsonSchema):
    """pydantic's generator, without titles that only repeat the keys."""

    def field_title_should_be_set(self, schema: object) -> bool:  # noqa: ARG002
        """Never (the argument's name is pydantic's)."""
        return False


def json_schema() -> dict[str, Any]:
    """JSON Schema (draft 2020-12) of a profile file.

    With `extends`, required keys may come from the base, so the schema requires none.
    """
    schema = without_null(
        ProfileTable.model_json_schema(by_alias=True, schema_generator=SchemaGenerator)
    )
    for part in (schema, *schema["$defs"].values()):
        part.pop("title")  # the class name
    # A profile with a base may lack all other keys, as the base has them: required only
    # without `extends`.
    schema["required"] = ["name"]
    schema["$defs"]["TargetTable"].pop("required")
    schema["if"] = {"not": {"required": ["extends"]}}
    schema["then"] = {
        "required": ["schema", "target"],
        "properties": {"target": {"required": ["cpu"]}},
        "anyOf": [{"required": ["models"]}, {"required": ["operators"]}],
    }
    return {"$schema": GenerateJsonSchema.schema_dialect, "title": "Orchestrator profile", **schema}


def schema_text() -> str:
    """Text of `schema/profile.schema.json`."""
    return json.dumps(json_schema(), indent=2) + "\n"


def without_null(node: Any) -> Any:  # noqa: ANN401  # JSON of any shape
    """The schema without `null`, which TOML does not have."""
    if isinstance(node, list):
        return [without_null(item) for item in node]
    if not isinstance(node, dict):
        return node
    kept = {k: without_null(v) for k, v in node.items() if v is not None}
    branches = kept.get("anyOf", [])
    if {"type": "null"} in branches:
        # Fields that may be None in Python are left out in TOML.
        (branch,) = (b for b in branches if b != {"type": "null"})
        del kept["anyOf"]
        kept |= branch
    return kept
