"""Records of outputs: what is written is read back, up to where a kill cut it off."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.evaluation.records import (
    Record,
    Run,
    read_records,
    record_line,
    sample_digest,
    usable,
)
from orchestrator.program.values import ValueKind
from orchestrator.running.npy import Array
from orchestrator.running.values import OtherValue

RUN = Run(firmware="ab", model="m", method="forward")
RECORDS = [
    Record(
        sample=name,
        digest=sample_digest([np.arange(number)]),
        outputs=(
            Array.of(np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3) * number),
            Array.of(np.zeros((0, 4), np.int8)),
            *(True, 7, 0.1 + number),
        ),
    )
    for number, name in enumerate(("0", "cat 1.npy", "\u00fc\n"))
]
FILE = f"{RUN.line}\n".encode() + b"".join(record_line(r).encode() for r in RECORDS)


def test_records_are_read_back() -> None:
    assert read_records(FILE, RUN) == RECORDS


def test_a_number_that_is_no_json_is_read_back() -> None:
    outputs = (float("inf"), OtherValue(ValueKind.NONE))
    line = record_line(Record(sample="0", digest="", outputs=outputs))
    (found,) = read_records(f"{RUN.line}\n{line}".encode(), RUN)
    assert found.outputs == outputs


@given(st.integers(0, len(FILE)))
def test_a_file_that_was_cut_off_has_its_whole_lines(end: int) -> None:
    found = read_records(FILE[:end], RUN)
    assert found == RECORDS[: len(found)]
    whole = FILE[:end].count(b"\n") - 1
    assert len(found) == max(whole, 0)


@given(st.integers(0, len(FILE) - 1), st.integers(0, 255))
def test_a_damaged_file_is_never_an_error(at: int, byte: int) -> None:
    damaged = FILE[:at] + bytes([byte]) + FILE[at + 1 :]
    for record in read_records(damaged, RUN):
        assert isinstance(record, Record)


@pytest.mark.parametrize(
    "other",
    [
        Run(firmware="cd", model="m", method="forward"),
        Run(firmware="ab", model="n", method="forward"),
        Run(firmware="ab", model="m", method="other"),
    ],
)
def test_records_of_another_run_are_not_used(other: Run) -> None:
    assert read_records(FILE, other) == []


def test_lines_that_are_no_records_end_the_file() -> None:
    for line in ("[]", "{}", '{"sample": 1, "inputs": "", "outputs": []}', "nan"):
        data = f"{RUN.line}\n".encode() + line.encode() + b"\n"
        assert read_records(data, RUN) == []
    entry = json.loads(record_line(RECORDS[0]))
    entry["outputs"][0]["sizes"] = [3, 3]
    data = f"{RUN.line}\n{json.dumps(entry)}\n".encode()
    assert read_records(data, RUN) == []


def test_samples_that_changed_end_what_can_be_used() -> None:
    same = [(record.sample, record.digest) for record in RECORDS]
    assert usable(RECORDS, iter(same)) == RECORDS
    assert usable(RECORDS, iter(same[:1])) == RECORDS[:1]
    other = [same[0], (same[1][0], "other"), same[2]]
    assert usable(RECORDS, iter(other)) == RECORDS[:1]


def test_digests_tell_samples_apart() -> None:
    base = np.zeros((2, 3), np.uint8)
    arrays = [base, base.reshape(3, 2), base.astype(np.int8), base + 1]
    assert len({sample_digest([array]) for array in arrays}) == 4
    assert sample_digest([base]) == sample_digest([base.copy(order="F")])
