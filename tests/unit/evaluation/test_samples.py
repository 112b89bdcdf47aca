"""Forms of data: archives, folders and functions, whole and damaged."""

from __future__ import annotations

import io
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import UsageError
from orchestrator.evaluation.samples import (
    DataSet,
    Files,
    archive_data,
    archive_files,
    folder_data,
    loader_data,
)

if TYPE_CHECKING:
    from collections.abc import Callable

IMAGES = np.arange(24, dtype=np.uint8).reshape(4, 2, 3)


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(array))
    return file.getvalue()


def archive(**arrays: Any) -> DataSet:
    return archive_data(archive_files(npz(**arrays), "d.npz"))


def folder(**files: bytes) -> DataSet:
    named = {name.replace("__", "."): data for name, data in files.items()}
    return folder_data(Files("d", named, named.__getitem__))


def message(make: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as error:
        make()
    (found,) = error.value.diagnostics
    notes = "; ".join(f"{label}: {text}" for label, text in found.notes)
    return f"{found.where}: {found.message}" + (f" [{notes}]" if notes else "")


def test_an_archive_has_a_sample_per_row() -> None:
    data = archive(inputs=IMAGES, labels=np.array([3, 1, 2, 0]), expected=IMAGES * 2.0)
    samples = list(data.read())
    assert data.count == len(samples) == 4
    assert [s.name for s in samples] == ["0", "1", "2", "3"]
    for number, sample in enumerate(samples):
        (image,) = sample.inputs
        np.testing.assert_array_equal(image, IMAGES[number])
        assert sample.expected is not None
        np.testing.assert_array_equal(sample.expected[0], IMAGES[number] * 2.0)
    assert [int(s.label) for s in samples if s.label is not None] == [3, 1, 2, 0]


def test_an_archive_may_have_several_inputs() -> None:
    data = archive(input0=IMAGES, input1=np.arange(4.0))
    inputs = [sample.inputs for sample in data.read()]
    assert [[a.shape for a in one] for one in inputs] == [[(2, 3), ()]] * 4


def test_a_part_of_the_samples() -> None:
    data = archive(inputs=IMAGES)
    for begin, end, names in (
        (1, 3, ["1", "2"]),
        (2, None, ["2", "3"]),
        (0, 9, ["0", "1", "2", "3"]),
        (7, None, []),
    ):
        part = data.part(begin, end)
        assert [s.name for s in part.read()] == names
        assert part.count == len(names)


def test_archives_that_are_refused() -> None:
    assert message(lambda: archive(x=IMAGES)) == (
        "d.npz: the archive has no inputs [found: x; "
        "expected: inputs, or input0, input1, ...; labels; expected]"
    )
    assert message(lambda: archive(inputs=IMAGES, labels=np.zeros(3))) == (
        "d.npz: the arrays have different numbers of samples "
        "[found: inputs [4, 2, 3], labels [3]; "
        "expected: the same size of the first axis, which counts samples]"
    )
    assert "different numbers" in message(lambda: archive(inputs=np.float32(1)))
    assert message(lambda: archive(inputs=IMAGES[:0])) == (
        "d.npz: the data have no samples"
    )
    assert "not an .npz file" in message(lambda: archive_files(b"PK junk", "d.npz"))
    text = message(lambda: archive(inputs=np.array(["a"])))
    assert text.startswith("d.npz/inputs: unsupported dtype")


@given(st.data())
def test_a_damaged_archive_is_a_diagnostic(draw: st.DataObject) -> None:
    whole = bytearray(npz(inputs=IMAGES, labels=np.arange(4)))
    for _ in range(draw.draw(st.integers(1, 4))):
        whole[draw.draw(st.integers(0, len(whole) - 1))] = draw.draw(
            st.integers(0, 255)
        )
    end = draw.draw(st.integers(0, len(whole)))
    with suppress(UsageError):
        list(archive_data(archive_files(bytes(whole[:end]), "d.npz")).read())


def test_a_folder_has_a_sample_per_file_in_natural_order() -> None:
    files = {f"image{n}__npy": npy(IMAGES[n]) for n in range(4)}
    files["image10__npy"] = npy(IMAGES[0])
    data = folder(**files, labels__npy=npy([5, 6, 7, 8, 9]))
    samples = list(data.read())
    assert [s.name for s in samples] == [
        *("image0.npy", "image1.npy", "image2.npy", "image3.npy", "image10.npy")
    ]
    assert [int(s.label) for s in samples if s.label is not None] == [5, 6, 7, 8, 9]


def test_a_folder_of_archives_has_whole_samples() -> None:
    data = folder(
        a__npz=npz(input0=IMAGES[0], input1=np.float32(2), label=4),
        b__npz=npz(inputs=IMAGES[1], label=5, expected=np.zeros(2)),
    )
    first, second = data.read()
    assert [a.shape for a in first.inputs] == [(2, 3), ()]
    assert [int(s.label) for s in (first, second) if s.label is not None] == [4, 5]
    assert first.expected is None
    assert second.expected is not None


def test_labels_of_a_folder_as_csv() -> None:
    images = {"a__npy": npy(IMAGES[0]), "b__npy": npy(IMAGES[1])}
    for text, labels in (
        (b"file,label\na.npy,3\nb.npy,4\n", [3, 4]),
        (b"b,4\r\n\r\na,3\r\n", [3, 4]),
        ("\ufeffa,1.5\nb,2\n".encode(), [1.5, 2.0]),
    ):
        found = [s.label for s in folder(**images, labels__csv=text).read()]
        assert [x.item() for x in found if x is not None] == labels
    several = folder(**images, labels__csv=b"a,1,2\nb,3,4\n")
    assert [list(s.label) for s in several.read() if s.label is not None] == [
        [1, 2],
        [3, 4],
    ]


def test_labels_may_be_names_of_classes() -> None:
    data = folder(
        a__npy=npy(IMAGES[0]), b__npy=npy(IMAGES[1]), labels__csv=b"a,dog\nb,cat\n"
    )
    assert data.classes == ("cat", "dog")
    assert [int(s.label) for s in data.read() if s.label is not None] == [1, 0]


def test_folders_that_are_refused() -> None:
    image = npy(IMAGES[0])
    assert message(folder) == (
        "d: the folder has no samples [found: 0 files; "
        "expected: .npy files with an input each, or .npz files]"
    )
    for text, expected in (
        (b"a\n", "d/labels.csv: line 1 is wrong"),
        (b"a,\nb,1\n", "d/labels.csv: line 1 is wrong"),
        (b"a,1\n", "labels are missing [found: none for b.npy]"),
        (b"a,1\na,2\n", "d/labels.csv: line 2 is wrong"),
        (b"a,1\nz,2\n", "d/labels.csv: line 2 is wrong"),
        (b"a,1\nb,1,2\n", "the lines have different numbers of columns"),
        (b"a,1,x\nb,1,2\n", "a label with several columns has a text"),
        (b"\xff\xfe", "d/labels.csv: not a CSV file in UTF-8"),
    ):
        made = {"a__npy": image, "b__npy": image, "labels__csv": text}
        assert expected in message(lambda made=made: folder(**made)), text  # type: ignore[misc]
    assert message(lambda: folder(a__npy=image, labels__npy=npy([1, 2]))) == (
        "d/labels.npy: the number of labels is not that of the samples [found: "
        "shape [2]; expected: 1 labels, in the natural order of the names]"
    )
    both = {"labels__npy": npy([1]), "labels__csv": b"a,1"}
    assert "labels.npy and labels.csv" in message(lambda: folder(a__npy=image, **both))


def loaded(items: list[object]) -> list[Any]:
    return list(loader_data("m:f", lambda: items, len(items)).read())


def test_a_function_gives_samples() -> None:
    first, second, third = loaded(
        [(IMAGES[0], 1), [(IMAGES[1], 2.5), None], (IMAGES[2], [1, 2], IMAGES[3])]
    )
    assert (first.name, int(first.label)) == ("0", 1)
    assert [a.shape for a in second.inputs] == [(2, 3), ()]
    assert second.label is None
    assert list(third.label) == [1, 2]
    np.testing.assert_array_equal(third.expected[0], IMAGES[3])


def test_what_a_function_must_not_give() -> None:
    expected = "expected: (inputs, label) or (inputs, label, expected)"
    assert message(lambda: loaded([IMAGES[0]])) == (
        "m:f, sample 0: the function gave something else than a sample "
        f"[found: ndarray; {expected}]"
    )
    assert f"[found: tuple of 4; {expected}]" in message(lambda: loaded([(1, 2, 3, 4)]))
    assert message(lambda: loaded([(IMAGES[0], "cat")])) == (
        "m:f, sample 0: a value is not an array of numbers "
        "[found: str with dtype <U3; expected: numbers or truth values]"
    )
    ragged = (np.zeros(2), [[1, 2], [3]])
    assert "a value is not an array" in message(lambda: loaded([ragged]))
    assert message(lambda: loaded([])) == "m:f: the data have no samples"
