"""Signed documents: DSSE envelopes.

Source: github.com/secure-systems-lab/dsse; made and checked by `securesystemslib`,
which the extra `provenance` installs.
"""

from __future__ import annotations

import json
import re
from collections.abc import (
    Callable,  # part of an alias
    Mapping,
    Sequence,
)
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from orchestrator.errors import Diagnostic, LockError, SourceSpan, UsageError
from orchestrator.provenance.sbom import STATEMENT_TYPE, document_bytes

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes


# Lists of what is published: files that a step gave, by what it was made from.

# The name of the format; a list of another one is not read.
OBJECTS_TYPE: Final = "https://orchestrator.dev/objects/v1"
# Checked before use: keys and names become paths of files in the cache and at the
# place.
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_KEY: Final = re.compile("[0-9a-f]{32,64}")
_NAME: Final = re.compile("[a-z][a-z0-9_]*[.][a-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishedList:
    """What is published.

    Args:
        objects: By key of a compile step: SHA-256 of each file that it gave, by suffix.
        exports: By key of a request: of each export, SHA-256 by name of its files; the
            newest first.
        sizes: Of each file, in bytes, by SHA-256.
    """

    objects: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    exports: Mapping[str, Sequence[Mapping[str, str]]] = field(default_factory=dict)
    sizes: Mapping[str, int] = field(default_factory=dict)


def object_list(found: PublishedList) -> bytes:
    """A list to sign."""
    document = {"_type": OBJECTS_TYPE, "objects": found.objects, "sizes": found.sizes}
    return document_bytes(document | ({"exports": found.exports} if found.exports else {}))


def read_object_list(payload: bytes) -> PublishedList:
    """What a list says. Raises ValueError: it is not one.

    What has a file without a size, as in lists of older versions, is left out: nothing
    says how much of it to read.
    """
    match json.loads(payload):
        case {"_type": t, "objects": dict(objects), **more} if t == OBJECTS_TYPE:
            exports, sizes = more.get("exports", {}), more.get("sizes", {})
            if (
                isinstance(exports, dict)
                and isinstance(sizes, dict)
                and all(_is_object(*entry) for entry in objects.items())
                and all(_is_export(*entry) for entry in exports.items())
                and all(type(size) is int and size >= 0 for size in sizes.values())
            ):
                # A digest without a size cannot be fetched within bounds (decision
                # 0036), so what has one is left out.
                known = sizes.keys()
                return PublishedList(
                    objects={k: f for k, f in objects.items() if known >= {*f.values()}},
                    exports={
                        key: [files for files in found if known >= {*files.values()}]
                        for key, found in exports.items()
                    },
                    sizes=sizes,
                )
    raise ValueError("not a list of objects")


def _is_object(key: str, files: object) -> bool:
    return (
        bool(_DIGEST.fullmatch(key))
        and isinstance(files, dict)
        and ".o" in files
        and _are_digests(files)
    )


def _is_export(key: str, found: object) -> bool:
    return (
        bool(_KEY.fullmatch(key))
        and isinstance(found, list)
        and all(
            isinstance(files, dict) and all(map(_NAME.fullmatch, files)) and _are_digests(files)
            for files in found
        )
    )


def _are_digests(files: Mapping[str, object]) -> bool:
    return all(isinstance(d, str) and _DIGEST.fullmatch(d) for d in files.values())


_IN_TOTO: Final = "application/vnd.in-toto+json"
_CYCLONEDX: Final = "application/vnd.cyclonedx+json"
_OBJECTS: Final = "application/vnd.orchestrator.objects+json"
_BYTES: Final = "application/octet-stream"
_MOST_VALUES: Final = 1000
"""Most JSON values of an envelope: its payload is one, and each signature has some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """What an envelope holds, once its signature is checked.

    Args:
        payload: The signed bytes.
        payload_type: What they are.
        key_id: Of the key that signed.
    """

    payload: bytes
    payload_type: str
    key_id: str


def payload_type_of(payload: bytes) -> str:
    """The media type of a document; any other file is bytes."""
    try:
        document = json.loads(payload)
    except (ValueError, RecursionError):
        return _BYTES
    if isinstance(document, dict):
        if document.get("_type") == STATEMENT_TYPE:
            return _IN_TOTO
        if document.get("_type") == OBJECTS_TYPE:
            return _OBJECTS
        if document.get("bomFormat") == "CycloneDX":
            return _CYCLONEDX
    return _BYTES


def sign(payload: bytes, key: PrivateKeyTypes, *, file: str) -> bytes:
    """An envelope with the payload.

    Args:
        payload: Any bytes.
        key: Of Ed25519, ECDSA or RSA.
        file: Of the key, for messages.

    Raises:
        UsageError: The key cannot sign.
    """
    from securesystemslib.dsse import Envelope  # noqa: PLC0415
    from securesystemslib.signer import CryptoSigner  # noqa: PLC0415

    try:
        signer = CryptoSigner(key)
    except ValueError as error:
        raise UsageError.of(
            "bad-key",
            f"{file} cannot sign",
            where=SourceSpan(file=file),
            found=str(error),
            hint="use a key of Ed25519, ECDSA or RSA",
        ) from error
    envelope = Envelope(payload, payload_type_of(payload), {})
    envelope.sign(signer)
    return document_bytes(envelope.to_dict())


def open_envelope(data: bytes, key: PublicKeyTypes, *, file: str) -> Signed:
    """What an envelope holds, if the key signed it.

    Args:
        data: The envelope.
        key: The public key.
        file: The envelope's, for messages.

    Raises:
        LockError: It is damaged (`bad-envelope`), another key signed it, or it changed
            since (`wrong-signature`), or it says to hold something else than it does
            (`wrong-payload-type`).
    """
    from securesystemslib.dsse import Envelope  # noqa: PLC0415
    from securesystemslib.exceptions import FormatError, VerificationError  # noqa: PLC0415
    from securesystemslib.signer import SSlibKey  # noqa: PLC0415

    try:
        envelope = Envelope.from_dict(_document(data))
        envelope.pae()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, FormatError) as error:
        raise _refused(
            "bad-envelope",
            "is not an envelope, or it is damaged",
            file,
            ("found", f"{type(error).__name__}: {error}"),
            hint="sign the document again",
        ) from error
    try:
        public = SSlibKey.from_crypto(key)
    except ValueError as error:
        raise UsageError.of(
            "bad-key",
            "the key cannot check signatures",
            found=str(error),
            hint="use a key of Ed25519, ECDSA or RSA",
        ) from error
    try:
        envelope.verify([public], 1)
    except VerificationError as error:
        raise _refused(
            "wrong-signature",
            "was not signed with this key, or it changed since",
            file,
            ("key", public.keyid),
            ("signed with", ", ".join(sorted(envelope.signatures)) or "no key"),
            hint="do not trust it; ask who signed it for the right key",
        ) from error
    # The type is signed too, but says what the signer claimed: a list of objects that
    # is signed as an SBOM is no list.
    expected = payload_type_of(envelope.payload)
    if envelope.payload_type != expected:
        raise _refused(
            "wrong-payload-type",
            "says that it holds something else",
            file,
            ("found", envelope.payload_type),
            ("expected", expected),
            hint="sign the document with `orchestrator signature create`",
        )
    return Signed(payload=envelope.payload, payload_type=expected, key_id=public.keyid)


def _document(data: bytes) -> dict[str, Any]:
    """The JSON of an envelope, whose writer is not known yet. Raises ValueError."""
    # Values of JSON take up to 50 times the memory of their text.
    if sum(map(data.count, b"[{,")) > _MOST_VALUES:
        raise ValueError("it has too many values")
    found: dict[str, Any] = json.loads(data)
    return found


def _refused(code: str, what: str, file: str, *notes: tuple[str, str], hint: str) -> LockError:
    return LockError(
        Diagnostic(
            code=code, message=f"{file} {what}", where=SourceSpan(file=file), notes=notes, hint=hint
        )
    )


# Keys in PEM, and signatures of 64 bytes for devices.
#
# Everything cryptographic is done by `cryptography`, which the extra `provenance` installs.

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
        # RFC 6979: the same update has the same bytes each time.
        scheme = ec.ECDSA(SHA256(), deterministic_signing=True)

        def sign(message: bytes) -> bytes:
            r, s = decode_dss_signature(key.sign(message, scheme))
            # Devices take the two numbers, not DER, which needs a parser.
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
