"""JSON Schema and reference page of the profile, generated from its tables."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic.json_schema import GenerateJsonSchema

from orchestrator.profile.fields import shown
from orchestrator.profile.tables import ProfileTable, header_of, tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic.fields import FieldInfo

    from orchestrator.profile.table import Table

EXAMPLE = """\
#:schema ../schema/profile.schema.json
schema = 1
name = "doorbell"
description = "Person detection, Cortex-M55"

[target]
cpu = "cortex-m55"
isa = "mve"
board = "mps3-an547"
toolchain = "zig"
optimize = "size"
flash_wait_states = 0
unaligned = true
float_abi = "hard"
nonsecure_entries = true

[[models]]
name = "person"
path = "../models/person.pte"
load = "pte"

[operators]
include = ["aten::add.out"]
include_yaml = ["../ops/extra.yaml"]
overlap = "allow"
allow_missing = ["XnnpackBackend"]

[dtypes]
select = "models"

[dtypes.operators]
"aten::add.out" = ["Float", "Int"]
"aten::mul.out" = ["v1/6;0,1|6;0,1|6;0,1"]

[kernels]
libraries = ["my_ops", "portable"]

[kernels.operators]
"aten::add.out" = ["portable"]

[[kernels.custom]]
name = "my_ops"
functions = "../my_ops/functions.yaml"
sources = ["../my_ops/*.cpp"]
include = ["../my_ops/include"]
defines = ["MY_OPS_TABLES=2"]

[[delegates]]
backend = "MyBackend"
namespace = "my_backend"
sources = ["../my_backend/*.cpp"]
state = "12 B"

[scratch]
policy = "plan"
runtime_check = "always"

[memory]
planner = "best"

[registry]
max_kernels = 64

[trace]
enable = true

[integrity]
check = "start"

[budget]
flash = "2 MiB"
ram = "64 KiB"
"""
"""A profile with almost every key; part of the reference page."""


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
    schema["required"] = ["name"]
    schema["$defs"]["TargetTable"].pop("required")
    schema["if"] = {"not": {"required": ["extends"]}}
    schema["then"] = {
        "required": ["schema", "target"],
        "properties": {"target": {"required": ["cpu"]}},
        "anyOf": [{"required": ["models"]}, {"required": ["operators"]}],
    }
    return {
        "$schema": GenerateJsonSchema.schema_dialect,
        "title": "Orchestrator profile",
        **schema,
    }


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
        (branch,) = (b for b in branches if b != {"type": "null"})
        del kept["anyOf"]
        kept |= branch
    return kept


_INTRODUCTION = """\
# The profile

<!-- Generated from orchestrator/profile/tables.py; a test keeps it current. -->

One TOML file per product. Unknown keys are errors, and so are keys this version
knows but does not support. All problems of a profile are reported at once, each with
its line.

```toml
{example}```

- **Paths** are relative to the file they are written in, with `/` between folders.
  Those of models and their data may be absolute, with a warning: then the profile and
  its lock are for one machine.
- **Names** are a small letter, then small letters, digits and `-` (products) or `_`
  (models); at most 40 characters.
- **Sizes** are texts: a positive integer with `B`, `KiB` (1024 B) or `MiB`.
- **Operators** are named `namespace::base.overload`; without a namespace it is `aten`.
- **A base** (`extends`) may itself extend nothing. Tables are merged key by key, the
  profile wins, arrays are replaced whole. `name` and `description` are not inherited.
  A required key may be in the base. Messages name the file and line of each value.
- **Editors** that know JSON Schema (Even Better TOML, Taplo) complete and check
  profiles whose first line names the schema, as above. `orchestrator schema` prints it.
"""


def reference_page() -> str:
    """Text of `docs/profile.md`: every key with type, default, meaning and example."""
    introduction = _INTRODUCTION.format(example=EXAMPLE)
    return "\n".join([introduction, *table_sections(json_schema())])


def table_sections(
    schema: dict[str, Any], root: type[Table] | None = None
) -> Iterator[str]:
    """A section for each table, with every key.

    Args:
        schema: Of the whole file.
        root: The table of the whole file; None for a profile.
    """
    for table, model in tables(root).items():
        properties = (schema["$defs"][model.__name__] if table else schema)[
            "properties"
        ]
        lines = [
            f"## `{header_of(table, root)}`" if table else "## Top of the file",
            "",
            " ".join((model.__doc__ or "").split()),
            "",
            "| key | type | default | meaning | example |",
            "|---|---|---|---|---|",
        ]
        for name, field in model.model_fields.items():
            key = field.alias or name
            if (*table, key) not in tables(root):
                lines.append(_row(key, field, properties[key]))
        yield "\n".join(lines) + "\n"


def _row(key: str, field: FieldInfo, schema: dict[str, Any]) -> str:
    meaning, _, default = (field.description or "").partition(" Default: ")
    if field.is_required():
        default = "required"
    elif not default:
        default = f"`{shown(schema.get('default'))}`"
    example = f"`{shown(field.examples[0])}`" if field.examples else ""
    cells = (f"`{key}`", _type_words(schema), default.rstrip("."), meaning, example)
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def _type_words(schema: dict[str, Any]) -> str:
    match schema:
        case {"enum": [*names]}:
            return " or ".join(f"`{name}`" for name in names)
        case {"const": value}:
            return f"`{value}`"
        case {"title": str(title)}:
            return title
        case {"type": "array", "items": items}:
            return f"array of {_type_words(items)}"
        case {"patternProperties": patterns}:
            (items,) = patterns.values()
            return f"table, per operator {_type_words(items)}"
        case {"type": str(name)}:
            return "table" if name == "object" else name
    raise AssertionError(schema)  # a test makes the page of every field
