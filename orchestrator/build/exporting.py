"""Stage export: models given as Python become programs, or are known already."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.build.vela_config import check_vela_config
from orchestrator.errors import (
    Diagnostic,
    ModelError,
    OrchestratorError,
    ProfileError,
    ReproducibilityError,
    ToolchainError,
)
from orchestrator.export.request import Request
from orchestrator.profile.lowering import CORTEX_M
from orchestrator.shell import sources
from orchestrator.shell.build_folder import EXPORTED, claim, refuse_links
from orchestrator.shell.distribution import PACKAGE_FOLDER
from orchestrator.shell.exported import PROGRAM, Entry, ExportCache, started
from orchestrator.shell.process import NOT_STARTED, run
from orchestrator.shell.publish import publish_exported

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.build.inputs import Inputs
    from orchestrator.errors import SourceSpan
    from orchestrator.profile import ModelTable, PythonCallable
    from orchestrator.profile.lowering import Vela

PYTHON = "ORCHESTRATOR_EXPORT_PYTHON"
"""Environment variable: the interpreter that has PyTorch and ExecuTorch."""
_TIMEOUT_S = 24 * 3600.0
_LOG_LINES = 12
_SAME_EVERYWHERE = {
    # Scales must not depend on how many cores a machine has, or which instructions.
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "MKL_CBWR": "COMPATIBLE",
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A model that was exported, now or before.

    Args:
        program: The program.
        reason: Why it was exported now; "" if it was known.
        entry: Where it is, and what is known of it.
        paths: Absolute paths of everything that shaped it.
    """

    program: bytes
    reason: str
    entry: Entry
    paths: tuple[str, ...]

    @property
    def facts(self) -> Mapping[str, Any]:
        """What the entry says."""
        return self.entry.facts


def export_models(inputs: Inputs) -> dict[str, Exported]:
    """Export every model that is given as Python.

    Raises:
        ProfileError: A file that the profile names is missing or has not what it says.
        ModelError: The code of a model fails, or cannot be lowered: all of them.
        ToolchainError: What exporting needs is not installed.
        ReproducibilityError: Accelerated lowering made something else.
    """
    found: dict[str, Exported] = {}
    problems: list[Diagnostic] = []
    for index, model in enumerate(inputs.profile.models):
        if model.source is None:
            continue
        where = inputs.profile.span("models", index, "source")
        check_vela_config(inputs.profile, model, inputs.read)
        try:
            found[model.name] = _export(inputs, model, model.source, where)
        except ModelError as error:
            problems += error.diagnostics
    if problems:
        raise ModelError(problems)
    return found


def _export(
    inputs: Inputs, model: ModelTable, source: PythonCallable, where: SourceSpan
) -> Exported:
    choice = inputs.options.export
    request = _request(inputs, model, source)
    cache = _cache(inputs, model, request)
    reporter = inputs.reporter
    label = f"export {model.name}"
    entry, reason = (None, "asked for") if choice.again else cache.find()
    if entry is None:
        reporter.stage(label, reason)
        reporter.note(f"exporting {model.name}, {reason} ...")
        # Also `plan` and `check` export; the log lies in the build folder.
        claim(inputs.folder)
        refuse_links(inputs.folder)
        log = inputs.work / "exports" / f"{model.name}.log"
        start_ns = started()
        with tempfile.TemporaryDirectory(prefix="orchestrator-export-") as folder:
            made = Path(folder) / "made"
            made.mkdir()
            told = _run(request, made, log, model.name, where)
            if "failure" in told:
                raise _error(told["failure"], model, where, log)
            entry = cache.store(made, told, since_ns=start_ns)
    else:
        reporter.skipped(label)
    return Exported(
        program=entry.program,
        reason=reason,
        entry=entry,
        paths=tuple(cache.paths(entry)),
    )


def pending_exports(inputs: Inputs) -> dict[str, str]:
    """Why models would be exported now, by name; no code of a model runs.

    Raises:
        ProfileError: A file that the profile names is missing or has not what it says.
    """
    found = {}
    for model in inputs.profile.models:
        if model.source is None:
            continue
        check_vela_config(inputs.profile, model, inputs.read)
        request = _request(inputs, model, model.source)
        entry, reason = _cache(inputs, model, request).find()
        if entry is None:
            found[model.name] = reason
    return found


def _cache(inputs: Inputs, model: ModelTable, request: Request) -> ExportCache:
    return ExportCache(
        _key(inputs, request, _read_files(inputs, model)),
        base=Path(request.file).parent,
        folder=inputs.options.export.cache,
    )


def _request(inputs: Inputs, model: ModelTable, source: PythonCallable) -> Request:
    target = inputs.profile.target
    choice = inputs.options.export
    return Request(
        file=os.path.abspath(model.path),  # noqa: PTH100  # keeps links
        function=source.function,
        folder=os.path.abspath(inputs.profile.folder),  # noqa: PTH100
        lowering=model.lowering,
        cpu=target.cpu,
        isa=target.isa,
        quantize=model.quantize,
        vela=_vela(inputs, model.vela),
        accelerate=choice.accelerate,
        verify=choice.verify,
    )


