"""Reference pages of docs/: tests hold each against what it is made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from orchestrator.catalog.operator_page import NEVER_CALLED, counts, missing, operator_rows
from orchestrator.profile.fields import shown
from orchestrator.profile.reference import json_schema
from orchestrator.profile.tables import header_of, tables
from orchestrator.workspace.load import workspace_schema
from orchestrator.workspace.tables import WorkspaceTable

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pydantic.fields import FieldInfo

    from orchestrator.core.kernel import Kernel
    from orchestrator.profile.table import Table

PROFILE_EXAMPLE = """\
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
data_wait_states = 0
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

_PROFILE_INTRODUCTION = """\
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
  profiles whose first line names the schema, as above. `orchestrator plumbing schema`
  prints it.
"""


def profile_page() -> str:
    """Text of `docs/profile.md`: every key with type, default, meaning and example."""
    introduction = _PROFILE_INTRODUCTION.format(example=PROFILE_EXAMPLE)
    return "\n".join([introduction, *table_sections(json_schema())])


def table_sections(schema: dict[str, Any], root: type[Table] | None = None) -> Iterator[str]:
    """A section for each table, with every key.

    Args:
        schema: Of the whole file.
        root: The table of the whole file; None for a profile.
    """
    for table, model in tables(root).items():
        properties = (schema["$defs"][model.__name__] if table else schema)["properties"]
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


WORKSPACE_EXAMPLE = """\
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

_WORKSPACE_INTRODUCTION = """\
# orchestrator.toml

<!-- Generated from orchestrator/workspace/tables.py; a test keeps it current. -->

One file at the top of a repository with several products, see
[workspaces.md](workspaces.md). Unknown keys are errors, and all problems are reported
at once, each with its line. `orchestrator plumbing schema --workspace` prints the JSON
Schema.

```toml
{example}```
"""


def workspace_page() -> str:
    """Text of `docs/orchestrator-toml.md`."""
    introduction = _WORKSPACE_INTRODUCTION.format(example=WORKSPACE_EXAMPLE)
    return "\n".join([introduction, *table_sections(workspace_schema(), WorkspaceTable)])


_HEAD: Final = """\
# Operators

Generated from `kernels/*/functions.yaml`, which has the exact conditions of each kernel
(`requires`). `orchestrator targets --operators` prints the same table.

- **dtypes**: `integral` is Byte, Char, Short, Int and Long; `floating` Half, BFloat16,
  Float and Double; `real` both; `complex` ComplexHalf, ComplexFloat and ComplexDouble;
  `all` also Bool and UInt16, UInt32, UInt64.
- **dim orders**: `any`; `same`: one for all tensors; `contiguous`.
- **code for**: instructions that a kernel uses besides plain C++.
- **error**: of floats, in units in the last place of the dtype
  ([bounds](kernels.md#bounds)). `exact`: the bits of PyTorch; in `cortex_m` and
  `quantized`, those of ExecuTorch's kernels.
- **limits**: conditions on numbers among the arguments, as in
  [`requires`](kernels.md#what-a-kernel-requires). Differences from PyTorch are in
  [executorch-compatibility.md](executorch-compatibility.md#portable-kernels).
- **ExecuTorch**: its list that has the operator.
"""
_NEVER_CALLED: Final = (
    "No program calls `{}`: programs have out variants only,\n"
    "here `{}`. ExecuTorch's kernel for it aborts."
)
_TABLE_HEAD: Final = "| operator | dtypes | dim orders | code for | error | limits | ExecuTorch |"


def operators_page(kernels: Iterable[Kernel]) -> str:
    """Text of `docs/operators.md`."""
    rows = operator_rows(kernels)
    lines = [_HEAD, "| ExecuTorch's list | operators | with a kernel here |", "|---|--:|--:|"]
    lines += [f"| {name} | {of} | {have} |" for name, (have, of) in counts(rows).items()]
    for name, left in missing(rows).items():
        names = [f"`{o}`" for o in left if o not in NEVER_CALLED]
        if names:
            lines += ["", f"Of `{name}` there is no kernel for {', '.join(names)}."]
    for operator, instead in NEVER_CALLED.items():
        lines += ["", _NEVER_CALLED.format(operator, instead)]
    for library in sorted({row.library for row in rows}):
        own = [row for row in rows if row.library == library]
        lines += ["", f"## {library}", "", _TABLE_HEAD, "|---|---|---|---|---|---|---|"]
        lines += [
            f"| `{row.operator}` | {row.dtypes} | {row.dim_orders}"
            f" | {', '.join(row.isas)} | {row.error}"
            f" | {'; '.join(f'`{limit}`' for limit in row.limits)} | {row.executorch} |"
            for row in own
        ]
    return "\n".join(lines) + "\n"
