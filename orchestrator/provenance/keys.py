"""Keys in PEM, and signatures of 64 bytes for devices.

Everything cryptographic is done by `cryptography`, which the extra `provenance`
installs.
"""

from __future__ import annotations

from collections.abc import Callable  # part of an alias
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.errors import SourceSpan, UsageError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

Sign: TypeAlias = "Callable[[bytes], bytes]"
"""Gives the 64 bytes of a message's signature."""
Verify: TypeAlias = "Callable[[bytes, bytes], bool]"
"""Whether a signature, given second, is that of a message."""
_FOR_DEVICES: Final = "a key of Ed25519, or of ECDSA with P-256"
_HALF: Final = 32
"""Bytes of each of the two numbers of a signature with P-256."""


def read_private_key(data: bytes, *, file: str) -> PrivateKeyTypes:
    """The private key in a PEM file. Raises UsageError."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    try:
        return load_pem_private_key(data, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise _bad_key(file, "a private key in PEM, without a password") from error


def read_public_key(data: bytes, *, file: str) -> PublicKeyTypes:
    """The public key in a PEM file. Raises UsageError."""
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_public_key  # noqa: PLC0415

    try:
        return load_pem_public_key(data)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise _bad_key(file, "a public key in PEM") from error


def device_signer(key: PrivateKeyTypes, *, file: str) -> Sign:
    """How a private key signs for devices.

    Raises:
        UsageError: Neither Ed25519 nor P-256.
    """
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    if isinstance(key, ed25519.Ed25519PrivateKey):
        return key.sign
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp256r1":
        scheme = ec.ECDSA(SHA256(), deterministic_signing=True)

        def sign(message: bytes) -> bytes:
            r, s = decode_dss_signature(key.sign(message, scheme))
            return r.to_bytes(_HALF, "big") + s.to_bytes(_HALF, "big")

        return sign
    raise _bad_key(file, _FOR_DEVICES)


def device_verifier(key: PublicKeyTypes, *, file: str) -> Verify:
    """How a public key checks what `device_signer` signed.

    Raises:
        UsageError: Neither Ed25519 nor P-256.
    """
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec, ed25519  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature  # noqa: PLC0415
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    check: Callable[[bytes, bytes], None]
    if isinstance(key, ed25519.Ed25519PublicKey):
        check = key.verify
    elif isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name == "secp256r1":

        def check(signature: bytes, message: bytes) -> None:
            halves = signature[:_HALF], signature[_HALF:]
            r, s = (int.from_bytes(half, "big") for half in halves)
            key.verify(encode_dss_signature(r, s), message, ec.ECDSA(SHA256()))

    else:
        raise _bad_key(file, _FOR_DEVICES)

    def verify(message: bytes, signature: bytes) -> bool:
        try:
            check(signature, message)
        except InvalidSignature:
            return False
        return True

    return verify


def _bad_key(file: str, expected: str) -> UsageError:
    return UsageError.of(
        "bad-key",
        f"{file} is not a key that this command takes",
        where=SourceSpan(file=file),
        expected=expected,
        hint="`openssl genpkey -algorithm ed25519 -out key.pem` makes one, and"
        " `openssl pkey -in key.pem -pubout -out key.pub` its public key",
    )
