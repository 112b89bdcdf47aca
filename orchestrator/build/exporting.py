"""Stage export: models given as Python become programs, unless these are cached."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from configparser import ConfigParser, Error
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from textwrap import dedent
from threading import Event, Thread

from orchestrator.build.engine import digest
from orchestrator.build.left_over import left_over
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.core.operator import OpSchema
from orchestrator.errors import (
    Diagnostic,
    ModelError,
    OrchestratorError,
    ProfileError,
    ReproducibilityError,
    SourceSpan,
    ToolchainError,
    did_you_mean,
)
from orchestrator.export.request import LEFT_IN_FLOAT, STEP_FILE, Request, changed_answer
from orchestrator.profile.fields import shown
from orchestrator.profile.lowering import CORTEX_M, Vela, with_defaults
from orchestrator.profile.models import ModelTable
from orchestrator.profile.paths import PythonCallable
from orchestrator.profile.tables import Profile
from orchestrator.program.reader import read_program
from orchestrator.shell import sources
from orchestrator.shell.build_folder import EXPORTED, WORK, claim, refuse_links
from orchestrator.shell.cache import cache_folder
from orchestrator.shell.distribution import PACKAGE_FOLDER
from orchestrator.shell.exported import (
    EXPORTS,
    PROGRAM,
    Entry,
    ExportCache,
    ExportFacts,
    ExportFailure,
    ExportResult,
    Installed,
    PublishedExports,
    read_installed,
    read_result,
    started,
)
from orchestrator.shell.input_files import InputFiles
from orchestrator.shell.process import (
    NOT_STARTED,
    PYTHON,
    Finished,
    Processes,
    interpreter,
    python_environment,
)
from orchestrator.shell.publish import publish_exported
from orchestrator.shell.reporter import Reporter

# Seconds. The code may train or calibrate for hours; the limit only ends what hangs for
# ever in CI.
_TIMEOUT_S = 24 * 3600.0
# Chosen by hand: the last frame of a traceback and its message; the log has all.
_LOG_LINES = 12
# Seconds between two looks at the step, chosen by hand for a line that people watch.
_LOOK_S = 0.2
_SAME_EVERYWHERE = {
    # Quantization scales must not depend on the machine's core count or vector unit.
    # Sets of strings are iterated in an order that depends on it.
    "PYTHONHASHSEED": "0",
    # Sums of floats are split among threads, and so rounded differently: scales, and
    # with them int8 weights, would change with the number of cores.
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    # Intel's Conditional Numerical Reproducibility: one code path for all processors.
    "MKL_CBWR": "COMPATIBLE",
    # PyTorch's own kernels without AVX2 or AVX-512, whose sums have another order.
    "ATEN_CPU_CAPABILITY": "default",
    # oneDNN chooses its code by the processor, too; SSE4.1 is the lowest that it knows.
    "ONEDNN_MAX_CPU_ISA": "SSE41",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A model that was exported, now or before.

    Args:
        program: The program.
        reason: Why it was exported now; "" if it came from the cache.
        entry: Its entry in the cache.
        paths: Absolute paths of every file that it depends on.
    """

    program: Bytes
    reason: str
    entry: Entry
    paths: tuple[str, ...]

    @property
    def facts(self) -> ExportFacts:
        """The facts recorded beside it."""
        return self.entry.facts


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportChoice:
    """How to export.

    Args:
        accelerate: Lower faster.
        verify: Lower both ways, and compare.
        again: Export even if the cache has the program.
        fetched: Use programs that another machine exported.
        cache: Folder of all entries; None where no product is concerned.
        deny_float: A quantized model that computes with floats is an error.
    """

    accelerate: bool = True
    verify: bool = False
    again: bool = False
    fetched: bool = True
    cache: Path | None = None
    deny_float: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportRequest:
    """Which models to export, and with what.

    Args:
        profile: Names the models.
        files: Reads their inputs.
        export_choice: How to export.
        offered: Gives the operators that have kernels.
        published: Gives exports of other machines; None if there are none.
        folder: The build folder; logs go into its work folder.
        processes: Runs the Python that exports.
        reporter: Gets the progress.
    """

    profile: Profile
    files: InputFiles
    export_choice: ExportChoice
    offered: Callable[[], Mapping[str, OpSchema]]
    published: Callable[[], PublishedExports | None]
    folder: Path
    processes: Processes
    reporter: Reporter

    def log_of(self, model: str) -> Path:
        """The file with what the code of a model printed."""
        return self.folder / WORK / "exports" / f"{model}.log"


