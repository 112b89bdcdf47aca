from __future__ import annotations

import io
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from orchestrator.errors import ExitCode, UsageError
from orchestrator.running.npy import Array, dtype_name, read_npy, write_npy
from tests.conftest import CORPUS

DTYPES: Final = ["?", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"]
ORDERS: Final = [">" + d for d in DTYPES] + ["<" + d for d in DTYPES]


def saved(item: npt.NDArray[Any], version: tuple[int, int] = (1, 0)) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, item, version=version)
    return file.getvalue()


def as_numpy(item: Array) -> npt.NDArray[Any]:
    return np.frombuffer(item.data, dtype=item.dtype).reshape(item.shape)


def message(data: bytes) -> tuple[str, dict[str, str]]:
    with pytest.raises(UsageError) as caught:
        read_npy(data, file="a.npy")
    (found,) = caught.value.diagnostics
    assert found.code == "bad-npy"
    assert str(found.where) == "a.npy"
    assert found.hint
    return found.message, dict(found.notes)


arrays = st.sampled_from(ORDERS).flatmap(
    lambda d: hnp.arrays(
        np.dtype(d), hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
    )
)


@given(item=arrays, fortran=st.booleans(), version=st.sampled_from([1, 2, 3]))
def test_reads_what_numpy_writes(item: npt.NDArray[Any], *, fortran: bool, version: int) -> None:
    laid_out = np.asfortranarray(item) if fortran else item
    found = read_npy(saved(laid_out.reshape(item.shape), (version, 0)), file="a.npy")

    little = item.astype(item.dtype.newbyteorder("<"))
    assert found.shape == item.shape
    assert found.data == little.tobytes()
    assert found.dtype == little.dtype.str
    assert found.dtype_name == item.dtype.name == dtype_name(found.dtype)
    assert found.numel == item.size
    assert found.item_bytes == item.dtype.itemsize


def test_fortran_order_is_exercised() -> None:
    item = np.asfortranarray(np.arange(24, dtype=">i4").reshape(2, 3, 4))
    data = saved(item)
    assert b"'fortran_order': True" in data

    assert np.array_equal(as_numpy(read_npy(data, file="a.npy")), item)


@given(item=arrays)
def test_numpy_reads_what_is_written(item: npt.NDArray[Any]) -> None:
    little = item.astype(item.dtype.newbyteorder("<"))
    ours = Array(dtype=little.dtype.str, shape=item.shape, data=little.tobytes())
    data = write_npy(ours)

    back = np.load(io.BytesIO(data), allow_pickle=False)
    assert back.shape == item.shape
    assert back.dtype == little.dtype
    assert back.tobytes() == little.tobytes()
    assert (len(data) - len(ours.data)) % 64 == 0
    assert read_npy(data, file="a.npy") == ours


def test_reads_every_array_of_the_corpus() -> None:
    files = sorted(CORPUS.glob("*/*.npy"))
    assert len(files) > 200
    for file in files:
        want = np.load(file)
        found = read_npy(file.read_bytes(), file=file.name)
        assert (found.dtype, found.shape) == (want.dtype.str, want.shape)
        assert found.data == want.tobytes()


def with_header(header: bytes, elements: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + elements


def header(descr: str = "'<f4'", fortran: str = "False", shape: str = "(2,)") -> bytes:
    text = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}}}"
    return text.encode()


def test_reads_headers_of_other_writers() -> None:
    text = b'{"shape":(1,2,),"fortran_order":False,"descr":"|u1"}'
    assert read_npy(with_header(text, b"\1\2"), file="a") == Array(
        dtype="|u1", shape=(1, 2), data=b"\1\2"
    )
    found = read_npy(with_header(header("'?'"), b"\1\0"), file="a")
    assert found == Array(dtype="|b1", shape=(2,), data=b"\1\0")


DAMAGED: Final = "the .npy header is damaged"


