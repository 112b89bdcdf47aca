"""Forms of data: archives, folders and functions, whole and damaged."""

from __future__ import annotations

import io
import sys
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from orchestrator.errors import ToolchainError, UsageError
from orchestrator.evaluation.samples import (
    Choice,
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


def archive(choice: Choice = Choice(), /, **arrays: Any) -> DataSet:  # noqa: B008
    return archive_data(archive_files(npz(**arrays), "d.npz"), choice)


def folder(choice: Choice = Choice(), /, **files: bytes) -> DataSet:  # noqa: B008
    named = {name.replace("__", "."): data for name, data in files.items()}
    return folder_data(Files("d", named, named.__getitem__), choice)


def in_folders(files: dict[str, bytes], **choice: Any) -> DataSet:
    return folder_data(Files("d", files, files.__getitem__), Choice(**choice))


def picture(pixels: Any, form: str = "png", mode: str | None = None) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.asarray(pixels), mode).save(file, form)
    return file.getvalue()


def recording(values: Any, subtype: str = "PCM_16") -> bytes:
    file = io.BytesIO()
    soundfile.write(file, np.asarray(values), 8000, format="WAV", subtype=subtype)
    return file.getvalue()


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


def test_a_misspelt_array_has_a_neighbour() -> None:
    with pytest.raises(UsageError) as error:
        archive(Choice(labels="lables"), inputs=IMAGES, labels=np.zeros(4))
    assert error.value.diagnostics[0].hint == 'did you mean "labels"?'


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
    assert message(lambda: archive(inputs=IMAGES[:0])) == ("d.npz: the data have no samples")
    assert "not an .npz file" in message(lambda: archive_files(b"PK junk", "d.npz"))
    text = message(lambda: archive(inputs=np.array(["a"])))
    assert text.startswith("d.npz/inputs: unsupported dtype")


@given(st.data())
def test_a_damaged_archive_is_a_diagnostic(draw: st.DataObject) -> None:
    whole = bytearray(npz(inputs=IMAGES, labels=np.arange(4)))
    for _ in range(draw.draw(st.integers(1, 4))):
        whole[draw.draw(st.integers(0, len(whole) - 1))] = draw.draw(st.integers(0, 255))
    end = draw.draw(st.integers(0, len(whole)))
    with suppress(UsageError):
        list(archive_data(archive_files(bytes(whole[:end]), "d.npz"), Choice()).read())


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
        (b"sep=;\r\nfile;label\r\na;1,5\r\nb;2\r\n", [1.5, 2.0]),
    ):
        found = [s.label for s in folder(**images, labels__csv=text).read()]
        assert [x.item() for x in found if x is not None] == labels
    several = folder(**images, labels__csv=b"a,1,2\nb,3,4\n")
    assert [list(s.label) for s in several.read() if s.label is not None] == [[1, 2], [3, 4]]


def test_labels_may_be_names_of_classes() -> None:
    data = folder(a__npy=npy(IMAGES[0]), b__npy=npy(IMAGES[1]), labels__csv=b"a,dog\nb,cat\n")
    assert data.classes == ("cat", "dog")
    assert [int(s.label) for s in data.read() if s.label is not None] == [1, 0]


def test_labels_of_arrays_may_be_texts() -> None:
    for texts in (
        np.array(["dog", "cat", "dog", "cat"]),
        np.array([b"dog", b"cat", b"dog", b"cat"]),
    ):
        data = archive(inputs=IMAGES, labels=texts)
        assert data.classes == ("cat", "dog")
        assert [int(s.label) for s in data.read() if s.label is not None] == [1, 0, 1, 0]
    data = archive(Choice(classes=("dog", "cat")), inputs=IMAGES, labels=texts)
    assert [int(s.label) for s in data.read() if s.label is not None] == [0, 1, 0, 1]
    data = folder(a__npy=npy(IMAGES[0]), b__npy=npy(IMAGES[1]), labels__npy=npy(["up", "down"]))
    assert data.classes == ("down", "up")
    assert [int(s.label) for s in data.read() if s.label is not None] == [1, 0]


def test_labels_that_are_python_objects_are_refused() -> None:
    """That is what pandas gives for texts: to read them would run code of the file."""
    with pytest.raises(UsageError) as error:
        archive(inputs=IMAGES, labels=np.array(["a", "b", "c", "d"], dtype=object))
    (found,) = error.value.diagnostics
    assert str(found.where) == "d.npz/labels"
    assert dict(found.notes)["found"] == "Python objects"
    assert found.hint == (
        "convert the array with astype before it is saved: texts with astype(str)"
    )
    not_utf8 = np.array([b"\xff", b"a", b"b", b"c"])
    assert "a text in the .npy file is damaged" in message(
        lambda: archive(inputs=IMAGES, labels=not_utf8)
    )


