"""The compilation database for editors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from orchestrator.emit.compile.units import SOURCES

if TYPE_CHECKING:
    from orchestrator.emit.compile.units import CompilePlan


def compile_commands(
    plan: CompilePlan,
    *,
    compiler: tuple[str, ...],
    folder: str,
    sources: str,
    elsewhere: Mapping[str, str],
) -> str:
    """The compilation database for editors, with the sources that users edit.

    Args:
        plan: The compile plan.
        compiler: Its command.
        folder: Ninja's folder, absolute.
        sources: The folder that holds runtime/ and kernels/, absolute.
        elsewhere: Folders in it that are elsewhere on disk: `kernels/my_ops` and
            its absolute path.
    """
    places = {f"{SOURCES}/{name}": path for name, path in elsewhere.items()}
    places[SOURCES] = sources

    def there(word: str) -> str:
        option = "-I" if word.startswith("-I") else ""
        path = word.removeprefix(option)
        for name, place in places.items():
            if path == name or path.startswith(f"{name}/"):
                return f"{option}{place}{path.removeprefix(name)}"
        return word

    entries = [
        {
            "directory": folder,
            "file": there(unit.source),
            "output": unit.object,
            "arguments": [
                *compiler,
                *(there(flag) for flag in unit.flags),
                *("-c", there(unit.source), "-o", unit.object),
            ],
        }
        for unit in plan.units
    ]
    return json.dumps(entries, indent=2) + "\n"
