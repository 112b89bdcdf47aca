"""`orchestrator verify-signature`: who signed an envelope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.commands.documents import cryptography_needed, read_named
from orchestrator.errors import ExitCode
from orchestrator.provenance.envelope import open_envelope
from orchestrator.provenance.keys import read_public_key
from orchestrator.shell.files import write_if_changed

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Check an envelope, and write what is in it."""
    data = read_named(args.file, wanted="an envelope of `orchestrator sign`")
    pem = read_named(args.key, wanted="a public key in PEM")
    with cryptography_needed():
        key = read_public_key(pem, file=str(args.key))
        signed = open_envelope(data, key, file=str(args.file))
    if args.output is not None:
        write_if_changed(args.output, signed.payload)
    console.document({"payload_type": signed.payload_type, "key": signed.key_id})
    console.data(
        f"{args.file}: {signed.payload_type}, signed with {args.key}"
        f" ({signed.key_id[:16]})"
    )
    return ExitCode.OK
