"""`orchestrator evaluate`: the accuracy of a model over a data set."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import ge, le
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from orchestrator.build import Project, Shell, inputs, load, open_build
from orchestrator.build.firmware import need_runnable
from orchestrator.build.on_host import (
    HOST,
    MODEL,
    build_on_host,
    host_profile,
    probed_program,
    program_profile,
    with_files,
    with_programs,
)
from orchestrator.cli.commands.current import make_current
from orchestrator.cli.commands.options import build_options, device_for
from orchestrator.cli.commands.sampling import (
    Done,
    Firmware,
    Session,
    data_set,
    function,
    is_function,
    no_samples,
    users_code,
)
from orchestrator.cli.commands.workspace import needs_profile, run_workspace
from orchestrator.cli.console import Console
from orchestrator.core.lazy_bytes import chunks_of
from orchestrator.errors import (
    CompileError,
    Diagnostic,
    ExitCode,
    MismatchError,
    UsageError,
    did_you_mean,
)
from orchestrator.evaluation.bad_data import bad_data, name_list
from orchestrator.evaluation.fit import (
    Quantization,
    input_quantizations,
    output_numbers,
    output_quantizations,
)
from orchestrator.evaluation.layers import Layers, Probe, match_layers, signal
from orchestrator.evaluation.metrics import (
    AUC,
    METRICS,
    TOP1,
    Scores,
    agreement,
    default_metric,
    scores,
    without_one_hot,
)
from orchestrator.evaluation.records import may_hold_records
from orchestrator.evaluation.report import Evaluation, Reference, evaluation_data, evaluation_text
from orchestrator.evaluation.samples import Choice, DataSet
from orchestrator.program.encode import write_program
from orchestrator.program.program import Program
from orchestrator.program.reader import read_program
from orchestrator.running.device import Device
from orchestrator.running.inputs import Problems, find_method
from orchestrator.running.product import Product, ProductMethod, read_product
from orchestrator.running.values import RunValue
from orchestrator.shell.build_folder import EVALUATIONS, exclusive
from orchestrator.shell.files import lazy_file, read_text_file, reason_of
from orchestrator.shell.reporter import Reporter

if TYPE_CHECKING:
    Floats = npt.NDArray[np.float64]

_NOT_HERE = "sources that compile for the board only: run its firmware with --emulator"


def run(args: Namespace, console: Console) -> ExitCode:
    """Run a data set through the firmware, and compare with labels and a reference."""
    _check_options(args)
    if not needs_profile(args, args.profile):
        return run_workspace(args, console, partial(_of_product, args))
    project = Project(load(args.profile), build_options(args))
    with console.progress() as reporter:
        found = _evaluated(args, project, console, reporter)
    missed = _missed_bounds(args, found)
    console.document(evaluation_data(found))
    console.data(evaluation_text(found))
    return console.verdict(missed)


def _of_product(args: Namespace, project: Project, shell: Shell) -> dict[str, Any]:
    """Evaluate a product of a workspace; fields of the outcome."""
    console = Console(json=False, shell=shell)
    console.settings(color="never", quiet=True, verbose=False)
    found = _evaluated(args, project, console, shell.reporter)
    if missed := _missed_bounds(args, found):
        raise MismatchError(missed)
    done = f"evaluated: {len(found.names)} samples"
    for name, value in found.scores.values if found.scores else ():
        done += f", {name} {value:.6g}"
    details = {"evaluation": evaluation_data(found)}
    return {"done": done, "before": None, "details": details}


def _evaluated(
    args: Namespace, project: Project, console: Console, reporter: Reporter
) -> Evaluation:
    metric = _metric(args.metric)
    if args.reference is not None:
        _reference_program(args.reference)  # a wrong path shows before a build
    pixels = args.pixels or (0.0, 1.0)
    choice = Choice(inputs=args.inputs, labels=args.labels, classes=args.classes, pixels=pixels)
    data = data_set(args.data, choice).part(*args.samples)
    session = Session(
        project=project, reporter=reporter, console=console, timeout_s=args.timeout, data=data
    )
    # A model whose weights the profile rounds has a float model at hand: its own
    # program.
    rounded = _rounded_model(args, project)
    # A build takes seconds to minutes; what is wrong with the data shows after one
    # sample.
    _check_first(data, args, has_reference=bool(args.reference or rounded))
    target = _target(args, session)
    problems = Problems(code="bad-input")
    at = f"--method {args.method}"
    method = find_method(target.product, args.model, args.method, at, problems)
    if method is None:
        raise problems.error()
    program = target.programs[method.model].method(method.name)
    in_scales, out_scales = input_quantizations(program), output_quantizations(program)
    if args.input_quant is not None:
        in_scales = dict.fromkeys(range(len(method.inputs)), args.input_quant)
    if args.output_quant is not None:
        out_scales = dict.fromkeys(range(len(method.outputs)), args.output_quant)
    kept = args.results or project.work / EVALUATIONS / (
        f"{method.model}.{method.name}.{target.place}.jsonl"
    )
    firmware = Firmware(
        product=target.product,
        firmware=target.firmware,
        method=method,
        scales=in_scales,
        text="running",
    )
    done = replace(session, on=target.on).run(firmware, kept, resume=args.resume)
    outputs = [_real(method, one, out_scales) for one in done.outputs]
    if metric in (None, TOP1):
        done = replace(done, labels=without_one_hot(done.labels, outputs[0][0]))
    _check_classes(args.classes or data.classes, outputs, data.name, metric)
    reference, layers = None, None
    if args.reference is None and done.expected is not None:
        floats = [tuple(e.ravel().astype(float) for e in one) for one in done.expected]
        reference = _compared(f"expected of {data.name}", outputs, floats, done, metric)
    elif args.reference is not None or rounded is not None:
        path = args.reference or _program_of(rounded, session)
        other = _reference(path, session, method)
        kept = kept.with_name(f"{kept.name}.reference")
        wanted = session.run(other, kept, resume=args.resume)
        # Data are read once for each firmware. A function with random augmentation
        # would compare outputs of different inputs.
        if (wanted.names, wanted.digests) != (done.names, done.digests):
            raise bad_data(
                data.name,
                "the data changed between two reads",
                hint="give the same samples in the same order: use a fixed seed",
            )
        floats = [_real(other.method, one, {}) for one in wanted.outputs]
        reference = _compared(str(path), outputs, floats, done, metric)
        if args.layers:
            pair = (firmware, done.outputs), (other, wanted.outputs)
            layers = _layers(args, session, *pair)
    scored = _scored(metric, outputs, done)
    return Evaluation(
        profile=project.profile.name,
        model=method.model,
        method=method.name,
        place=target.place,
        data=data.name,
        names=done.names,
        labels=tuple(_label_text(label, data.classes) for label in done.labels),
        scores=scored,
        reference=reference,
        layers=layers,
        classes=args.classes or data.classes,
        worst=args.worst,
    )


def _check_classes(
    names: Sequence[str], outputs: Sequence[Sequence[Floats]], place: str, metric: str | None
) -> None:
    """Refuse other names than the output has classes: all labels might be shifted."""
    count = outputs[0][0].size if outputs and outputs[0] else 0
    is_class = metric in (None, TOP1) and count > 1
    if names and is_class and len({*names}) != count:
        raise bad_data(
            place,
            f"there are {len({*names})} classes, and the output has {count}",
            found=name_list(names),
            hint="name all with --classes, in the order of the outputs",
        )


def _check_options(args: Namespace) -> None:
    if args.results is not None and not may_hold_records(args.results):
        raise UsageError.of(
            "usage",
            f"--results would write over {args.results}, which has no results",
            hint="name a new file, or the one of an evaluation before",
        )
    problem = ""
    if args.layers and args.reference is None:
        problem = "--layers requires --reference"
    elif args.reference is not None and args.reference.suffix != ".pte":
        problem = "--reference takes a .pte program"
    if problem:
        raise UsageError.of(
            "usage", problem, hint="name the program of the float model: --reference FILE.pte"
        )


def _metric(text: str | None) -> str | None:
    """The metric of `--metric`; None for that of the labels."""
    if text is None or text in METRICS:
        return text
    if is_function(text):
        function(text)  # a typing error shows before anything is built
        return text
    raise UsageError.of(
        "usage",
        f"no such metric: {text}",
        expected=f"{', '.join(METRICS)}, or package.module:name",
        hint=did_you_mean(text, METRICS) or "choose one of these",
    )


def _rounded_model(args: Namespace, project: Project) -> str | None:
    """The model, if the profile rounds its weights: its program is a reference."""
    rounded = {m.name: m.rounding is not None for m in project.profile.models}
    name = args.model or (next(iter(rounded)) if len(rounded) == 1 else "")
    return name if rounded.get(name) else None


def _program_of(model: str | None, session: Session) -> Path:
    """The program of a model, without what the profile makes of it."""
    shell = session.console.shell(session.reporter)
    profile = with_programs(session.project, shell)
    return next(m.path for m in profile.models if m.name == model)


def _check_first(data: DataSet, args: Namespace, *, has_reference: bool) -> None:
    """Reject data that cannot be compared with anything, before anything is built."""
    first = next(data.read(), None)
    if first is None:
        raise no_samples(data)
    problem = ""
    if (args.inputs or args.labels) and not data.names:
        problem = "--inputs and --labels require data with named arrays or columns"
    elif args.pixels and not first.pixels:
        problem = "--pixels requires images"
    if problem:
        raise UsageError.of("usage", problem, found=data.name, hint="leave it out")
    if first.label is None and first.expected is None and not has_reference:
        names = f"; there are {name_list(data.names)}" if data.names else ""
        raise bad_data(
            data.name,
            "there is nothing to compare with",
            found=f"samples without labels or expected outputs{names}",
            hint="add labels, name them with --labels, or name the float program with --reference",
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
    on: Device | None


def _target(args: Namespace, session: Session) -> _Target:
    """The product on the host, or in the emulator of its board.

    Raises:
        OrchestratorError: It cannot be built.
    """
    project, console = session.project, session.console
    shell = console.shell(session.reporter)
    is_host = project.profile.target.cpu == HOST
    if args.on and args.emulator:
        raise UsageError.wrong("--emulator is another place than --on", "leave one of them out")
    if args.on and args.layers:
        raise UsageError.wrong(
            "--layers runs other firmware than the device has", "leave out --on, or --layers"
        )
    if is_host and args.emulator:
        raise UsageError.of(
            "usage",
            "--emulator is for profiles with a board",
            found='cpu = "host"',
            hint="leave it out",
        )
    programs = open_build(project, shell)[inputs.PROGRAMS]
    on = None
    if is_host or args.emulator or args.on:
        make_current(project, console)
        product = read_product(read_text_file(project.folder / "product.json"))
        on = device_for(args, project, product)
        need_runnable(product, on)
        firmware = (project.folder / product.firmware).read_bytes()
        place = str(on) if on else product.board or project.profile.target.cpu
    else:
        # Kernels give the same bits on all targets, so the model runs on this machine;
        # exports stay those for the board.
        profile = host_profile(with_programs(project, shell))
        try:
            found = build_on_host(project, profile, "on the host", shell)
        except CompileError as error:
            raise CompileError(
                tuple(replace(d, hint=_NOT_HERE) for d in error.diagnostics)
            ) from error
        product, firmware, place = found.product, found.firmware, HOST
    return _Target(product=product, firmware=firmware, place=place, programs=programs, on=on)


def _real(
    method: ProductMethod, outputs: Sequence[RunValue], scales: Mapping[int, Quantization]
) -> tuple[Floats, ...]:
    return tuple(
        output_numbers(value, port, scales.get(number))
        for number, (value, port) in enumerate(zip(outputs, method.outputs, strict=True))
    )


def _reference(path: Path, session: Session, method: ProductMethod) -> Firmware:
    """The program of the float model, on this machine."""
    program = _reference_program(path)
    found = build_on_host(
        session.project, program_profile(path), "reference", session.console.shell(session.reporter)
    )
    return _of_program(found.product, found.firmware, program, method.name)


def _reference_program(path: Path) -> Program:
    try:
        return read_program(lazy_file(path), file=str(path))
    except OSError as error:
        raise UsageError.of(
            "unreadable-model",
            f"cannot read {path}: {reason_of(error)}",
            hint="name the program of the float model",
        ) from error


def _of_program(product: Product, firmware: bytes, program: Program, name: str) -> Firmware:
    """A program of `--reference`; its only method, or the one of the same name."""
    known = [m for m in product.methods if m.name == name]
    if not known and len(product.methods) == 1:
        known = list(product.methods)
    if not known:
        names = ", ".join(m.name for m in product.methods)
        raise UsageError.of(
            "unknown-method",
            f"the reference has no method {name}",
            expected=name,
            found=names,
            hint="name the float program that the model was quantized from",
        )
    return Firmware(
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
    done: Done,
    metric: str | None,
) -> Reference:
    return Reference(
        name=name,
        agreement=agreement(outputs, floats, done.names, name),
        scores=_scored(metric, floats, done),
    )


def _scored(metric: str | None, outputs: Sequence[Sequence[Floats]], done: Done) -> Scores | None:
    """The metric over all samples; None if they have no labels."""
    labels = [label for label in done.labels if label is not None]
    if not labels:
        return None
    if len(labels) < len(done.labels):
        missing = done.names[[label is None for label in done.labels].index(True)]
        raise bad_data(
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
    name: str, outputs: Sequence[Sequence[Floats]], labels: Sequence[npt.NDArray[Any]]
) -> Scores:
    """A function of the user's: outputs and labels to a number, or several by name."""
    measure = function(name)
    with users_code(name, "failed"):
        found = measure([one[0] if len(one) == 1 else tuple(one) for one in outputs], list(labels))
        values = found.items() if isinstance(found, dict) else [(name, found)]
        numbers = tuple((str(key), float(value)) for key, value in values)
        if not numbers:
            raise ValueError("it returned no number")
    return Scores(name=name, values=numbers)


