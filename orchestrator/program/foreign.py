"""Recognizes files of other formats, for better messages.

Sources: the first bytes that each format has by its specification; ExecuTorch
`devtools/bundled_program/schema`, `exir/_serialize/_ptn.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from typing import Final

from orchestrator.program.problems import DecodeError


@dataclass(frozen=True, slots=True)
class Foreign:
    """What a file is, with its article, and what to do about it."""

    what: str
    hint: str


_EXPORT: Final = (
    "export the model from PyTorch with ExecuTorch, or name its code as `source` (docs/export.md)"
)
_UNPACK: Final = "unpack it, and name the .pte file"
_DOWNLOAD: Final = "download the file itself: this is what a server sent in its place"
NAME: Final = "name a .pte file"
_BUNDLED: Final = (
    "name the .pte file it was made of, or take that out of it"
    " (docs/executorch-compatibility.md#other-files)"
)

_EMPTY: Final = Foreign("an empty file", "export or download it again: nothing was written")
TEXT: Final = Foreign("a text file", NAME)
_ONNX: Final = Foreign("an ONNX model", _EXPORT)
_SAFETENSORS: Final = Foreign("a safetensors file: weights without a program", _EXPORT)
_ZIP: Final = Foreign("a zip archive", _UNPACK)

# First bytes as the formats specify them: RFC 1952 for gzip, RFC 8878 for zstd, NEP 1
# for .npy and so on.
_STARTS: Final = (
    (
        b"version https://git-lfs.github.com/spec/",
        Foreign("a Git LFS pointer", "run git lfs pull: the file itself is not there"),
    ),
    (b"\x1f\x8b", Foreign("a gzip archive", _UNPACK)),
    (b"BZh", Foreign("a bzip2 archive", _UNPACK)),
    (b"\xfd7zXZ\0", Foreign("an xz archive", _UNPACK)),
    (b"\x28\xb5\x2f\xfd", Foreign("a zstd archive", _UNPACK)),
    (b"7z\xbc\xaf\x27\x1c", Foreign("a 7z archive", _UNPACK)),
    (b"\x7fELF", Foreign("an ELF file: a program or library of machine code", NAME)),
    (b"\x89HDF\r\n\x1a\n", Foreign("an HDF5 file, such as Keras writes", _EXPORT)),
    (b"\x93NUMPY", Foreign("a NumPy array (.npy)", NAME)),
    (b"GGUF", Foreign("a GGUF model", _EXPORT)),
    (
        # torch.save of before PyTorch 1.6: the pickle of its magic number
        # 0x1950a86a20f9469cfc6c.
        b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.",
        Foreign("what torch.save wrote: weights without a program", _EXPORT),
    ),
    (b"\x80\x04", Foreign("a Python pickle", _EXPORT)),
    (b"\x80\x05", Foreign("a Python pickle", _EXPORT)),
)
"""By the bytes a file begins with."""

_IDENTIFIERS: Final = (
    (re.compile(rb"ET\d\d"), Foreign("an ExecuTorch program", "name it as `path` of a model")),
    (
        re.compile(rb"FT\d\d"),
        Foreign(
            "an ExecuTorch data file (.ptd): constants without a program",
            "name the program as `path` of the model, and this file in its `data`",
        ),
    ),
    (
        re.compile(rb"BP\d\d"),
        Foreign("a bundled program (.bpte): a program with test data", _BUNDLED),
    ),
    (re.compile(rb"ED\d\d"), Foreign("an ETDump: what a run was measured as", NAME)),
    (re.compile(rb"NPTG"), Foreign("a program of ExecuTorch Native", _EXPORT)),
    (re.compile(rb"TFL\d"), Foreign("a TensorFlow Lite model", _EXPORT)),
)
"""Flatbuffers, by their identifier."""

# In order: an archive of torch.save may have arrays in it, and one of .pt2 a data.pkl.
_MEMBERS: Final = (
    (
        "program.ptg",
        Foreign(
            "an ExecuTorch Native package (.ptn)",
            "export the model as a .pte program: packages are lowered on the device,"
            " which needs an engine that microcontrollers do not have",
        ),
    ),
    ("/constants.pkl", Foreign("a TorchScript model", _EXPORT)),
    ("archive_format", Foreign("an exported program of torch.export (.pt2)", _EXPORT)),
    (
        "serialized_exported_program.json",
        Foreign("an exported program of torch.export (.pt2)", _EXPORT),
    ),
    ("/data.pkl", Foreign("what torch.save wrote: weights without a program", _EXPORT)),
    (".npy", Foreign("NumPy arrays (.npz)", NAME)),
    (".pte", Foreign("a zip archive with a program in it", _UNPACK)),
)
"""Zip archives, by how the name of one of their members ends."""

# Chosen by hand: an ONNX model has its graph among its first fields.
_MOST_FIELDS: Final = 100
# Numbers of onnx.proto3, `ModelProto`: ir_version 1 comes first, graph is 7, the last
# one 26.
_ONNX_GRAPH: Final = 7
_ONNX_LAST: Final = 26
# Versions of the format so far are below 20; one byte as a varint is below 64 here.
_ONNX_VERSIONS: Final = frozenset(bytes([n]) for n in range(1, 64))
# A block of a disk; what begins as text is called text.
_TEXT_BYTES: Final = 512


def foreign_error(data: bytes, kind: str, suffix: str) -> DecodeError:
    """The error for a file of another format.

    Args:
        data: The whole file.
        kind: What it should be: a program, or a data file.
        suffix: Of such files.
    """
    message = f"not an ExecuTorch {kind}"
    expected = f"a {suffix} file that ExecuTorch wrote"
    found = foreign(data)
    if found is None:
        found_text = f"{len(data):,} bytes of another or a damaged file"
        hint = "export it again, or name another file"
        return DecodeError(message, found=found_text, expected=expected, hint=hint)
    return DecodeError(message, found=found.what, expected=expected, hint=found.hint)


def foreign(data: bytes) -> Foreign | None:
    """What a file is; None if unknown.

    Only its beginning is looked at, and of a zip archive its end.
    """
    if not data:
        return _EMPTY
    by_start = (found for start, found in _STARTS if data.startswith(start))
    by_identifier = (f for i, f in _IDENTIFIERS if i.fullmatch(data[4:8]))
    if found := next(chain(by_start, by_identifier), None):
        return found
    if data.startswith(b"PK\x03\x04"):
        return _zip(data)
    # POSIX tar (IEEE 1003.1), header block.
    if data[257:262] == b"ustar":
        return Foreign("a tar archive", _UNPACK)
    size = int.from_bytes(data[:8], "little")
    # safetensors: eight bytes with the length of a JSON header, then that.
    if data[8:9] == b"{" and size <= len(data) - 8:
        return _SAFETENSORS
    return _text(data) or (_ONNX if _is_onnx(data) else None)


def _zip(data: bytes) -> Foreign:
    import io  # noqa: PLC0415
    import zipfile  # noqa: PLC0415  # slow, and seldom needed

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return Foreign("a zip archive that is cut off", _UNPACK)
    for end, found in _MEMBERS:
        if any(name.endswith(end) for name in names):
            return found
    return _ZIP


def _text(data: bytes) -> Foreign | None:
    head = data[:_TEXT_BYTES]
    if head.translate(None, bytes(range(32, 127)) + b"\t\r\n\f"):
        try:
            # A character may be cut at the end.
            text = head.decode(errors="strict" if head == data else "ignore")
        except UnicodeDecodeError:
            return None
        if not all(c.isprintable() or c in "\t\r\n\f\ufeff" for c in text):
            return None
        # "ignore" leaves out what is no UTF-8: more than one cut character means binary
        # data.
        if len(text.encode()) < len(head) - 3:
            return None
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return Foreign("a web page (HTML)", _DOWNLOAD)
    if start.startswith(b"<?xml"):
        return Foreign("an XML file", _DOWNLOAD)
    return TEXT


def _is_onnx(data: bytes) -> bool:
    """Whether it is a protobuf message with the fields of ONNX's `ModelProto`.

    Its first field is the version of the format, field 7 is the graph.
    """
    if data[:1] != b"\b" or data[1:2] not in _ONNX_VERSIONS:
        return False
    at = 0
    for _ in range(_MOST_FIELDS):
        tag, at = _varint(data, at)
        field, wire = tag >> 3, tag & 7
        if not 1 <= field <= _ONNX_LAST or wire not in (0, 2):
            return False
        size, at = _varint(data, at)
        if field == _ONNX_GRAPH:
            return wire == 2 and 0 < size <= len(data) - at  # noqa: PLR2004  # a length
        if wire:
            at += size
        if at >= len(data):
            return False
    return False


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number at a position, and where it ends; (0, behind the end) if cut off."""
    number = 0
    # Ten groups of seven bits: the longest varint of protobuf.
    for shift in range(0, 70, 7):
        if at >= len(data):
            return 0, len(data) + 1
        byte = data[at]
        at += 1
        number |= (byte & 127) << shift
        if byte < 128:  # noqa: PLR2004  # the last byte of a number
            return number, at
    return 0, len(data) + 1
