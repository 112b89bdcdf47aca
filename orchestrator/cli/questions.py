"""Questions on a terminal: asked on stderr, answered on stdin."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

from orchestrator.cli.terminal import say
from orchestrator.errors import UsageError, did_you_mean
from orchestrator.printable import printable

WIDTH: Final = 80


def can_ask() -> bool:
    """Whether someone is there to answer."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask(
    question: str,
    *,
    default: str = "",
    choices: Sequence[str] = (),
    problem_of: Callable[[str], str] = lambda _: "",
) -> str:
    """Ask until the answer is valid; an empty answer takes the default.

    Many choices are listed only when the answer is `?`.

    Args:
        question: Without a question mark.
        default: "" if there is none, and an empty answer means none.
        choices: The valid answers; empty if any text will do.
        problem_of: Why an answer is not valid; "" if it is.

    Raises:
        UsageError: Standard input ended.
    """
    shown = f" [{default}]" if default else ""
    is_long = len(", ".join(choices)) + len(question) + len(shown) > WIDTH - 6
    if choices and is_long:
        prompt = f"{question} (? lists them){shown}: "
    elif choices:
        prompt = f"{question} ({', '.join(choices)}){shown}: "
    else:
        prompt = f"{question}{shown}: "
    while True:
        say(prompt)
        line = sys.stdin.readline()
        if not line:
            say("\n")
            raise UsageError.of(
                "usage",
                "standard input ended before all questions were answered",
                hint="answer them by options, or take the defaults with --yes",
            )
        answer = line.strip() or default
        if is_long and answer == "?":
            say(_in_columns(choices))
        elif choices and not answer:
            say(f"  an answer is needed: {' or '.join(choices)}\n")
        elif choices and answer not in choices:
            how = "? lists them" if is_long else "choose one of the list"
            hint = did_you_mean(answer, choices) or how
            say(f'  "{printable(answer)}" is not a choice: {hint}\n')
        elif problem := problem_of(answer):
            say(f"  {problem}\n")
        else:
            return answer


def _in_columns(choices: Sequence[str]) -> str:
    width = max(map(len, choices)) + 2
    per_line = max(1, (WIDTH - 2) // width)
    lines = [choices[i : i + per_line] for i in range(0, len(choices), per_line)]
    return "".join(
        f"  {''.join(f'{name:{width}}' for name in line)}".rstrip() + "\n" for line in lines
    )
