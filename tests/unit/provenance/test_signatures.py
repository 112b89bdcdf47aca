"""Envelopes and keys: what is signed comes out again, everything else is refused."""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from orchestrator.cli.main import run
from orchestrator.errors import LockError, UsageError
from orchestrator.provenance.envelope import (
    device_signer,
    device_verifier,
    open_envelope,
    payload_type_of,
    read_private_key,
    read_public_key,
    sign,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes

STATEMENT = b'{"_type": "https://in-toto.io/Statement/v1", "subject": []}'
ED25519 = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
P256 = ec.derive_private_key(7, ec.SECP256R1())


def private_pem(key: PrivateKeyTypes, password: bytes | None = None) -> bytes:
    encryption = BestAvailableEncryption(password) if password else NoEncryption()
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption)


def public_pem(key: PrivateKeyTypes) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.mark.parametrize(
    "key", [ED25519, P256, rsa.generate_private_key(65537, 2048)], ids=["ed25519", "p256", "rsa"]
)
def test_what_is_signed_comes_out_again(key: PrivateKeyTypes) -> None:
    private = read_private_key(private_pem(key), file="key.pem")
    public = read_public_key(public_pem(key), file="key.pub")
    signed = open_envelope(sign(STATEMENT, private, file="k"), public, file="e")
    assert signed.payload == STATEMENT
    assert signed.payload_type == "application/vnd.in-toto+json"


def _refusal(data: bytes, key: PrivateKeyTypes = ED25519) -> str:
    with pytest.raises(LockError) as caught:
        open_envelope(data, key.public_key(), file="e")
    (problem,) = caught.value.diagnostics
    return problem.code


def test_another_key_is_refused() -> None:
    assert _refusal(sign(STATEMENT, ED25519, file="k"), P256) == "wrong-signature"


def test_every_damaged_byte_is_refused() -> None:
    envelope = sign(b"bytes", ED25519, file="k")
    document = json.loads(envelope)
    for at in range(len(envelope)):
        data = bytearray(envelope)
        data[at] ^= 1
        try:
            same = json.loads(data) == document
        except ValueError:
            same = False
        if not same:
            assert _refusal(bytes(data)) in {"bad-envelope", "wrong-signature"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"7",
        b"{}",
        b"[" * 100_000,
        b'{"payload": "", "payloadType": 7, "signatures": []}',
        b'{"payload": "", "payloadType": "a", "signatures": [7]}',
        b'{"payload": "", "payloadType": "a", "signatures": [{"sig": "AA=="}]}',
        b'{"payload": null, "payloadType": "a", "signatures": []}',
    ],
)
def test_what_is_no_envelope_is_refused(data: bytes) -> None:
    assert _refusal(data) == "bad-envelope"


def test_no_signature_is_refused() -> None:
    data = b'{"payload": "", "payloadType": "a", "signatures": []}'
    assert _refusal(data) == "wrong-signature"


