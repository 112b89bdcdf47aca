"""What pydantic finds wrong in JSON, as users read it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final

from pydantic_core import ErrorDetails

from orchestrator.errors import did_you_mean
from orchestrator.program.values import ValueKind


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonProblem:
    """A JSON value of another form than expected: parts of a diagnostic.

    Args:
        at: `runs[0].inputs[2].kind`; "" for the whole document.
        found: The value, or what it is.
        expected: What it should be.
        hint: What to do, if there is a guess.
    """

    at: str
    found: str
    expected: str
    hint: str = ""


# Keys are the types of errors of pydantic-core 2. One that is missing here is shown in
# pydantic's words.
_EXPECTED: Final = {
    "bool_type": "true or false",
    "float_type": "a number",
    "int_type": "an integer",
    "finite_number": "a finite number",
    "greater_than_equal": "0 or more",
    "list_type": "a list",
    "missing": "this key",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "string_pattern_mismatch": "a path",
    "string_type": "a text",
    "tuple_type": "a list",
}
"""Names of JSON for what pydantic names as Python does."""
_TAGS: Final = frozenset(kind.label for kind in ValueKind)


def problem_of(error: ErrorDetails, base: str = "") -> JsonProblem:
    """A problem that pydantic found.

    Args:
        error: One of `ValidationError.errors()`.
        base: Place of the value that was validated.
    """
    kind, node = error["type"], error["input"]
    message = error["msg"].removeprefix("Value error, ")
    expected = _EXPECTED.get(kind, message.removeprefix("Input should be "))
    # pydantic puts the tag of a union into the place; the document has no such key.
    place = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part}"
        for part in error["loc"]
        if part not in _TAGS
    )
    hint = ""
    if kind in ("union_tag_invalid", "union_tag_not_found"):
        place += ".kind"
        node = node.get("kind")
        known = sorted(_TAGS)
        expected = ", ".join(known)
        hint = did_you_mean(node, known) if isinstance(node, str) else ""
    return JsonProblem(
        at=f"{base}{place}".removeprefix("."),
        found="nothing" if kind == "missing" else _excerpt(node),
        expected=expected,
        hint=hint,
    )


def _excerpt(node: object) -> str:
    """What a JSON value is, in a few words."""
    match node:
        case None:
            return "nothing"
        case dict():
            return "an object"
        case list():
            return f"a list of {len(node)} entries"
    return f"{json.dumps(node, ensure_ascii=False):.80}"


def sentence_of(error: ErrorDetails) -> str:
    """`version: expected 1, found 2`."""
    problem = problem_of(error)
    place = f"{problem.at}: " if problem.at else ""
    if error["type"] == "value_error":
        return f"{place}{problem.expected}"
    return f"{place}expected {problem.expected}, found {problem.found}"
