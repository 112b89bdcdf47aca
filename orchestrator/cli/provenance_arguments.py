"""The arguments of commands about origin: SBOM, provenance, signatures."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from orchestrator.cli.shared_arguments import add_jobs, add_locking, option, path
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
        path(document, "--output", "FILE", "where to write it; default: stdout")
        add_jobs(document)
        add_locking(document)
    sign = command("sign", "sign a file: a DSSE envelope", profile=False)
    path(sign, "file", "FILE", "what to sign")
    path(sign, "--key", "KEY", "private key, PEM", required=True)
    path(sign, "--output", "FILE", "the envelope; default: FILE.dsse.json")
    what = "check the signature of a DSSE envelope"
    verify = command("verify-signature", what, profile=False)
    path(verify, "file", "FILE", "an envelope")
    path(verify, "--key", "KEY", "public key, PEM", required=True)
    path(verify, "--output", "FILE", "write what is in it; default: only check")


def add_update(command: Callable[..., CommandParser]) -> None:
    """The command `update`."""
    update = command("update", "make or show a signed update of a model", profile=False)
    what = "pack: make one of a program; show: what is in one"
    option(update, "action", "ACTION", what, choices=("pack", "show"))
    path(update, "file", "FILE", "the new .pte program; or an update")
    what = "pack: lock of the firmware in the field"
    path(update, "--for", "LOCK", what, dest="firmware")
    option(update, "--model", "NAME", "pack: the model it replaces, if several")
    what = "pack: version of the model; devices refuse lower ones"
    option(update, "--version", "N", what, type=_model_version, dest="update_version")
    what = "pack: oldest firmware that runs it; default: that of the lock"
    option(update, "--needs", "X.Y.Z", what, type=_firmware_version)
    what = "pack: private key, PEM; show: public key, to check the signature"
    path(update, "--key", "KEY", what)
    path(update, "--output", "FILE", "pack: the update; default: FILE.update")


def _model_version(text: str) -> int:
    if text.isascii() and text.isdigit() and int(text) <= MOST:
        return int(text)
    raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 to {MOST}")


def _firmware_version(text: str) -> str:
    if packed_version(text) is not None:
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is not MAJOR.MINOR.PATCH")
