"""Rows of CSV files, and of folders that `datasets` saved."""

from __future__ import annotations

import io
import shutil
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import ToolchainError, UsageError
from orchestrator.evaluation.samples import Choice, DataSet
from orchestrator.evaluation.tables import arrow_data, csv_data
from tests.conftest import CORPUS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SAVED = CORPUS.parent / "datasets"


def table(text: str | bytes, **choice: Any) -> DataSet:
    data = text.encode() if isinstance(text, str) else text

    def opened() -> io.TextIOWrapper:
        return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline="")

    return csv_data("d.csv", opened, Choice(**choice))


def saved(folder: Path, **choice: Any) -> DataSet:
    return arrow_data("d", lambda name: (folder / name).open("rb"), Choice(**choice))


def inputs(data: DataSet) -> list[list[Any]]:
    """Inputs of each sample as lists."""
    return [[array.tolist() for array in sample.inputs] for sample in data.read()]


def labels(data: DataSet) -> list[Any]:
    found = [sample.label for sample in data.read()]
    return [None if label is None else label.tolist() for label in found]


def message(make: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as error:
        make()
    (found,) = error.value.diagnostics
    assert found.code == "bad-data"
    assert found.hint
    notes = "; ".join(f"{label}: {text}" for label, text in found.notes)
    return f"{found.where}: {found.message}" + (f" [{notes}]" if notes else "")


@pytest.mark.parametrize("name", ["label", "Labels", "class", "TARGET"])
def test_the_label_is_the_column_of_that_name(name: str) -> None:
    data = table(f"a,{name},b\n1,2,3\n4,5,6.5\n")
    assert data.count == 2
    assert data.names == ("a", name, "b")
    assert inputs(data) == [[[1, 3]], [[4, 6.5]]]
    assert labels(data) == [2, 5]
    assert data.classes == ()
    assert [sample.name for sample in data.read()] == ["0", "1"]


def test_y_is_a_label_at_the_ends_and_a_coordinate_between_others() -> None:
    assert labels(table("y,a,b\n1,2,3\n")) == [1]
    assert labels(table("a,b,y\n1,2,3\n")) == [3]
    assert labels(table("x,y,z,activity\n1,2,3,4\n")) == [4]
    assert inputs(table("x,y,z,label\n1,2,3,4\n")) == [[[1, 2, 3]]]


@pytest.mark.parametrize("header", ["", "a,b,c\n"])
def test_the_label_is_the_last_column_if_none_is_named_so(header: str) -> None:
    data = table(f"{header}1,2,3\n4,5,6\n")
    assert inputs(data) == [[[1, 2]], [[4, 5]]]
    assert labels(data) == [3, 6]


def test_the_user_names_columns_or_what_their_names_begin_with() -> None:
    text = "x1,x0,when,z,mood\n1,2,-,3,4\n5,6,-,7,8\n"
    data = table(text, inputs=("z", "x"), labels="mood")
    assert inputs(data) == [[[3], [1, 2]], [[7], [5, 6]]]
    assert labels(data) == [4, 8]
    assert labels(table(text, inputs=("z",), labels="x")) == [[1, 2], [5, 6]]
    # A name is not the beginning of others.
    assert inputs(table("x,xy,y\n1,2,3\n", inputs=("x",))) == [[[1]]]
    # Columns of the label are no inputs.
    assert inputs(table("x1,x2\n1,2\n", inputs=("x",), labels="x2")) == [[[1]]]


def test_columns_without_names_are_counted_from_1() -> None:
    data = table("7,1.5,2\n8,3,4\n", labels="1")
    assert labels(data) == [7, 8]
    assert inputs(data) == [[[1.5, 2]], [[3, 4]]]
    assert inputs(table("7,1,2\n", labels="1", inputs=("3", "2"))) == [[[2], [1]]]


def test_there_may_be_no_labels() -> None:
    assert labels(table("1,2\n3,4\n", labels="none")) == [None, None]
    assert inputs(table("1,2\n3,4\n", labels="none")) == [[[1, 2]], [[3, 4]]]
    # The last column is an input.
    assert labels(table("a,b\n1,2\n", inputs=("a", "b"))) == [None]
    assert labels(table("a,none\n1,2\n", labels="none")) == [2]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1,2,y\n3,4,n\n", 2),  # an answer, not a name
        ("1,2,target\n3,4,clutter\n", 2),
        ("400,402,Label\n3,4,1\n", 1),  # wavelengths, say
        ("a,0.5,b\n", 0),
        ("0,1,y\n3,4,1\n", 1),  # pandas counts columns without names
        (",0,1,target\n0,3,4,1\n1,5,6,0\n", 2),  # with its index
        ("setosa,1.5\nvirginica,2\n", 2),
    ],
)
def test_what_is_a_header(text: str, count: int) -> None:
    if not count:
        assert "d.csv:1: column 1 has no number" in message(lambda: list(table(text).read()))
        return
    assert table(text).count == count


