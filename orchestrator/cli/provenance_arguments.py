"""The arguments of commands about origin: SBOM, provenance, signatures."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from orchestrator.cli.shared_arguments import add_locking
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
        document.jobs()
        add_locking(document)
    sign = command("sign", "sign a file: a DSSE envelope", profile=False)
    sign.path("file", "FILE", "what to sign")
    _add_key(sign, "private key, PEM")
    _add_output(sign, "the envelope; default: FILE.dsse.json")
    verify = command(
        "verify-signature", "check the signature of a DSSE envelope", profile=False
    )
    verify.path("file", "FILE", "an envelope")
    _add_key(verify, "public key, PEM")
    _add_output(verify, "write what is in it; default: only check")


def add_update(command: Callable[..., CommandParser]) -> None:
    """The command `update`."""
    update = command("update", "make or show a signed update of a model", profile=False)
    update.value(
        "action",
        "ACTION",
        "pack: make one of a program; show: what is in one",
        choices=("pack", "show"),
    )
    update.path("file", "FILE", "the new .pte program; or an update")
    update.path(
        "--for", "LOCK", "pack: lock of the firmware in the field", dest="firmware"
    )
    update.value("--model", "NAME", "pack: the model it replaces, if several")
    update.value(
        "--version",
        "N",
        "pack: version of the model; devices refuse lower ones",
        type=_model_version,
        dest="update_version",
    )
    update.value(
        "--needs",
        "X.Y.Z",
        "pack: oldest firmware that runs it; default: that of the lock",
        type=_firmware_version,
    )
    update.path(
        "--key",
        "KEY",
        "pack: private key, PEM; show: public key, to check the signature",
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
    command.path("--key", "KEY", text, required=True)


def _add_output(command: CommandParser, text: str) -> None:
    command.path("--output", "FILE", text)
