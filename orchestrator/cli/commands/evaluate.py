"""`orchestrator evaluate`: the accuracy of a model over a data set."""

from __future__ import annotations

import hashlib
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.build import Project, inputs, load, open_build
from orchestrator.build.on_host import (
    HOST,
    MODEL,
    build_on_host,
    host_profile,
    program_profile,
    with_files,
    with_programs,
)
from orchestrator.cli.commands.current import make_current
from orchestrator.cli.commands.data_set import (
    data_set,
    function,
    is_function,
    users_code,
)
from orchestrator.cli.commands.device_status import explain_failure
from orchestrator.cli.commands.firmware import need_runnable, results_as_they_come
from orchestrator.cli.commands.options import build_options
from orchestrator.core.lazy_bytes import chunks_of
from orchestrator.errors import (
    Diagnostic,
    ExitCode,
    MismatchError,
    UsageError,
    did_you_mean,
)
from orchestrator.evaluation.fit import (
    input_quantizations,
    inputs_of,
    output_numbers,
    output_quantizations,
)
from orchestrator.evaluation.layers import match_layers, probed, signal
from orchestrator.evaluation.metrics import (
    METRICS,
    Scores,
    agreement,
    default_metric,
    scores,
)
from orchestrator.evaluation.records import (
    Record,
    Run,
    read_records,
    record_line,
    sample_digest,
    usable,
)
from orchestrator.evaluation.report import (
    Evaluation,
    Reference,
    evaluation_data,
    evaluation_text,
)
from orchestrator.evaluation.samples import bad_data
from orchestrator.program.reader import read_program
from orchestrator.program.write import write_program
from orchestrator.running.inputs import Problems, find_method
from orchestrator.running.product import read_product
from orchestrator.running.protocol import DeviceError
from orchestrator.running.report import failures
from orchestrator.running.values import Call
from orchestrator.shell.build_folder import EVALUATIONS, exclusive
from orchestrator.shell.files import lazy_file, read_file, read_text_file, reason_of

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Mapping, Sequence

    import numpy as np
    import numpy.typing as npt

    from orchestrator.cli.console import Console
    from orchestrator.evaluation.fit import Quantization
    from orchestrator.evaluation.layers import Layers, Probe
    from orchestrator.evaluation.samples import DataSet, Sample
    from orchestrator.program.program import Program
    from orchestrator.running.product import Product, ProductMethod
    from orchestrator.running.values import RunValue
    from orchestrator.shell.reporter import Reporter

    Floats = npt.NDArray[np.float64]

_MOST_REQUEST_BYTES = 64 << 20
"""Size of the inputs that one process gets; larger data sets take several."""
_STEPS = 10
"""Lines of progress where there is no terminal."""