def _vela(inputs: Inputs, vela: Vela) -> Vela:
    """The same, its file relative to the profile: in programs is where it lies."""
    if not vela.config:
        return vela
    config = Path(os.path.relpath(vela.config, inputs.profile.folder))
    return replace(vela, config=config.as_posix())


def interpreter() -> str:
    """The Python that exports."""
    return os.environ.get(PYTHON) or sys.executable


def _key(inputs: Inputs, request: Request, read: list[Path]) -> str:
    """Digest of what is known before the code runs."""
    base = Path(request.file).parent
    # Only Cortex-M looks at the core.
    core = (request.cpu, request.isa) if request.lowering == CORTEX_M else ()
    own = hashlib.sha256()
    for path in sources.package_files():
        part = path.relative_to(PACKAGE_FOLDER).parts
        if part[0] in ("export", "lowering") or part == ("core", "lowering.py"):
            own.update(inputs.read(path))
    facts = [
        own.hexdigest(),
        interpreter(),
        Path(request.file).name,
        request.function,
        os.path.relpath(request.folder, base),
        request.lowering,
        core,
        repr(request.quantize),
        repr(request.vela),
        [
            (Path(os.path.relpath(path, base)).as_posix(), inputs.digest_of(path))
            for path in read
        ],
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]


def _read_files(inputs: Inputs, model: ModelTable) -> list[Path]:
    """Files that the profile says the code reads. Raises ProfileError."""
    found: set[Path] = set()
    for at, named in enumerate(model.reads):
        text = named.path.as_posix()
        if not named.is_pattern:
            found.add(named.path)
            continue
        folder = Path(text.partition("*")[0] + "x").parent
        files = [
            path
            for path in folder.glob(text.removeprefix(f"{folder.as_posix()}/"))
            if path.is_file()
        ]
        if not files:
            index = inputs.profile.models.index(model)
            raise ProfileError(
                Diagnostic(
                    code="missing-file",
                    message=f'no file matches "{named.written}"',
                    where=inputs.profile.span("models", index, "reads", at),
                    notes=(("found", f"no file at {text}"),),
                    hint="correct the pattern, or leave it out",
                )
            )
        found.update(files)
    return sorted(found)


def _run(
    request: Request, made: Path, log: Path, name: str, where: SourceSpan
) -> dict[str, Any]:
    """Run the process that exports; what it says."""
    asked = made.with_name("request.json")
    asked.write_text(request.text(), encoding="utf-8")
    python = interpreter()
    paths = [str(PACKAGE_FOLDER.parent), os.environ.get("PYTHONPATH", "")]
    done = run(
        [python, "-B", "-m", "orchestrator.export.worker", str(asked), str(made)],
        cwd=Path(request.folder),
        env={
            **os.environ,
            **_SAME_EVERYWHERE,
            "PYTHONPATH": os.pathsep.join(p for p in paths if p),
        },
        timeout_s=_TIMEOUT_S,
    )
    if done.status == NOT_STARTED:
        raise ToolchainError(
            Diagnostic(
                code="missing-extra",
                message="the interpreter that exports models does not start",
                where=where,
                notes=(("found", f"{python}: {done.stderr}"),),
                hint=f"correct {PYTHON}",
            )
        )
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(done.stdout + done.stderr, encoding="utf-8")
    result = made / "result.json"
    if not result.is_file():
        lines = (done.stdout + done.stderr).rstrip().splitlines()[-_LOG_LINES:]
        raise ModelError(
            Diagnostic(
                code="export-crashed",
                message=f'model "{name}": the process that exports it died',
                where=where,
                notes=(
                    ("found", f"status {done.status}"),
                    ("its end", "\n".join(lines) or "no output"),
                    ("log", str(log)),
                ),
                hint="does the code of the model run by itself?",
            )
        )
    told: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    result.unlink()
    return told


def _error(
    failure: Mapping[str, Any], model: ModelTable, where: SourceSpan, log: Path
) -> OrchestratorError:
    kind: type[OrchestratorError] = {
        "missing-extra": ToolchainError,
        "export-differs": ReproducibilityError,
    }.get(failure["code"], ModelError)
    notes = tuple((str(label), str(text)) for label, text in failure["notes"])
    return kind(
        Diagnostic(
            code=failure["code"],
            message=f'model "{model.name}": {failure["message"]}',
            where=where,
            notes=(*notes, ("log", str(log))),
            hint=failure["hint"],
        )
    )


def published(found: Mapping[str, Exported], folder: Path) -> dict[str, Path]:
    """Publish programs and arrays of the cache: by model, where the program is.

    Args:
        found: Exported models by name.
        folder: The build folder; nobody else builds in it.
    """
    publish_exported(
        folder,
        {
            f"{name}/{file}": (exported.entry.folder / file).read_bytes()
            for name, exported in found.items()
            for file in (PROGRAM, *exported.facts["arrays"])
        },
    )
    return {name: folder / EXPORTED / name / PROGRAM for name in found}
