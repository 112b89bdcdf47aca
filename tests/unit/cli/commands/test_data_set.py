"""What `--data` may name."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from orchestrator.cli.commands.sampling import data_set
from orchestrator.errors import UsageError
from orchestrator.evaluation.records import Run, may_hold_records
from orchestrator.evaluation.samples import Choice
from tests.conftest import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

SAVED = CORPUS.parent / "datasets"
X = np.arange(6).reshape(2, 3)


def read(path: Path, **choice: Any) -> tuple[list[Any], list[Any]]:
    """First inputs and labels."""
    data = data_set(str(path), Choice(**choice))
    samples = list(data.read())
    assert data.name == str(path)
    assert data.count == len(samples)
    labels = [None if s.label is None else s.label.tolist() for s in samples]
    return [s.inputs[0].tolist() for s in samples], labels


def refused(path: object) -> tuple[str, dict[str, str], str]:
    with pytest.raises(UsageError) as error:
        data_set(str(path), Choice())
    (found,) = error.value.diagnostics
    assert found.code == "bad-data"
    assert str(found.where) == str(path)
    return found.message, dict(found.notes), found.hint


@pytest.mark.parametrize("name", ["d.csv", "d.CSV", "d.tsv"])
def test_a_csv_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.write_text("0,1,2,5\n3,4,5,6\n".replace(",", "," if "s" in name else "\t"))
    assert read(file) == (X.tolist(), [5, 6])
    file.write_bytes(b"\xef\xbb\xbflabel,a,b,c\r\n5,0,1,2\r\n6,3,4,5\r\n")
    assert read(file) == (X.tolist(), [5, 6])


def test_an_archive(tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", x=X, y=[5, 6])
    choice = {"inputs": ("x",), "labels": "y"}
    assert read(tmp_path / "d.npz", **choice) == (X.tolist(), [5, 6])


def test_a_folder_of_classes(tmp_path: Path) -> None:
    for name, row in zip(("up", "down"), X, strict=True):
        (tmp_path / name / "deep").mkdir(parents=True)
        np.save(tmp_path / name / "deep" / "0.npy", row)
    (tmp_path / ".cache").mkdir()
    # What macOS writes beside files, and Jupyter.
    (tmp_path / "up" / "deep" / "._0.npy").write_bytes(b"")
    (tmp_path / "up" / ".ipynb_checkpoints").mkdir()
    np.save(tmp_path / "up" / ".ipynb_checkpoints" / "x.npy", X[0])
    assert read(tmp_path) == (X[::-1].tolist(), [0, 1])
    (tmp_path / "left").mkdir()
    with pytest.raises(UsageError, match="no samples"):
        read(tmp_path)
    (tmp_path / "left").rmdir()
    np.save(tmp_path / "0.npy", X[0])
    assert refused(tmp_path)[:2] == ("samples lie beside folders of samples", {"found": "0.npy"})


def test_splits_are_no_classes(tmp_path: Path) -> None:
    for split in ("test", "train"):
        for name in ("up", "down"):
            (tmp_path / split / name).mkdir(parents=True)
            np.save(tmp_path / split / name / "0.npy", X[0])
    assert refused(tmp_path) == (
        "the folder has several data sets",
        {"found": "test, train"},
        f"name one: {tmp_path}/test",
    )
    assert read(tmp_path / "test")[1] == [0, 1]


def test_what_datasets_saved(tmp_path: Path) -> None:
    train = read(SAVED / "flowers" / "train")
    assert train == ([[1.5, 3], [2, 1], [0.25, 2]], [1, 0, 1])
    assert refused(SAVED / "flowers") == (
        "the folder has several data sets",
        {"found": "test, train"},
        "name the folder of one",
    )
    # Its files are no classes.
    shutil.copytree(SAVED / "flowers" / "test", tmp_path / "test")
    (tmp_path / "test" / "state.json").unlink()
    assert refused(tmp_path / "test")[0] == "the folder has no samples"


def test_files_of_other_forms(tmp_path: Path) -> None:
    for name in ("d.parquet", "d", "d.npy", "module:name"):
        (tmp_path / name).write_bytes(b"")
        message, notes, hint = refused(tmp_path / name)
        assert message == "unknown form of data"
        assert notes["expected"].startswith("a .csv or .npz file, ")
        assert hint == "convert it, or read it in a function"
    for name in ("none.csv", "none.npz", "none"):
        message, notes, hint = refused(tmp_path / name)
        assert (message, hint) == ("no such data", "check the path")
        assert notes["expected"].startswith("a .csv or .npz file, ")
    for name in ("data.csv", "data.npz"):
        (tmp_path / name).write_bytes(b"")
    assert refused(tmp_path / "dat.csv")[2] == f'did you mean "{tmp_path}/data.csv"?'
    (tmp_path / "d.csv").mkdir()
    assert refused(tmp_path / "d.csv")[0] == "the folder has no samples"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,label\n1,2,0\n1_0,2,1\n", "column a has no number"),
        ("a,b,label\n1,2,0\n1,inf,1\n", "column b has no number"),
        ("a,b,label\n1,2,0.5\n1,2,nan\n", "the label is no number"),
    ],
)
def test_what_python_takes_for_numbers(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(text)
    with pytest.raises(UsageError, match=message):
        read(tmp_path / "d.csv")


def test_names_with_underscores_are_names(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,label\n1,0_3\n2,0_7\n")
    assert read(tmp_path / "d.csv")[1] == [0, 1]


def test_a_misspelt_class_is_named(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text("a,label\n1,0\n2,1\n3,2\n")
    assert read(tmp_path / "d.csv", classes=("2", "1", "0"))[1] == [2, 1, 0]
    with pytest.raises(UsageError, match="no such class: 0"):
        read(tmp_path / "d.csv", classes=("2", "1"))
    # Other names are for the report alone.
    assert read(tmp_path / "d.csv", classes=("up", "down", "left"))[1] == [0, 1, 2]


def test_results_are_written_over_results_only(tmp_path: Path) -> None:
    file = tmp_path / "r.jsonl"
    assert may_hold_records(file)
    file.write_text(Run(firmware="a", model="m", method="forward").line + "\n")
    assert may_hold_records(file)
    for text in ("schema = 1\n", '{"version": 2}\n', "a,b\n"):
        file.write_text(text)
        assert not may_hold_records(file)
    assert not may_hold_records(tmp_path)


def test_a_misspelt_class_of_what_datasets_saved(tmp_path: Path) -> None:
    table = pa.table({"a": [1.0, 2.0], "sign": [0, 1]})
    with pa.ipc.new_stream(str(tmp_path / "d.arrow"), table.schema) as stream:
        stream.write_table(table)
    sign = {"names": ["up", "down"], "_type": "ClassLabel"}
    features = {"a": {"dtype": "float64", "_type": "Value"}, "sign": sign}
    (tmp_path / "dataset_info.json").write_text(json.dumps({"features": features}))
    state = {"_data_files": [{"filename": "d.arrow"}]}
    (tmp_path / "state.json").write_text(json.dumps(state))
    assert read(tmp_path)[1] == [0, 1]
    assert read(tmp_path, classes=("down", "up"))[1] == [1, 0]
    with pytest.raises(UsageError, match="no such class: up"):
        read(tmp_path, classes=("down", "op"))
    assert read(tmp_path, classes=("one", "two"))[1] == [0, 1]
