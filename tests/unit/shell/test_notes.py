"""Notes of a build: what was written is read, and nothing else is believed."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

from orchestrator.shell.build_folder import BuildNotes

if TYPE_CHECKING:
    from pathlib import Path

INPUTS = {"extract kws": {"model kws": "1"}, "lock": {"profile [name]": "2"}}


def _written(work: Path) -> BuildNotes:
    results = [("extract kws", "k1", ("some", "facts"))]
    BuildNotes(work).write(INPUTS, results, outputs="o1")
    return BuildNotes(work)


def test_notes_come_back(tmp_path: Path) -> None:
    notes = _written(tmp_path)
    assert notes.inputs("extract kws") == {"model kws": "1"}
    assert notes.inputs("aggregate") is None
    assert notes.outputs == "o1"
    assert notes.result("extract kws", "k1") == ("some", "facts")


def test_a_result_is_known_by_its_key_only(tmp_path: Path) -> None:
    notes = _written(tmp_path)
    assert notes.result("extract kws", "k2") is None
    assert notes.result("lock", "k1") is None


def test_a_folder_without_notes_has_none(tmp_path: Path) -> None:
    notes = BuildNotes(tmp_path / "nowhere")
    assert (notes.inputs("lock"), notes.outputs) == (None, None)
    assert notes.result("lock", "k") is None


@pytest.mark.parametrize(
    "text", [b"", b"[]", b'{"lock": 1}', b'{"lock": {"a": 1}}', b"\xff", b'{"a":' * 10_000]
)
def test_damaged_notes_are_none(tmp_path: Path, text: bytes) -> None:
    _written(tmp_path)
    (tmp_path / "stages.json").write_bytes(text)
    notes = BuildNotes(tmp_path)
    assert (notes.inputs("lock"), notes.outputs) == (None, None)


@pytest.mark.parametrize("data", [b"", b"damaged", pickle.dumps("k1"), pickle.dumps(("k1", 1, 2))])
def test_a_damaged_result_is_none(tmp_path: Path, data: bytes) -> None:
    notes = _written(tmp_path)
    (tmp_path / "results" / "extract-kws.pickle").write_bytes(data)
    assert notes.result("extract kws", "k1") is None
