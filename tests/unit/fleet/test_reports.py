"""Outcomes of many products as text, Markdown, JUnit XML and JSON."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from orchestrator.cli.render import render_diagnostics
from orchestrator.errors import Diagnostic, ExitCode, SourceSpan
from orchestrator.fleet.outcome import Costs, Outcome, sizes_in_lock
from orchestrator.fleet.run import junit_text
from orchestrator.fleet.table import (
    by_cause,
    change_text,
    document,
    in_order,
    markdown_text,
    table_text,
)
from orchestrator.workspace import Product


def _product(name: str) -> Product:
    return Product(name=name, profile=Path("p") / f"{name}.toml")


BUILT = Outcome(
    product=_product("kws-m4"),
    done="built",
    target={"cpu": "cortex-m4", "toolchain": "zig", "optimize": "size"},
    costs=Costs(flash_bytes=35888, ram_bytes=20548),
    before=Costs(flash_bytes=35000, ram_bytes=20550),
    seconds=3.25,
    notes=("a note <&>",),
)
SAME = Outcome(
    product=_product("a"),
    done="up to date",
    target={"cpu": "host", "toolchain": "gnu", "optimize": "speed"},
    costs=Costs(flash_bytes=100, ram_bytes=8),
    before=Costs(flash_bytes=100, ram_bytes=8),
)
FAILED = Outcome(
    product=_product("b"),
    exit_code=ExitCode.KERNEL,
    seconds=0.5,
    problems=(
        Diagnostic(
            code="no-kernel",
            message='no kernel for "x|y" \x00 *here*',
            where=SourceSpan(file="p/b.toml", line=3),
        ),
    ),
)
ALL = in_order((BUILT, FAILED, SAME))


def test_failures_come_last() -> None:
    assert [one.product.name for one in ALL] == ["a", "kws-m4", "b"]


def test_table() -> None:
    assert (
        table_text(ALL)
        == """\
product  core        flash     RAM   time  change              result
a        host          100       8         same                up to date
kws-m4   cortex-m4  35,888  20,548  3.2 s  flash +888, RAM -2  built
b                                   0.5 s                      failed (5)

3 products: 1 up to date, 1 built, 1 failed"""
    )


def test_columns_without_anything_are_left_out() -> None:
    one = Outcome(product=_product("a"), done="fits", costs=Costs(ram_bytes=8))
    assert table_text([one]) == ("product  RAM  result\na          8  fits\n\n1 product: 1 fits")


@pytest.mark.parametrize(
    ("now", "before", "text"),
    [
        (Costs(), Costs(flash_bytes=1), ""),
        (Costs(flash_bytes=1, ram_bytes=1), None, "new"),
        (Costs(flash_bytes=1, ram_bytes=1), Costs(flash_bytes=1), "same"),
        (Costs(flash_bytes=1, ram_bytes=1), Costs(flash_bytes=1001), "flash -1,000"),
        (Costs(flash_bytes=1, ram_bytes=3), Costs(flash_bytes=1, ram_bytes=1), "RAM +2"),
    ],
)
def test_changes(now: Costs, before: Costs | None, text: str) -> None:
    assert change_text(now, before) == text


def test_markdown() -> None:
    assert (
        markdown_text("build", ALL)
        == """\
### orchestrator build

3 products: 1 up to date, 1 built, 1 failed

| product | core | flash | RAM | time | change | result |
| --- | --- | ---: | ---: | ---: | --- | --- |
| kws-m4 | cortex-m4 | 35,888 | 20,548 | 3.2 s | flash +888, RAM -2 | built |
| b |  |  |  | 0.5 s |  | failed (5) |

- **b** `no-kernel`: no kernel for "x\\|y" \\\\u0000 \\*here\\* (p/b.toml:3)

<details><summary>1 without a change</summary>

| product | core | flash | RAM | change | result |
| --- | --- | ---: | ---: | --- | --- |
| a | host | 100 | 8 | same | up to date |

