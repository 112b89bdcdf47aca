"""`orchestrator plumbing man`: man pages of all commands."""

from __future__ import annotations

from argparse import Namespace

from orchestrator.cli.arguments import command_near, commands_of, parser
from orchestrator.cli.console import Console
from orchestrator.cli.man_page import man_pages, page_of
from orchestrator.cli.manual import PLUMBING
from orchestrator.errors import ExitCode, UsageError
from orchestrator.shell.files import write_atomic


def run(args: Namespace, console: Console) -> ExitCode:
    """Print a page, or write all of them."""
    top = parser()
    pages = man_pages(top)
    if args.output_dir is not None:
        args.output_dir.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            write_atomic(args.output_dir / name, text.encode())
        paths = [str(args.output_dir / name) for name in pages]
        return console.result({"written": paths}, "\n".join(f"wrote {path}" for path in paths))
    wanted = " ".join(args.page)
    short = wanted.removeprefix(PLUMBING).strip()  # `plumbing man` or `man`
    command = commands_of(top).get(short) if short else top
    if command is None:
        raise UsageError.wrong(f'there is no command "{wanted}"', command_near(wanted, top))
    name = f"{page_of(command)}.1"
    console.document({"page": name, "text": pages[name]})
    if not console.json:
        console.put(pages[name])
    return ExitCode.OK
