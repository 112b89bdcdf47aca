"""Run the samples of a data set on a firmware, and keep what comes out."""

from __future__ import annotations

import hashlib
import importlib
import re
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy.typing as npt

from orchestrator.build import Project
from orchestrator.build.device_status import explain_failure
from orchestrator.build.firmware import results_as_they_come
from orchestrator.cli.console import Console
from orchestrator.errors import MismatchError, SourceSpan, UsageError
from orchestrator.evaluation.bad_data import bad_data, unknown_form
from orchestrator.evaluation.csv_rows import CSV_TEXT
from orchestrator.evaluation.fit import Quantization, inputs_of
from orchestrator.evaluation.records import (
    Record,
    Run,
    read_records,
    record_line,
    sample_digest,
    usable,
)
from orchestrator.evaluation.samples import (
    Choice,
    DataSet,
    Files,
    Sample,
    archive_data,
    archive_files,
    folder_data,
    loader_data,
)
from orchestrator.evaluation.tables import arrow_data, csv_data
from orchestrator.running.device import Device
from orchestrator.running.product import Product, ProductMethod
from orchestrator.running.protocol import DeviceError
from orchestrator.running.report import Ran
from orchestrator.running.values import Call, RunValue
from orchestrator.shell.files import read_file, reason_of
from orchestrator.shell.reporter import Reporter

# 64 MiB, chosen by hand; docs/evaluate.md says it. The firmware reads the request as a
# file, call by call.
_MOST_REQUEST_BYTES = 64 << 20
"""Size of the inputs that one process gets; larger data sets take several."""
_STEPS = 10
"""Lines of progress where there is no terminal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Firmware:
    """A method of a firmware that runs samples.

    Args:
        product: Its description.
        firmware: The program.
        method: What is called.
        scales: Of inputs that are quantized, by number.
        text: What is done, for the progress.
    """

    product: Product
    firmware: bytes
    method: ProductMethod
    scales: Mapping[int, Quantization]
    text: str

    @property
    def run(self) -> Run:
        """What records are of."""
        digest = hashlib.sha256(self.firmware)
        # Other scales make other inputs of the same samples.
        digest.update(repr(sorted(self.scales.items())).encode())
        return Run(firmware=digest.hexdigest(), model=self.method.model, method=self.method.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """Samples that were run, and what came out.

    Args:
        names: Of the samples.
        digests: Of the inputs of each.
        labels: Of each.
        expected: Outputs in the data; None unless all samples have them.
        outputs: Of each.
        place: The data, for messages.
    """

    names: tuple[str, ...]
    digests: tuple[str, ...]
    labels: tuple[npt.NDArray[Any] | None, ...]
    expected: tuple[tuple[npt.NDArray[Any], ...], ...] | None
    outputs: tuple[tuple[RunValue, ...], ...]
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Runs the samples of one data set.

    Args:
        project: Explains errors of the device.
        reporter: Gets the progress.
        console: Gets notes.
        timeout_s: How long one sample may take.
        data: The samples.
        on: The device that runs them; None: this machine or an emulator.
    """

    project: Project
    reporter: Reporter
    console: Console
    timeout_s: float
    data: DataSet
    on: Device | None = None

    def run(self, firmware: Firmware, file: Path, *, resume: bool) -> Done:
        """Run all samples; outputs are kept in a file as they come.

        Args:
            firmware: What runs them.
            file: Of the outputs.
            resume: Use the outputs that the file has, if they are of this firmware.

        Raises:
            OrchestratorError: A sample does not fit, or fails on the device.
        """
        records = self._known(firmware, file) if resume else []
        known = len(records)
        if known:
            self.console.status(f"{firmware.text}: {known:,} samples are known")
        names, labels, expected = [], [], []

        def calls() -> Iterator[tuple[str, str, Call]]:
            for number, sample in enumerate(self.data.read()):
                names.append(sample.name)
                labels.append(sample.label)
                expected.append(sample.expected)
                if number >= known:
                    values = self._inputs(sample, firmware)
                    # Each sample begins with initial state: results depend neither on
                    # the order nor on where an evaluation went on.
                    call = Call(method=firmware.method, inputs=values, fresh=True)
                    yield sample.name, sample_digest(sample.inputs), call

        with _kept(file, firmware.run, records) as keep:
            try:
                for record in self._results(firmware, calls(), known):
                    records.append(record)
                    keep(record)
            # Also Ctrl-C, which is the usual end of a long evaluation.
            except BaseException:
                if len(records) > known:
                    self.console.status(
                        f"{len(records):,} samples are kept: continue with --resume"
                    )
                raise
        if not names:
            raise no_samples(self.data)
        given = [one for one in expected if one is not None]
        return Done(
            names=tuple(names),
            digests=tuple(record.digest for record in records),
            labels=tuple(labels),
            expected=tuple(given) if len(given) == len(names) else None,
            outputs=tuple(record.outputs for record in records),
            place=self.data.name,
        )

    def _known(self, firmware: Firmware, file: Path) -> list[Record]:
        try:
            records = read_records(read_file(file), firmware.run)
        except FileNotFoundError:
            return []
        if not records:
            self.console.status(f"{file} has outputs of another firmware: they are not used")
        found = usable(records, ((s.name, sample_digest(s.inputs)) for s in self.data.read()))
        if len(found) < len(records):
            self.console.status(
                f"the data changed from sample {len(found)} on: outputs of the"
                " samples after it are not used"
            )
        return found

    def _inputs(self, sample: Sample, firmware: Firmware) -> tuple[RunValue, ...]:
        place = f"{self.data.name}, sample {sample.name}"
        return inputs_of(sample, firmware.method, firmware.scales, place)

    def _results(
        self, firmware: Firmware, calls: Iterator[tuple[str, str, Call]], known: int
    ) -> Iterator[Record]:
        progress = _Progress(self.reporter, firmware.text, self.data.count)
        done = known
        with tempfile.TemporaryDirectory(prefix="orchestrator-evaluate-") as folder:
            program = Path(folder) / firmware.product.firmware
            program.write_bytes(firmware.firmware)
            program.chmod(0o755)
            for batch in _batches(calls):
                results = results_as_they_come(
                    firmware.product,
                    program,
                    [call for _, _, call in batch],
                    timeout_s=self.timeout_s,
                    on=self.on,
                )
                for (name, digest, call), result in zip(batch, results, strict=False):
                    if result.error is not DeviceError.Ok:
                        failure = explain_failure(self.project, [call], [result])
                        (problem,) = Ran(calls=[call], results=[result], failure=failure).problems
                        at = ("sample", f"{name} of {self.data.name}")
                        raise MismatchError(replace(problem, notes=(at, *problem.notes[1:])))
                    done += 1
                    progress.done(done)
                    yield Record(sample=name, digest=digest, outputs=result.outputs)

    def probe(self, firmware: Firmware, count: int) -> list[tuple[RunValue, ...]]:
        """Outputs of the first samples, kept nowhere."""
        part = replace(self, data=self.data.part(0, count))
        with tempfile.TemporaryDirectory(prefix="orchestrator-probe-") as folder:
            done = part.run(firmware, Path(folder) / "probe", resume=False)
        return list(done.outputs)


