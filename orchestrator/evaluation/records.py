"""Outputs of samples as lines of a file, so that an evaluation can go on.

The first line says what was run: the digest of the firmware, model and method. Then a
line per sample, in order, with the digest of its inputs: a sample that changed is found
when it is read again. A line that a kill cut off does not count.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy.typing as npt

from orchestrator.document import document
from orchestrator.program.values import ValueKind
from orchestrator.running.npy import Array, dtype_name
from orchestrator.running.values import OtherValue, RunValue

# A file of another version is not read, and its samples run again.
VERSION: Final = 1
# A file that --results names may be anything, also without a line's end.
_MOST_FIRST: Final = 4096
"""Bytes of a first line that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is run; records of another run are of no use.

    Args:
        firmware: Digest of the firmware, in hex.
        model: Name of the model.
        method: Of the method.
    """

    firmware: str
    model: str
    method: str

    @property
    def line(self) -> str:
        """The first line of a file of records."""
        return json.dumps({"version": VERSION, **document(self)})


def may_hold_records(path: Path) -> bool:
    """Whether records may be written there: nothing else would be lost."""
    try:
        with path.open("rb") as file:
            first = file.readline(_MOST_FIRST)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    # Only files of this form are written over: a profile or a data set that --results
    # names by mistake stays.
    return not first or first.startswith(f'{{"version": {VERSION}, "firmware": '.encode())


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """Outputs of one sample.

    Args:
        sample: Its name.
        digest: Of its inputs, as the data have them.
        outputs: In the order of the method; what is no number is None.
    """

    sample: str
    digest: str
    outputs: tuple[RunValue, ...]


def sample_digest(inputs: Sequence[npt.NDArray[Any]]) -> str:
    """Digest of the inputs of a sample, as the data have them."""
    whole = hashlib.sha256()
    for array in inputs:
        # Equal bytes of another dtype or shape are another sample.
        whole.update(f"{array.dtype.str}{array.shape}".encode())
        whole.update(array.tobytes())
    # 128 bits: it tells a changed sample, it does not protect from forged ones.
    return whole.hexdigest()[:32]


def record_line(record: Record) -> str:
    """A record as a line, with its end."""
    entry = {
        "sample": record.sample,
        "inputs": record.digest,
        "outputs": [_encoded(value) for value in record.outputs],
    }
    return json.dumps(entry) + "\n"


def _encoded(value: RunValue) -> object:
    if isinstance(value, Array):
        return {
            "dtype": value.dtype,
            "sizes": list(value.shape),
            "data": base64.b64encode(value.data).decode(),
        }
    # JSON keeps every bit of a double, and NaN as this module reads it back.
    return value if isinstance(value, bool | int | float) else None


def read_records(data: bytes, run: Run) -> list[Record]:
    """The records of a file, up to the first line that is cut off or damaged.

    Args:
        data: The whole file.
        run: What is run now; the records of another run are none.
    """
    lines = data.splitlines(keepends=True)
    # The whole line, compared as text: no field of another firmware or method can be
    # overlooked.
    if not lines or lines[0] != f"{run.line}\n".encode():
        return []
    records: list[Record] = []
    for line in lines[1:]:
        if not line.endswith(b"\n"):
            break
        try:
            records.append(_record(json.loads(line)))
        # A line that is damaged ends what is used; what comes after it runs again. That
        # is always right, and an error would make the file useless.
        except (ValueError, LookupError, TypeError, RecursionError):
            break
    return records


def _record(entry: Any) -> Record:  # noqa: ANN401  # JSON
    outputs = tuple(_decoded(value) for value in entry["outputs"])
    sample, digest = entry["sample"], entry["inputs"]
    if not isinstance(sample, str) or not isinstance(digest, str):
        raise TypeError("not a record")
    return Record(sample=sample, digest=digest, outputs=outputs)


def _decoded(value: Any) -> RunValue:  # noqa: ANN401  # JSON
    if isinstance(value, dict):
        data = base64.b64decode(value["data"], validate=True)
        array = Array(dtype=value["dtype"], shape=tuple(value["sizes"]), data=data)
        dtype_name(array.dtype)
        if len(data) != array.numel * array.item_bytes:
            raise binascii.Error("cut off")
        return array
    if isinstance(value, bool | int | float):
        return value
    return OtherValue(ValueKind.NONE)


def usable(records: Sequence[Record], digests: Iterator[tuple[str, str]]) -> list[Record]:
    """The records at the start whose samples are as they were.

    Args:
        records: Of a file.
        digests: (name, digest of the inputs) of the samples, in order; read no further
            than needed.
    """
    found: list[Record] = []
    for record in records:
        if next(digests, None) != (record.sample, record.digest):
            break
        found.append(record)
    return found
