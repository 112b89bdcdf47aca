"""Outcomes as JUnit XML, which CI services show: a test case for each product.

Source: the schema that Jenkins and GitLab read,
github.com/testmoapp/junitxml.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

if TYPE_CHECKING:
    from orchestrator.errors import Diagnostic
    from orchestrator.fleet.outcome import Outcome

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot have, not even escaped."""


def junit_text(
    command: str, outcomes: Sequence[Outcome], *, shown: Callable[[Sequence[Diagnostic]], str]
) -> str:
    """The text of the file.

    Args:
        command: `build`.
        outcomes: A test case for each.
        shown: Problems as the command line shows them.
    """
    failed = sum(one.failed for one in outcomes)
    seconds = sum(one.seconds for one in outcomes)
    numbers = f'tests="{len(outcomes)}" failures="{failed}" time="{seconds:.3f}"'
    name = _attribute(f"orchestrator {command}")
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines += [f"<testsuites {numbers}>", f"<testsuite name={name} {numbers}>"]
    for one in outcomes:
        cpu = one.target["cpu"] if one.target else "unknown"
        lines.append(
            f"<testcase name={_attribute(one.product.name)}"
            f" classname={_attribute(cpu)}"
            f" file={_attribute(str(one.product.profile))}"
            f' time="{one.seconds:.3f}">'
        )
        sizes = (("flash", one.costs.flash_bytes), ("ram", one.costs.ram_bytes))
        properties = [
            f'<property name="{key}_bytes" value="{value}"/>'
            for key, value in sizes
            if value is not None
        ]
        if properties:
            lines += ["<properties>", *properties, "</properties>"]
        if one.failed:
            message = "; ".join(problem.message for problem in one.problems)
            kind = one.problems[0].code if one.problems else "failed"
            lines.append(
                f"<failure type={_attribute(kind)} message={_attribute(message)}>"
                f"{escape(_xml(shown(one.problems)))}</failure>"
            )
        if one.notes:
            lines.append(f"<system-out>{escape(_xml(chr(10).join(one.notes)))}</system-out>")
        lines.append("</testcase>")
    return "\n".join([*lines, "</testsuite>", "</testsuites>"]) + "\n"


def _xml(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


def _attribute(text: str) -> str:
    return quoteattr(_xml(text), {"\n": "&#10;", "\t": "&#9;", "\r": "&#13;"})