def run(args: Namespace, console: Console) -> ExitCode:
    """Run a data set through the firmware, and compare with labels and a reference."""
    _check_options(args)
    project = Project(load(args.profile), build_options(args))
    metric = _metric(args.metric)
    begin, end = args.samples
    data = data_set(args.data).part(begin, end)
    with _reporter(console) as reporter:
        target = _target(args, project, console, reporter)
        problems = Problems(code="bad-input")
        at = f"--method {args.method}"
        method = find_method(target.product, args.model, args.method, at, problems)
        if method is None:
            raise problems.error()
        program = target.programs[method.model]
        in_scales = input_quantizations(program.method(method.name))
        out_scales = output_quantizations(program.method(method.name))
        if args.input_quant is not None:
            in_scales = {i: args.input_quant for i in range(len(method.inputs))}
        if args.output_quant is not None:
            out_scales = {i: args.output_quant for i in range(len(method.outputs))}
        session = _Session(
            project=project,
            reporter=reporter,
            console=console,
            timeout_s=args.timeout,
            data=data,
        )
        results = args.results or project.work / EVALUATIONS / (
            f"{method.model}.{method.name}.{target.place}.jsonl"
        )
        run_ = _Firmware(
            product=target.product,
            firmware=target.firmware,
            method=method,
            scales=in_scales,
            text="running",
        )
        done = session.run(run_, results, resume=args.resume)
        outputs = [_real(method, o, out_scales) for o in done.outputs]
        reference, layers = None, None
        if args.reference is not None:
            other = _reference(args, session, console, method)
            wanted = session.run(
                other,
                results.with_name(f"{results.name}.reference"),
                resume=args.resume,
            )
            floats = [_real(other.method, o, {}) for o in wanted.outputs]
            reference = _compared(str(args.reference), outputs, floats, done, metric)
            if args.layers:
                layers = _layers(
                    args,
                    session,
                    target,
                    (run_, done.outputs),
                    (other, wanted.outputs),
                )
        elif done.expected is not None:
            floats = [tuple(e.ravel().astype(float) for e in one) for one in done.expected]
            reference = _compared(
                f"expected of {data.name}", outputs, floats, done, metric
            )
    found = Evaluation(
        profile=project.profile.name,
        model=method.model,
        method=method.name,
        place=target.place,
        data=data.name,
        names=done.names,
        labels=tuple(_label_text(label, data.classes) for label in done.labels),
        scores=_scored(metric, outputs, done),
        reference=reference,
        layers=layers,
        classes=args.classes or data.classes,
        worst=args.worst,
    )
    if found.scores is None and reference is None:
        bad_data(
            data.name,
            "there is nothing to compare with",
            found="samples without labels or expected outputs",
            hint="add labels, or name the float program with --reference",
        )
    missed = _missed_bounds(args, found)
    console.document(evaluation_data(found))
    console.data(evaluation_text(found))
    if missed and console.json:
        console.problems(missed)
        return ExitCode.MISMATCH
    if missed:
        raise MismatchError(missed)
    return ExitCode.OK


def _check_options(args: Namespace) -> None:
    problem = ""
    if args.layers and args.reference is None:
        problem = "--layers requires --reference"
    elif args.reference is not None and args.reference.suffix != ".pte":
        problem = "--reference takes a .pte program"
    if problem:
        raise UsageError(
            Diagnostic(
                code="usage",
                message=problem,
                hint="name the program of the float model: --reference FILE.pte",
            )
        )


