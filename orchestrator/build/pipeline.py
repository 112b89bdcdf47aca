"""The build: carries a plan out and publishes what came of it."""

from __future__ import annotations

import json
import os
import pickle
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.build import lockfile
from orchestrator.build.adapting import model_files
from orchestrator.build.ledger import explain_passes, prelink_ledger
from orchestrator.build.locking import lock_before, lock_of, lock_text_of
from orchestrator.build.selecting import product_resolution
from orchestrator.build.side import build_beside
from orchestrator.build.stages import Stages
from orchestrator.emit.compile import SOURCES, TOOLCHAIN_FILE, toolchain_text
from orchestrator.emit.compile.archive import linkable
from orchestrator.errors import MemoryPlanError
from orchestrator.shell import sources, stamp
from orchestrator.shell.build_folder import check_names, exclusive, recorded_names
from orchestrator.shell.files import (
    remove_others,
    write_atomic,
    write_if_changed,
)
from orchestrator.shell.library_files import NATIVE_SUFFIXES

if TYPE_CHECKING:
    from orchestrator.build.plan import BuildPlan
    from orchestrator.emit.artifact import GeneratedFile
    from orchestrator.emit.compile import CompilePlan
    from orchestrator.measure.size import SizeReport
    from orchestrator.shell.reporter import Reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """What a build did.

    Args:
        profile: Name.
        folder: Build folder.
        lock_file: The lock; None if none holds, and none was to be written.
        plan: Stages with the reasons they ran for.
        report: What the firmware costs.
        lock: What shaped the build and came out.
        lock_changed: Whether the lock file was written.
        inputs: Every file that the outputs were made from, absolute.
        library: Absolute path of the library.
        missing: What the profile allows to be missing, and is.
    """

    profile: str
    folder: Path
    lock_file: Path | None
    plan: BuildPlan
    report: SizeReport
    lock: lockfile.Lock
    lock_changed: bool
    inputs: tuple[str, ...]
    library: str
    missing: tuple[str, ...]


