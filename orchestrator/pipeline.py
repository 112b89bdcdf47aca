"""The pipeline: carries a build plan out. The only loop that performs effects."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import orchestrator
from orchestrator import lockfile
from orchestrator.core.artifact import Artifact, GeneratedFile
from orchestrator.core.dtype import ScalarType
from orchestrator.core.op_info import Origin, SelectedOperator
from orchestrator.errors import (
    Diagnostic,
    KernelError,
    LockError,
    ModelError,
    OrchestratorError,
    ProfileError,
    SourceSpan,
)
from orchestrator.plan import BuildPlan, Inputs, PlannedStage, plan_build
from orchestrator.shell import sources, stamp
from orchestrator.shell.files import link_to, write_atomic, write_if_changed
from orchestrator.targets import Target, resolve_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from orchestrator.catalog import Catalog
    from orchestrator.core.memory import MemoryPlan
    from orchestrator.core.op_info import OpInfo, Selection
    from orchestrator.core.resolution import Resolution
    from orchestrator.core.size import SizeReport
    from orchestrator.core.toolchain import Toolchain
    from orchestrator.profile import Profile
    from orchestrator.pte.program import Program
    from orchestrator.reporter import Reporter
    from orchestrator.stages.compile import CompilePlan

GENERATOR = f"Orchestrator {orchestrator.__version__}"
WORK = ".work"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """How to build.

    Args:
        out: Build folder; None for build/<profile name>.
        jobs: Compile steps at a time; None lets ninja choose.
        locked: The lock must not change.
        frozen: Its inputs must be those of the lock before anything runs.
        write_lock: Write the lock beside the profile.
    """

    out: Path | None = None
    jobs: int | None = None
    locked: bool = False
    frozen: bool = False
    write_lock: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """What a build did.

    Args:
        profile: Name.
        folder: Build folder.
        lock_file: The lock.
        plan: Stages with the reasons they ran for.
        report: What the firmware costs.
        lock: What shaped the build and came out.
        lock_changed: Whether the lock file was written.
    """

    profile: str
    folder: Path
    lock_file: Path
    plan: BuildPlan
    report: SizeReport
    lock: lockfile.Lock
    lock_changed: bool


def load(path: Path) -> Profile:
    """The profile of a file.

    Raises:
        ProfileError: Whatever is wrong with it.
    """
    from orchestrator.profile import load_profile  # noqa: PLC0415  # imports pydantic

    return load_profile(
        path,
        text_of=lambda p: p.read_text(encoding="utf-8"),
        is_file=Path.is_file,
        known_libraries=sources.library_names(),
    )


class Pipeline:
    """One profile's build: inputs are read once, results are made when asked for."""

    def __init__(self, profile: Profile, options: BuildOptions) -> None:
        self.profile = profile
        self.options = options
        self.folder = options.out or Path("build") / profile.name
        self.work = self.folder / WORK
        self.lock_file = profile.file.with_suffix(".lock")
        self._states: dict[str, stamp.State] = {}
        self._results: dict[str, object] = {}

    # Inputs ---------------------------------------------------------------------

    def _read(self, path: Path) -> bytes:
        """Bytes of an input; its state is noted first, for the stamp."""
        absolute = str(path.absolute())
        self._states.setdefault(absolute, stamp.state_of(absolute))
        return path.read_bytes()

    @cached_property
    def target(self) -> Target:
        """What is built for."""
        choice = self.profile.target
        return resolve_target(
            cpu=choice.cpu,
            isa=choice.isa,
            board=choice.board,
            toolchain=choice.toolchain or self._host_toolchain(),
            optimize=choice.optimize.value,
        )

    def _host_toolchain(self) -> str:
        """The system's compiler where there is one, else zig."""
        import shutil  # noqa: PLC0415  # slow to import, rarely needed

        found = any(shutil.which(n) for n in ("g++", "clang++", "c++"))
        return "gnu" if found else "zig"

    @cached_property
    def model_bytes(self) -> dict[str, bytes]:
        """Programs by model name."""
        problems: list[Diagnostic] = []
        data: dict[str, bytes] = {}
        for index, model in enumerate(self.profile.models):
            try:
                data[model.name] = self._read(model.path)
            except OSError as error:
                problems.append(
                    Diagnostic(
                        code="unreadable-model",
                        message=f'model "{model.name}" cannot be read',
                        where=self.profile.span("models", index, "path"),
                        notes=(("found", error.strerror or str(error)),),
                        hint="check the file's permissions",
                    )
                )
        if problems:
            raise ModelError(problems)
        return data

    @cached_property
    def programs(self) -> dict[str, Program]:
        """Decoded programs by model name. Raises ModelError with every problem."""
        from orchestrator.pte.reader import read_program  # noqa: PLC0415

        programs: dict[str, Program] = {}
        problems: list[Diagnostic] = []
        for model in self.profile.models:
            try:
                programs[model.name] = read_program(
                    self.model_bytes[model.name], file=str(model.path)
                )
            except ModelError as error:
                problems += error.diagnostics
        if problems:
            raise ModelError(problems)
        return programs

    @cached_property
    def model_spans(self) -> dict[str, SourceSpan]:
        """Profile line of each model."""
        return {
            model.name: self.profile.span("models", index, "path")
            for index, model in enumerate(self.profile.models)
        }

    @cached_property
    def native(self) -> dict[str, str]:
        """Digests of runtime and of the kernel libraries, by path."""
        root = sources.native_root()
        wanted = {"util", *self.profile.libraries}
        return {
            name: hashlib.sha256(self._read(root / name)).hexdigest()
            for name in sources.native_files()
            if not name.startswith("kernels/") or name.split("/")[1] in wanted
        }

    @cached_property
    def catalog(self) -> Catalog:
        """Kernels of the profile's libraries."""
        return self._catalog_of(self.profile.libraries)

    def _catalog_of(self, names: tuple[str, ...]) -> Catalog:
        from orchestrator.catalog import LibraryText, read_catalog  # noqa: PLC0415

        return read_catalog(
            [
                LibraryText(
                    name=name,
                    file=f"kernels/{name}/functions.yaml",
                    text=self._read(sources.library_file(name)).decode(),
                )
                for name in names
            ]
        )

    @cached_property
    def toolchain(self) -> Toolchain:
        """The compiler. Raises ToolchainError."""
        from orchestrator.shell.toolchain import find_toolchain  # noqa: PLC0415

        return find_toolchain(self.target)

    # Plan -----------------------------------------------------------------------

    def plan(self, *, with_toolchain: bool) -> BuildPlan:
        """Which stages would run, and why.

        Args:
            with_toolchain: Look for the compiler, which may be missing.
        """
        models = {n: _digest(d) for n, d in self.model_bytes.items()}
        return plan_build(
            orchestrator=self._program_digest,
            models=models,
            libraries={
                name: self.native[f"kernels/{name}/functions.yaml"]
                for name in self.profile.libraries
            },
            sources=self.native,
            sections=self._sections,
            toolchain=_digest(repr(self.toolchain).encode()) if with_toolchain else "",
            previous=self._previous,
        )

    @cached_property
    def _program_digest(self) -> str:
        digest = hashlib.sha256()
        for path in sources.package_files():
            digest.update(self._read(path))
        return digest.hexdigest()

    @cached_property
    def _sections(self) -> dict[str, str]:
        p = self.profile
        return {
            name: _digest(repr(value).encode())
            for name, value in {
                "name": p.name,
                "target": (p.target, self.target.toolchain),
                "operators": p.operators,
                "dtypes": p.dtypes,
                "kernels": p.libraries,
                "budget": p.budget,
            }.items()
        }

    @cached_property
    def _previous(self) -> dict[str, dict[str, str]]:
        with suppress(OSError, ValueError):
            found = json.loads((self.work / "stages.json").read_text())
            if isinstance(found, dict):
                return found
        return {}

    # Stages ---------------------------------------------------------------------

    def _memo(self, stage: PlannedStage, compute: Callable[[], _T]) -> _T:
        """A stage's result: from this run, from the last one, or computed."""
        label = stage.label
        if label in self._results:
            return self._results[label]  # type: ignore[return-value]  # stored below
        path = self.work / "results" / f"{label.replace(' ', '-')}.pickle"
        result: _T | None = None
        if not stage.reason:
            # A damaged or foreign file only means that the stage runs again.
            with suppress(Exception):
                key, result = pickle.loads(path.read_bytes())  # noqa: S301  # ours
                result = result if key == stage.key else None
        if result is None:
            result = compute()
        self._results[label] = result
        return result

    def op_infos(self, plan: BuildPlan) -> list[OpInfo]:
        """Stage extract, for every model."""
        from orchestrator.stages.extract import extract  # noqa: PLC0415

        return [
            self._memo(
                plan.stage("extract", model.name),
                lambda name=model.name: extract(self.programs[name], model=name),  # type: ignore[misc]
            )
            for model in self.profile.models
        ]

    def selection(self, plan: BuildPlan) -> Selection:
        """Stage aggregate."""
        from orchestrator.stages.aggregate import aggregate  # noqa: PLC0415

        def compute() -> Selection:
            union = aggregate(self.op_infos(plan), _requested(self.profile))
            return replace(union, every_operator=self.profile.operators.every)

        return self._memo(plan.stage("aggregate"), compute)

    def resolution(self, plan: BuildPlan) -> Resolution:
        """Stage resolve. Raises KernelError with every gap."""
        from orchestrator.stages.resolve import resolve  # noqa: PLC0415

        return self._memo(
            plan.stage("resolve"),
            lambda: resolve(
                self.selection(plan),
                self.catalog,
                every_dtype=self.profile.dtypes.select.value == "all",
                span_of=self._span_of,
                elsewhere=self._every_library,
            ),
        )

    def _every_library(self) -> Catalog:
        """Kernels of all libraries, for hints: one that is broken has none."""
        from orchestrator.catalog import Catalog  # noqa: PLC0415

        try:
            return self._catalog_of(sources.library_names())
        except ProfileError:
            return Catalog()

    def _span_of(self, origin: Origin) -> SourceSpan | None:
        if origin.method or origin.source in self.model_spans:
            return self.model_spans.get(origin.source)
        return self.profile.span(*origin.source.split("."))

    def memory(self, plan: BuildPlan) -> MemoryPlan:
        """Stage memory. Raises MemoryPlanError, ModelError."""
        from orchestrator.stages.memory import plan_memory  # noqa: PLC0415

        return self._memo(
            plan.stage("memory"),
            lambda: plan_memory(
                self.programs,
                pointer_bytes=self.target.cpu.pointer_bytes,
                board=self.target.board,
                spans=self.model_spans,
            ),
        )

    def generated(self, plan: BuildPlan) -> tuple[GeneratedFile, ...]:
        """Stage generate: everything but what the compiler makes."""
        return self._memo(plan.stage("generate"), lambda: self._generate(plan))

    def _generate(self, plan: BuildPlan) -> tuple[GeneratedFile, ...]:
        from orchestrator.running.product import product_json  # noqa: PLC0415
        from orchestrator.stages.executorch_headers import (  # noqa: PLC0415
            executorch_headers,
        )
        from orchestrator.stages.generate import generate  # noqa: PLC0415
        from orchestrator.stages.memory_json import memory_plan_json  # noqa: PLC0415
        from orchestrator.stages.resolve import resolution_json  # noqa: PLC0415
        from orchestrator.stages.selected_yaml import (  # noqa: PLC0415
            selected_operators_yaml,
        )

        name = self.profile.name
        selection, resolution = self.selection(plan), self.resolution(plan)
        memory = self.memory(plan)
        used = {library for library, _ in resolution.sources}
        kernels = tuple(
            k for lib, ks in self.catalog.libraries if lib in used for k in ks
        )
        files = [
            *generate(
                profile=name,
                generator=GENERATOR,
                programs=self.programs,
                resolution=resolution,
                kernels=kernels,
                memory=memory,
                target=self.target,
            ),
            *executorch_headers(
                f"Generated by {GENERATOR} for profile {name}. Do not edit.",
                selection,
                resolution,
            ),
            GeneratedFile(
                "selected_operators.yaml",
                selected_operators_yaml(selection, generator=GENERATOR),
            ),
            GeneratedFile("resolution.json", resolution_json(resolution)),
            GeneratedFile("memory_plan.json", memory_plan_json(memory)),
            GeneratedFile(
                "product.json",
                product_json(
                    profile=name,
                    programs=self.programs,
                    memory=memory,
                    target=self.target,
                ),
            ),
        ]
        return tuple(sorted(files))

    def compile_plan(self, plan: BuildPlan) -> CompilePlan:
        """Every compile and link step."""
        from orchestrator.stages.compile import plan_compile  # noqa: PLC0415

        platform = f"platform/{self.target.platform}/"
        tops: tuple[str, ...] = ("src/", "app/", platform)
        if self.target.freestanding:
            tops = (*tops, "freestanding/")
        runtime = tuple(
            name.removeprefix("runtime/")
            for name in self.native
            if name.startswith("runtime/") and name.endswith(".cpp")
        )
        return plan_compile(
            profile=self.profile.name,
            target=self.target,
            toolchain=self.toolchain,
            resolution=self.resolution(plan),
            runtime_sources=tuple(n for n in runtime if n.startswith(tops)),
            models=tuple(m.name for m in self.profile.models),
        )

    # Build ----------------------------------------------------------------------

    def check(self) -> BuildPlan:
        """Everything short of compiling. Raises whatever is wrong."""
        plan = self.plan(with_toolchain=False)
        errors = _Collector()
        with errors:
            self.resolution(plan)
        with errors:
            self.memory(plan)
        errors.raise_first()
        self.generated(plan)
        return plan

    def build(self, reporter: Reporter) -> BuildReport:
        """Build everything and publish it.

        Raises:
            OrchestratorError: Of the stage that failed; outputs and lock are those of
                the build before.
        """
        with _exclusive(self.folder):
            return self._build(reporter)

    def _build(self, reporter: Reporter) -> BuildReport:
        from orchestrator.shell.ninja import run_ninja  # noqa: PLC0415
        from orchestrator.shell.toolchain import with_builtins  # noqa: PLC0415

        plan = self.plan(with_toolchain=False)
        errors = _Collector()
        with errors:
            self.resolution(plan)
        with errors:
            self.memory(plan)
        errors.raise_first()
        plan = self.plan(with_toolchain=True)
        old_lock = self._old_lock()
        if self.options.frozen:
            self._check_frozen(old_lock)
        for stage in plan.stages:
            if stage.reason:
                reporter.stage(stage.label, stage.reason)
            else:
                reporter.skipped(stage.label)

        generated = self.generated(plan)
        self.toolchain = with_builtins(self.toolchain, self.target)
        compile_plan = self.compile_plan(plan)
        self._write_work(generated, compile_plan)
        log = run_ninja(self.work, jobs=self.options.jobs, reporter=reporter)
        if "warning:" in log:
            reporter.note(log)

        report = self._measure(plan, compile_plan)
        outputs = self._outputs(generated, compile_plan, report)
        lock = self._lock(plan, generated, compile_plan, outputs)
        text = lockfile.lock_text(lock)
        changed = self._current_lock_text() != text
        if self.options.locked and changed:
            lines = lockfile.differences(old_lock, lock) if old_lock else ()
            raise lockfile.stale(
                str(self.lock_file), lines or ("there is no lock file",)
            )
        self._publish(outputs)
        if changed and self.options.write_lock:
            write_atomic(self.lock_file, text.encode())
        self._remember(plan)
        return BuildReport(
            profile=self.profile.name,
            folder=self.folder,
            lock_file=self.lock_file,
            plan=plan,
            report=report,
            lock=lock,
            lock_changed=changed,
        )

    def _write_work(
        self, generated: tuple[GeneratedFile, ...], compile_plan: CompilePlan
    ) -> None:
        """Lay out ninja's folder; a file that keeps its bytes keeps its time."""
        link_to(self.work / "src", str(sources.native_root()))
        for file in generated:
            if file.path.startswith("gen/"):
                write_if_changed(self.work / file.path, file.text.encode())
        for name, data in self.model_bytes.items():
            write_if_changed(self.work / "models" / f"{name}.pte", data)
        if self.toolchain.builtins:
            write_if_changed(
                self.work / "obj" / "compiler_rt.o",
                Path(self.toolchain.builtins).read_bytes(),
            )
        write_if_changed(self.work / "build.ninja", compile_plan.ninja.encode())
        _remove_others(
            self.work / "gen",
            {self.work / f.path for f in generated if f.path.startswith("gen/")},
        )

    def _measure(self, plan: BuildPlan, compile_plan: CompilePlan) -> SizeReport:
        """Stage measure. Raises MemoryPlanError if a budget is exceeded."""
        from orchestrator.stages.measure import check_budget, measure  # noqa: PLC0415

        def compute() -> SizeReport:
            stacks = {}
            for unit in compile_plan.units:
                with suppress(OSError):
                    name = unit.object.removesuffix(".o") + ".su"
                    stacks[unit.object] = (self.work / name).read_text()
            return measure(
                elf=(self.work / "firmware.elf").read_bytes(),
                map_text=(self.work / "firmware.map").read_text(errors="replace"),
                stack_usage=stacks,
                memory=self.memory(plan),
                target=self.target,
                profile=self.profile.name,
            )

        report = self._memo(plan.stage("measure"), compute)
        check_budget(
            report,
            flash_bytes=self.profile.budget.flash_bytes,
            ram_bytes=self.profile.budget.ram_bytes,
            span_of=self.profile.span,
        )
        return report

    def _outputs(
        self,
        generated: tuple[GeneratedFile, ...],
        compile_plan: CompilePlan,
        report: SizeReport,
    ) -> dict[str, bytes]:
        """Every published file by path. Those in the lock hold no machine path."""
        from orchestrator.stages.compile import compile_commands  # noqa: PLC0415
        from orchestrator.stages.measure import report_json  # noqa: PLC0415

        name = self.profile.name
        files = {f.path: f.text.encode() for f in generated}
        for made in ("firmware.elf", compile_plan.library):
            files[made] = (self.work / made).read_bytes()
        files[f"include/{name}.h"] = files[f"gen/include/{name}.h"]
        status = sources.native_root() / "runtime/include/orch/status.h"
        files["include/orch/status.h"] = status.read_bytes()
        files["report.json"] = report_json(report).encode()
        files["build.ninja"] = compile_plan.ninja.encode()
        files["compile_commands.json"] = compile_commands(
            compile_plan,
            compiler=self.toolchain.compiler,
            folder=str(self.work.absolute()),
        ).encode()
        return files

    def _lock(
        self,
        plan: BuildPlan,
        generated: tuple[GeneratedFile, ...],
        compile_plan: CompilePlan,
        outputs: Mapping[str, bytes],
    ) -> lockfile.Lock:
        """Stage lock."""
        del plan
        inputs = self._lock_inputs(compile_plan)
        return replace(
            inputs,
            generated=lockfile.facts((f.path, f.sha256) for f in generated),
            outputs=lockfile.output_facts(
                Artifact(path=path, sha256=_digest(data), size_bytes=len(data))
                for path, data in outputs.items()
                if path in ("firmware.elf", compile_plan.library, "report.json")
            ),
        )

    def _lock_inputs(self, compile_plan: CompilePlan) -> lockfile.Lock:
        from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415

        used = {*compile_plan.sources, *self._headers(compile_plan)}
        used |= {f"kernels/{n}/functions.yaml" for n in self.profile.libraries}
        python = {"orchestrator": orchestrator.__version__}
        if self.toolchain.name == "zig":
            with suppress(PackageNotFoundError):
                python["ziglang"] = version("ziglang")
        target = self.target
        return lockfile.Lock(
            profile=lockfile.facts(
                [
                    ("name", self.profile.name),
                    *(
                        (
                            f"file {Path(os.path.relpath(f, self.profile.folder)).as_posix()}",
                            _digest(self._read(f)),
                        )
                        for f in self.profile.files
                    ),
                ]
            ),
            models=lockfile.facts((n, _digest(d)) for n, d in self.model_bytes.items()),
            sources=lockfile.facts((n, self.native[n]) for n in used),
            generated=(),
            target=lockfile.facts(
                [
                    ("cpu", target.cpu.name),
                    ("isa", target.isa.name),
                    ("board", target.board.name if target.board else ""),
                    ("optimize", target.optimize),
                ]
            ),
            toolchain=lockfile.facts(
                [
                    ("name", self.toolchain.name),
                    ("version", self.toolchain.version),
                    ("flags", " ".join(compile_plan.flags)),
                    ("link flags", " ".join(compile_plan.link_flags)),
                    *((f"sha256 {r}", d) for r, d in self.toolchain.programs),
                ]
            ),
            python=lockfile.facts(python.items()),
            outputs=(),
        )

    def _headers(self, compile_plan: CompilePlan) -> set[str]:
        """Headers the compiled sources can reach by their includes."""
        return _reachable(set(compile_plan.sources), self.native, sources.native_root())

    def _old_lock(self) -> lockfile.Lock | None:
        text = self._current_lock_text()
        if text is None:
            return None
        if not (self.options.locked or self.options.frozen):
            return None  # it will be replaced, whatever it holds
        return lockfile.parse_lock(text, file=str(self.lock_file))

    def _current_lock_text(self) -> str | None:
        with suppress(OSError, UnicodeDecodeError):
            return self.lock_file.read_text(encoding="utf-8")
        return None

    def _check_frozen(self, lock: lockfile.Lock | None) -> None:
        if lock is None:
            raise lockfile.stale(str(self.lock_file), ("there is no lock file",))
        plan = self.plan(with_toolchain=True)
        now = self._lock_inputs(self.compile_plan(plan))
        if lines := lockfile.differences(lock.inputs(), now.inputs()):
            raise lockfile.stale(str(self.lock_file), lines)

    def _publish(self, outputs: dict[str, bytes]) -> None:
        from orchestrator.shell.publish import publish  # noqa: PLC0415

        identity = hashlib.sha256()
        for name in sorted(outputs):
            identity.update(f"{name}\0{_digest(outputs[name])}\n".encode())
        publish(self.folder, identity.hexdigest(), outputs)

    def _remember(self, plan: BuildPlan) -> None:
        """Note what is known now, for the next build."""
        for stage in plan.stages:
            if stage.label in self._results:
                name = f"{stage.label.replace(' ', '-')}.pickle"
                data = pickle.dumps((stage.key, self._results[stage.label]))
                write_if_changed(self.work / "results" / name, data)
        state = {stage.label: dict(stage.inputs) for stage in plan.stages}
        write_atomic(
            self.work / "stages.json",
            json.dumps(state, indent=1, sort_keys=True).encode(),
        )
        self._write_stamp()

    def _write_stamp(self) -> None:
        files = dict(self._states)
        made = [self.folder / "current", self.lock_file.absolute()]
        made += [p for p in (self.folder / "current").rglob("*") if p.is_file()]
        programs = {self.toolchain.compiler[0], self.toolchain.archiver[0]}
        for path in (*map(str, made), *programs):
            absolute = os.path.abspath(path)  # noqa: PTH100  # keeps links
            files[absolute] = stamp.state_of(absolute)
        folders = stamp.folders_of(
            [f for f in files if f.endswith((".cpp", ".h", ".py"))]
        )
        for path in folders:
            # Compiled Python files come and go; they say nothing.
            if not path.endswith("__pycache__"):
                files.setdefault(path, stamp.state_of(path))
        text = json.dumps(
            {
                "profile": str(self.profile.file.absolute()),
                "environment": stamp.environment(),
                "folder": str(self.folder),
                "lock": str(self.lock_file),
                "files": files,
            }
        )
        write_atomic(self.work / stamp.STAMP_NAME, text.encode())


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class _Collector:
    """Runs stages that do not depend on each other, and reports all their problems."""

    def __init__(self) -> None:
        self.errors: list[OrchestratorError] = []

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: object, trace: object) -> bool:
        if isinstance(error, OrchestratorError):
            self.errors.append(error)
            return True
        return False

    def raise_first(self) -> None:
        """Raise the first error, with the diagnostics of all."""
        if not self.errors:
            return
        seen = dict.fromkeys(d for e in self.errors for d in e.diagnostics)
        raise type(self.errors[0])(tuple(seen))