def _layers(
    args: Namespace,
    session: Session,
    mine: tuple[Firmware, Sequence[tuple[RunValue, ...]]],
    other: tuple[Firmware, Sequence[tuple[RunValue, ...]]],
) -> Layers:
    """Results of every call, of both programs, over the first samples.

    Args:
        args: Of the command line.
        session: Runs them.
        mine: Firmware of what is evaluated, and the outputs of all samples.
        other: Those of the reference.

    Raises:
        MismatchError: A program that keeps every result has other outputs
            (`layers-differ`).
    """
    project, method = session.project, mine[0].method
    shell = session.console.shell(session.reporter)
    count = min(args.layers, session.data.count or args.layers)
    found = []
    host = host_profile(with_programs(project, shell))
    for text, model, profile, (whole, known) in (
        ("model", method.model, host, mine),
        ("reference", MODEL, program_profile(args.reference), other),
    ):
        name = whole.method.name
        reading = Project(profile, project.options)
        changed, probes = probed_program(reading, model, name, shell)
        file = project.work / EVALUATIONS / f"{text}.pte"
        # Two evaluations of a product write the same file.
        with exclusive(project.folder):
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("wb") as output:
                output.writelines(chunks_of(write_program(changed)))
        probing = with_files(profile, {model: file})
        built = build_on_host(project, probing, f"every result of the {text}", shell)
        probe = next(m for m in built.product.methods if (m.model, m.name) == (model, name))
        firmware = Firmware(
            product=built.product,
            firmware=built.firmware,
            method=probe,
            scales=whole.scales,
            text=f"layers of the {text}",
        )
        outputs = session.probe(firmware, count)
        own = len(whole.method.outputs)
        # Outputs that are kept change the memory plan. If a result differs, the plan or
        # the program's own state is wrong, and errors of layers would be those of
        # another program.
        if any(one[:own] != two for one, two in zip(outputs, known, strict=False)):
            raise MismatchError.of(
                "layers-differ",
                f"the {text} has other outputs when every result is kept",
                hint="leave out --layers, and please report it with the program",
            )
        found.append(_signals(probes, probe, outputs))
    return match_layers(found[0], found[1], samples=count)


def _signals(
    probes: Sequence[Probe], method: ProductMethod, outputs: Sequence[Sequence[RunValue]]
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
    asked = (("--at-least", args.at_least, ge), ("--at-most", args.at_most, le))
    problems = []
    for option, bound, holds in asked:
        if bound is None:
            continue
        if found.scores is None:
            raise UsageError.of(
                "usage", f"{option} requires labels", hint="add labels to the data, or leave it out"
            )
        name, value = found.scores.values[0]
        if not holds(value, bound):
            hint = "see worst samples and layers for what is lost, and where"
            # `--at-least 95` is missed by every model.
            if name in (TOP1, AUC) and bound > 1:
                hint = f"{name} is a share: 95 % is 0.95"
            problems.append(
                Diagnostic.of(
                    "missed-accuracy",
                    f"{name} of {found.model}.{found.method} is {value:.6g}",
                    expected=f"{option[2:].replace('-', ' ')} {bound:g}",
                    hint=hint,
                )
            )
    return tuple(problems)