</details>
"""
    )


def test_markdown_of_many_is_short() -> None:
    many = [
        Outcome(product=_product(f"p{n}"), done="up to date", costs=SAME.costs) for n in range(1000)
    ]
    same = [Outcome(product=o.product, done=o.done, before=o.costs) for o in many]
    text = markdown_text("build", same)
    assert "and 950 more" in text
    assert len(text) < 10_000


def test_junit_is_xml_that_says_everything() -> None:
    text = junit_text("build", ALL, shown=lambda ds: render_diagnostics(ds, color=False))
    suite = ET.fromstring(text)[0]  # noqa: S314  # our own
    assert suite.attrib == {
        "name": "orchestrator build",
        "tests": "3",
        "failures": "1",
        "time": "3.750",
    }
    _, built, failed = suite
    assert built.attrib == {
        "name": "kws-m4",
        "classname": "cortex-m4",
        "file": "p/kws-m4.toml",
        "time": "3.250",
    }
    assert {p.attrib["name"]: p.attrib["value"] for p in built[0]} == {
        "flash_bytes": "35888",
        "ram_bytes": "20548",
    }
    assert built.findtext("system-out") == "a note <&>"
    failure = failed.find("failure")
    assert failure is not None
    # XML cannot have the character NUL.
    assert failure.attrib == {"type": "no-kernel", "message": 'no kernel for "x|y" \ufffd *here*'}
    assert (failure.text or "").startswith("error[no-kernel]: no kernel")


def test_json() -> None:
    found = document("orchestrator.toml", ALL)
    assert found["failed"] == 1
    assert found["products"][1:] == [  # type: ignore[index]
        {
            "product": "kws-m4",
            "profile": "p/kws-m4.toml",
            "lock": "p/kws-m4.lock",
            "cpu": "cortex-m4",
            "toolchain": "zig",
            "optimize": "size",
            "result": "built",
            "exit_code": 0,
            "flash_bytes": 35888,
            "ram_bytes": 20548,
            "flash_bytes_before": 35000,
            "ram_bytes_before": 20550,
            "seconds": 3.25,
            "notes": ["a note <&>"],
        },
        {
            "product": "b",
            "profile": "p/b.toml",
            "lock": "p/b.lock",
            "cpu": None,
            "toolchain": None,
            "optimize": None,
            "result": "failed",
            "exit_code": 5,
            "flash_bytes": None,
            "ram_bytes": None,
            "flash_bytes_before": None,
            "ram_bytes_before": None,
            "seconds": 0.5,
            "notes": [],
        },
    ]


@pytest.mark.parametrize(
    ("text", "costs"),
    [
        ("", None),
        ('[size]\n"flash" = "12 bytes"\n', Costs(flash_bytes=12)),
        ('"flash" = "1 bytes"\n"ram" = "2 bytes"\n', Costs(flash_bytes=1, ram_bytes=2)),
        ('"flash" = "many bytes"\n "ram" = "2 bytes"', None),
    ],
)
def test_sizes_in_locks(text: str, costs: Costs | None) -> None:
    assert sizes_in_lock(text) == costs


@pytest.mark.parametrize(
    "text",
    [
        "@everyone",
        "see https://example.com and www.example.com",
        "a@example.com",
        "fixes #1",
        "<img src=x>",
        "&lt;b&gt; &amp; &#64;",
        "a|b `c` [d](e) ~f~ $g$",
        "two\nlines\x1b[2J",
    ],
)
def test_text_of_files_mentions_and_links_nothing(text: str) -> None:
    problem = Diagnostic(code="bad-value", message=text)
    one = replace(ALL[0], problems=(problem,), exit_code=ExitCode.PROFILE)
    (line,) = [x for x in markdown_text("check", [one]).split("\n") if x[:2] == "- "]
    shown = line.partition("`: ")[2]
    plain = shown.replace("<!-- -->", "\0")
    assert not re.search(r"[@#]\w|://|www\.|<|>|(?<!\\)[|`\[\]~$\x1b]", plain)
    assert not re.search(r"&(?!(amp|lt|gt);)", plain)


def _stale(name: str, *notes: tuple[str, str]) -> Outcome:
    """A product whose lock does not match."""
    product = _product(name)
    lock = SourceSpan(file=str(product.lock_file))
    problem = Diagnostic(
        code="stale-lock",
        message="the lock file does not match",
        where=lock,
        notes=notes or (("changed", "toolchain: version changed"),),
        hint=f"`orchestrator build {product.profile}` makes {name} again",
    )
    return Outcome(product=product, exit_code=ExitCode.LOCK, problems=(problem,))


def test_a_cause_is_shown_once_with_all_products() -> None:
    """What names the product differs: name, profile, lock."""
    many = [_stale(f"p{number:03}") for number in range(200)]
    ((title, problems),) = by_cause(many)
    assert problems == list(many[0].problems)
    names = [one.product.name for one in many]
    assert title == f"200 products: {', '.join(names)}"
    assert markdown_text("build", many).count("stale-lock") == 1
    text = document("w", many)
    assert len(text["products"]) == 200  # type: ignore[arg-type]  # a list of ours
    junit = junit_text("build", many, shown=render_diagnostics)
    assert junit.count("<failure") == 200


def test_other_causes_are_shown_apart() -> None:
    """Also where a name is part of another word, or of another name."""
    a, b = _stale("a"), _stale("b", ("changed", "sources: b.cpp changed"))
    assert [title for title, _ in by_cause([a, b, BUILT])] == ["a", "b"]
    # A name inside of other words is no name: "a" of "makes a again".
    assert [title for title, _ in by_cause([a, _stale("a-b")])] == ["2 products: a, a-b"]
    two = replace(a, problems=(*a.problems, *FAILED.problems))
    found = by_cause([two, FAILED, _stale("c")])
    assert [title for title, _ in found] == ["2 products: a, c", "2 products: a, b"]


def test_places_that_differ_are_named() -> None:
    where = SourceSpan(file="p/b.toml", line=9)
    (problem,) = FAILED.problems
    other = replace(FAILED, product=_product("c"), problems=(replace(problem, where=where),))
    ((title, _),) = by_cause([FAILED, other])
    assert title == "2 products: b (p/b.toml:3), c (p/b.toml:9)"
