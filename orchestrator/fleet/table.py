"""Outcomes of many products as one table: text and Markdown, and as JSON."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain

from orchestrator.errors import Diagnostic
from orchestrator.fleet.outcome import Costs, Outcome
from orchestrator.plain_table import table_lines
from orchestrator.printable import printable


def in_order(outcomes: Iterable[Outcome]) -> tuple[Outcome, ...]:
    """By name, but what failed comes last, where it is seen."""
    return tuple(sorted(outcomes, key=lambda one: (one.failed, one.product.name)))


def change_text(now: Costs, before: Costs | None) -> str:
    """The change of flash and RAM: `flash +120`, `same`; "" if either is unknown."""
    if now.flash_bytes is None:
        return ""
    if before is None:
        return "new"
    parts = []
    for name, value, old in (
        ("flash", now.flash_bytes, before.flash_bytes),
        ("RAM", now.ram_bytes, before.ram_bytes),
    ):
        if value is not None and old is not None and value != old:
            parts.append(f"{name} {value - old:+,}")
    return ", ".join(parts) or "same"


def _count(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def _result(one: Outcome) -> str:
    return f"failed ({int(one.exit_code)})" if one.failed else one.done


_COLUMNS: tuple[tuple[str, bool, Callable[[Outcome], str]], ...] = (
    ("product", False, lambda one: one.product.name),
    ("core", False, lambda one: one.target["cpu"] if one.target else ""),
    ("flash", True, lambda one: _count(one.costs.flash_bytes)),
    ("RAM", True, lambda one: _count(one.costs.ram_bytes)),
    ("time", True, lambda one: f"{one.seconds:.1f} s" if one.seconds else ""),
    ("change", False, lambda one: change_text(one.costs, one.before)),
    ("result", False, _result),
)
"""Title, whether it is aligned to the right, and the cell of an outcome."""


def _rows(outcomes: Sequence[Outcome]) -> tuple[list[str], list[list[str]], set[int]]:
    """Titles, rows and columns to the right, without columns that are empty."""
    cells = [[cell(one) for one in outcomes] for _, _, cell in _COLUMNS]
    kept = [index for index, column in enumerate(cells) if any(column)]
    titles = [_COLUMNS[index][0] for index in kept]
    rows = [list(row) for row in zip(*(cells[index] for index in kept), strict=True)]
    right = {place for place, index in enumerate(kept) if _COLUMNS[index][1]}
    return titles, rows, right


def table_text(outcomes: Sequence[Outcome]) -> str:
    """The table, and a last line that counts."""
    titles, rows, right = _rows(outcomes)
    return "\n".join([*table_lines([titles, *rows], right=right), "", counts(outcomes)])


def counts(outcomes: Sequence[Outcome]) -> str:
    """`12 products: 11 up to date, 1 failed`."""
    found: dict[str, int] = {}
    for one in outcomes:
        what = "failed" if one.failed else re.split(" in |[:;] ", one.done)[0]
        found[what] = found.get(what, 0) + 1
    what = ", ".join(f"{count} {text}" for text, count in found.items())
    products = "1 product" if len(outcomes) == 1 else f"{len(outcomes):,} products"
    return f"{products}: {what}"


def by_cause(outcomes: Iterable[Outcome]) -> list[tuple[str, list[Diagnostic]]]:
    """Problems under the names of the products that have them, each cause once.

    Problems of one cause differ in nothing but their place and what names the product;
    the first one stands for all.
    """
    causes: dict[object, tuple[Diagnostic, dict[str, str]]] = {}
    for one in outcomes:
        product = one.product
        named = (str(product.profile), str(product.lock_file), product.name)
        # Names in messages are what differs between products with one cause; whole
        # words only.
        own = re.compile(rf"(?<![\w-])({'|'.join(map(re.escape, named))})(?![\w-])")
        for found in one.problems:
            texts = (found.code, found.message, found.hint, *chain(*found.notes))
            key = tuple(own.sub("\0", text) for text in texts)
            places = causes.setdefault(key, (found, {}))[1]
            has_line = found.where and found.where.line
            places[product.name] = f" ({found.where})" if has_line else ""
    titled: dict[str, list[Diagnostic]] = {}
    for found, places in causes.values():
        same = len({*places.values()}) == 1
        names = (name if same else f"{name}{places[name]}" for name in places)
        count = f"{len(places)} products: " if len(places) > 1 else ""
        titled.setdefault(count + ", ".join(names), []).append(found)
    return list(titled.items())


_MOST_ROWS = 50
"""Most rows of products whose sizes are as before: a pull request is about the others."""


def markdown_text(command: str, outcomes: Sequence[Outcome]) -> str:
    """A summary for a pull request: changes and failures first, the rest folded."""
    same = [one for one in outcomes if not one.failed and not _has_changed(one)]
    others = [one for one in outcomes if one.failed or _has_changed(one)]
    parts = [f"### orchestrator {command}", counts(outcomes)]
    if others:
        parts.append(_markdown_table(others))
    for names, problems in by_cause(outcomes):
        for problem in problems:
            where = f" ({problem.where})" if problem.where else ""
            parts.append(
                f"- **{_plain(names)}** `{problem.code}`: {_plain(problem.message)}{_plain(where)}"
            )
    if same:
        rest = len(same) - _MOST_ROWS
        more = f"\n\nand {rest:,} more" if rest > 0 else ""
        parts.append(
            f"<details><summary>{len(same):,} without a change</summary>\n\n"
            f"{_markdown_table(same[:_MOST_ROWS])}{more}\n\n</details>"
        )
    return "\n\n".join(parts) + "\n"


def _has_changed(one: Outcome) -> bool:
    return change_text(one.costs, one.before) not in ("", "same")


def _markdown_table(outcomes: Sequence[Outcome]) -> str:
    titles, rows, right = _rows(outcomes)
    rule = ["---:" if index in right else "---" for index in range(len(titles))]
    lines = [titles, rule, *([_plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


_SPECIAL = str.maketrans(
    # What GitHub's Markdown reads as markup, and as formulas between `$`.
    {c: f"\\{c}" for c in "\\|`*_[]~$"} | {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
)
_LINKING = re.compile(r"(?<=[@#])|(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
"""Places in mentions, numbers of issues, addresses of mail and of pages."""


def _plain(text: str) -> str:
    """Text that Markdown shows as it is, on one line; it mentions and links nothing.

    Sites look for mentions and addresses in what Markdown and its entities became, so
    that no escape helps; a comment parts them.
    """
    # An empty comment between the characters: escapes do not stop a mention.
    return _LINKING.sub("<!-- -->", printable(text).translate(_SPECIAL))


def document(workspace: str, outcomes: Sequence[Outcome]) -> dict[str, object]:
    """Everything, for `--json`; problems are left to the caller."""
    return {
        "workspace": workspace,
        "failed": sum(one.failed for one in outcomes),
        "products": [
            {
                "product": one.product.name,
                "profile": str(one.product.profile),
                "lock": str(one.product.lock_file),
                **(one.target or dict.fromkeys(("cpu", "toolchain", "optimize"))),
                "result": "failed" if one.failed else one.done,
                "exit_code": int(one.exit_code),
                "flash_bytes": one.costs.flash_bytes,
                "ram_bytes": one.costs.ram_bytes,
                "flash_bytes_before": one.before and one.before.flash_bytes,
                "ram_bytes_before": one.before and one.before.ram_bytes,
                "seconds": round(one.seconds, 3),
                "notes": list(one.notes),
                **one.details,
            }
            for one in outcomes
        ],
    }
