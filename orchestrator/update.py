"""The bytes of an update: `runtime/include/orch/update.h` has the layout."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from orchestrator.core.spelling import packed_version, version_text
from orchestrator.errors import ModelError, SourceSpan

MAGIC: Final = b"ORCH-UPD"
FORMAT: Final = 1
# Every field lies at a multiple of its size, so that a device may read the header in
# place: hence the padding `4x`. `40s` bounds names of models; the last `8x` puts the
# signature at 144 and the program at 208, a multiple of 16, where the loader wants a
# program. runtime/include/orch/update.h has the offsets; tests/qemu/test_updates.py
# holds both together.
_SIGNED: Final = struct.Struct("<8s I 4x 32s 40s I I I 4x 32s 8x")
# Ed25519 (RFC 8032, 5.1.6) and ECDSA over P-256 as plain r and s both have 64 bytes.
# The application brings the check, so the header names no algorithm.
SIGNATURE_BYTES: Final = 64
_IDENTITY_DIGITS: Final = 64
HEADER_BYTES: Final = _SIGNED.size + SIGNATURE_BYTES
MOST: Final = 2**32 - 1
"""Largest version of a model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """An update, as its bytes say.

    Args:
        identity: SHA-256 of product and interface.
        model: Name of the model whose place it takes.
        version: Of the model; a device refuses lower ones.
        firmware_version: The oldest firmware that runs it, packed.
        program: What is loaded.
        signature: Of the header.
    """

    identity: bytes
    model: str
    version: int
    firmware_version: int
    program: bytes
    signature: bytes = b""

    @property
    def firmware(self) -> str:
        """The oldest firmware, as people write it."""
        return version_text(self.firmware_version)

    @property
    def signed(self) -> bytes:
        """The bytes that are signed: the header without the signature."""
        return _SIGNED.pack(
            MAGIC,
            FORMAT,
            self.identity,
            self.model.encode(),
            self.version,
            self.firmware_version,
            len(self.program),
            hashlib.sha256(self.program).digest(),
        )


def identity_of(
    *, product: str, cpu: str, isa: str, model: str, facts: Iterable[tuple[str, str]]
) -> bytes:
    """What an update has to be for: product, core, and interface of the model.

    It does not change with the version of the firmware: kernels and memory, which do,
    are proved when an update is packed, and by the loader.

    Args:
        product: Name of the product.
        cpu: Core.
        isa: Instruction set.
        model: Name of the model.
        facts: What the firmware offers, as the lock has it.
    """
    starts = (f"input {model}.", f"output {model}.")
    lines = [
        "orchestrator update",
        *(product, cpu, isa, model),
        # Only the interface: with digests of kernels or sizes of arenas in it, every
        # new firmware would refuse the updates made for the one before.
        *(f"{key}: {value}" for key, value in sorted(facts) if key.startswith(starts)),
    ]
    return hashlib.sha256("".join(f"{line}\n" for line in lines).encode()).digest()


def update_fact(model: str) -> str:
    """Name of the fact of a lock that says which updates a firmware accepts."""
    return f"update {model}"


def fact_text(identity: bytes, version: str) -> str:
    """That fact: the identity, and the version of the firmware."""
    return f"{identity.hex()} {version}"


def read_fact(text: str) -> tuple[bytes, int]:
    """Identity and packed version of a firmware.

    Raises:
        ValueError: The fact is damaged.
    """
    identity, _, version = text.partition(" ")
    packed = packed_version(version)
    if packed is None or len(identity) != _IDENTITY_DIGITS:
        raise ValueError(f'"{text}" says not which updates it accepts')
    return bytes.fromhex(identity), packed


def update_bytes(update: Update, sign: Callable[[bytes], bytes]) -> bytes:
    """The update with its signature.

    Args:
        update: Without one.
        sign: Gives the 64 bytes of a message's signature.
    """
    signature = sign(update.signed)
    if len(signature) != SIGNATURE_BYTES:
        raise ValueError(f"a signature of {len(signature)} bytes")
    return update.signed + signature + update.program


def read_update(data: bytes, *, file: str) -> Update:
    """What an update says; nothing is known of its signature.

    Raises:
        ModelError: It is damaged (`bad-update`).
    """
    if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
        raise _damaged(file, f"{len(data)} bytes", f"{MAGIC.decode()} and a header")
    fields = _SIGNED.unpack_from(data)
    _, number, identity, name, version, firmware, size, digest = fields
    if number != FORMAT:
        raise _damaged(file, f"format {number}", f"format {FORMAT}")
    program = data[HEADER_BYTES:]
    if size != len(program):
        raise _damaged(file, f"a program of {len(program)} bytes", f"{size} bytes")
    if hashlib.sha256(program).digest() != digest:
        raise _damaged(file, "another SHA-256", digest.hex())
    update = Update(
        identity=identity,
        model=name.rstrip(b"\0").decode(errors="replace"),
        version=version,
        firmware_version=firmware,
        program=program,
        signature=data[_SIGNED.size : HEADER_BYTES],
    )
    # struct ignores padding bytes, and `rstrip` drops zeros: a header that packs to
    # other bytes than it was read from hides something in them.
    if update.signed != data[: _SIGNED.size]:
        raise _damaged(file, "a name that is no text, or bytes that are not 0", "0")
    return update


def _damaged(file: str, found: str, expected: str) -> ModelError:
    return ModelError.of(
        "bad-update",
        f"{file} is not an update, or it is damaged",
        where=SourceSpan(file=file),
        found=found,
        expected=expected,
        hint="make it again with `orchestrator update pack`",
    )
