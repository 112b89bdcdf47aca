"""Updates: what is packed, what is proved first, and what is refused."""

from __future__ import annotations

import hashlib
import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import ModelError
from orchestrator.provenance.envelope import device_verifier
from orchestrator.update import (
    HEADER_BYTES,
    Update,
    fact_text,
    identity_of,
    read_fact,
    read_update,
    update_bytes,
)
from tests.conftest import CORPUS
from tests.unit.build.fake_project import write_project
from tests.unit.cli.commands.test_project_commands import Commands
from tests.unit.provenance.test_signatures import ED25519, P256, private_pem, public_pem

if TYPE_CHECKING:
    from pathlib import Path

UPDATE = Update(
    identity=bytes(range(32)),
    model="net",
    version=7,
    firmware_version=0x01020003,
    program=b"program",
)


def _bytes() -> bytes:
    return update_bytes(UPDATE, lambda _: b"s" * 64)


def test_the_layout_is_that_of_the_header() -> None:
    data = _bytes()
    assert data[:16] == b"ORCH-UPD" + struct.pack("<II", 1, 0)
    assert data[16:48] == UPDATE.identity
    assert data[48:88] == b"net".ljust(40, b"\0")
    assert struct.unpack_from("<IIII", data, 88) == (7, 0x01020003, 7, 0)
    assert data[104:136] == hashlib.sha256(b"program").digest()
    assert data[136:144] == bytes(8)
    assert data[144:208] == b"s" * 64
    assert data[208:] == b"program"
    assert HEADER_BYTES == 208


def test_an_update_is_read_back() -> None:
    found = read_update(_bytes(), file="u")
    assert (found.model, found.version, found.firmware) == ("net", 7, "1.2.3")
    assert (found.program, found.signature) == (b"program", b"s" * 64)
    assert found.signed == UPDATE.signed


@given(st.integers(0, 143), st.integers(1, 255))
def test_the_signature_covers_every_byte_before_it(at: int, change: int) -> None:
    damaged = bytearray(_bytes())
    damaged[at] ^= change
    with suppress(ModelError):
        assert read_update(bytes(damaged), file="u").signed != UPDATE.signed


@pytest.mark.parametrize("size", [0, 7, 8, 207, 208, 214, 216])
def test_no_other_size_is_read(size: int) -> None:
    data = (_bytes() + b"more")[:size]
    with pytest.raises(ModelError, match="damaged"):
        read_update(data, file="u")


def test_the_identity_follows_from_product_and_interface() -> None:
    facts = (("input net.forward 000", "Float [2]"), ("kernel a", "b"))
    of = {"product": "demo", "cpu": "host", "isa": "scalar", "model": "net"}
    first = identity_of(**of, facts=facts)
    assert identity_of(**of, facts=facts[:1]) == first  # not of kernels
    assert identity_of(**of, facts=facts[::-1]) == first
    others = [identity_of(**{**of, key: "other"}, facts=facts) for key in of]
    others.append(identity_of(**of, facts=(("input net.forward 000", "Int [2]"),)))
    assert len({first, *others}) == 6


def test_facts_of_locks() -> None:
    text = fact_text(UPDATE.identity, "1.2.3")
    assert read_fact(text) == (UPDATE.identity, 0x01020003)
    for damaged in ("", text[1:], text[:-1], f"{'x' * 64} 1.2.3"):
        with pytest.raises(ValueError, match=r"update|hexadecimal"):
            read_fact(damaged)


@pytest.fixture
def c(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Commands:
    write_project(tmp_path, more="update = true\n")
    profile = tmp_path / "demo.toml"
    text = profile.read_text()
    profile.write_text(text.replace("[target]", 'version = "1.2.0"\n[target]'))
    (tmp_path / "key.pem").write_bytes(private_pem(ED25519))
    (tmp_path / "key.pub").write_bytes(public_pem(ED25519))
    (tmp_path / "other.pub").write_bytes(public_pem(P256))
    monkeypatch.chdir(tmp_path)
    found = Commands(capsys)
    found.run("build", "demo.toml")
    return found


PACK = ("update", "pack", "net.pte", "--for", "demo.lock", "--key", "key.pem")


def test_what_is_packed_is_what_a_build_writes(c: Commands, tmp_path: Path) -> None:
    found = c.run(*PACK, "--version", "7")
    assert found.startswith("net.update: model net, version 7, for firmware 1.2.0 or")
    update = read_update((tmp_path / "net.update").read_bytes(), file="u")
    built = (tmp_path / "build/demo/models/net.pte").read_bytes()
    assert update.program == built
    assert built != (tmp_path / "net.pte").read_bytes()
    header = (tmp_path / "build/demo/gen/src/api.cpp").read_text()
    assert ", ".join(f"0x{byte:02x}" for byte in update.identity) in header
    verify = device_verifier(ED25519.public_key(), file="k")
    assert verify(update.signed, update.signature)
    c.run(*PACK, "--version", "7", "--output", "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "net.update").read_bytes()


def test_what_is_in_an_update(c: Commands, tmp_path: Path) -> None:
    c.run(*PACK, "--version", "7", "--needs", "1.0.0")
    shown = c.run("update", "show", "net.update", "--key", "key.pub")
    assert "needs firmware  1.0.0" in shown
    assert "signature       by key.pub" in shown
    assert "not checked" in c.run("update", "show", "net.update")
    c.run("update", "show", "net.update", "--key", "other.pub", code=8)
    assert c.err.startswith("error[wrong-signature]: net.update was not signed with")
    data = (tmp_path / "net.update").read_bytes()
    (tmp_path / "cut.update").write_bytes(data[:-1])
    c.run("update", "show", "cut.update", code=4)
    assert c.err.startswith("error[bad-update]: cut.update is not an update, or it is")


def test_a_program_that_does_not_fit_is_not_packed(c: Commands, tmp_path: Path) -> None:
    (tmp_path / "net.pte").write_bytes((CORPUS / "add_mul" / "model.pte").read_bytes())
    c.run(*PACK, "--version", "7", code=12)
    assert "error[other-interface]" in c.err
    assert not (tmp_path / "net.update").exists()


def test_firmware_that_takes_no_updates(c: Commands, tmp_path: Path) -> None:
    profile = tmp_path / "demo.toml"
    profile.write_text(profile.read_text().replace("update = true", ""))
    c.run("build", "demo.toml")
    c.run(*PACK, "--version", "7", code=2)
    assert c.err.startswith("error[no-updates]: the firmware takes no signed updates")
    assert not list((tmp_path / "build/demo/include/orch").glob("update.h"))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("update pack net.pte", "update pack needs --for, --version, --key"),
        ("update show net.pte --version 7", "update show does not take --version"),
        ("update pack net.pte --version -1", "'-1' is not a number from 0 to"),
        ("update pack net.pte --version=4294967296", "is not a number from 0 to"),
        ("update pack net.pte --needs 1.2", "'1.2' is not MAJOR.MINOR.PATCH"),
    ],
)
def test_wrong_arguments(c: Commands, line: str, message: str) -> None:
    c.run(*line.split(), code=2)
    assert message in c.err