def test_the_index_of_pandas_is_no_input() -> None:
    assert inputs(table(",a,b,label\n0,3,4,1\n1,5,6,0\n")) == [[[3, 4]], [[5, 6]]]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators_blank_lines_and_quotes(separator: str) -> None:
    text = '\ufeffa,"b",label\r\n\r\n 1 ,"2",x\r\n,,\r\n3,4e0,y\r\n'
    data = table(text.replace(",", separator))
    assert inputs(data) == [[[1, 2]], [[3, 4]]]
    assert data.classes == ("x", "y")


@pytest.mark.parametrize(
    "text",
    [
        "sep=;\r\na;b;label\r\n1;2;x\r\n3;4;y\r\n",
        '\ufeff"sep=;"\r\na;b;label\r\n1;2;x\r\n3;4;y\r\n',
        "# made by a logger\n# a, b, label\na,b,label\n1,2,x\n3,4,y\n",
        "# made by a logger\n#\n#a,b,label\n1,2,x\n3,4,y\n",
        "#a;b;label\n1,0;2,0;x\n3,0;4,0;y\n",
        "\n\na,b,label\n1,2,x\n3,4,y\n",
        '"a", "b", "label"\n1, 2, "x"\n3, 4, "y"\n;;\n'.replace(";;", ",,"),
        "a,b,label,\n1,2,x,\n3,4,y,\n",
        "# a b label\n1.0e+00  2.0 x\n3.0 4.0 y\n",
    ],
)
def test_what_programs_write_around_the_rows(text: str) -> None:
    """Excel, loggers, numpy.savetxt, and programs that end each row with a separator."""
    data = table(text)
    assert [name for name in data.names if name] == ["a", "b", "label"]
    assert inputs(data) == [[[1, 2]], [[3, 4]]]
    assert data.classes == ("x", "y")


def test_a_row_without_a_name_for_the_label_ends_with_it() -> None:
    assert labels(table("a,b,kind,\n1,2,5,\n")) == [5]


def test_decimal_commas_between_semicolons() -> None:
    for head in ("", "a;b;c\n", '"a, x";"b, x";c\n'):
        data = table(f"{head}1,5;-,25;1,5e3\n,5;2;2,5\n")
        assert inputs(data) == [[[1.5, -0.25]], [[0.5, 2]]]
        assert labels(data) == [1500, 2.5]
    # Between commas it might separate thousands.
    assert message(lambda: list(table('a,b,c\n"1,500",2,3\n').read())) == (
        "d.csv:2: column a has no number [found: 1,500]"
    )
    assert message(lambda: table("a;b;c\n1,500;2;0\n1;2.5;0\n")) == (
        "d.csv:3: decimal commas and decimal points are mixed"
    )
    # A class may have a semicolon.
    assert table("0.1,0.2,walk;run\n0.3,0.4,sit\n").classes == ("sit", "walk;run")


@pytest.mark.parametrize(
    "text",
    [
        "x, g\ty, g\tlabel\n1.5\t2\t0\n",
        "x, g;y, g;label\n1,5;2;0\n",
        "x, g;y, g;label;\n1,5;2,0;0;\n",
        "x, g;y, g;label\n1.5;2;0\n",
    ],
)
def test_commas_in_names_separate_nothing(text: str) -> None:
    data = table(text)
    assert data.names[:3] == ("x, g", "y, g", "label")
    assert (inputs(data), labels(data)) == ([[[1.5, 2]]], [0])


def test_lines_count_what_is_before_the_rows() -> None:
    text = 'sep=,\n# by hand\n\na,b,y\n1,"2\n",3\n\n4,x,6\n'
    assert message(lambda: list(table(text).read())) == (
        "d.csv:8: column b has no number [found: x]"
    )


