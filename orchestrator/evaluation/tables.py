"""Samples that are rows of a table: CSV files, and folders that `datasets` saved."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from math import isfinite, isnan, nan
from sys import intern
from typing import Any, BinaryIO, Final, TextIO, TypeAlias

import numpy as np
import numpy.typing as npt

from orchestrator.errors import did_you_mean
from orchestrator.evaluation.bad_data import bad_data, name_list
from orchestrator.evaluation.csv_rows import csv_rows, number_of
from orchestrator.evaluation.samples import (
    NO_LABELS,
    Choice,
    DataSet,
    Sample,
    media,
    number_array,
    parsed_labels,
)
from orchestrator.shell.distribution import extra_needed

_LABELS: Final = {"label", "labels", "class", "target", "y"}
"""Usual names of the column of labels, in lower case."""
_ANSWERS: Final = {"target", "y", ""}
"""What may stand in a row without being a name, too."""
_SINGLE: Final = ("Value", "ClassLabel")
"""Features that are one number or text."""
_DAMAGED: Final = (OSError, ValueError, LookupError, TypeError, AttributeError)
_CHOOSE: Final = "choose columns: --inputs NAME,... --labels NAME"
_MISSING: Final = {"", "nan", "na", "n/a", "<na>", "null", "none", "?", "-"}
"""What people write where a value is missing, in lower case."""
_FILL: Final = "a value is missing: fill it in, or leave the row out"
# Characters of a wrong cell that are shown. Chosen by hand.
_MOST_TEXT: Final = 60

_Row: TypeAlias = tuple[str, int, Callable[[int], Any]]
"""Its place, its line or 0, and the value of each column."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """Columns, and how to read the rows.

    Args:
        place: As the user named it.
        names: Of the columns; "" for one that is no input.
        rows: Begins to read.
        kinds: Of the values, as `datasets` calls them.
        classes: Names by number, of columns of classes.
    """

    place: str
    names: tuple[str, ...]
    rows: Callable[[], Iterator[_Row]]
    kinds: Sequence[str]
    classes: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    def find(self, wanted: str) -> list[int]:
        """The column of this name, or those whose names begin with it."""
        columns = [*enumerate(self.names)]
        found = [at for at, name in columns if name == wanted]
        found = found or [at for at, name in columns if name.startswith(wanted)]
        if not found:
            raise bad_data(
                self.place,
                f"there is no column {wanted}",
                found=name_list(self.names),
                hint=did_you_mean(wanted, self.names) or _CHOOSE,
            )
        return found

    def labels(self, choice: Choice, inputs: set[int]) -> list[int]:
        """The columns of the label: named so, or the last if it is no input."""
        if choice.labels == NO_LABELS not in self.names:
            return []
        if choice.labels:
            return self.find(choice.labels)
        usual = [at for at, name in enumerate(self.names) if name.lower() in _LABELS]
        # Between others, y is a coordinate.
        inner = range(1, len(self.names) - 1)
        usual = [at for at in usual if self.names[at].lower() != "y" or at not in inner]
        found = [*self.classes] or usual
        if len(found) > 1:
            raise bad_data(
                self.place,
                "several columns may be the label",
                found=", ".join(self.names[at] for at in found),
                hint="name it: --labels NAME",
            )
        last = max((at for at, name in enumerate(self.names) if name), default=-1)
        return found or [*({last} - inputs)]

    def data(self, choice: Choice) -> DataSet:
        """The samples; all rows are read once for their labels."""
        inputs = [self.find(name) for name in choice.inputs]
        labels = self.labels(choice, {at for group in inputs for at in group})
        if not inputs:
            rest = [at for at, name in enumerate(self.names) if name]
            rest = [at for at in rest if at not in labels]
            is_line = all(self.kinds[at] in _SINGLE for at in rest)
            inputs = [rest] if is_line else [[at] for at in rest]
        inputs = [[at for at in group if at not in labels] for group in inputs]
        if not all(inputs):
            message, found = "no column is left for an input", name_list(self.names)
            raise bad_data(self.place, message, found=found, hint=_CHOOSE)
        texts: list[list[str]] = []
        lines: list[int] = []
        for place, line, cell in self.rows():
            values = [*map(cell, labels)]
            if values and isinstance(values[0], np.ndarray):
                values = np.concatenate([*map(np.ravel, values)]).tolist()
            if None in values or "" in values:
                raise bad_data(place, "the label is missing", line=line, hint=_CHOOSE)
            # Labels of all rows stay in memory, and few of them differ.
            texts.append([intern(str(value)) for value in values])
            lines.append(line)
        if not texts:
            raise bad_data(self.place, "the data have no samples")
        numbers: Sequence[Any] | npt.NDArray[Any] = [None] * len(texts)
        classes: tuple[str, ...] = ()
        if labels:
            own = self.classes.get(labels[0], ())
            # Other names than the file's are for the report alone.
            is_own = bool(own) and {*own}.isdisjoint(choice.classes)
            known = own if is_own else choice.classes
            numbers, classes = parsed_labels(texts, self.place, known, lines)

        def read() -> Iterator[Sample]:
            # The second reading, row by row: only the labels were kept of the first.
            rows = zip(self.rows(), numbers, strict=False)
            for number, ((place, line, cell), label) in enumerate(rows):
                yield Sample(
                    name=str(number),
                    inputs=tuple(self._input(g, cell, place, line) for g in inputs),
                    label=label,
                    pixels=choice.pixels if "Image" in self.kinds else None,
                )

        count = len(texts)
        return DataSet(name=self.place, count=count, read=read, classes=classes, names=self.names)

    def _input(
        self, columns: list[int], cell: Callable[[int], Any], place: str, line: int
    ) -> npt.NDArray[Any]:
        values = [*map(cell, columns)]
        if any(value is None or isinstance(value, str) for value in values):
            numbers = np.array([nan])
            with suppress(ValueError, TypeError):
                numbers = np.array(values, np.float64)
            is_number = np.isfinite(numbers).all()
            if is_number and not any("_" in str(value) for value in values):
                return numbers
            wrong = zip(columns, values, strict=True)
            at, text = next((a, v) for a, v in wrong if not isfinite(number_of(v)))
            raise bad_data(
                place,
                f"column {self.names[at]} has no number",
                line=line,
                found=str(text)[:_MOST_TEXT] if text else "nothing",
                hint=_FILL if str(text or "").lower() in _MISSING else _CHOOSE,
            )
        return number_array(values if len(values) > 1 else values[0], place)


def csv_data(place: str, opened: Callable[[], TextIO], choice: Choice) -> DataSet:
    """The data in a CSV file: a row per sample.

    Rows are read each time they are needed, so that large files need no memory.

    Raises:
        UsageError: It is damaged, or has no such columns (`bad-data`).
    """
    _, first = next(csv_rows(place, opened), (0, []))
    if not first:
        raise bad_data(place, "the file is empty")
    numbers = [cell for cell in first if not isnan(number_of(cell))]
    # pandas numbers columns without names from 0, and gives the index the name "".
    is_counted = numbers == [str(number) for number in range(len(numbers))]
    texts = {cell.lower() for cell in first if cell not in numbers}
    named = {*_LABELS, choice.labels.lower()} & texts
    has_header = not numbers or bool(named if is_counted else named - _ANSWERS)
    names = first if has_header else map(str, range(1, len(first) + 1))

    def rows() -> Iterator[_Row]:
        for line, row in islice(csv_rows(place, opened), int(has_header), None):
            if len(row) != len(first):
                message = f"the row has {len(row)} cells, the first row {len(first)}"
                raise bad_data(place, message, line=line)
            yield place, line, row.__getitem__

    kinds = ("Value",) * len(first)
    table = _Table(place=place, names=tuple(names), rows=rows, kinds=kinds)
    return table.data(choice)


def arrow_data(place: str, opened: Callable[[str], BinaryIO], choice: Choice) -> DataSet:
    """The data in a folder that `save_to_disk` of `datasets` wrote.

    Raises:
        UsageError: It is damaged, or has no such columns (`bad-data`).
        ToolchainError: The extra `data` is not installed (`missing-package`).
    """
    with extra_needed("data", "to read what `datasets` saved"):
        import pyarrow as pa  # noqa: PLC0415  # an extra

    @contextmanager
    def reading(name: str) -> Iterator[BinaryIO]:
        try:
            with opened(name) as file:
                yield file
        except (*_DAMAGED, pa.ArrowException) as error:
            found = f"{type(error).__name__}: {error}"
            raise bad_data(f"{place}/{name}", "not what `datasets` saved", found=found) from None

    with reading("state.json") as file:
        parts = [one["filename"] for one in json.load(file)["_data_files"]]
    with reading("dataset_info.json") as file:
        features = dict[str, Any](json.load(file)["features"])
        # Lists may be lists, and what has several values has no type.
        types = [f if isinstance(f, dict) else {} for f in features.values()]
        kinds = [str(one.get("_type")) for one in types]
        classes = {
            at: tuple(one["names"]) for at, one in enumerate(types) if kinds[at] == "ClassLabel"
        }

    def rows() -> Iterator[_Row]:
        number = 0
        for part in parts:
            with reading(part) as file, pa.ipc.open_stream(file) as batches:
                for batch in batches:
                    # Offsets in a damaged file may point outside of its memory; Arrow
                    # follows them.
                    batch.validate(full=True)
                    columns = [batch.column(name) for name in features]
                    for row in range(batch.num_rows):
                        sample = f"{place}, sample {number}"
                        yield sample, 0, partial(cell, columns, row, sample)
                        number += 1

    def cell(columns: Sequence[Any], row: int, sample: str, at: int) -> Any:  # noqa: ANN401
        item, kind = columns[at][row].as_py(), kinds[at]
        if kind == "ClassLabel":  # -1 is unknown
            return classes[at][item] if item in range(len(classes[at])) else None
        return _value(item, kind, columns[at].type, sample)

    return _Table(place=place, names=tuple(features), rows=rows, kinds=kinds, classes=classes).data(
        choice
    )


def _value(item: Any, kind: str, dtype: Any, sample: str) -> Any:  # noqa: ANN401
    """A number, text or array, decoded from an Arrow value."""
    if kind in ("Image", "Audio") and isinstance(item, dict):
        return media(item.get("bytes") or b"", sample, is_image=kind == "Image")
    if kind == "Value" or item is None:
        return item
    # `as_py` gives lists of Python's numbers, of which the dtype is in the type of the
    # innermost list.
    while hasattr(dtype, "value_type"):
        dtype = dtype.value_type
    return number_array(item, sample).astype(dtype.to_pandas_dtype())
