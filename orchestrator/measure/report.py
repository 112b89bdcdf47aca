"""`report.json`: a size report as text, and back."""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, fields, is_dataclass
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, get_args, get_origin, get_type_hints

from orchestrator.errors import Diagnostic, UsageError
from orchestrator.measure.size import SizeReport

SCHEMA: Final = 1
"""Version of the form; rises when readers would misunderstand another one."""

_T = TypeVar("_T")


def report_json(report: SizeReport) -> str:
    """Canonical JSON text of a report, ending in a newline.

    It holds no path of the machine and changes only if the report does. Totals that
    follow from others are written too, for readers of the file.
    """
    document: dict[str, Any] = {"schema": SCHEMA, **asdict(report)}
    totals = report.totals
    document["totals"]["flash_bytes_without_models"] = totals.flash_bytes_without_models
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def read_report(text: str, *, file: str = "report.json") -> SizeReport:
    """The report that `report_json` wrote.

    Args:
        text: Of the file.
        file: Its name, for messages.

    Raises:
        UsageError: It is no report, or one of another version (`bad-report`).
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
        return _build(SizeReport, document, "report")
    except _WrongValueError as error:
        raise _bad(file, f"{error.place} is wrong or missing", error.expected) from None


class _WrongValueError(Exception):
    def __init__(self, place: str, expected: str) -> None:
        super().__init__(place)
        self.place = place
        self.expected = expected


def _bad(file: str, found: str, expected: str) -> UsageError:
    return UsageError(
        Diagnostic(
            code="bad-report",
            message=f"{file} is not a size report of this version",
            notes=(("found", found), ("expected", expected)),
            hint="build the product again with this version of Orchestrator",
        )
    )


def _build(kind: type[_T], document: object, place: str) -> _T:
    """A dataclass out of its JSON form; further keys are derived values."""
    if not isinstance(document, dict):
        raise _WrongValueError(place, "an object")
    hints = get_type_hints(kind)
    values = {}
    for field in fields(kind):  # type: ignore[arg-type]  # every caller passes a dataclass
        if field.name not in document:
            if field.default is not MISSING:
                continue  # a report of a version that did not know it
            raise _WrongValueError(f"{place}.{field.name}", "a value")
        where = f"{place}.{field.name}"
        values[field.name] = _value(hints[field.name], document[field.name], where)
    return kind(**values)


def _value(kind: Any, value: object, place: str) -> object:  # noqa: ANN401  # a type hint
    if isinstance(kind, UnionType):  # only `... | None` occurs
        (kind,) = (k for k in get_args(kind) if k is not NoneType)
        if value is None:
            return None
    if isinstance(kind, type) and is_dataclass(kind):
        return _build(kind, value, place)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise _WrongValueError(place, "a list")
        item = get_args(kind)[0]
        return tuple(_value(item, v, f"{place}[{i}]") for i, v in enumerate(value))
    if issubclass(kind, StrEnum):
        if value not in [str(member) for member in kind]:
            raise _WrongValueError(place, f"one of {', '.join(kind)}")
        return kind(value)
    if type(value) is not kind:
        raise _WrongValueError(place, f"a value of type {kind.__name__}")
    return value
