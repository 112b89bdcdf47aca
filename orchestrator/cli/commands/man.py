"""`orchestrator man`: man pages of all commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.arguments import parser
from orchestrator.cli.man_page import man_pages
from orchestrator.errors import ExitCode, UsageError, did_you_mean
from orchestrator.shell.files import write_atomic

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Print a page, or write all of them."""
    pages = man_pages(parser())
    if args.output_dir is not None:
        args.output_dir.mkdir(parents=True, exist_ok=True)
        for name, text in pages.items():
            write_atomic(args.output_dir / name, text.encode())
        paths = [str(args.output_dir / name) for name in pages]
        console.document({"written": paths})
        console.data("\n".join(f"wrote {path}" for path in paths))
        return ExitCode.OK
    name = f"orchestrator-{args.page}.1" if args.page else "orchestrator.1"
    if name not in pages:
        known = [
            page.removeprefix("orchestrator-").removesuffix(".1") for page in pages
        ]
        raise UsageError.of(
            "usage",
            f'there is no command "{args.page}"',
            hint=did_you_mean(args.page, known)
            or "run `orchestrator --help` to see all commands",
        )
    console.document({"page": name, "text": pages[name]})
    if not console.json:
        console.put(pages[name])
    return ExitCode.OK
