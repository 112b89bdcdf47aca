"""Man pages, from the arguments and their manual.

Source of the macros: man(7).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import orchestrator
from orchestrator.cli.arguments import commands_of
from orchestrator.cli.manual import EXAMPLES, GROUPS, MEANINGS, exit_codes

_PROGRAM = "orchestrator"


def man_pages(top: argparse.ArgumentParser) -> dict[str, str]:
    """All pages by file name: `orchestrator.1`, `orchestrator-build.1`."""
    commands = commands_of(top)
    pages = {f"{_PROGRAM}.1": _top_page(top, commands)}
    for name, command in commands.items():
        pages[f"{page_of(command)}.1"] = _page(name, command)
    return pages


def page_of(command: argparse.ArgumentParser) -> str:
    """The name of a command's page, such as `orchestrator-plumbing-man`."""
    return command.prog.replace(" ", "-")


def _top_page(top: argparse.ArgumentParser, commands: dict[str, argparse.ArgumentParser]) -> str:
    what = (top.description or "").splitlines()[0].rstrip(".")
    lines = [*_head(_PROGRAM, what), ".SH SYNOPSIS"]
    lines += [f".B {_PROGRAM}", r"\fICOMMAND\fR [\fIarguments\fR ...]"]
    lines.append(".SH COMMANDS")
    for title, names in GROUPS.items():
        lines.append(f".SS {title.capitalize()}")
        for name in names:
            page = _bold(_escaped(page_of(commands[name])))
            lines += _item(f"{page}(1)", commands[name].description or "")
    lines.append(".SH EXIT STATUS")
    for code, meaning in MEANINGS.items():
        lines += _item(_bold(str(code.value)), meaning)
    return "\n".join([*lines, ""])


def _page(name: str, command: argparse.ArgumentParser) -> str:
    description = command.description or ""
    what = description[:1].lower() + description[1:].rstrip(".")
    lines = [*_head(page_of(command), what), ".SH SYNOPSIS"]
    usage = " ".join(command.format_usage().removeprefix("usage: ").split())
    rest = usage.removeprefix(command.prog).strip()
    lines += [f".B {_escaped(command.prog)}", _escaped(rest)]
    lines += [".SH DESCRIPTION", _escaped(description), ".SH OPTIONS"]
    for action in command._actions:  # noqa: SLF001  # argparse has no public way
        if action.help != argparse.SUPPRESS:
            lines += _item(_term(action), action.help or "")
    if name in EXAMPLES:
        lines.append(".SH EXAMPLES")
        for text, what in EXAMPLES[name]:
            lines += _item(_bold(_escaped(text)), what)
        lines.append(".SH EXIT STATUS")
        for code in exit_codes(name):
            lines += _item(_bold(str(code.value)), MEANINGS[code])
    lines += [".SH SEE ALSO", f"{_bold(_PROGRAM)}(1)"]
    return "\n".join([*lines, ""])


def _head(page: str, what: str) -> Iterator[str]:
    version = f"{_PROGRAM} {orchestrator.__version__}"
    yield f'.TH "{_escaped(page.upper())}" "1" "" "{version}" "Orchestrator Manual"'
    yield ".SH NAME"
    yield f"{_escaped(page)} \\- {_escaped(what)}"


def _term(action: argparse.Action) -> str:
    """An argument as the page shows it."""
    takes = action.metavar or (action.nargs != 0 and action.dest.upper()) or ""
    if action.choices and not action.metavar:
        takes = "|".join(map(str, action.choices))
    value = f"\\fI{_escaped(str(takes))}\\fR" if takes else ""
    if not action.option_strings:
        return value
    names = ", ".join(_bold(_escaped(name)) for name in action.option_strings)
    return f"{names} {value}".rstrip()


def _item(term: str, text: str) -> list[str]:
    return [".TP", term, _escaped(text)]


def _bold(text: str) -> str:
    return f"\\fB{text}\\fR"


def _escaped(text: str) -> str:
    """Text without what roff reads as markup."""
    # argparse's help has "%%" for "%". A minus is "\-", since roff takes "-" for a
    # hyphen that searches and copies do not find.
    text = text.replace("%%", "%").replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text
