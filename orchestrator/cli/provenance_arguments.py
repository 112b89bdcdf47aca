"""The arguments of commands about origin: SBOM, provenance, signatures."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.cli.argument_types import job_count
from orchestrator.cli.shared_arguments import JOBS, add_locking
from orchestrator.core.version import packed_version
from orchestrator.update.container import MOST

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


def add_update(command: Callable[..., CommandParser]) -> None:
    """The command `update`."""
    update = command("update", "make or show a signed update of a model", profile=False)
    update.add_argument(
        "action",
        choices=("pack", "show"),
        metavar="ACTION",
        help="pack: make one of a program; show: what is in one",
    )
    update.add_argument(
        "file", type=Path, metavar="FILE", help="the new .pte program; or an update"
    )
    update.add_argument(
        "--for",
        type=Path,
        dest="firmware",
        metavar="LOCK",
        help="pack: lock of the firmware in the field",
    )
    update.add_argument(
        "--model", metavar="NAME", help="pack: the model it replaces, if several"
    )
    update.add_argument(
        "--version",
        type=_model_version,
        dest="update_version",
        metavar="N",
        help="pack: version of the model; devices refuse lower ones",
    )
    update.add_argument(
        "--needs",
        type=_firmware_version,
        metavar="X.Y.Z",
        help="pack: oldest firmware that runs it; default: that of the lock",
    )
    update.add_argument(
        "--key",
        type=Path,
        metavar="KEY",
        help="pack: private key, PEM; show: public key, to check the signature",
    )
    _add_output(update, "pack: the update; default: FILE.update")


def _model_version(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= MOST:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {MOST}")


def _firmware_version(text: str) -> str:
    if packed_version(text) is not None:
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is not MAJOR.MINOR.PATCH")


def _add_key(command: CommandParser, text: str) -> None:
    command.add_argument("--key", type=Path, required=True, metavar="KEY", help=text)


def _add_output(command: CommandParser, text: str) -> None:
    command.add_argument("--output", type=Path, metavar="FILE", help=text)
