"""Writes `orch_selected/*.h` for the kernels of a functions.yaml, for tests.

Usage: selection.py FUNCTIONS_YAML OUTPUT_FOLDER [DTYPE...]

Without dtypes every operator gets all that its entry lists, else those of them
that are named (and its closure).
"""

from __future__ import annotations

import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import yaml

from orchestrator.core.dtype import ScalarType, parse_dtypes
from orchestrator.core.operator import parse_schema


def selected_headers(functions_yaml: str, only: frozenset[ScalarType]) -> dict[str, str]:
    """Text of each header by file name; an empty `only` selects everything."""
    lines: defaultdict[str, list[str]] = defaultdict(list)
    for entry in yaml.safe_load(functions_yaml):
        name = parse_schema(entry["func"]).name
        dtypes = _dtypes(entry)
        if only:
            dtypes &= only
        dtypes |= parse_dtypes(entry.get("closure", []))
        items = ", ".join(f"ScalarType::{d.name}" for d in sorted(dtypes))
        for source in entry["sources"]:
            lines[Path(source).stem].append(
                f"inline constexpr DtypeSet {name.identifier} = dtype_set({items});"
            )
    return {
        f"{stem}.h": "\n".join(
            [
                "#pragma once",
                '#include "orch/scalar_type.h"',
                "namespace orch::selected {",
                *sorted(found),
                "}  // namespace orch::selected",
                "",
            ]
        )
        for stem, found in lines.items()
    }


def _dtypes(entry: dict[str, Any]) -> frozenset[ScalarType]:
    """What can decide the instances of a kernel."""
    dtypes = entry["dtypes"]
    if isinstance(dtypes, list):
        return parse_dtypes(dtypes)
    deciding = entry.get("dtype_arguments", list(dtypes))
    return frozenset().union(*(parse_dtypes(dtypes[a]) for a in deciding))


def main(arguments: list[str]) -> None:
    """Write the headers."""
    source, folder, *dtypes = arguments
    target = Path(folder) / "orch_selected"
    target.mkdir(parents=True, exist_ok=True)
    text = Path(source).read_text(encoding="utf-8")
    for name, header in selected_headers(text, parse_dtypes(dtypes)).items():
        (target / name).write_text(header, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