def test_another_encoding_is_named_with_its_remedy() -> None:
    with pytest.raises(UsageError) as error:
        table("größe,label\n1,2\n".encode("cp1252"))
    assert error.value.diagnostics[0].hint == ("save it in UTF-8; Excel calls this form CSV UTF-8")


def test_names_of_classes_are_numbered() -> None:
    text = "a,label\n1,rose\n2,iris\n3,rose\n"
    data = table(text)
    assert (data.classes, labels(data)) == (("iris", "rose"), [1, 0, 1])
    data = table(text, classes=("rose", "lily", "iris"))
    assert (data.classes, labels(data)) == (("rose", "lily", "iris"), [0, 2, 0])
    assert message(lambda: table(text, classes=("rose", "lily"))) == (
        "d.csv:3: no such class: iris [expected: rose, lily]"
    )
    # Numbers are names only if they are given as such.
    numbers = "a,label\n1,3\n2,1\n"
    assert labels(table(numbers, classes=("x", "y", "z", "w"))) == [3, 1]
    assert labels(table(numbers, classes=("1", "2", "3"))) == [2, 0]
    several = table("a,y0,y1\n1,1,2\n", labels="y", classes=("1", "2"))
    assert labels(several) == [[1, 2]]


def test_one_kind_of_number_for_all_labels() -> None:
    """It decides about the metric."""
    found = [s.label for s in table("a,y\n1,2\n1,2.5\n").read()]
    assert {label.dtype.kind for label in found if label is not None} == {"f"}
    found = [s.label for s in table("a,y\n1,2\n1,3\n").read()]
    assert {label.dtype.kind for label in found if label is not None} == {"i"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b,y\n1,2,3\n4,x,6\n", "d.csv:3: column b has no number [found: x]"),
        ("1,2,3\n4,,6\n", "d.csv:2: column 2 has no number [found: nothing]"),
        ("1,2,3\n4,nan,6\n", "d.csv:2: column 2 has no number [found: nan]"),
        ("1,2,3\n\n4,5\n", "d.csv:3: the row has 2 cells, the first row 3"),
        ("a,b,y\n1,2,\n", "d.csv:2: the label is missing"),
        ("a,class,y\n1,2,3\n", "several columns may be the label [found: class, y]"),
        ("a,b,y\n", "d.csv: the data have no samples"),
        ("", "d.csv: the file is empty"),
        ("label\n1\n", "d.csv: no column is left for an input [found: label]"),
        (b"\xff\xfea,b", "d.csv: not a CSV file in UTF-8"),
        ('1,2\n"3,4', "d.csv:2: the row has 1 cells, the first row 2"),
    ],
)
def test_files_that_are_refused(text: str | bytes, expected: str) -> None:
    assert expected in message(lambda: list(table(text).read()))


@pytest.mark.parametrize("text", ["", "nan", "NA", "?"])
def test_missing_values_are_no_reason_to_choose_columns(text: str) -> None:
    with pytest.raises(UsageError) as error:
        list(table(f"a,b,y\n1,2,3\n4,{text},6\n").read())
    hint = "a value is missing: fill it in, or leave the row out"
    assert error.value.diagnostics[0].hint == hint


def test_columns_that_are_not_there() -> None:
    for choice in ({"labels": "lable"}, {"inputs": ("a", "lable")}):
        with pytest.raises(UsageError) as error:
            table("a,label\n1,2\n", **choice)
        (found,) = error.value.diagnostics
        assert found.message == "there is no column lable"
        assert found.notes == (("found", "a, label"),)
        assert found.hint == 'did you mean "label"?'
    wide = ",".join(f"column{n}" for n in range(500)) + "\n"
    assert len(message(lambda: table(wide, labels="other"))) < 400


def test_rows_are_read_as_they_are_needed() -> None:
    """What is wrong further down is no matter for the samples before."""
    data = table("1,2\n3,4\nx,6\n")
    assert inputs(data.part(0, 2)) == [[[1]], [[3]]]
    assert "d.csv:3" in message(lambda: list(data.read()))


@given(st.binary(max_size=60))
def test_any_bytes_are_samples_or_a_diagnostic(text: bytes) -> None:
    with suppress(UsageError):
        data = table(text)
        assert len(list(data.read())) == data.count


