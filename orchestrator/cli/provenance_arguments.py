"""The arguments of commands about origin: SBOM, provenance, signatures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.argument_types import job_count
from orchestrator.cli.shared_arguments import JOBS, add_locking

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.cli.shared_arguments import CommandParser


def add_provenance(command: Callable[..., CommandParser]) -> None:
    """The commands `sbom`, `provenance`, `sign` and `verify-signature`."""
    for name, text in (
        ("sbom", "print what the product consists of, as CycloneDX"),
        ("provenance", "print how the product was made, as an in-toto statement"),
    ):
        document = command(name, text)
        _add_output(document, "where to write it; default: stdout")
        document.add_argument("-j", "--jobs", type=job_count, metavar="N", help=JOBS)
        add_locking(document)
    sign = command("sign", "sign a file: a DSSE envelope", profile=False)
    sign.add_argument("file", type=Path, metavar="FILE", help="what to sign")
    _add_key(sign, "private key, PEM")
    _add_output(sign, "the envelope; default: FILE.dsse.json")
    verify = command(
        "verify-signature", "check the signature of a DSSE envelope", profile=False
    )
    verify.add_argument("file", type=Path, metavar="FILE", help="an envelope")
    _add_key(verify, "public key, PEM")
    _add_output(verify, "write what is in it; default: only check")


def _add_key(command: CommandParser, text: str) -> None:
    command.add_argument("--key", type=Path, required=True, metavar="KEY", help=text)


def _add_output(command: CommandParser, text: str) -> None:
    command.add_argument("--output", type=Path, metavar="FILE", help=text)