def test_folders_that_are_refused() -> None:
    image = npy(IMAGES[0])
    assert message(folder) == (
        "d: the folder has no samples [found: 0 files; expected: files or folders of "
        "files: .npy, .npz, .png, .jpg, .jpeg, .bmp, .gif, .pgm, .ppm, .webp, .tif, .tiff, "
        ".wav, .flac, .ogg, .mp3]"
    )
    for text, expected in (
        (b"a\n", "d/labels.csv:1: the line is wrong"),
        (b"a,\nb,1\n", "d/labels.csv:1: the line is wrong"),
        (b"a,1\n", "labels are missing [found: none for b.npy]"),
        (b"a,1\na,2\n", "d/labels.csv:2: the line is wrong"),
        (b"a,1\nz,2\n", "d/labels.csv:2: the line is wrong"),
        (b"a,1\nb,1,2\n", "the labels have different numbers of columns"),
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


def test_arrays_of_other_names() -> None:
    def named(inputs: str, labels: str = "") -> DataSet:
        choice = Choice(inputs=tuple(inputs.split(",")), labels=labels)
        return archive(choice, x=IMAGES, x2=np.arange(4.0), y=np.arange(4))

    data = named("x", "y")
    assert data.names == ("x", "x2", "y")
    assert [int(s.label) for s in data.read() if s.label is not None] == [0, 1, 2, 3]
    shapes = [[a.shape for a in s.inputs] for s in named("x2,x").read()]
    assert shapes == [[(), (2, 3)]] * 4
    assert [s.label for s in named("x2,x").read()] == [None] * 4
    assert message(lambda: named("x", "why")) == ("d.npz: the archive has no why [found: x, x2, y]")
    assert message(lambda: named("x,z", "y")) == ("d.npz: the archive has no z [found: x, x2, y]")
    assert "has no none [" in message(lambda: named("none"))
    without = archive(Choice(labels="none"), inputs=IMAGES, labels=np.arange(4))
    assert [s.label for s in without.read()] == [None] * 4


def test_a_folder_of_archives_with_other_names() -> None:
    choice = Choice(inputs=("x",), labels="y")
    data = folder(choice, a__npz=npz(x=IMAGES[0], y=4), b__npz=npz(x=IMAGES[1], y=5))
    assert data.names == ("x", "y")
    assert [int(s.label) for s in data.read() if s.label is not None] == [4, 5]


def test_a_folder_of_archives_may_have_texts_as_labels() -> None:
    files = {
        f"{n}__npz": npz(inputs=IMAGES[0], label=text) for n, text in zip("abc", "yxy", strict=True)
    }
    for choice, classes in ((Choice(), ("x", "y")), (Choice(classes=("y", "x")), ("y", "x"))):
        data = folder(choice, **files)
        assert data.classes == classes
        assert [classes[int(s.label or 0)] for s in data.read()] == ["y", "x", "y"]
    del files["a__npz"]
    files["d__npz"] = npz(inputs=IMAGES[0])
    assert [s.label for s in folder(**files).read()] == [0, 1, None]


def test_folders_are_the_classes_of_what_is_in_them() -> None:
    colours = np.arange(18, dtype=np.uint8).reshape(2, 3, 3)
    files = {
        "dog/2.png": picture(colours),
        "dog/10.npy": npy(IMAGES[0]),
        "cat/deep/a.PNG": picture(colours[..., 0]),
        "cat/readme.txt": b"",
        "cat/": b"",
    }
    data = in_folders(files, pixels=(0.0, 255.0))
    deep, second, tenth = data.read()
    assert (deep.name, data.count) == ("cat/deep/a.PNG", 3)
    assert data.classes == ("cat", "dog")
    assert [int(s.label) for s in (deep, second, tenth) if s.label is not None] == [*(0, 1, 1)]
    np.testing.assert_array_equal(second.inputs[0], colours)
    grey = np.repeat(colours[..., :1], 3, axis=2)
    np.testing.assert_array_equal(deep.inputs[0], grey)
    assert (deep.pixels, tenth.pixels) == ((0.0, 255.0), None)
    data = in_folders(files, classes=("dog", "cow", "cat"))
    assert data.classes == ("dog", "cow", "cat")
    assert [int(s.label) for s in data.read() if s.label is not None] == [2, 0, 0]
    assert message(lambda: in_folders(files, classes=("dog", "cow"))) == (
        "d: no such class: cat [expected: dog, cow]"
    )
    assert message(lambda: in_folders({**files, "ant/": b""})) == "d/ant: no samples"


def test_folders_with_numbers_are_names_in_the_order_of_the_alphabet() -> None:
    files = {f"{name}/0.npy": npy(IMAGES[0]) for name in (1, 2, 10)}
    data = in_folders(files)
    assert data.classes == ("1", "10", "2")
    assert {s.name[:-6]: int(s.label) for s in data.read() if s.label is not None} == {
        "1": 0,
        "10": 1,
        "2": 2,
    }


def test_images_beside_their_labels() -> None:
    grey = np.arange(6, dtype=np.uint8).reshape(2, 3)
    data = folder(a__pgm=picture(grey, "ppm"), labels__csv=b"a,7\n")
    (sample,) = data.read()
    assert sample.label is not None
    assert int(sample.label) == 7
    np.testing.assert_array_equal(sample.inputs[0][..., 1], grey)


def test_images_of_other_forms_become_rgb() -> None:
    image = np.zeros((2, 2, 4), np.uint8)
    image[..., 1] = 9
    (sample,) = folder(a__png=picture(image)).read()
    np.testing.assert_array_equal(sample.inputs[0], image[..., :3])
    (sample,) = folder(a__png=picture(np.array([[True, False]]))).read()
    assert sample.inputs[0].tolist() == [[[255] * 3, [0] * 3]]


@pytest.mark.parametrize("subtype", ["PCM_16", "FLOAT"])
def test_recordings_are_floats_from_minus_1_to_1(subtype: str) -> None:
    values = np.array([0.0, 0.5, -1.0, 0.25], np.float32)
    (sample,) = folder(a__wav=recording(values, subtype)).read()
    assert sample.inputs[0].dtype == np.float32
    np.testing.assert_array_equal(sample.inputs[0], values)
    assert sample.pixels is None


def test_files_that_cannot_be_decoded() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (99, 99), dtype=np.uint8)
    for name, data, expected in (
        ("a.png", b"no image", "[found: cannot identify image file; "),
        ("a.png", picture(noise)[:2000], "[found: image file is truncated"),
        (
            *("a.png", picture(np.zeros((9, 9), np.uint16))),
            "[found: mode I;16; expected: an image of 8 bits]",
        ),
        ("a.wav", b"RIFF", "[found: Error opening: Format not recognised."),
        (
            *("a.wav", recording(np.zeros((9, 2)))),
            "[found: 2 channels; expected: a recording of one channel]",
        ),
    ):
        files = {f"up/{name}": data}
        found = message(lambda files=files: list(in_folders(files).read()))  # type: ignore[misc]
        assert found.startswith(f"d/up/{name}: cannot decode the file [")
        assert expected in found