def export_models(*, export_request: ExportRequest) -> dict[str, Exported]:
    """Stage export: every model that is given as Python, as a program.

    Raises:
        ProfileError: A file that the profile names is missing or has the wrong content.
        ModelError: Models whose code fails or cannot be lowered: all of them.
        ToolchainError: A package that export needs is not installed.
        ReproducibilityError: Accelerated lowering gave a different result.
    """
    what, profile = export_request, export_request.profile
    found: dict[str, Exported] = {}
    problems: list[Diagnostic] = []
    for index, model in enumerate(profile.models):
        if model.source is None:
            continue
        where = profile.span("models", index, "source")
        # Before the export, which may take minutes: Vela reports a missing section only
        # in its log, after quantizing.
        check_vela_config(profile, model, what.files.read)
        try:
            found[model.name] = exported = _export(what, model, model.source, where)
            what.files.note(exported.paths)
            if what.export_choice.deny_float:
                problems += _left_in_float(model, exported.facts, where)
        # All models are tried: each export may take minutes, and one error at a time
        # would waste them.
        except ModelError as error:
            problems += error.diagnostics
    ModelError.raise_if(problems)
    return found


def _export(
    what: ExportRequest, model: ModelTable, source: PythonCallable, where: SourceSpan
) -> Exported:
    request, reporter = _request(what, model, source), what.reporter
    cache = _cache(what, model, request)
    label = f"export {model.name}"
    entry, reason = None, "requested"
    if not what.export_choice.again:
        entry, reason = _find(what, cache)
        # Only if this machine has none: a place on the network is asked for what is
        # missing.
        entry = entry or _fetch(what, cache, request)
        reason = "" if entry else reason
    if entry is None:
        reporter.stage(label, reason)
        reporter.note(f"exporting {model.name}, {reason} ...")
        # `plan` and `check` export too; the log goes to the build folder.
        claim(what.folder)
        refuse_links(what.folder)
        # Before the process: a file that changes while it runs makes the entry useless
        # for later builds.
        start_ns = started()
        with tempfile.TemporaryDirectory(prefix="orchestrator-export-") as name:
            made = Path(name) / "made"
            made.mkdir()
            # Not part of the key of the cache: which operators the export asked about
            # is in the entry, and compared with what is offered then
            # (tests/unit/build/test_exporting.py).
            request = replace(request, offered=tuple(sorted(what.offered())))
            result = _run(what, request, made, model.name, where)
            if isinstance(result, ExportFailure):
                raise _error(result, model, where, what.log_of(model.name))
            with suppress(ModelError):  # which the stage that reads programs reports
                # What a lowering left to floats is judged on the program, as the reader
                # of builds sees it, not on ExecuTorch's graphs: backends take calls
                # away after these are made.
                program = read_program((made / PROGRAM).read_bytes(), file=PROGRAM)
                left = left_over(program, request, what.offered())
                result = replace(result, warnings=(*result.warnings, *left))
            entry = cache.store(made, result, since_ns=start_ns)
        if entry.facts.decomposed:
            reporter.note(
                f"{model.name}: decomposed for want of a kernel:"
                f" {named_calls(entry.facts.decomposed)}"
            )
    else:
        reporter.skipped(label)
    return Exported(
        program=entry.program, reason=reason, entry=entry, paths=tuple(cache.paths(entry))
    )


def _left_in_float(
    model: ModelTable, facts: ExportFacts, where: SourceSpan
) -> Iterator[Diagnostic]:
    for code, text in facts.warnings:
        if code == LEFT_IN_FLOAT:
            first, _, rest = text.partition("\n")
            yield Diagnostic.of(
                LEFT_IN_FLOAT,
                f'model "{model.name}": {first.partition("; see")[0]}',
                where=where,
                found=dedent(rest),
                hint="write these layers with operators that int8 kernels have"
                " (docs/export.md#what-stays-in-float), or leave out --deny-float",
            )


def named_calls(decomposed: Mapping[str, int]) -> str:
    """Operators with their numbers of calls, for people."""
    return ", ".join(f"{name} ({calls})" for name, calls in sorted(decomposed.items()))


def _find(what: ExportRequest, cache: ExportCache) -> tuple[Entry | None, str]:
    """The valid entry of the cache, or the reason why there is none."""

    def changed(facts: ExportFacts) -> str:
        if facts.fetched and not what.export_choice.fetched:
            return "another machine exported it"
        return _changed(what, facts)

    return cache.find(changed)


def _changed(what: ExportRequest, facts: ExportFacts) -> str:
    return changed_answer(facts.asked, what.offered()) if facts.asked else ""


def _fetch(what: ExportRequest, cache: ExportCache, request: Request) -> Entry | None:
    """The entry of another machine, if what it depends on is the same here."""
    published = what.published() if what.export_choice.fetched else None
    if published is None:
        return None

    def installed(names: Iterable[str]) -> Installed | None:
        arguments = ("orchestrator.export.installed", request.lowering, *names)
        return read_installed(_run_python(what, request, *arguments).stdout)

    return cache.fetch(published, changed=lambda facts: _changed(what, facts), installed=installed)