def no_samples(data: DataSet) -> UsageError:
    """The error of data without samples, or of a part without."""
    return bad_data(data.name, "there are no samples", hint="add some, or change --samples")


def _batches(calls: Iterator[tuple[str, str, Call]]) -> Iterator[list[tuple[str, str, Call]]]:
    """Calls for one process each: all, unless their inputs are very large."""
    batch: list[tuple[str, str, Call]] = []
    size = 0
    for item in calls:
        batch.append(item)
        size += sum(len(getattr(value, "data", b"")) for value in item[2].inputs)
        if size >= _MOST_REQUEST_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextmanager
def _kept(file: Path, run_: Run, records: Sequence[Record]) -> Iterator[Any]:
    """A file of records that grows with each one."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        temporary = file.with_name(f"{file.name}.new")
        with temporary.open("w", encoding="utf-8") as output:
            output.write(f"{run_.line}\n")
            output.writelines(map(record_line, records))
        # Written whole, then renamed: a kill before leaves the records that were there.
        # After it a line is appended for each sample.
        temporary.replace(file)
        # Line by line: what came before a kill is in the file.
        with file.open("a", encoding="utf-8", buffering=1) as output:
            yield lambda record: output.write(record_line(record))
    except OSError as error:
        raise UsageError.of(
            "system-error",
            f"cannot write {file}: {reason_of(error)}",
            hint="name a file elsewhere with --results, or free space",
        ) from error


class _Progress:
    """A bar on a terminal; elsewhere a line per tenth.

    Args:
        reporter: Gets the progress.
        text: What is done.
        total: How many samples there are; None if that is not known.
    """

    def __init__(self, reporter: Reporter, text: str, total: int | None) -> None:
        self._reporter = reporter
        self._text = text
        self._total = total
        self._next = 0.0
        self._is_terminal = sys.stderr.isatty()

    def done(self, count: int) -> None:
        """So many samples are done."""
        total = self._total or count
        if self._is_terminal or (self._total and count >= self._next):
            self._reporter.progress(count, total, self._text)
            self._next = max(count + 1, (count * _STEPS // total + 1) * total / _STEPS)


# The data set that `--data` names, and functions of the user's.

_FUNCTION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)

_CORRECT = "correct the function: it raised this"
_SEARCHED = "modules are searched in the current folder and on PYTHONPATH"
# Characters of the user's exception; some have a whole array. Chosen by hand.
_MOST_TEXT = 500


def data_set(text: str, choice: Choice) -> DataSet:
    """The data set of `--data`.

    Args:
        text: A path, or a function of the user's.
        choice: What else the user said about it.

    Raises:
        UsageError: There is none, or it is damaged (`bad-data`); a function of the
            user's cannot be imported or fails (`user-code`).
        ToolchainError: Reading it takes an extra (`missing-package`).
    """
    path = Path(text)
    form = path.suffix.lower()
    try:
        if (path / "dataset_dict.json").is_file():
            folders = sorted(state.parent.name for state in path.glob("*/state.json"))
            message, found = "the folder has several data sets", ", ".join(folders)
            raise bad_data(text, message, found=found, hint="name the folder of one")
        if (path / "state.json").is_file():
            return arrow_data(text, lambda name: (path / name).open("rb"), choice)
        if path.is_dir():
            return folder_data(_folder(path), choice)
        if form == ".npz" and path.exists():
            return archive_data(archive_files(read_file(path), text), choice)
        if form in (".csv", ".tsv") and path.exists():
            return csv_data(text, partial(path.open, **CSV_TEXT), choice)
    except OSError as error:
        raise bad_data(text, "the data cannot be read", found=reason_of(error)) from None
    if is_function(text) and not path.exists():
        return _loader(text, choice.classes)
    raise unknown_form(text, exists=path.exists())


def _folder(path: Path) -> Files:
    """The files of a folder and of those in it, which have names with `/`."""
    # No classes and no samples: .git, .ipynb_checkpoints, and ._x.png, which macOS writes.
    seen = [entry for entry in path.iterdir() if not entry.name.startswith(".")]
    names = [entry.name for entry in seen if entry.is_file()]
    for folder in filter(Path.is_dir, seen):
        names.append(f"{folder.name}/")
        files = (file.relative_to(path) for file in folder.rglob("*") if file.is_file())
        names += [f.as_posix() for f in files if not any(p.startswith(".") for p in f.parts)]
    return Files(str(path), names, lambda name: read_file(path / name))


def is_function(text: str) -> bool:
    """Whether a text names a function, as `package.module:name`."""
    return _FUNCTION.fullmatch(text) is not None


def function(text: str) -> Callable[..., Any]:
    """The user's function `package.module:name`.

    Modules are searched in the current folder, too.

    Raises:
        UsageError: There is none (`user-code`).
    """
    module, _, name = text.partition(":")
    folder = str(Path.cwd())
    # As `python -m` does: users' modules are beside their data.
    if folder not in sys.path:
        sys.path.insert(0, folder)
    with users_code(text, "cannot be imported", _SEARCHED):
        found = getattr(importlib.import_module(module), name)
        if not callable(found):
            raise TypeError(f"{name} is not a function")
    return found  # type: ignore[no-any-return]  # it is callable


@contextmanager
def users_code(text: str, what: str, hint: str = _CORRECT) -> Iterator[None]:
    """Report exceptions of the user's code as such; what it prints goes to stderr.

    Args:
        text: The function, as the user named it.
        what: What happened to it.
        hint: What to do.

    Raises:
        UsageError: The code raised (`user-code`).
    """
    try:
        # stdout has the result, with --json nothing else.
        with redirect_stdout(sys.stderr):
            yield
    except Exception as error:
        found = traceback.format_exception_only(error)[-1].strip()
        raise UsageError.of(
            "user-code", f"{text} {what}", where=_place(error), found=found[:_MOST_TEXT], hint=hint
        ) from error


def _place(error: Exception) -> SourceSpan | None:
    """The innermost line of the user's code; None if it was not reached."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = {Path(name).resolve() for name in (__file__, importlib.__file__)}
    for frame in reversed(frames):
        path = Path(frame.filename)
        if path.is_file() and path.resolve() not in ours:
            line = frame.lineno or 0
            return SourceSpan(file=frame.filename, line=line, text=frame.line or "")
    return None


def _loader(text: str, classes: Sequence[str]) -> DataSet:
    load = function(text)
    with users_code(text, "failed"):
        whole = load()
        count = len(whole) if isinstance(whole, Sized) else None
        rest = iter(whole)
        first = [*islice(rest, 1)]
    begun: list[Iterable[object]] = [chain(first, rest)]

    def items() -> Iterator[object]:
        with users_code(text, "failed"):
            # The first reading takes what counted the samples.
            iterator = iter(begun.pop() if begun else load())
        while True:
            with users_code(text, "failed"):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item

    return loader_data(text, items, count, first=first, classes=classes)