def _requested(profile: Profile) -> list[SelectedOperator]:
    """Operators the profile asks for besides those of the models."""
    include = Origin(source="operators.include")
    wanted = [
        SelectedOperator(name=name, every_dtype=True, origins=(include,))
        for name in profile.operators.include
    ]
    by_key = Origin(source="dtypes.operators")
    wanted += [
        SelectedOperator(
            name=request.operator,
            keys=request.keys,
            dtypes=request.dtypes,
            origins=(by_key,),
        )
        for request in profile.dtypes.operators
    ]
    return wanted


def _reachable(start: set[str], native: Mapping[str, str], root: Path) -> set[str]:
    """Headers that sources include, directly or not, among the known files."""
    import re  # noqa: PLC0415

    include = re.compile(rb'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)
    roots = ("runtime/include", "runtime/src", "runtime/freestanding", "kernels")
    found: set[str] = set()
    queue = sorted(start)
    while queue:
        name = queue.pop()
        folder = name.rpartition("/")[0]
        for text in include.findall((root / name).read_bytes()):
            for base in (folder, *roots):
                header = f"{base}/{text.decode()}"
                if header in native and header not in found:
                    found.add(header)
                    queue.append(header)
    return found


def _remove_others(folder: Path, keep: set[Path]) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and path not in keep:
            path.unlink()


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """One build at a time in a folder; others wait."""
    import fcntl  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


__all__ = [
    "BuildOptions",
    "BuildReport",
    "Inputs",
    "KernelError",
    "LockError",
    "Pipeline",
    "ProfileError",
    "ScalarType",
    "load",
]
