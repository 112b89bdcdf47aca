"""`orchestrator cache`: the objects that all builds of this machine share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, ExitCode, MismatchError
from orchestrator.shell.object_store import Contents, object_store

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Show, shrink or check them."""
    store = object_store()
    if store is None:
        console.document({"folder": None})
        console.data("off")
        return ExitCode.OK
    if args.action == "verify":
        damaged = store.damaged()
        if damaged:
            raise MismatchError(
                Diagnostic(
                    code="object-store-damaged",
                    message=f"{len(damaged)} damaged files in {store.folder}",
                    notes=tuple(("damaged", name) for name in damaged[:_SHOWN]),
                    hint="builds compile these again; `orchestrator cache prune --to"
                    f" '{store.limit_bytes >> 20} MiB'` removes them",
                )
            )
    contents = (
        store.prune(args.limit_bytes) if args.action == "prune" else store.contents()
    )
    console.document(
        {
            "folder": str(store.folder),
            "objects": contents.entries,
            "bytes": contents.size_bytes,
            "limit": store.limit_bytes,
        }
    )
    console.data(f"{store.folder}: {_text(contents)} of {store.limit_bytes >> 20} MiB")
    return ExitCode.OK


_SHOWN = 8


def _text(contents: Contents) -> str:
    return f"{contents.entries:,} objects, {contents.size_bytes / (1 << 20):.1f} MiB"
