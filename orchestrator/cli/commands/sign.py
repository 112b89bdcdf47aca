"""`orchestrator sign`: a file in a signed envelope."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.cli.commands.documents import cryptography_needed, read_named
from orchestrator.errors import ExitCode
from orchestrator.provenance.envelope import payload_type_of, sign
from orchestrator.provenance.keys import read_private_key
from orchestrator.shell.files import write_if_changed

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.cli.console import Console


def run(args: Namespace, console: Console) -> ExitCode:
    """Write the envelope."""
    payload = read_named(args.file, wanted="the file to sign")
    pem = read_named(args.key, wanted="a private key in PEM")
    with cryptography_needed():
        key = read_private_key(pem, file=str(args.key))
        envelope = sign(payload, key, file=str(args.key))
    output = args.output or args.file.with_name(f"{args.file.name}.dsse.json")
    write_if_changed(output, envelope)
    found = payload_type_of(payload)
    console.document({"envelope": str(output), "payload_type": found})
    console.data(f"{output}: {found}, signed")
    return ExitCode.OK
