"""Files that are no programs are called what they are."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import pickle
import struct
import tarfile
import zipfile

import pytest

from orchestrator.errors import ModelError
from orchestrator.program.external import read_flat_tensors
from orchestrator.program.foreign import foreign
from orchestrator.program.reader import read_program
from tests.conftest import CORPUS, model_bytes

LFS = b"""version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 12345
"""


def zipped(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    return file.getvalue()


def tarred() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("model.pte"))
    return file.getvalue()


def field(number: int, content: bytes) -> bytes:
    """A field of a protobuf message, of less than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


ONNX = b"\x08\x0a" + field(2, b"pytorch") + field(3, b"2.5") + field(7, field(2, b"g"))
TENSORS = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}})
SAFETENSORS = struct.pack("<Q", len(TENSORS)) + TENSORS.encode() + bytes(4)

FILES = {
    "an empty file": b"",
    "a Git LFS pointer": LFS,
    "a gzip archive": gzip.compress(b"x"),
    "a bzip2 archive": bz2.compress(b"x"),
    "an xz archive": lzma.compress(b"x"),
    "a tar archive": tarred(),
    "an ELF file: a program or library of machine code": b"\x7fELF\x02\x01\x01",
    "a TensorFlow Lite model": b"\x1c\0\0\0TFL3" + bytes(64),
    "an ONNX model": ONNX,
    "a safetensors file: weights without a program": SAFETENSORS,
    "a bundled program (.bpte): a program with test data": b"\x18\0\0\0BP08" + bytes(9),
    "an ETDump: what a run was measured as": b"\x18\0\0\0ED00" + bytes(9),
    "a program of ExecuTorch Native": b"\x18\0\0\0NPTG" + bytes(9),
    "an ExecuTorch Native package (.ptn)": zipped("program.ptg", "program.safetensors"),
    "a TorchScript model": zipped("m/constants.pkl", "m/data.pkl", "m/code/m.py"),
    "an exported program of torch.export (.pt2)": zipped("m/archive_format"),
    "what torch.save wrote: weights without a program": zipped("m/data.pkl"),
    "NumPy arrays (.npz)": zipped("w.npy"),
    "a zip archive with a program in it": zipped("models/m.pte"),
    "a zip archive": zipped("readme.txt"),
    "a zip archive that is cut off": zipped("readme.txt")[:40],
    "a Python pickle": pickle.dumps({"a": 1}),
    "a NumPy array (.npy)": b"\x93NUMPY\x01\0",
    "a GGUF model": b"GGUF\x03\0\0\0",
    "an HDF5 file, such as Keras writes": b"\x89HDF\r\n\x1a\n\0",
    "a web page (HTML)": b"\n<!DOCTYPE html>\n<html><title>404</title></html>",
    "an XML file": b'<?xml version="1.0"?><Error/>',
    "a text file": "# Modèle\nnot a program\n".encode(),
}


@pytest.mark.parametrize("what", FILES)
def test_a_file_is_called_what_it_is(what: str) -> None:
    with pytest.raises(ModelError) as caught:
        read_program(FILES[what], file="m.pte")
    (problem,) = caught.value.diagnostics
    assert problem.code == "bad-program"
    assert problem.message == "not an ExecuTorch program"
    assert dict(problem.notes)["found"] == what
    assert problem.hint
    assert "damaged" not in problem.hint


def test_the_hint_says_what_to_do() -> None:
    with pytest.raises(ModelError) as caught:
        read_program(LFS, file="m.pte")
    (problem,) = caught.value.diagnostics
    assert problem.hint == "run git lfs pull: the file itself is not there"


def test_programs_and_data_files_are_told_apart() -> None:
    data = next(CORPUS.glob("*/*.ptd")).read_bytes()
    with pytest.raises(ModelError) as caught:
        read_program(data, file="m.ptd")
    (problem,) = caught.value.diagnostics
    assert dict(problem.notes)["found"].startswith("an ExecuTorch data file (.ptd)")
    with pytest.raises(ModelError) as caught:
        read_flat_tensors(model_bytes("add_mul"), file="m.pte")
    (problem,) = caught.value.diagnostics
    assert problem.message == "not an ExecuTorch data file"
    assert dict(problem.notes)["found"] == "an ExecuTorch program"


@pytest.mark.parametrize(
    "data",
    [
        b"\x08",
        b"\x08\x0a",
        b"\x08\x0a\x3a\xff",
        b"\x08\x0a\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        bytes(range(256)),
        b"\0\0\0\0ZZ99",
        b"\0\0\0\0ETxx",
        b"\xff\xfe" * 300,
        b"caf\xe9 in another encoding",
    ],
)
def test_what_nobody_knows_is_not_guessed_at(data: bytes) -> None:
    assert foreign(data) is None
    with pytest.raises(ModelError):
        read_program(data, file="m.pte")
