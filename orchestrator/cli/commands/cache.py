"""`orchestrator cache`: the objects that builds share."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path

from orchestrator.build.published import publish
from orchestrator.cli.commands.named_files import cryptography_needed, read_named
from orchestrator.cli.console import Console
from orchestrator.errors import Diagnostic, ExitCode, MismatchError, UsageError
from orchestrator.shell.exported import exports_to_publish
from orchestrator.shell.object_store import Contents, ObjectStore, object_store
from orchestrator.shell.places import shown
from orchestrator.workspace.lookup import settings_here


def run(args: Namespace, console: Console) -> ExitCode:
    """Show, shrink, check or publish them."""
    of_publish = (args.url, args.key, args.list_only, args.exports)
    if args.action != "publish" and any(of_publish):
        raise _usage("URL, --key, --list-only and --exports are for cache publish")
    settings = settings_here()
    store = object_store(settings)
    if store is None:
        return console.result({"folder": None}, "off")
    if args.action == "publish":
        return _publish(store, settings.cache, args, console)
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
    contents = store.prune(args.limit_bytes) if args.action == "prune" else store.contents()
    return console.result(
        {
            "folder": str(store.folder),
            "objects": contents.entries,
            "bytes": contents.size_bytes,
            "limit": store.limit_bytes,
        },
        f"{store.folder}: {_text(contents)} of {store.limit_bytes >> 20} MiB",
    )


def _publish(store: ObjectStore, cache: Path, args: Namespace, console: Console) -> ExitCode:
    if not args.url or not args.key:
        raise _usage("cache publish needs a URL and --key")
    pem = read_named(args.key, wanted="a private key in PEM")
    with cryptography_needed():
        objects, exports = publish(
            store,
            exports_to_publish(cache) if args.exports else (),
            args.url,
            pem,
            file=str(args.key),
            list_only=args.list_only,
        )
    text = f"{shown(args.url)}: {objects.listed:,} objects, {objects.new:,} of them new"
    if exports.listed:
        text += f"; {exports.listed:,} exports, {exports.new:,} of them new"
    return console.result(
        {
            "url": shown(args.url),
            "new": objects.new,
            "objects": objects.listed,
            "new_exports": exports.new,
            "exports": exports.listed,
        },
        text,
    )


def _usage(message: str) -> UsageError:
    return UsageError.wrong(message, "such as: orchestrator cache publish ../objects --key ci.key")


# Damaged files that a message names. Chosen by hand.
_SHOWN = 8


def _text(contents: Contents) -> str:
    return f"{contents.entries:,} objects, {contents.size_bytes / (1 << 20):.1f} MiB"