def pending_exports(*, export_request: ExportRequest) -> dict[str, str]:
    """Why models would be exported now, by name; no code of a model runs.

    Raises:
        ProfileError: A file that the profile names is missing or has the wrong content.
    """
    what, profile = export_request, export_request.profile
    found = {}
    for model in profile.models:
        if model.source is None:
            continue
        check_vela_config(profile, model, what.files.read)
        request = _request(what, model, model.source)
        entry, reason = _find(what, _cache(what, model, request))
        if entry is None:
            found[model.name] = reason
    return found


def _cache(what: ExportRequest, model: ModelTable, request: Request) -> ExportCache:
    return ExportCache(
        _key(what, request, _read_files(what, model)),
        base=Path(request.file).parent,
        interpreter=interpreter(),
        folder=what.export_choice.cache or cache_folder() / EXPORTS,
    )


def _request(what: ExportRequest, model: ModelTable, source: PythonCallable) -> Request:
    target = what.profile.target
    choice = what.export_choice
    return Request(
        # Not resolve(): modules beside a link are found where the user put the link.
        file=os.path.abspath(model.path),  # noqa: PTH100  # keeps links
        function=source.function,
        folder=os.path.abspath(what.profile.folder),  # noqa: PTH100
        lowering=model.lowering,
        cpu=target.cpu,
        isa=target.isa,
        quantize=model.quantize,
        vela=_vela(what, model.vela),
        accelerate=choice.accelerate,
        verify=choice.verify,
    )


def _vela(what: ExportRequest, vela: Vela) -> Vela:
    """Vela's settings, with a relative path to the file: programs contain the path."""
    if not vela.config:
        return vela
    # Vela writes its configuration's path into the program: an absolute one would give
    # other bytes in every checkout.
    config = Path(os.path.relpath(vela.config, what.profile.folder))
    return replace(vela, config=config.as_posix())


def _key(what: ExportRequest, request: Request, read: list[Path]) -> str:
    """Digest of all that decides about an export and is known before the code runs."""
    base = Path(request.file).parent
    # Only lowering for Cortex-M depends on the core.
    core = (request.cpu, request.isa) if request.lowering == CORTEX_M else ()
    own = hashlib.sha256()
    for path in sources.package_files():
        part = path.relative_to(PACKAGE_FOLDER).parts
        # Only what runs in the process, or decides what it does: a change elsewhere in
        # Orchestrator does not export every model again.
        if part[0] in ("export", "lowering") or part == ("profile", "lowering.py"):
            own.update(what.files.read(path))
    facts = [
        own.hexdigest(),
        Path(request.file).name,
        request.function,
        os.path.relpath(request.folder, base),
        request.lowering,
        core,
        repr(request.quantize),
        repr(request.vela),
        [
            (Path(os.path.relpath(path, base)).as_posix(), digest(what.files.read(path)))
            for path in read
        ],
    ]
    # 128 bits, the name of a folder.
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _read_files(what: ExportRequest, model: ModelTable) -> list[Path]:
    """Files that the profile says the code reads. Raises ProfileError."""
    found: set[Path] = set()
    for at, named in enumerate(model.reads):
        text = named.path.as_posix()
        if not named.is_pattern:
            found.add(named.path)
            continue
        # The last folder before the pattern: `+ "x"` keeps one that ends with a slash.
        folder = Path(text.partition("*")[0] + "x").parent
        files = [
            path
            for path in folder.glob(text.removeprefix(f"{folder.as_posix()}/"))
            if path.is_file()
        ]
        if not files:
            index = what.profile.models.index(model)
            raise ProfileError.of(
                "missing-file",
                f'no file matches "{named.written}"',
                where=what.profile.span("models", index, "reads", at),
                found=f"no file at {text}",
                hint="correct the pattern, or leave it out",
            )
        found.update(files)
    return sorted(found)


def _run_python(what: ExportRequest, request: Request, *arguments: str) -> Finished:
    """Run a module with arguments in the Python that exports."""
    return what.processes.run(
        # -B: no bytecode is written beside the user's code, whose folders are among
        # what is compared.
        [interpreter(), "-B", "-m", *arguments],
        cwd=Path(request.folder),
        env=python_environment() | _SAME_EVERYWHERE,
        timeout_s=_TIMEOUT_S,
    )


