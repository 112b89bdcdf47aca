"""Diagnostics as text and as JSON."""

from __future__ import annotations

import json
import re

from orchestrator.cli.render import diagnostic_to_json, render_diagnostic, render_diagnostics
from orchestrator.errors import Diagnostic, SourceSpan

NO_KERNEL = Diagnostic(
    code="no-kernel-for-dtype",
    message="no kernel for aten::_softmax.out with dtype Half",
    where=SourceSpan(file="profiles/keyword-m4.toml", line=14, text='model = "kws_fp16.pte"'),
    notes=(
        ("found", 'method "forward", instruction 12, Half -> Half'),
        ("known", "kernels/portable has Float, Char"),
    ),
    hint="export the model in float32, or add Half to kernels/portable/op__softmax.cpp",
)
# The layout of the style guide, letter by letter.
NO_KERNEL_TEXT = """\
error[no-kernel-for-dtype]: no kernel for aten::_softmax.out with dtype Half
  --> profiles/keyword-m4.toml:14
   |
14 | model = "kws_fp16.pte"
   = found: method "forward", instruction 12, Half -> Half
   = known: kernels/portable has Float, Char
   hint: export the model in float32, or add Half to kernels/portable/op__softmax.cpp"""


def test_every_part() -> None:
    assert render_diagnostic(NO_KERNEL) == NO_KERNEL_TEXT


def test_only_a_message() -> None:
    text = render_diagnostic(Diagnostic(code="bug", message="it broke"))
    assert text == "error[bug]: it broke"


def test_whole_file() -> None:
    diagnostic = Diagnostic(
        code="empty", message="nothing here", where=SourceSpan(file="a.toml"), hint="x"
    )
    assert render_diagnostic(diagnostic) == ("error[empty]: nothing here\n  --> a.toml\n   hint: x")


def test_line_of_unknown_text() -> None:
    where = SourceSpan(file="a.toml", line=3)
    text = render_diagnostic(Diagnostic(code="c", message="m", where=where))
    assert text == "error[c]: m\n  --> a.toml:3"


def test_gutter_grows_with_the_line_number() -> None:
    where = SourceSpan(file="a", line=1234, text="x = 1")
    diagnostic = Diagnostic(code="c", message="m", where=where, notes=(("found", "1"),), hint="h")
    assert render_diagnostic(diagnostic) == (
        "error[c]: m\n    --> a:1234\n     |\n1234 | x = 1\n     = found: 1\n     hint: h"
    )


def test_short_line_number_is_aligned() -> None:
    where = SourceSpan(file="a", line=7, text="  x = 1")
    text = render_diagnostic(Diagnostic(code="c", message="m", where=where))
    assert text == "error[c]: m\n  --> a:7\n   |\n 7 |   x = 1"


def test_parts_of_several_lines_are_aligned() -> None:
    diagnostic = Diagnostic(code="c", message="one\ntwo", notes=(("stderr", "a\nb"),), hint="x\ny")
    assert render_diagnostic(diagnostic) == (
        "error[c]: one\n    two\n   = stderr: a\n             b\n   hint: x\n         y"
    )


def test_control_characters_do_not_reach_the_terminal() -> None:
    where = SourceSpan(file="a\x1b[2J", line=1, text="\tx\x07\u202e")
    diagnostic = Diagnostic(code="c", message="\x1b[31m", where=where, notes=(("found", "\r\x9b"),))
    assert render_diagnostic(diagnostic) == (
        "error[c]: \\u001b[31m\n"
        "  --> a\\u001b[2J:1\n"
        "   |\n"
        " 1 |     x\\u0007\\u202e\n"
        "   = found: \\u000d\\u009b"
    )


def test_long_source_lines_are_cut() -> None:
    where = SourceSpan(file="a", line=1, text="x" * 5000)
    text = render_diagnostic(Diagnostic(code="c", message="m", where=where))
    assert text.split("\n")[3] == " 1 | " + "x" * 200 + " ..."


def test_colour_adds_only_escapes() -> None:
    text = render_diagnostic(NO_KERNEL, color=True)
    assert text.startswith("\x1b[1;31merror[no-kernel-for-dtype]\x1b[0m: \x1b[1mno ")
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == NO_KERNEL_TEXT


def test_several_are_parted_by_a_blank_line() -> None:
    one = Diagnostic(code="a", message="x")
    two = Diagnostic(code="b", message="y")
    assert render_diagnostics([one, two]) == "error[a]: x\n\nerror[b]: y\n"
    assert render_diagnostics([]) == ""


def test_json() -> None:
    data = diagnostic_to_json(NO_KERNEL)
    assert json.loads(json.dumps(data)) == {
        "code": "no-kernel-for-dtype",
        "message": "no kernel for aten::_softmax.out with dtype Half",
        "where": {"file": "profiles/keyword-m4.toml", "line": 14, "text": 'model = "kws_fp16.pte"'},
        "notes": [
            {"label": "found", "text": 'method "forward", instruction 12, Half -> Half'},
            {"label": "known", "text": "kernels/portable has Float, Char"},
        ],
        "hint": NO_KERNEL.hint,
    }


def test_json_without_a_place() -> None:
    assert diagnostic_to_json(Diagnostic(code="c", message="m")) == {
        "code": "c",
        "message": "m",
        "where": None,
        "notes": [],
        "hint": "",
    }
