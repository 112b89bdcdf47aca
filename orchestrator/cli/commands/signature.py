"""`orchestrator signature`: files in signed envelopes, and who signed them."""

from __future__ import annotations

from argparse import Namespace

from orchestrator.cli.commands.named_files import cryptography_needed, read_named
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode
from orchestrator.provenance.envelope import (
    open_envelope,
    payload_type_of,
    read_private_key,
    read_public_key,
    sign,
)
from orchestrator.shell.files import write_if_changed


def run(args: Namespace, console: Console) -> ExitCode:
    """Write an envelope, or check one."""
    return _create(args, console) if args.action == "create" else _verify(args, console)


def _create(args: Namespace, console: Console) -> ExitCode:
    payload = read_named(args.file, wanted="the file to sign")
    pem = read_named(args.key, wanted="a private key in PEM")
    with cryptography_needed():
        key = read_private_key(pem, file=str(args.key))
        envelope = sign(payload, key, file=str(args.key))
    output = args.output or args.file.with_name(f"{args.file.name}.dsse.json")
    write_if_changed(output, envelope)
    found = payload_type_of(payload)
    return console.result(
        {"envelope": str(output), "payload_type": found}, f"{output}: {found}, signed"
    )


def _verify(args: Namespace, console: Console) -> ExitCode:
    data = read_named(args.file, wanted="an envelope of `signature create`")
    pem = read_named(args.key, wanted="a public key in PEM")
    with cryptography_needed():
        key = read_public_key(pem, file=str(args.key))
        signed = open_envelope(data, key, file=str(args.file))
    if args.output is not None:
        write_if_changed(args.output, signed.payload)
    return console.result(
        {"payload_type": signed.payload_type, "key": signed.key_id},
        f"{args.file}: {signed.payload_type}, signed with {args.key} ({signed.key_id[:16]})",
    )