def _run(
    what: ExportRequest, request: Request, made: Path, name: str, where: SourceSpan
) -> ExportResult | ExportFailure:
    """Run the process that exports, and return its result."""
    request_file = made.with_name("request.json")
    request_file.write_text(request.text(), encoding="utf-8")
    arguments = ("orchestrator.export.worker", str(request_file), str(made))
    with _followed(made / STEP_FILE, f"exporting {name}", what.reporter):
        done = _run_python(what, request, *arguments)
    if done.status == NOT_STARTED:
        raise ToolchainError.of(
            "missing-extra",
            "the interpreter that exports models does not start",
            where=where,
            found=f"{interpreter()}: {done.stderr}",
            hint=f"correct {PYTHON}",
        )
    log = what.log_of(name)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(done.stdout + done.stderr, encoding="utf-8")
    result = made / "result.json"
    # The worker writes a result for every exception: without one the process itself
    # ended, by a signal, `os._exit` or lack of memory.
    if not result.is_file():
        # Two streams, one after the other: what a crash says is on stderr, so it comes
        # last.
        lines = (done.stdout + done.stderr).rstrip().splitlines()[-_LOG_LINES:]
        raise ModelError.of(
            "export-crashed",
            f'model "{name}": the process that exports it died',
            where=where,
            found=f"status {done.status}",
            its_end="\n".join(lines) or "no output",
            log=str(log),
            hint="does the code of the model run by itself?",
        )
    # Removed then: what is left in the folder becomes the entry of the cache.
    found = read_result(result)
    result.unlink()
    return found


@contextmanager
def _followed(step_file: Path, what: str, reporter: Reporter) -> Iterator[None]:
    """Report the steps that the process that exports writes into a file."""
    reporter.working(what)
    ended = Event()

    def follow() -> None:
        last = ""
        while not ended.wait(_LOOK_S):
            with suppress(OSError):
                step = step_file.read_text(encoding="utf-8")
                if step and step != last:
                    last = step
                    reporter.working(f"{what}: {step}")

    # The step comes through a file, not a pipe: the user's code owns both streams.
    follower = Thread(target=follow, daemon=True)
    follower.start()
    try:
        yield
    finally:
        ended.set()
        follower.join()


def _error(
    failure: ExportFailure, model: ModelTable, where: SourceSpan, log: Path
) -> OrchestratorError:
    kind: type[OrchestratorError] = {
        # Codes of the process that are not about the model: exit codes differ.
        "missing-extra": ToolchainError,
        "export-differs": ReproducibilityError,
    }.get(failure.code, ModelError)
    return kind(
        Diagnostic(
            code=failure.code,
            message=f'model "{model.name}": {failure.message}',
            where=where,
            notes=(*failure.notes, ("log", str(log))),
            hint=failure.hint,
        )
    )


def published(found: Mapping[str, Exported], folder: Path) -> dict[str, Path]:
    """Publish programs and arrays from the cache; returns program paths by model.

    Args:
        found: Exported models by name.
        folder: The build folder, which this process has locked.
    """
    publish_exported(
        folder,
        {
            f"{name}/{file}": (exported.entry.folder / file).read_bytes()
            for name, exported in found.items()
            for file in (PROGRAM, *exported.facts.arrays)
        },
    )
    return {name: folder / EXPORTED / name / PROGRAM for name in found}


_SECTIONS = {"system_config": "System_Config.", "memory_mode": "Memory_Mode."}


def check_vela_config(profile: Profile, model: ModelTable, read: Callable[[Path], bytes]) -> None:
    """Check that the file of Vela's that a model names has the sections it names.

    Vela itself reports a missing section only after quantizing the model, in its log.

    Args:
        profile: The profile; gives the lines for messages.
        model: One of its models.
        read: Reads a file; may raise `OSError`.

    Raises:
        ProfileError: The file is not a configuration, or lacks sections: all of them.
    """
    if model.source is None or not model.vela.config:
        return
    vela = with_defaults(model.vela, model.lowering)
    sections = _sections_of(vela.config, read)
    index = profile.models.index(model)
    problems = []
    for key, prefix in _SECTIONS.items():
        name = getattr(vela, key)
        known = [s.removeprefix(prefix) for s in sections if s.startswith(prefix)]
        if name and name not in known:
            problems.append(
                Diagnostic.of(
                    "bad-vela-config",
                    f"{vela.config} has no section {shown(prefix + name)}",
                    where=profile.span("models", index, "vela", key),
                    found=", ".join(known) or f"no {prefix[:-1]} at all",
                    hint=did_you_mean(name, known) or "name one of its sections",
                )
            )
    ProfileError.raise_if(problems)


def _sections_of(file: str, read: Callable[[Path], bytes]) -> list[str]:
    parser = ConfigParser()
    try:
        parser.read_string(read(Path(file)).decode("utf-8"))
    except (Error, UnicodeDecodeError, OSError) as error:
        first = str(error).partition("\n")[0]
        raise ProfileError.of(
            "bad-vela-config",
            "Vela cannot read its configuration",
            where=SourceSpan(file=file),
            found=first,
            hint="write it as Vela's own: [System_Config.NAME], then key=value",
        ) from error
    return parser.sections()
