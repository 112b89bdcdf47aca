"""What is said of an error in upstream's exporter: the user's line, the first cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.export.failure import ExportError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CODE = """\
def build():
    inner()

def inner():
    raise KeyError("weights")
"""


def _code(folder: Path) -> dict[str, Any]:
    """A module of a user."""
    names: dict[str, Any] = {}
    path = folder / "net.py"
    path.write_text(CODE)
    exec(compile(CODE, str(path), "exec"), names)  # noqa: S102  # the user's code
    return names


def _notes(fails: Callable[[], object]) -> list[tuple[str, str]]:
    with (
        pytest.raises(ExportError) as raised,
        ExportError.around("cannot-lower", "ExecuTorch cannot lower the model"),
    ):
        fails()
    # Lines of this file are those of a user, too.
    return [(label, text) for label, text in raised.value.notes if not text.startswith(__file__)]


def test_the_users_lines_and_the_first_cause_come_first(tmp_path: Path) -> None:
    user = _code(tmp_path)

    def upstream() -> None:
        try:
            try:
                user["build"]()
            except KeyError as error:
                raise RuntimeError("pass Foo\nfailed") from error
        except RuntimeError:
            raise ValueError("An error occurred") from None

    def chained() -> None:
        try:
            upstream()
        except ValueError as error:
            error.__suppress_context__ = False
            raise

    lines = [("at", f"{tmp_path}/net.py:{line}") for line in (5, 2)]
    assert _notes(chained) == [
        *lines,
        ("found", "KeyError: 'weights'"),
        ("raised as", "ValueError: An error occurred"),
    ]
    # What hides its context on purpose is the first cause itself.
    assert _notes(upstream) == [("found", "ValueError: An error occurred")]
    assert _notes(user["build"]) == [*lines, ("found", "KeyError: 'weights'")]


def test_graphs_and_lists_of_passes_are_left_out() -> None:
    def upstream() -> None:
        passes = ", ".join(["'Pass'"] * 100)
        text = "no RECIPROCAL of int32\n\nWhile executing %t : call_function[args]"
        first = ValueError(f"{text}\nOriginal traceback:\nthere")
        raise RuntimeError(f"failed after {passes}") from first

    (_, found), (_, raised) = _notes(upstream)
    assert found == "ValueError: no RECIPROCAL of int32"
    assert raised.startswith("RuntimeError: failed after 'Pass', ")
    assert len(raised) < 450


def test_lines_that_a_graph_quotes(tmp_path: Path) -> None:
    def upstream() -> None:
        raise RuntimeError(
            "mismatched dtypes\n"
            f'stack trace: File "{tmp_path}/net.py", line 33, in forward\n'
            'File "/x/site-packages/torch/nn.py", line 4, in call\n'
            f'File "{tmp_path}/net.py", line 33, in forward\n' + "more\n" * 30
        )

    (at, (label, text)) = _notes(upstream)
    assert at == ("at", f"{tmp_path}/net.py:33")
    assert label == "found"
    assert text.startswith("RuntimeError: mismatched dtypes\n")
    assert text.count("\n") == 5


def test_errors_in_a_circle() -> None:
    def upstream() -> None:
        one, two = ValueError("one"), ValueError("two")
        one.__cause__, two.__cause__ = two, one
        raise one

    assert _notes(upstream) == [("found", "ValueError: two"), ("raised as", "ValueError: one")]