def test_a_type_that_is_not_that_of_the_payload_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The type is signed as well, so only who has the key can write another."""
    envelope = json.loads(sign(STATEMENT, ED25519, file="k"))
    changed = envelope | {"payloadType": "application/octet-stream"}
    assert _refusal(json.dumps(changed).encode()) == "wrong-signature"
    with monkeypatch.context() as patch:
        patch.setattr("orchestrator.provenance.envelope.payload_type_of", lambda _: "text/plain")
        data = sign(STATEMENT, ED25519, file="k")
    assert _refusal(data) == "wrong-payload-type"


def test_types_of_payloads() -> None:
    assert payload_type_of(STATEMENT) == "application/vnd.in-toto+json"
    assert payload_type_of(b'{"bomFormat": "CycloneDX"}').endswith("cyclonedx+json")
    for other in (b"", b"{}", b"[]", b"\x7fELF", b"[" * 100_000):
        assert payload_type_of(other) == "application/octet-stream"


@pytest.mark.parametrize("key", [ED25519, P256], ids=["ed25519", "p256"])
def test_signatures_for_devices(key: PrivateKeyTypes) -> None:
    make = device_signer(key, file="k")
    holds = device_verifier(key.public_key(), file="k")
    signature = make(b"header")
    assert len(signature) == 64
    assert make(b"header") == signature  # the same bytes every time
    assert holds(b"header", signature)
    assert not holds(b"headeR", signature)
    for at in range(64):
        damaged = bytearray(signature)
        damaged[at] ^= 0x80
        assert not holds(b"header", bytes(damaged))
    assert not holds(b"header", bytes(64))


@pytest.mark.parametrize(
    "key",
    [rsa.generate_private_key(65537, 2048), ec.generate_private_key(ec.SECP384R1())],
    ids=["rsa", "p384"],
)
def test_other_keys_do_not_sign_for_devices(key: PrivateKeyTypes) -> None:
    with pytest.raises(UsageError, match="not a key that this command takes"):
        device_signer(key, file="k")
    with pytest.raises(UsageError, match="not a key that this command takes"):
        device_verifier(key.public_key(), file="k")


@pytest.mark.parametrize("pem", [b"", b"text", public_pem(P256), private_pem(ED25519, b"secret")])
def test_what_is_no_private_key(pem: bytes) -> None:
    with pytest.raises(UsageError, match=r"key\.pem is not a key"):
        read_private_key(pem, file="key.pem")


@pytest.mark.parametrize("pem", [b"", b"text", private_pem(P256)])
def test_what_is_no_public_key(pem: bytes) -> None:
    with pytest.raises(UsageError, match=r"key\.pub is not a key"):
        read_public_key(pem, file="key.pub")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "key.pem").write_bytes(private_pem(ED25519))
    (tmp_path / "key.pub").write_bytes(public_pem(ED25519))
    (tmp_path / "other.pub").write_bytes(public_pem(P256))
    (tmp_path / "a.json").write_bytes(STATEMENT)
    return tmp_path


def _run(capsys: pytest.CaptureFixture[str], line: str, *, code: int = 0) -> Any:
    assert run(line.split()) == code
    out, err = capsys.readouterr()
    return out + err


def test_commands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(capsys, "signature create a.json --key key.pem") == (
        "a.json.dsse.json: application/vnd.in-toto+json, signed\n"
    )
    check = "signature verify a.json.dsse.json --key"
    assert "signed with key.pub" in _run(capsys, f"{check} key.pub --output b.json")
    assert (folder / "b.json").read_bytes() == STATEMENT
    text = _run(capsys, f"{check} other.pub --output c.json", code=8)
    assert text.startswith("error[wrong-signature]: a.json.dsse.json was not signed")
    assert not (folder / "c.json").exists()
    assert "error[bad-envelope]" in _run(capsys, "signature verify a.json --key key.pub", code=8)
    assert "error[bad-key]" in _run(capsys, "signature create a.json --key a.json", code=2)
    assert "error[unreadable-file]" in _run(capsys, "signature create a.json --key none", code=2)


def test_without_the_extra(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert folder
    monkeypatch.setitem(sys.modules, "securesystemslib.dsse", None)
    text = _run(capsys, "signature create a.json --key key.pem", code=7)
    assert text.splitlines()[0] == (
        "error[missing-package]: the package securesystemslib.dsse is not installed"
    )
    assert "[provenance]" in text


def test_payloads_are_the_bytes_of_the_file(folder: Path) -> None:
    data = bytes(range(256))
    (folder / "fw.bin").write_bytes(data)
    assert run(["signature", "create", "fw.bin", "--key", "key.pem", "--output", "fw.sig"]) == 0
    envelope = json.loads((folder / "fw.sig").read_text())
    assert base64.b64decode(envelope["payload"]) == data
    assert Path("fw.sig").is_file()
