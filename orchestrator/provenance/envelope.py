"""Signed documents: DSSE envelopes.

Source: github.com/secure-systems-lab/dsse; made and checked by `securesystemslib`,
which the extra `provenance` installs.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from orchestrator.errors import Diagnostic, LockError, SourceSpan, UsageError
from orchestrator.provenance.documents import document_bytes
from orchestrator.provenance.objects import OBJECTS_TYPE
from orchestrator.provenance.statement import STATEMENT_TYPE

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

_IN_TOTO: Final = "application/vnd.in-toto+json"
_CYCLONEDX: Final = "application/vnd.cyclonedx+json"
_OBJECTS: Final = "application/vnd.orchestrator.objects+json"
_BYTES: Final = "application/octet-stream"
_MOST_VALUES: Final = 1000
"""Of an envelope: its payload is one, and each signature has some."""


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