@pytest.mark.parametrize(("package", "name"), [("soundfile", "a.wav"), ("PIL.Image", "a.png")])
def test_a_missing_decoder_is_named_with_its_extra(
    package: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ToolchainError) as error:
        list(in_folders({f"up/{name}": b""}).read())
    (found,) = error.value.diagnostics
    assert found.code == "missing-package"
    assert found.message == f"the package {package} is not installed"
    assert dict(found.notes) == {"needed": "to read images and recordings"}
    assert "[data]" in found.hint


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


def test_a_function_may_give_texts_as_labels() -> None:
    for labels in (["dog", "cat", "dog"], [np.str_("dog"), ["cat"], np.array("dog")]):
        items: list[object] = [(IMAGES[0], label) for label in labels]
        data = loader_data("m:f", partial(iter, items), 3, first=items[0:1])
        assert data.classes == ("cat", "dog")
        assert [s.label for s in data.read()] == [1, 0, 1]
    classes = ("dog", "hen", "cat")
    data = loader_data("m:f", lambda: items, 3, first=items[0:1], classes=classes)
    assert [s.label for s in data.read()] == [0, 2, 0]


def test_what_a_function_must_not_give() -> None:
    expected = "expected: (inputs, label) or (inputs, label, expected)"
    assert message(lambda: loaded([IMAGES[0]])) == (
        "m:f, sample 0: the function gave something else than a sample "
        f"[found: ndarray; {expected}]"
    )
    assert f"[found: tuple of 4; {expected}]" in message(lambda: loaded([(1, 2, 3, 4)]))
    assert message(lambda: loaded([("cat", 1)])) == (
        "m:f, sample 0: a value is not an array of numbers "
        "[found: str with dtype <U3; expected: numbers or truth values]"
    )
    ragged = (np.zeros(2), [[1, 2], [3]])
    assert "a value is not an array" in message(lambda: loaded([ragged]))
    assert message(lambda: loaded([])) == "m:f: the data have no samples"
