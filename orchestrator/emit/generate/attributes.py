"""Attributes of the functions of the API."""

from __future__ import annotations

import re
from collections.abc import Container
from typing import Final

_FUNCTION: Final = re.compile(
    r"^(?P<inline>(?:static )?inline )?(?P<type>\w+(?: \w+)*\*{0,2}) (?P<name>\w+)"
    r"\((?P<parameters>[^;{}]*)\)(?P<end>;| \{)$",
    re.MULTILINE,
)
_COMMENT: Final = re.compile(
    r"^/\* (?P<text>(?:[^*]|\*(?!/))*?) ?\*/\n"
    r"(?=#define \w+ |(?P<status>ORCH_NODISCARD )?\w[\w *]*\()",
    re.MULTILINE,
)
_RETURNS: Final = "\n * @return ORCH_OK, or what went wrong: see orch/status.h."


def with_attributes(header: str, *, users: Container[str]) -> str:
    """Part of a header: no status may be ignored, nothing throws; with Doxygen.

    Args:
        header: The text.
        users: Functions that the application defines: they have no attributes.
    """

    def attributed(found: re.Match[str]) -> str:
        if found["name"] in users:
            return found[0]
        is_status = found["type"] in {"orch_status", "orch_update_result"}
        return (
            f"{'ORCH_NODISCARD ' if is_status else ''}{found['inline'] or ''}"
            f"{found['type']} {found['name']}({found['parameters']})"
            f" ORCH_NOEXCEPT{found['end']}"
        )

    def documented(found: re.Match[str]) -> str:
        returns = _RETURNS if found["status"] else ""
        return f"/** {found['text']}{returns} */\n"

    return _COMMENT.sub(documented, _FUNCTION.sub(attributed, header))


def as_declared(definitions: str) -> str:
    """Definitions of such functions."""
    return _FUNCTION.sub(
        lambda m: f"{m['type']} {m['name']}({m['parameters']}) noexcept{m['end']}", definitions
    )
