"""The build: carries a plan out and publishes what came of it."""

from __future__ import annotations

import json
import os
import pickle
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator import lockfile
from orchestrator.pipeline.locking import lock_inputs, lock_of
from orchestrator.pipeline.stages import Collector, Stages
from orchestrator.shell import sources, stamp
from orchestrator.shell.files import write_atomic, write_if_changed
from orchestrator.stages.compile import SOURCES, TOOLCHAIN_FILE, toolchain_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from orchestrator.core.artifact import GeneratedFile
    from orchestrator.core.size import SizeReport
    from orchestrator.plan import BuildPlan
    from orchestrator.reporter import Reporter
    from orchestrator.stages.compile import CompilePlan


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


class Pipeline(Stages):
    """One profile's build. The only code that performs the effects of stages."""

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
        from orchestrator.shell.publish import publish  # noqa: PLC0415
        from orchestrator.shell.toolchain import with_builtins  # noqa: PLC0415

        plan = self.plan(with_toolchain=False)
        errors = Collector()
        with errors:
            self.resolution(plan)
        with errors:
            self.memory(plan)
        errors.raise_first()
        plan = self.plan(with_toolchain=True)
        old_lock = self._old_lock()
        if self.options.frozen and old_lock:
            self._check_frozen(old_lock)
        for stage in plan.stages:
            if stage.reason:
                reporter.stage(stage.label, stage.reason)
            else:
                reporter.skipped(stage.label)

        generated = self.generated(plan)
        outputs = self._known_outputs(plan)
        if outputs is None:
            self.toolchain = with_builtins(self.toolchain, self.target)
            compile_plan = self.compile_plan(plan)
            self._write_work(generated, compile_plan)
            log = run_ninja(self.work, jobs=self.options.jobs, reporter=reporter)
            if "warning:" in log:
                reporter.note(log)
            report = self._measure(plan, compile_plan)
            outputs = self._outputs(generated, compile_plan, report)
        else:
            compile_plan = self.compile_plan(plan)
            report = self._measure(plan, compile_plan)
            # The only file that says where the build folder is; it may have moved.
            outputs["compile_commands.json"] = self._compile_commands(compile_plan)
        lock = lock_of(self, compile_plan, generated=generated, outputs=outputs)
        text = lockfile.lock_text(lock)
        changed = self._current_lock_text() != text
        if self.options.locked and changed:
            lines = lockfile.differences(old_lock, lock) if old_lock else ()
            raise lockfile.stale(str(self.lock_file), lines or ("only its form",))
        publish(self.folder, outputs)
        if changed and self.options.write_lock:
            write_atomic(self.lock_file, text.encode())
        self._remember(plan, outputs)
        if self.options.write_lock or not changed:
            self._write_stamp(outputs)
        return BuildReport(
            profile=self.profile.name,
            folder=self.folder,
            lock_file=self.lock_file,
            plan=plan,
            report=report,
            lock=lock,
            lock_changed=changed,
        )

    def _known_outputs(self, plan: BuildPlan) -> dict[str, bytes] | None:
        """What the last build published, if that is whole and nothing changed."""
        from orchestrator.shell.publish import (  # noqa: PLC0415
            identity_of,
            published_files,
        )

        if not plan.is_current or self.remembered(plan.stage("measure")) is None:
            return None
        with suppress(OSError):
            outputs = published_files(self.folder)
            if {"identity": identity_of(outputs)} == self.previous.get("outputs"):
                return outputs
        return None

    def _write_work(
        self, generated: tuple[GeneratedFile, ...], compile_plan: CompilePlan
    ) -> None:
        """Lay out ninja's folder; a file that keeps its bytes keeps its time.

        Sources are copied: what is compiled are the bytes that the lock names, and
        their times say when their bytes changed, which those of a checkout do not.
        """
        copies = self.work / SOURCES
        if copies.is_symlink():
            copies.unlink()
        files = {
            copies / name: data
            for name, data in self.native_bytes.items()
            if not name.endswith(".yaml")
        }
        files |= {
            self.work / file.path: file.text.encode()
            for file in generated
            if file.path.startswith("gen/")
        }
        files |= {
            self.work / "models" / f"{name}.pte": data
            for name, data in self.model_bytes.items()
        }
        files[self.work / TOOLCHAIN_FILE] = toolchain_text(self.toolchain).encode()
        for path, data in files.items():
            write_if_changed(path, data)
        if self.toolchain.builtins:
            write_if_changed(
                self.work / "obj" / "compiler_rt.o",
                Path(self.toolchain.builtins).read_bytes(),
            )
        write_if_changed(self.work / "build.ninja", compile_plan.ninja.encode())
        for folder in (copies, self.work / "gen", self.work / "models"):
            _remove_others(folder, keep=files)

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

        report = self.memo(plan.stage("measure"), compute)
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
        from orchestrator.stages.measure import report_json  # noqa: PLC0415

        name = self.profile.name
        files = {f.path: f.text.encode() for f in generated}
        for made in ("firmware.elf", compile_plan.library):
            files[made] = (self.work / made).read_bytes()
        files[f"include/{name}.h"] = files[f"gen/include/{name}.h"]
        status = self.native_bytes["runtime/include/orch/status.h"]
        files["include/orch/status.h"] = status
        files["report.json"] = report_json(report).encode()
        files["build.ninja"] = compile_plan.ninja.encode()
        files["compile_commands.json"] = self._compile_commands(compile_plan)
        return files

    def _compile_commands(self, compile_plan: CompilePlan) -> bytes:
        from orchestrator.stages.compile import compile_commands  # noqa: PLC0415

        return compile_commands(
            compile_plan,
            compiler=self.toolchain.compiler,
            folder=str(self.work.absolute()),
            sources=str(sources.native_root()),
        ).encode()

    def _old_lock(self) -> lockfile.Lock | None:
        if not (self.options.locked or self.options.frozen):
            return None  # it will be replaced, whatever it holds
        name = str(self.lock_file)
        try:
            text = self.lock_file.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise lockfile.stale(name, ("there is no lock file",)) from None
        except (OSError, UnicodeDecodeError) as error:
            raise lockfile.damaged(name, str(error)) from error
        return lockfile.parse_lock(text, file=name)

    def _current_lock_text(self) -> str | None:
        with suppress(OSError, UnicodeDecodeError):
            return self.lock_file.read_text(encoding="utf-8")
        return None

    def _check_frozen(self, lock: lockfile.Lock) -> None:
        plan = self.plan(with_toolchain=True)
        now = lock_inputs(self, self.compile_plan(plan))
        if lines := lockfile.differences(lock.inputs(), now.inputs()):
            raise lockfile.stale(str(self.lock_file), lines)

    def _remember(self, plan: BuildPlan, outputs: dict[str, bytes]) -> None:
        """Note what is known now, for the next build."""
        from orchestrator.shell.publish import identity_of  # noqa: PLC0415

        for stage in plan.stages:
            if stage.label in self.results:
                name = f"{stage.label.replace(' ', '-')}.pickle"
                data = pickle.dumps((stage.key, self.results[stage.label]))
                write_if_changed(self.work / "results" / name, data)
        state = {stage.label: dict(stage.inputs) for stage in plan.stages}
        state["outputs"] = {"identity": identity_of(outputs)}
        write_atomic(
            self.work / "stages.json",
            json.dumps(state, indent=1, sort_keys=True).encode(),
        )

    def _write_stamp(self, outputs: dict[str, bytes]) -> None:
        """Note the states of all files, for builds that have nothing to do."""
        files = dict(self.states)
        made = [self.lock_file, *(self.folder / name for name in outputs)]
        programs = [self.toolchain.compiler[0], self.toolchain.archiver[0]]
        if self.target.toolchain == "gnu":
            # A compiler that is new in one of these may be found first.
            programs += os.get_exec_path()
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
                "profile": os.path.abspath(self.profile.file),  # noqa: PTH100
                "environment": stamp.environment(),
                "folder": str(self.folder),
                "lock": str(self.lock_file),
                "files": files,
            }
        )
        write_atomic(self.work / stamp.STAMP_NAME, text.encode())


def _remove_others(folder: Path, *, keep: Collection[Path]) -> None:
    """Remove files that are left of earlier builds: a header would still be found."""
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