class Pipeline(Stages):
    """One profile's build. The only code that performs the effects of stages."""

    def build(self, reporter: Reporter) -> BuildReport:
        """Build everything and publish it.

        Raises:
            OrchestratorError: Of the stage that failed; outputs and lock are those of
                the build before.
        """
        with exclusive(self.folder) as folder_lock:
            # What is known to be in the way is said before anything is compiled.
            check_names(self.folder, recorded_names(self.folder))
            return self._build(reporter, folder_lock)

    def _build(self, reporter: Reporter, folder_lock: int) -> BuildReport:
        from orchestrator.shell.ninja import run_ninja  # noqa: PLC0415
        from orchestrator.shell.publish import publish  # noqa: PLC0415
        from orchestrator.shell.toolchain import with_builtins  # noqa: PLC0415

        self.reporter = reporter
        # A gap is reported before anybody misses a compiler.
        self.prove(self.plan(with_toolchain=False))
        plan = self.plan(with_toolchain=True)
        outputs = self.known_outputs(plan)
        if outputs is None:
            # What compiles is read: nobody who can write into the cache decides what
            # the lock says of it.
            self.toolchain = self.found_toolchain(trust_cache=False)
            plan = self.plan(with_toolchain=True)
        old_lock = lock_before(self, plan)
        for stage in plan.stages:
            if stage.reason:
                reporter.stage(stage.label, stage.reason)
            else:
                reporter.skipped(stage.label)

        warnings = self.warnings(plan)
        for text in warnings:
            reporter.note(text)
        explain_passes(self, plan, reporter)
        generated = self.generated(plan)
        if outputs is None:
            self.toolchain = with_builtins(self.toolchain, self.target)
            compile_plan = self.compile_plan(plan)
            self._write_work(plan, generated, compile_plan)
            log = run_ninja(
                self.work,
                jobs=self.options.jobs,
                reporter=reporter,
                folder_lock=folder_lock,
            )
            if "warning:" in log:
                reporter.note(log)
            report = self._measure(plan, compile_plan, reporter)
            outputs = self._outputs(generated, compile_plan, report)
            outputs |= model_files(self, plan)
        else:
            compile_plan = self.compile_plan(plan)
            report = self._measure(plan, compile_plan, reporter)
            # The only file that says where the build folder is; it may have moved.
            outputs["compile_commands.json"] = self._compile_commands(compile_plan)
        lock = self.lock_for(plan, compile_plan, outputs)
        text = lockfile.lock_text(lock)
        holds = text == lock_text_of(self.lock_file)
        writes = self.options.write_lock and not holds
        if self.options.locked and not holds:
            lines = lockfile.differences(old_lock, lock) if old_lock else ()
            raise lockfile.stale(str(self.lock_file), lines or ("only its form",))
        publish(
            self.folder,
            outputs,
            lock=self.lock_file if self.options.write_lock else None,
            lock_data=text.encode() if writes else None,
        )
        inputs = self._input_states()
        library = os.path.abspath(self.folder / compile_plan.library)  # noqa: PTH100
        with suppress(OSError):  # all is published; without notes builds are slower
            self._remember(plan, outputs)
            self._write_stamp(
                outputs, inputs, warnings, library=library, lock=holds or writes
            )
        return BuildReport(
            profile=self.profile.name,
            folder=self.folder,
            lock_file=self.lock_file if holds or writes else None,
            plan=plan,
            report=report,
            lock=lock,
            lock_changed=writes,
            inputs=tuple(inputs),
            library=library,
            missing=tuple(str(m) for m in self.resolution(plan).missing),
        )

    def lock_for(
        self, plan: BuildPlan, compile_plan: CompilePlan, outputs: dict[str, bytes]
    ) -> lockfile.Lock:
        """The lock of a build with these outputs."""
        return lock_of(
            self,
            compile_plan,
            generated=self.generated(plan),
            outputs=outputs,
            firmware=self.firmware_facts(plan),
            memory=self.memory_facts(plan),
        )

    def known_outputs(self, plan: BuildPlan) -> dict[str, bytes] | None:
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
        self,
        plan: BuildPlan,
        generated: tuple[GeneratedFile, ...],
        compile_plan: CompilePlan,
    ) -> None:
        """Lay out ninja's folder; a file that keeps its bytes keeps its time.

        Sources are copied: what is compiled are the bytes that the lock names, and
        their times say when their bytes changed, which those of a checkout do not.
        """
        copies = self.work / SOURCES
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
        files |= {self.work / n: d for n, d in model_files(self, plan).items()}
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
            # A header that is left of an earlier build would still be found.
            remove_others(folder, keep=files)

    def _measure(
        self, plan: BuildPlan, compile_plan: CompilePlan, reporter: Reporter
    ) -> SizeReport:
        """Stage measure. Raises MemoryPlanError if a budget is exceeded."""
        from orchestrator.measure import check_budget, measure  # noqa: PLC0415

        def compute() -> SizeReport:
            stacks, objects = {}, {}
            for unit in compile_plan.units:
                objects[unit.object] = (self.work / unit.object).read_bytes()
                with suppress(OSError):
                    name = unit.object.removesuffix(".o") + ".su"
                    stacks[unit.object] = (self.work / name).read_text()
            report = measure(
                elf=(self.work / "firmware.elf").read_bytes(),
                map_text=(self.work / "firmware.map").read_text(errors="replace"),
                stack_usage=stacks,
                memory=self.memory(plan),
                objects=objects,
                resolution=product_resolution(self, plan),
                target=self.target,
                profile=self.profile.name,
            )
            report = replace(report, prelink=prelink_ledger(self, plan))
            return self._with_comparison(report, reporter)

        report = self.memo(plan.stage("measure"), compute)
        check_budget(
            report,
            flash_bytes=self.profile.budget.flash_bytes,
            ram_bytes=self.profile.budget.ram_bytes,
            span_of=self.profile.span,
        )
        return report

    def _with_comparison(self, report: SizeReport, reporter: Reporter) -> SizeReport:
        """The report, with what selecting dtypes does if the profile asks for that."""
        dtypes = self.profile.dtypes
        if not dtypes.compare or dtypes.select.value == "all":
            return report
        from orchestrator.build.variant import EVERY_DTYPE  # noqa: PLC0415
        from orchestrator.measure import compare_dtypes  # noqa: PLC0415

        reporter.stage("with every dtype", "dtypes.compare asks for it")
        try:
            variant = EVERY_DTYPE.of(self.profile, ())
            every = build_beside(self, variant, EVERY_DTYPE.text, reporter)
        except MemoryPlanError:
            reporter.note("with every dtype the firmware would not fit its memories")
            return report
        return replace(report, dtype_comparison=compare_dtypes(report, every))

    def current_report(self) -> SizeReport | None:
        """What the published firmware costs, if it is what a build would give now."""
        from orchestrator.measure import read_report  # noqa: PLC0415

        outputs = self.known_outputs(self.plan(with_toolchain=True))
        if outputs is None:
            return None
        return read_report(outputs["report.json"].decode())

    def _outputs(
        self,
        generated: tuple[GeneratedFile, ...],
        compile_plan: CompilePlan,
        report: SizeReport,
    ) -> dict[str, bytes]:
        """Every published file by path. Those in the lock hold no machine path."""
        from orchestrator.measure import report_json  # noqa: PLC0415
        from orchestrator.measure.stack_constants import (  # noqa: PLC0415
            with_stacks,
        )

        name = self.profile.name
        files = {f.path: f.text.encode() for f in generated}
        for made in ("firmware.elf", compile_plan.library):
            data = (self.work / made).read_bytes()
            files[made] = linkable(data, is_bare=self.target.cpu.is_arm)
        text = files[f"gen/include/{name}.h"].decode()
        text = with_stacks(text, name, report.methods)
        files[f"include/{name}.h"] = text.encode()
        public = ["status.h", *(["trace.h"] if self.profile.trace.enable else [])]
        for header in public:
            files[f"include/orch/{header}"] = self.native_bytes[
                f"runtime/include/orch/{header}"
            ]
        files["report.json"] = report_json(report).encode()
        files["build.ninja"] = compile_plan.ninja.encode()
        files["compile_commands.json"] = self._compile_commands(compile_plan)
        return files

    def _compile_commands(self, compile_plan: CompilePlan) -> bytes:
        from orchestrator.emit.compile import compile_commands  # noqa: PLC0415

        return compile_commands(
            compile_plan,
            compiler=self.toolchain.compiler,
            folder=str(self.work.absolute()),
            sources=str(sources.native_root()),
            elsewhere=self.libraries.folders(),
        ).encode()

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
        text = json.dumps(state, indent=1, sort_keys=True)
        write_atomic(self.work / "stages.json", text.encode())

    def _input_states(self) -> dict[str, stamp.State]:
        """States of all files that shape the outputs: what was read, the compiler."""
        files = dict(self.states)
        for path in self.toolchain.files:
            files[path] = stamp.state_of(path)
        if self.options.locked:
            absolute = str(self.lock_file.absolute())
            files[absolute] = stamp.state_of(absolute)
        return files

    def _write_stamp(
        self,
        outputs: dict[str, bytes],
        inputs: dict[str, stamp.State],
        warnings: list[str],
        *,
        library: str,
        lock: bool,
    ) -> None:
        """Note the states of all files, for builds that have nothing to do.

        What this build has to warn of, they have to as well.
        """
        files = dict(inputs)
        lock_file = os.path.abspath(self.lock_file) if lock else ""  # noqa: PTH100
        others = [str(self.folder / name) for name in outputs]
        others += [lock_file] if lock else []
        if self.target.toolchain == "gnu":
            # A compiler that is new in one of these may be found first.
            others += os.get_exec_path()
        for path in others:
            absolute = os.path.abspath(path)  # noqa: PTH100  # keeps links
            files[absolute] = stamp.state_of(absolute)
        folders = stamp.folders_of(
            [f for f in files if f.endswith((*NATIVE_SUFFIXES, ".py"))]
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
                "lock": lock_file,
                "library": library,
                "input_count": len(inputs),
                "warnings": warnings,
                "files": files,
            }
        )
        write_atomic(self.work / stamp.STAMP_NAME, text.encode())
