"""Samples of a data set: inputs, a label, and outputs that are expected."""

from __future__ import annotations

import io
import re
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from orchestrator.errors import did_you_mean
from orchestrator.evaluation.bad_data import bad_data, name_list
from orchestrator.evaluation.csv_rows import CSV_TEXT, csv_rows
from orchestrator.running.npy import read_npy, read_texts
from orchestrator.shell.distribution import extra_needed

if TYPE_CHECKING:
    Numbers = npt.NDArray[Any]

# 2 GiB. zipfile would unpack what a small damaged or hostile archive claims.
_MOST_BYTES: Final = 2 << 30
"""Largest array of an archive that is read."""
# What the decoders of the extra `data` read: Pillow images, soundfile recordings.
_IMAGES: Final = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".pgm", ".ppm", ".webp", ".tif", ".tiff")
_SAMPLES: Final = (".npy", ".npz", *_IMAGES, ".wav", ".flac", ".ogg", ".mp3")
NO_LABELS: Final = "none"
"""What `--labels` says of data without labels."""
_ARCHIVE_ERRORS: Final = (
    *(zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError),
    *(OSError, ValueError),
)
"""What zipfile raises for damaged or encrypted archives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sample.

    Args:
        name: Its number in the data, or the name of its file.
        inputs: One per input that the data give, in the order of the method.
        label: What is right; None if there is no label.
        expected: Outputs of the float model; None if the data have none.
        pixels: Where inputs are images, bytes of RGB [H, W, 3]: what 0 and 255 mean.
    """

    name: str
    inputs: tuple[Numbers, ...]
    label: Numbers | None = None
    expected: tuple[Numbers, ...] | None = None
    pixels: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSet:
    """Samples in an order that never changes.

    Args:
        name: As the user named it.
        count: How many samples there are; None if only reading all of them shows.
        read: Begins to read them.
        classes: Names of the classes, if the labels were names; else empty.
        names: Of arrays or columns, from which the user may choose.
    """

    name: str
    count: int | None
    read: Callable[[], Iterator[Sample]]
    classes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def part(self, begin: int, end: int | None) -> DataSet:
        """The samples from number `begin` on, `end` exclusive; None: to the last."""
        count = self.count
        if count is not None:
            count = max(0, min(count, count if end is None else end) - begin)
        return replace(self, count=count, read=lambda: islice(self.read(), begin, end))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the user says about data.

    Args:
        inputs: Names of arrays or columns; empty for the usual ones.
        labels: Likewise; "" for the usual one, or `NO_LABELS`.
        classes: Names by number; empty for the order of the alphabet.
        pixels: What bytes 0 and 255 of images mean.
    """

    inputs: tuple[str, ...] = ()
    labels: str = ""
    classes: tuple[str, ...] = ()
    pixels: tuple[float, float] = (0.0, 1.0)


class Files:
    """Files of a folder or archive by name, read one at a time.

    Args:
        place: What holds them, for messages.
        names: Of all files.
        read: Gives the bytes of one; raises OSError.
    """

    def __init__(self, place: str, names: Iterable[str], read: Callable[[str], bytes]) -> None:
        self.place = place
        self.names = tuple(sorted(names, key=_natural))
        self._read = read

    def bytes_of(self, name: str) -> bytes:
        """The bytes of a file.

        Raises:
            UsageError: It cannot be read (`bad-data`).
        """
        try:
            return self._read(name)
        except _ARCHIVE_ERRORS as error:
            reason = getattr(error, "strerror", None) or str(error) or "damaged"
            raise bad_data(self.place, f"cannot read {name}", found=reason) from None

    def array(self, name: str) -> Numbers:
        """The array in a `.npy` file."""
        return read_npy(self.bytes_of(name), file=f"{self.place}/{name}").numpy

    def items(self, name: str) -> Numbers:
        """The numbers or texts in a `.npy` file."""
        texts = read_texts(self.bytes_of(name), file=f"{self.place}/{name}")
        return self.array(name) if texts is None else texts

    def labels(self, name: str, classes: Sequence[str]) -> tuple[Numbers, tuple[str, ...]]:
        """The labels in a `.npy` file as numbers, and the classes if they are names."""
        found = self.items(name)
        if not _is_text(found) or not found.ndim or not found.size:
            return self.array(name), ()
        rows = found.reshape(len(found), -1).tolist()
        return parsed_labels(rows, f"{self.place}/{name}", classes)


def _is_text(label: Numbers | None) -> bool:
    return label is not None and label.dtype.kind == "U"


def _natural(name: str) -> tuple[tuple[int, str], ...]:
    """Sorts `2.npy` before `10.npy`."""
    # 18 digits fit into 64 bits; longer ones stay text, since `int` takes the square of
    # their time.
    parts = re.findall(r"\d{1,18}|\D+|\d+", name)
    return tuple((int(p), p) if p.isdigit() else (-1, p) for p in parts)


def archive_files(data: bytes, place: str) -> Files:
    """The arrays of an `.npz` file, by name and without `.npy`.

    Raises:
        UsageError: It is none (`bad-data`).
    """
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
        members = {i.filename.removesuffix(".npy"): i for i in archive.infolist()}
    except _ARCHIVE_ERRORS as error:
        raise bad_data(
            place, "not an .npz file", found=str(error), hint="write it with numpy.savez_compressed"
        ) from None

    def read(name: str) -> bytes:
        member = members[name]
        if member.file_size > _MOST_BYTES:
            raise OSError(f"{member.file_size:,} bytes, more than {_MOST_BYTES:,}")
        return archive.read(member)

    return Files(place, members, read)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Keys:
    """Names of the arrays in an archive."""

    inputs: tuple[str, ...]
    labels: str | None
    expected: tuple[str, ...]


def _keys(files: Files, usual: str, choice: Choice) -> _Keys:
    names = files.names
    inputs = choice.inputs or _series(names, "input", "inputs")
    labels = choice.labels or usual
    missing = [name for name in choice.inputs if name not in names]
    if choice.labels not in ("", NO_LABELS, *names):
        missing.append(choice.labels)
    if missing or not inputs:
        usually = f"inputs, or input0, input1, ...; {usual}; expected"
        raise bad_data(
            files.place,
            f"the archive has no {missing[0] if missing else 'inputs'}",
            found=name_list(names) or "an empty archive",
            expected="" if missing else usually,
            hint=did_you_mean(missing[0] if missing else "", names)
            or "name its arrays: --inputs NAME,... --labels NAME",
        )
    return _Keys(
        inputs=inputs,
        labels=labels if labels in names else None,
        expected=_series(names, "expected", "expected"),
    )


def _series(names: Sequence[str], prefix: str, alone: str) -> tuple[str, ...]:
    """`inputs`, `input`, or `input0`, `input1` and so on."""
    for name in (alone, prefix):
        if name in names:
            return (name,)
    numbered = (f"{prefix}{i}" for i in range(len(names)))
    return tuple(name for name in numbered if name in names)


def archive_data(files: Files, choice: Choice) -> DataSet:
    """The data in one `.npz` file: arrays whose first axis counts samples.

    Raises:
        UsageError: Arrays are missing, or of different lengths (`bad-data`).
    """
    keys = _keys(files, "labels", choice)
    # Whole arrays: in an archive they are compressed, and no row can be read by itself.
    arrays = {name: files.array(name) for name in (*keys.inputs, *keys.expected)}
    classes: tuple[str, ...] = ()
    if keys.labels is not None:
        arrays[keys.labels], classes = files.labels(keys.labels, choice.classes)
    lengths = {name: len(a) if a.ndim else -1 for name, a in arrays.items()}
    if len(set(lengths.values())) > 1 or -1 in lengths.values():
        raise bad_data(
            files.place,
            "the arrays have different numbers of samples",
            found=", ".join(f"{n} {list(a.shape)}" for n, a in arrays.items()),
            expected="the same size of the first axis, which counts samples",
        )
    count = lengths[keys.inputs[0]]
    if count == 0:
        raise bad_data(files.place, "the data have no samples")

    def read() -> Iterator[Sample]:
        for number in range(count):
            yield Sample(
                name=str(number),
                inputs=tuple(arrays[name][number] for name in keys.inputs),
                label=None if keys.labels is None else arrays[keys.labels][number],
                expected=tuple(arrays[name][number] for name in keys.expected) or None,
            )

    return DataSet(name=files.place, count=count, read=read, classes=classes, names=files.names)


def folder_data(files: Files, choice: Choice) -> DataSet:
    """The data in a folder: a file per sample, and labels beside them.

    A `.npz` file is a whole sample, any other the one input of a sample. `labels.npy`
    has the labels in the natural order of the names, `labels.csv` has lines of name and
    label. Samples in folders have the names of these as labels.

    Raises:
        UsageError: There are no samples, or labels are missing (`bad-data`).
    """
    every = [name for name in files.names if _suffix(name) in _SAMPLES and name != "labels.npy"]
    names = [name for name in every if "/" not in name] or every
    # Labels beside the samples say which files are meant.
    labels_of = {"labels.npy", "labels.csv"} & {*files.names}
    if len(names) < len(every) and not labels_of:
        raise bad_data(
            files.place,
            "samples lie beside folders of samples",
            found=name_list(names),
            hint="move them into the folders of their classes, or away",
        )
    if not names:
        raise bad_data(
            files.place,
            "the folder has no samples",
            found=f"{len(files.names)} files",
            expected=f"files or folders of files: {', '.join(_SAMPLES)}",
        )
    labels, classes = _labels(files, names, choice.classes)
    is_named = _suffix(names[0]) == ".npz"

    def read() -> Iterator[Sample]:
        for name in names:
            yield _sample_of(files, name, labels.get(name), choice)

    data = DataSet(
        name=files.place,
        count=len(names),
        read=read,
        classes=classes,
        names=_inner(files, names[0]).names if is_named else (),
    )
    return _with_classes(data, next(read()), choice.classes) if is_named else data


def _with_classes(data: DataSet, first: Sample, known: Sequence[str]) -> DataSet:
    """Labels that are texts as numbers; all samples are read once for them."""
    if not _is_text(first.label):
        return data
    labels = [sample.label for sample in data.read()]
    texts = [[*map(str, label.ravel().tolist())] for label in labels if label is not None]
    numbers, classes = parsed_labels(texts, data.name, known)

    def read() -> Iterator[Sample]:
        given = iter(numbers)
        for sample in data.read():
            yield sample if sample.label is None else replace(sample, label=next(given))

    return replace(data, read=read, classes=classes)


def _suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()


def _inner(files: Files, name: str) -> Files:
    return archive_files(files.bytes_of(name), f"{files.place}/{name}")


def media(data: bytes, place: str, *, is_image: bool) -> Numbers:
    """Bytes of RGB of an image, [H, W, 3], or values of a recording, -1 to 1, [N].

    Raises:
        UsageError: It is damaged, or not of this kind (`bad-data`).
        ToolchainError: The extra is not installed (`missing-package`).
    """
    with extra_needed("data", "to read images and recordings"):
        import PIL.Image  # noqa: PLC0415  # an extra
        import soundfile  # noqa: PLC0415  # an extra
    try:
        if is_image:
            with warnings.catch_warnings(), PIL.Image.open(io.BytesIO(data)) as image:
                warnings.simplefilter("ignore")  # alpha is dropped
                if image.mode[0] not in "IF":
                    return np.asarray(image.convert("RGB"))
                found = f"mode {image.mode}"
        else:
            values, _ = soundfile.read(io.BytesIO(data), dtype="f4", always_2d=True)
            if values.shape[1] == 1:
                return np.asarray(values[:, 0])
            found = f"{values.shape[1]} channels"
    except Exception as error:  # noqa: BLE001  # decoders raise anything
        found = re.sub(r" <_io\..*?>", "", str(error))  # not the object in memory
    expected = "an image of 8 bits" if is_image else "a recording of one channel"
    raise bad_data(place, "cannot decode the file", found=found, expected=expected)


def _sample_of(files: Files, name: str, label: Numbers | None, choice: Choice) -> Sample:
    if _suffix(name) == ".npy":
        return Sample(name=name, inputs=(files.array(name),), label=label)
    if _suffix(name) != ".npz":
        is_image = _suffix(name) in _IMAGES
        place = f"{files.place}/{name}"
        found = media(files.bytes_of(name), place, is_image=is_image)
        pixels = choice.pixels if is_image else None
        return Sample(name=name, inputs=(found,), label=label, pixels=pixels)
    inner = _inner(files, name)
    keys = _keys(inner, "label", choice)
    if label is None and keys.labels is not None:
        label = inner.items(keys.labels)
    return Sample(
        name=name,
        inputs=tuple(inner.array(key) for key in keys.inputs),
        label=label,
        expected=tuple(inner.array(key) for key in keys.expected) or None,
    )


def _labels(
    files: Files, names: Sequence[str], classes: Sequence[str]
) -> tuple[dict[str, Numbers], tuple[str, ...]]:
    """Labels by file, and names of the classes."""
    if "labels.npy" in files.names and "labels.csv" in files.names:
        raise bad_data(files.place, "there are labels.npy and labels.csv; remove one")
    if "labels.csv" in files.names:
        return _csv_labels(files, names, classes)
    if "labels.npy" not in files.names and "/" in names[0]:
        every = {name.partition("/")[0] for name in files.names if "/" in name}
        folders = [[name.partition("/")[0]] for name in names]
        if empty := every - {folder for (folder,) in folders}:
            place = f"{files.place}/{min(empty)}"
            raise bad_data(place, "no samples", hint="add some, or remove the folder")
        inner = {(*name.split("/")[:2],) for name in names if name.count("/") > 1}
        below = {folder for _, folder in inner}
        if 1 < len(below) < len(inner):  # the same classes in several folders
            raise bad_data(
                files.place,
                "the folder has several data sets",
                found=name_list(sorted(every)),
                hint=f"name one: {files.place}/{min(every)}",
            )
        # Names of folders are names even if they are numbers, as in torchvision.
        return _by_name(names, folders, files.place, classes or sorted(every))
    if "labels.npy" not in files.names:
        return {}, ()
    found, known = files.labels("labels.npy", classes)
    if not found.ndim or len(found) != len(names):
        raise bad_data(
            f"{files.place}/labels.npy",
            "the number of labels is not that of the samples",
            found=f"shape {list(found.shape)}",
            expected=f"{len(names)} labels, in the natural order of the names",
        )
    return dict(zip(names, found, strict=True)), known


def _csv_labels(
    files: Files, names: Sequence[str], classes: Sequence[str]
) -> tuple[dict[str, Numbers], tuple[str, ...]]:
    place = f"{files.place}/labels.csv"
    data = files.bytes_of("labels.csv")
    rows = csv_rows(place, lambda: io.TextIOWrapper(io.BytesIO(data), **CSV_TEXT))
    stems = {PurePosixPath(name).stem: name for name in names}
    texts: dict[str, list[str]] = {}
    for number, (line, row) in enumerate(rows):
        name, *cells = row
        name = name if name in names else stems.get(name, name)
        if name not in names and number == 0:
            continue  # the header
        if name not in names or name in texts or not all(cells) or not cells:
            problem = "two lines for it" if name in texts else "no such sample"
            raise bad_data(
                place,
                "the line is wrong",
                line=line,
                found=",".join(row),
                expected="the name of a sample and its label, separated by a comma",
                hint=problem if cells and all(cells) else "write the label after it",
            )
        texts[name] = cells
    missing = [name for name in names if name not in texts]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise bad_data(place, "labels are missing", found=f"none for {missing[0]}{more}")
    return _by_name(texts, [*texts.values()], place, classes)


def _by_name(
    names: Iterable[str], rows: Sequence[Sequence[str]], place: str, known: Sequence[str]
) -> tuple[dict[str, Numbers], tuple[str, ...]]:
    numbers, classes = parsed_labels(rows, place, known)
    return dict(zip(names, numbers, strict=True)), classes


def parsed_labels(
    rows: Sequence[Sequence[str]], place: str, classes: Sequence[str], lines: Sequence[int] = ()
) -> tuple[Numbers, tuple[str, ...]]:
    """Labels as numbers, and the classes if they are names.

    Args:
        rows: Texts of the label of each sample.
        place: The file, for messages.
        classes: Names by number; empty for the order of the alphabet.
        lines: Of the rows, for messages.

    Raises:
        UsageError: A label is no number and no class (`bad-data`).
    """
    if len({len(row) for row in rows}) > 1:
        raise bad_data(place, "the labels have different numbers of columns")
    texts = np.array(rows, dtype="U")
    texts = texts[:, 0] if texts.shape[1] == 1 else texts
    unknown = next((text for text in texts.flat if text not in classes), None)
    # One number may be a name, too: of classes from 1 to 6, say.
    if (unknown is not None and not {*texts.flat} & {*classes}) or texts.ndim > 1:
        # Python reads 1_0 as 10.
        kinds = () if any("_" in text for text in texts.flat) else (np.int64, np.float64)
        for kind in kinds:
            with suppress(ValueError, OverflowError):
                numbers = texts.astype(kind)
                if np.isfinite(numbers).all():
                    return numbers, ()
                finite = np.isfinite(numbers).reshape(len(rows), -1).all(1)
                row = int(np.argmin(finite))
                raise bad_data(
                    place,
                    "the label is no number",
                    line=lines[row] if lines else 0,
                    found=", ".join(rows[row]),
                    hint="correct it, or leave the sample out",
                )
    if texts.ndim > 1:
        raise bad_data(place, "a label with several columns has a text", expected="numbers")
    if classes and unknown:
        raise bad_data(
            place,
            f"no such class: {unknown}",
            line=lines[texts.tolist().index(unknown)] if lines else 0,
            expected=", ".join(classes),
            hint="name all classes with --classes, in the order of the outputs",
        )
    known = tuple(classes) or tuple(sorted({*texts.tolist()}))
    at = {name: number for number, name in enumerate(known)}
    return np.array([at[text] for text in texts.tolist()]), known


def loader_data(
    name: str,
    load: Callable[[], Iterable[object]],
    count: int | None,
    *,
    first: Sequence[object] = (),
    classes: Sequence[str] = (),
) -> DataSet:
    """The data that a function of the user's gives.

    Args:
        name: As the user named the function.
        load: Begins to read: gives (inputs, label), or (inputs, label, expected).
        count: If it is known.
        first: The first item, if there is one.
        classes: Names by number; empty for the order of the alphabet.
    """

    def read() -> Iterator[Sample]:
        number = -1
        for number, item in enumerate(load()):
            yield _loaded(name, number, item)
        if number < 0:
            raise bad_data(name, "the data have no samples")

    data = DataSet(name=name, count=count, read=read)
    return _with_classes(data, _loaded(name, 0, first[0]), classes) if first else data


def _loaded(name: str, number: int, item: object) -> Sample:
    place = f"{name}, sample {number}"
    if not isinstance(item, tuple | list) or len(item) not in (2, 3):
        size = f" of {len(item)}" if isinstance(item, tuple | list) else ""
        raise bad_data(
            place,
            "the function gave something else than a sample",
            found=type(item).__name__ + size,
            expected="(inputs, label) or (inputs, label, expected)",
        )
    inputs, label, expected = (*item, None)[:3]
    return Sample(
        name=str(number),
        inputs=_several(inputs, place),
        label=None if label is None else number_array(label, place, may_be_text=True),
        expected=None if expected is None else _several(expected, place),
    )


def _several(value: object, place: str) -> tuple[Numbers, ...]:
    """A tuple or list is one array per input, anything else is one array."""
    items = value if isinstance(value, tuple | list) else (value,)
    return tuple(number_array(item, place) for item in items)


def number_array(value: object, place: str, *, may_be_text: bool = False) -> Numbers:
    """The array of a value.

    Raises:
        UsageError: It is none of numbers (`bad-data`).
    """
    try:
        found = np.asarray(value)
    except (ValueError, TypeError, RuntimeError) as error:
        raise bad_data(place, "a value is not an array", found=str(error)) from None
    if found.dtype.kind not in "biufc" and not (may_be_text and _is_text(found)):
        raise bad_data(
            place,
            "a value is not an array of numbers",
            found=f"{type(value).__name__} with dtype {found.dtype}",
            expected="numbers or truth values",
        )
    return found
