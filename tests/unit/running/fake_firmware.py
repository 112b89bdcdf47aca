"""A firmware that knows the answers, written from docs/runner-protocol.md alone."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import numpy.typing as npt

from tests.unit.running.corpus_products import case_document, load

Json = dict[str, Any]

_TAGS = {"none": 0, "tensor": 1, "int": 2, "double": 3, "bool": 4, "string": 5}


def stored(case: str, entry: Json) -> npt.NDArray[Any]:
    return load(case, entry["file"])


def in_memory(item: npt.NDArray[Any], dim_order: list[int]) -> bytes:
    return np.ascontiguousarray(item.transpose(dim_order)).tobytes()


class Words:
    """Takes a request apart."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def take(self, size: int) -> bytes:
        assert size <= len(self.data)
        part, self.data = self.data[:size], self.data[size:]
        return part

    def word(self) -> int:
        (word,) = struct.unpack("<I", self.take(4))
        assert isinstance(word, int)
        return word


def check_request(case: str, data: bytes) -> None:
    """Hold a request against `case.json`, byte for byte."""
    document = case_document(case)
    methods = document["program"]["methods"]
    words = Words(data)
    assert words.take(4) == b"ORQ1"
    assert words.word() == len(document["runs"])
    for run in document["runs"]:
        assert list(methods)[words.word()] == run["method"]
        assert words.word() == int(run["fresh"])
        assert words.word() == len(run["inputs"])
        ports = methods[run["method"]]["inputs"]
        for entry, port in zip(run["inputs"], ports, strict=True):
            assert words.word() == _TAGS[entry["kind"]]
            if entry["kind"] != "tensor":
                assert entry["kind"] == "int"
                assert struct.unpack("<q", words.take(8)) == (entry["value"],)
                continue
            item = stored(case, entry)
            assert words.word() == item.ndim
            sizes = struct.unpack(f"<{item.ndim}i", words.take(4 * item.ndim))
            assert sizes == item.shape
            assert words.take(item.nbytes) == in_memory(item, port["dim_order"])
    assert not words.data


def response(case: str) -> bytes:
    """What a firmware answers that computes exactly what is expected."""
    document = case_document(case)
    parts = [b"ORS1"]
    for run in document["runs"]:
        ports = document["program"]["methods"][run["method"]]["outputs"]
        parts.append(struct.pack("<IIII", 0, 7, 100, len(ports)))
        for entry, port in zip(run["outputs"], ports, strict=True):
            parts.append(_output(case, entry, port))
    return b"".join(parts)


def _output(case: str, entry: Json, port: Json) -> bytes:
    tag = struct.pack("<I", _TAGS[entry["kind"]])
    value = entry.get("value")
    match entry["kind"]:
        case "tensor":
            item = stored(case, entry)
            head = struct.pack("<II", port["scalar_type"], item.ndim)
            head += struct.pack(f"<{item.ndim}i", *item.shape)
            return tag + head + in_memory(item, port["dim_order"])
        case "double":
            return tag + struct.pack("<d", value)
        case "string":
            text = str(value).encode()
            return tag + struct.pack("<I", len(text)) + text
    return tag + struct.pack("<q", value)