def _metric(text: str | None) -> str | None:
    """The metric of `--metric`; None for that of the labels."""
    if text is None or text in METRICS:
        return text
    if is_function(text):
        function(text)  # a typing error shows before anything is built
        return text
    raise UsageError(
        Diagnostic(
            code="usage",
            message=f"no such metric: {text}",
            notes=(("expected", f"{', '.join(METRICS)}, or package.module:name"),),
            hint=did_you_mean(text, METRICS) or "choose one of these",
        )
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Target:
    """What is evaluated.

    Args:
        product: Its description.
        firmware: The program that runs it.
        place: Where it runs.
        programs: Of all models, as they were given.
    """

    product: Product
    firmware: bytes
    place: str
    programs: Mapping[str, Program]


def _target(
    args: Namespace, project: Project, console: Console, reporter: Reporter
) -> _Target:
    """The product on the host, or in the emulator of its board.

    Raises:
        OrchestratorError: It cannot be built.
    """
    shell = console.shell(reporter)
    is_host = project.profile.target.cpu == HOST
    if is_host and args.emulator:
        raise UsageError(
            Diagnostic(
                code="usage",
                message="--emulator is for profiles with a board",
                notes=(("found", 'cpu = "host"'),),
                hint="leave it out",
            )
        )
    programs = open_build(project, shell)[inputs.PROGRAMS]
    if is_host or args.emulator:
        make_current(project, console)
        product = read_product(read_text_file(project.folder / "product.json"))
        need_runnable(product)
        firmware = (project.folder / product.firmware).read_bytes()
        place = product.board or HOST
    else:
        profile = host_profile(with_programs(project, shell))
        found = build_on_host(project, profile, "on the host", shell)
        product, firmware, place = found.product, found.firmware, HOST
    return _Target(product=product, firmware=firmware, place=place, programs=programs)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Firmware:
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
        digest.update(repr(sorted(self.scales.items())).encode())
        return Run(
            firmware=digest.hexdigest(),
            model=self.method.model,
            method=self.method.name,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """Samples that were run, and what came out.

    Args:
        names: Of the samples.
        labels: Of each.
        expected: Outputs in the data; None unless all samples have them.
        outputs: Of each.
        place: The data, for messages.
    """

    names: tuple[str, ...]
    labels: tuple[npt.NDArray[Any] | None, ...]
    expected: tuple[tuple[npt.NDArray[Any], ...], ...] | None
    outputs: tuple[tuple[RunValue, ...], ...]
    place: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    """Runs the samples of one data set.

    Args:
        project: Explains errors of the device.
        reporter: Gets the progress.
        console: Gets notes.
        timeout_s: How long one sample may take.
        data: The samples.
    """

    project: Project
    reporter: Reporter
    console: Console
    timeout_s: float
    data: DataSet

    def run(self, firmware: _Firmware, file: Path, *, resume: bool) -> _Done:
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
                    call = Call(method=firmware.method, inputs=values, fresh=True)
                    yield sample.name, sample_digest(sample.inputs), call

        with _kept(file, firmware.run, records) as keep:
            try:
                for record in self._results(firmware, calls(), known):
                    records.append(record)
                    keep(record)
            except BaseException:
                if len(records) > known:
                    self.console.status(
                        f"{len(records):,} samples are kept; --resume goes on from there"
                    )
                raise
        if not names:
            bad_data(self.data.name, "the data have no samples")
        given = [one for one in expected if one is not None]
        return _Done(
            names=tuple(names),
            labels=tuple(labels),
            expected=tuple(given) if len(given) == len(names) else None,
            outputs=tuple(record.outputs for record in records),
            place=self.data.name,
        )

    def _known(self, firmware: _Firmware, file: Path) -> list[Record]:
        try:
            records = read_records(read_file(file), firmware.run)
        except FileNotFoundError:
            return []
        if not records:
            self.console.status(
                f"{file} has outputs of another firmware: they are not used"
            )
        found = usable(
            records, ((s.name, sample_digest(s.inputs)) for s in self.data.read())
        )
        if len(found) < len(records):
            self.console.status(
                f"the data changed from sample {len(found)} on: outputs of the"
                " samples after it are not used"
            )
        return found

    def _inputs(self, sample: Sample, firmware: _Firmware) -> tuple[RunValue, ...]:
        place = f"{self.data.name}, sample {sample.name}"
        return inputs_of(sample, firmware.method, firmware.scales, place)

    def _results(
        self, firmware: _Firmware, calls: Iterator[tuple[str, str, Call]], known: int
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
                )
                for (name, digest, call), result in zip(batch, results, strict=False):
                    if result.error is not DeviceError.Ok:
                        failure = explain_failure(self.project, [call], [result])
                        (problem,) = failures([call], [result], (), None, failure)
                        at = ("sample", f"{name} of {self.data.name}")
                        raise MismatchError(
                            replace(problem, notes=(at, *problem.notes[1:]))
                        )
                    done += 1
                    progress.done(done)
                    yield Record(sample=name, digest=digest, outputs=result.outputs)

    def probe(self, firmware: _Firmware, count: int) -> list[tuple[RunValue, ...]]:
        """Outputs of the first samples, kept nowhere."""
        part = replace(self, data=self.data.part(0, count))
        with tempfile.TemporaryDirectory(prefix="orchestrator-probe-") as folder:
            done = part.run(firmware, Path(folder) / "probe", resume=False)
        return list(done.outputs)


def _batches(
    calls: Iterator[tuple[str, str, Call]],
) -> Iterator[list[tuple[str, str, Call]]]:
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
        temporary.replace(file)
        with file.open("a", encoding="utf-8", buffering=1) as output:
            yield lambda record: output.write(record_line(record))
    except OSError as error:
        raise UsageError(
            Diagnostic(
                code="system-error",
                message=f"cannot write {file}: {reason_of(error)}",
                hint="name a file elsewhere with --results, or free space",
            )
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
        self._last = time.monotonic()

    def done(self, count: int) -> None:
        """So many samples are done."""
        total = self._total or count
        if self._is_terminal or (self._total and count >= self._next):
            self._reporter.progress(count, total, self._text)
            self._next = max(count + 1, (count * _STEPS // total + 1) * total / _STEPS)


@contextmanager
def _reporter(console: Console) -> Iterator[Reporter]:
    reporter = console.reporter(explain=False)
    try:
        yield reporter
    finally:
        reporter.close()


def _real(
    method: ProductMethod,
    outputs: Sequence[RunValue],
    scales: Mapping[int, Quantization],
) -> tuple[Floats, ...]:
    return tuple(
        output_numbers(value, port, scales.get(number))
        for number, (value, port) in enumerate(
            zip(outputs, method.outputs, strict=True)
        )
    )


def _reference(
    args: Namespace, session: _Session, console: Console, method: ProductMethod
) -> _Firmware:
    """The program of the float model, on this machine."""
    program = _reference_program(args.reference)
    found = build_on_host(
        session.project,
        program_profile(args.reference),
        "reference",
        console.shell(session.reporter),
    )
    return _of_program(found.product, found.firmware, program, method.name)


def _reference_program(path: Path) -> Program:
    try:
        return read_program(lazy_file(path), file=str(path))
    except OSError as error:
        raise UsageError(
            Diagnostic(
                code="unreadable-model",
                message=f"cannot read {path}: {reason_of(error)}",
                hint="name the program of the float model",
            )
        ) from error


def _of_program(
    product: Product, firmware: bytes, program: Program, name: str
) -> _Firmware:
    """A program of `--reference`; its only method, or the one of the same name."""
    known = [m for m in product.methods if m.name == name]
    if not known and len(product.methods) == 1:
        known = list(product.methods)
    if not known:
        names = ", ".join(m.name for m in product.methods)
        raise UsageError(
            Diagnostic(
                code="unknown-method",
                message=f"the reference has no method {name}",
                notes=(("expected", name), ("found", names)),
                hint="name the float program that the model was quantized from",
            )
        )
    return _Firmware(
        product=product,
        firmware=firmware,
        method=known[0],
        scales=input_quantizations(program.method(known[0].name)),
        text="running the reference",
    )


def _compared(
    name: str,
    outputs: Sequence[Sequence[Floats]],
    floats: Sequence[Sequence[Floats]],
    done: _Done,
    metric: str | None,
) -> Reference:
    return Reference(
        name=name,
        agreement=agreement(outputs, floats, done.names, name),
        scores=_scored(metric, floats, done),
    )


def _scored(
    metric: str | None, outputs: Sequence[Sequence[Floats]], done: _Done
) -> Scores | None:
    """The metric over all samples; None if they have no labels."""
    labels = [label for label in done.labels if label is not None]
    if not labels:
        return None
    if len(labels) < len(done.labels):
        missing = done.names[[label is None for label in done.labels].index(True)]
        bad_data(
            done.place,
            "labels are missing",
            found=f"{len(labels)} for {len(done.labels)} samples; none for {missing}",
        )
    if metric is None:
        metric = default_metric(outputs[0][0], labels[0])
    if metric not in METRICS:
        return _own_metric(metric, outputs, labels)
    first = [one[0] for one in outputs]
    return scores(metric, first, labels, done.names, done.place)


def _own_metric(
    name: str,
    outputs: Sequence[Sequence[Floats]],
    labels: Sequence[npt.NDArray[Any]],
) -> Scores:
    """A function of the user's: outputs and labels to a number, or several by name."""
    measure = function(name)
    with users_code(name, "failed"):
        found = measure(
            [one[0] if len(one) == 1 else tuple(one) for one in outputs], list(labels)
        )
        values = found.items() if isinstance(found, dict) else [(name, found)]
        numbers = tuple((str(key), float(value)) for key, value in values)
        if not numbers:
            raise ValueError("it returned no number")
    return Scores(name=name, values=numbers)


def _layers(
    args: Namespace,
    session: _Session,
    target: _Target,
    mine: tuple[_Firmware, Sequence[tuple[RunValue, ...]]],
    other: tuple[_Firmware, Sequence[tuple[RunValue, ...]]],
) -> Layers:
    """Results of every call, of both programs, over the first samples.

    Args:
        args: Of the command line.
        session: Runs them.
        target: What is evaluated.
        mine: Its firmware, and the outputs of all samples.
        other: Those of the reference.

    Raises:
        MismatchError: A program that keeps every result has other outputs
            (`layers-differ`).
    """
    project, method = session.project, mine[0].method
    shell = session.console.shell(session.reporter)
    count = min(args.layers, session.data.count or args.layers)
    found = []
    for text, program, (whole, known) in (
        ("model", target.programs[method.model], mine),
        ("reference", _reference_program(args.reference), other),
    ):
        name = whole.method.name
        changed, probes = probed(program, name)
        file = project.work / EVALUATIONS / f"{text}.pte"
        with exclusive(project.folder):
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as output:
                output.writelines(chunks_of(write_program(changed)))
        if text == "model":
            profile = host_profile(with_files(project.profile, {method.model: file}))
            model = method.model
        else:
            profile, model = program_profile(file), MODEL
        built = build_on_host(project, profile, f"every result of the {text}", shell)
        probe = next(
            m for m in built.product.methods if (m.model, m.name) == (model, name)
        )
        firmware = _Firmware(
            product=built.product,
            firmware=built.firmware,
            method=probe,
            scales=whole.scales,
            text=f"layers of the {text}",
        )
        outputs = session.probe(firmware, count)
        own = len(whole.method.outputs)
        if any(one[:own] != two for one, two in zip(outputs, known, strict=False)):
            raise MismatchError(
                Diagnostic(
                    code="layers-differ",
                    message=f"the {text} has other outputs when every result is kept",
                    hint="leave out --layers, and please report it with the program",
                )
            )
        found.append(_signals(probes, probe, outputs))
    return match_layers(found[0], found[1], samples=count)


def _signals(
    probes: Sequence[Probe],
    method: ProductMethod,
    outputs: Sequence[Sequence[RunValue]],
) -> list[tuple[Probe, Floats]]:
    return [
        (
            probe,
            signal(
                [
                    output_numbers(one[probe.output], method.outputs[probe.output], None)
                    for one in outputs
                ]
            ),
        )
        for probe in probes
    ]


def _label_text(label: npt.NDArray[Any] | None, classes: Sequence[str]) -> str:
    if label is None:
        return ""
    if label.size != 1:
        return f"{label.dtype} {list(label.shape)}"
    number = label.reshape(()).item()
    if isinstance(number, int) and 0 <= number < len(classes):
        return classes[number]
    return f"{number:g}" if isinstance(number, float) else str(number)


def _missed_bounds(args: Namespace, found: Evaluation) -> tuple[Diagnostic, ...]:
    """What `--at-least` and `--at-most` ask for and the metric does not hold."""
    asked = (
        ("--at-least", args.at_least, lambda value, bound: value >= bound),
        ("--at-most", args.at_most, lambda value, bound: value <= bound),
    )
    problems = []
    for option, bound, holds in asked:
        if bound is None:
            continue
        if found.scores is None:
            raise UsageError(
                Diagnostic(
                    code="usage",
                    message=f"{option} requires labels",
                    hint="add labels to the data, or leave it out",
                )
            )
        name, value = found.scores.values[0]
        if not holds(value, bound):
            problems.append(
                Diagnostic(
                    code="missed-accuracy",
                    message=f"{name} of {found.model}.{found.method} is {value:.6g}",
                    notes=(("expected", f"{option[2:].replace('-', ' ')} {bound:g}"),),
                    hint="see worst samples and layers for what is lost, and where",
                )
            )
    return tuple(problems)