@pytest.mark.parametrize(
    ("data", "text", "found", "expected"),
    [
        (b"", "not a .npy file", "0 bytes, beginning with b''", None),
        (
            b"PK\3\4 and on",
            "not a .npy file",
            "11 bytes, beginning with b'PK\\x03\\x04 and'",
            "b'\\x93NUMPY\\x01\\x00'",
        ),
        (
            b"\x93NUMPY\x04\x00\x00\x00",
            "unknown format version of the .npy file",
            "4.0",
            "1.0, 2.0 or 3.0",
        ),
        (b"\x93NUMPY", "not a .npy file", "6 bytes, beginning with b'\\x93NUMPY'", None),
        (
            b"\x93NUMPY\x02\x00\xff\xff\xff\xff",
            DAMAGED,
            None,
            "{'descr': ..., 'fortran_order': ..., 'shape': ...}",
        ),
        (b"\x93NUMPY\x01\x00\xff", DAMAGED, None, None),
        (with_header(b" " * 10_001), DAMAGED, None, None),
        (with_header(header(descr="'<f4")), DAMAGED, None, None),
        (with_header(header(descr="()")), DAMAGED, None, None),
        (with_header(header(descr="1")), DAMAGED, None, None),
        (with_header(b"-" * 9999 + b"1"), DAMAGED, None, None),
        (with_header(b"(" * 9999), DAMAGED, None, None),
        (with_header(b"{[]: 1}"), DAMAGED, None, None),
        (with_header(b"\xff{}"), DAMAGED, None, None),
        (with_header(b"[1]"), DAMAGED, None, None),
        (with_header(b"'\\d'"), DAMAGED, None, None),
        (with_header(header(fortran="1")), DAMAGED, None, None),
        (with_header(header(shape="(-1,)")), DAMAGED, "shape (-1,)", None),
        (with_header(header(shape="(True,)")), DAMAGED, "shape (True,)", None),
        (with_header(header(shape="(" + "0," * 65 + ")")), DAMAGED, None, None),
        (with_header(header(shape="3"), b"\0" * 12), DAMAGED, None, None),
        (with_header(header(shape="(0, 99999999999999999999)")), DAMAGED, None, None),
        (
            with_header(header(shape="(4294967296, 4294967296)")),
            "the size of the .npy file does not match its header",
            "0 bytes of elements",
            "73786976294838206464 for float32 [4294967296, 4294967296]",
        ),
        (
            with_header(header(), b"\0" * 7),
            "the size of the .npy file does not match its header",
            "7 bytes of elements",
            "8 for float32 [2]",
        ),
        (
            with_header(header(), b"\0" * 9),
            "the size of the .npy file does not match its header",
            "9 bytes of elements",
            "8 for float32 [2]",
        ),
        (
            with_header(header("'|b1'"), b"\0\2"),
            "invalid bool in the .npy file",
            "byte 2",
            "0 or 1",
        ),
    ],
)
def test_refuses_damaged_files(
    data: bytes, text: str, found: str | None, expected: str | None
) -> None:
    shown, notes = message(data)
    assert shown == text
    if found is not None:
        assert notes["found"] == found
    if expected is not None:
        assert notes["expected"] == expected


@pytest.mark.parametrize(
    "item",
    [
        np.zeros(2, dtype="G"),
        np.zeros(2, dtype="U3"),
        np.zeros(2, dtype="M8[s]"),
        np.zeros(2, dtype=[("a", "f4")]),
        np.zeros(2, dtype="S1"),
        np.zeros(2, dtype="g"),
    ],
)
def test_refuses_other_dtypes(item: npt.NDArray[Any]) -> None:
    shown, notes = message(saved(item))
    assert shown == "unsupported dtype in the .npy file"
    assert notes["expected"].startswith("bool, int8, int16, ")


def test_objects_are_never_unpickled() -> None:
    class Trap:
        def __reduce__(self) -> tuple[Any, ...]:
            return (pytest.fail, ("unpickled",))

    file = io.BytesIO()
    np.save(file, np.array([Trap()], dtype=object), allow_pickle=True)
    shown, notes = message(file.getvalue())
    assert shown == "unsupported dtype in the .npy file"
    assert notes["found"] == "Python objects"


@given(data=st.data())
def test_damage_is_an_error_or_an_array(data: st.DataObject) -> None:
    whole = bytearray(saved(np.arange(6, dtype="<i2").reshape(2, 3)))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] = data.draw(st.integers(0, 255))
    try:
        found = read_npy(bytes(whole), file="a.npy")
    except UsageError as error:
        assert error.exit_code is ExitCode.USAGE  # noqa: PT017  # both ends are right
    else:
        assert len(found.data) == found.numel * found.item_bytes