def test_all_kinds_of_columns_that_datasets_saves() -> None:
    assert message(lambda: saved(SAVED / "mixed")) == ("d, sample 4: the label is missing")
    data = saved(
        SAVED / "mixed",
        inputs=("image", "clip", "window", "grid", "age"),
        labels="word",
        pixels=(-1.0, 1.0),
    )
    assert data.count == 5
    for number, sample in enumerate(data.read()):
        image, clip, window, grid, age = sample.inputs
        np.testing.assert_array_equal(image, np.full((2, 3, 3), number, np.uint8))
        np.testing.assert_array_equal(clip, np.full(8, number / 16, np.float32))
        np.testing.assert_array_equal(window, np.array([number / 2, 1, 2]))
        np.testing.assert_array_equal(grid, np.array([[number, 2], [3, 255]]))
        assert [a.dtype for a in sample.inputs[:4]] == [
            *(np.uint8, np.float32, np.float32, np.uint8)
        ]
        assert int(age) == number
        assert sample.pixels == (-1.0, 1.0)
        assert sample.label == 0
    assert data.classes == ("no",)


def test_a_class_label_has_its_names(tmp_path: Path) -> None:
    folder = tmp_path / "mixed"
    shutil.copytree(SAVED / "mixed", folder)
    # Without the part that has a label that is not known.
    state = folder / "state.json"
    second = '    {\n      "filename": "data-00001-of-00002.arrow"\n    }\n'
    text = state.read_text()
    assert second in text
    state.write_text(text.replace("},\n" + second, "}\n"))
    data = saved(folder, inputs=("window",))
    assert data.classes == ("up", "down")
    assert labels(data) == [0, 1, 1]
    given_ = saved(folder, inputs=("window",), classes=("down", "level", "up"))
    assert labels(given_) == [2, 0, 0]
    # Other names are names for the report.
    other = saved(folder, inputs=("window",), classes=("hoch", "tief"))
    assert labels(other) == [0, 1, 1]


def test_numbers_of_a_saved_row_are_one_input() -> None:
    data = saved(SAVED / "flowers" / "train")
    assert data.names == ("width", "size", "kind")
    assert inputs(data) == [[[1.5, 3]], [[2, 1]], [[0.25, 2]]]
    assert (data.classes, labels(data)) == (("iris", "rose"), [1, 0, 1])
    lists = saved(SAVED / "mixed", inputs=("age",), labels="window")
    assert labels(lists)[3] == [1.5, 1, 2]
    assert message(lambda: list(saved(SAVED / "flowers" / "train", labels="size").read())) == (
        "d, sample 0: column kind has no number [found: rose]"
    )
    assert "there is no column depth" in message(
        lambda: saved(SAVED / "flowers" / "train", labels="depth")
    )


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("state.json", b"{}"),
        ("state.json", b"[]"),
        ("state.json", b'{"_data_files": [{"filename": "none.arrow"}]}'),
        ("dataset_info.json", b"not JSON"),
        ("dataset_info.json", b'{"features": null}'),
        ("dataset_info.json", b'{"features": {"long": {"_type": "Value"}, "y": {}}}'),
        ("data-00000-of-00001.arrow", b""),
        ("data-00000-of-00001.arrow", b"ARROW1 and more"),
    ],
)
def test_saved_folders_that_are_damaged(name: str, content: bytes, tmp_path: Path) -> None:
    folder = tmp_path / "d"
    shutil.copytree(SAVED / "flowers" / "train", folder)
    (folder / name).write_bytes(content)
    found = message(lambda: list(saved(folder).read()))
    assert "not what `datasets` saved [found: " in found


@given(st.data())
def test_a_damaged_part_is_samples_or_a_diagnostic(draw: st.DataObject) -> None:
    part = "data-00000-of-00002.arrow"
    whole = bytearray((SAVED / "mixed" / part).read_bytes())
    for _ in range(draw.draw(st.integers(1, 4))):
        at = draw.draw(st.integers(0, len(whole) - 1))
        whole[at] = draw.draw(st.integers(0, 255))

    def opened(name: str) -> Any:
        data = (SAVED / "mixed" / name).read_bytes()
        return io.BytesIO(bytes(whole) if name == part else data)

    choice = Choice(labels="none", inputs=("image", "clip"))
    with suppress(UsageError):
        list(arrow_data("d", opened, choice).read())


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ToolchainError) as error:
        saved(SAVED / "mixed")
    (found,) = error.value.diagnostics
    assert found.code == "missing-package"
    assert found.message == "the package pyarrow is not installed"
    assert "[data]" in found.hint
