"""`report.json`: a size report as text, and back."""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from orchestrator.errors import UsageError
from orchestrator.measure.size import SizeReport

SCHEMA: Final = 1
"""Version of the form; rises when readers would misunderstand another one."""


def report_json(report: SizeReport) -> str:
    """Canonical JSON text of a report, ending in a newline.

    It holds no path of the machine and changes only if the report does. Totals that
    follow from others are written too, for readers of the file.
    """
    document: dict[str, Any] = {"schema": SCHEMA, **asdict(report)}
    totals = report.totals
    if not report.named_data:
        del document["named_data"]
    document["totals"]["flash_bytes_without_models"] = totals.flash_bytes_without_models
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def read_report(text: str, *, file: str = "report.json") -> SizeReport:
    """The report that `report_json` wrote.

    Args:
        text: Of the file.
        file: Its name, for messages.

    Raises:
        UsageError: Not a report, or one of another version (`bad-report`).
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad(file, "no JSON", f"{error}") from error
    if not isinstance(document, dict) or "schema" not in document:
        raise _bad(file, "no schema version", "a size report")
    if document["schema"] != SCHEMA:
        raise _bad(file, f"schema version {document['schema']}", f"version {SCHEMA}")
    try:
        # Keys that a report has besides are derived values.
        return _adapter().validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])
        raise _bad(file, f"report{place}: {first['msg']}", "a size report") from None


@cache
def _adapter() -> TypeAdapter[SizeReport]:
    return TypeAdapter(SizeReport)


def _bad(file: str, found: str, expected: str) -> UsageError:
    return UsageError.of(
        "bad-report",
        f"{file} is not a size report of this version",
        found=found,
        expected=expected,
        hint="build the product again with this version of Orchestrator",
    )
