"""Build a product: run the plan, and publish the outputs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypedDict

from orchestrator.build import inputs, lockfile, table
from orchestrator.build.engine import Build, BuildPlan, Value, digest
from orchestrator.build.exporting import Exported
from orchestrator.build.locking import lock_before, lock_text_of
from orchestrator.build.product_warnings import system_warnings
from orchestrator.build.project import BuildOptions, Project, Shell, open_build
from orchestrator.build.variant import EVERY_DTYPE
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.errors import (
    Diagnostic,
    KernelError,
    MemoryPlanError,
    OrchestratorError,
    OverBudgetError,
    ProfileError,
)
from orchestrator.measure import check_budget
from orchestrator.measure.budget import check_estimate
from orchestrator.measure.size import SizeReport
from orchestrator.method.passes.ledger_lines import ledger_lines
from orchestrator.profile.tables import Profile
from orchestrator.shell import sources, stamp
from orchestrator.shell.build_folder import check_names, exclusive, recorded_names, variant_folder
from orchestrator.shell.compile_folder import NinjaFolder
from orchestrator.shell.distribution import PACKAGE_FOLDER
from orchestrator.shell.files import DISK, write_atomic, write_if_changed
from orchestrator.shell.launcher import compiler_launcher
from orchestrator.shell.library_files import NATIVE_SUFFIXES
from orchestrator.shell.object_store import ObjectStore, object_store
from orchestrator.shell.process import program_folders
from orchestrator.shell.publish import identity_of, publish, published_files
from orchestrator.shell.reporter import Reporter, StepsOnly
from orchestrator.shell.settings import Settings
from orchestrator.targets.cores import Target, Toolchain

# From decision 0035. A single product has no reason to stop.
_AT_ONCE: Final = 8
"""Objects that a product of many compiles before it lets others have the rest: few
enough that another product of the same kernels has something to do as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildReport:
    """What a build did.

    Args:
        profile: Name.
        folder: Build folder.
        lock_file: The lock; None if none matches and none was written.
        exports: (label, why it ran or "") of stage export, by model.
        plan: Stages with the reasons they ran for.
        report: The cost of the firmware.
        lock: The facts of this build.
        lock_changed: Whether the lock file was written.
        inputs: Absolute paths of every file that the outputs depend on.
        library: Absolute path of the library.
        missing: Operators and backends that the profile allows to be missing, and are.
    """

    profile: str
    folder: Path
    lock_file: Path | None
    exports: tuple[tuple[str, str], ...]
    plan: BuildPlan
    report: SizeReport
    lock: lockfile.Lock
    lock_changed: bool
    inputs: tuple[str, ...]
    library: str
    missing: tuple[str, ...]


def build_product(project: Project, shell: Shell) -> BuildReport:
    """Build everything and publish it.

    Raises:
        OrchestratorError: A stage failed; outputs and lock are still those of the
            build before. One that exceeds its budget leaves its reports
            (`Project.reports`).
    """
    settings = project.settings
    # One build at a time; ninja and compilers inherit the descriptor, so that the next
    # build waits for them even if this process is killed.
    with exclusive(project.folder) as folder_lock:
        # Report a name that is taken before compiling.
        check_names(project.folder, recorded_names(project.folder))
        folder = shell.compile_folder or NinjaFolder(
            path=project.work,
            jobs=project.options.jobs,
            reporter=shell.reporter,
            folder_lock=folder_lock,
            launcher=compiler_launcher(settings) if project.options.shares else None,
            store=_store(settings, shell) if project.options.shares else None,
            at_once=None if shell.results is None else _AT_ONCE,
        )
        given: dict[Value[Any], object] = {
            inputs.COMPILE_FOLDER: folder,
            inputs.EVERY_DTYPE_SIZE: lambda: _every_dtype_size(project, shell),
        }
        return _build(project, shell, open_build(project, shell, given=given))


def _store(settings: Settings, shell: Shell) -> ObjectStore | None:
    store = object_store(settings)
    return store and replace(store, published=shell.published(settings))


def _build(project: Project, shell: Shell, build: Build) -> BuildReport:
    options, reporter = project.options, shell.reporter
    # Report a gap even where no compiler is installed.
    prove(build)
    known = known_outputs(project, build)
    # Something will be compiled, so the lock may change.
    if known is None:
        # Digest the compiler itself: others can write to the cache, and must not decide
        # what the lock says about the compiler.
        build = build.replace({inputs.TRUST_CACHE: False})
    else:
        # The only output with the absolute path of the build folder; it may have moved.
        machine = {"compile_commands.json": build[table.COMMANDS_JSON]}
        build = build.replace({table.OUTPUTS: known | machine})
    plan = build.plan()
    # After the plan and before the first step: a lock that cannot be written was once
    # found after everything was compiled.
    old_lock = lock_before(
        project.lock_file,
        build[table.LOCK_INPUTS],
        locked=options.locked,
        frozen=options.frozen,
        write_lock=options.write_lock,
    )
    for stage in plan.stages:
        if stage.reason:
            reporter.stage(stage.label, stage.reason)
        else:
            reporter.skipped(stage.label)
    warnings = (*build[table.WARNINGS], *system_warnings())
    for text in warnings:
        reporter.note(text)
    for line in ledger_lines(build[table.REPLAN].ledger):
        reporter.explained(line)
    # Warnings of what is compiled now; objects with warnings are never shared, so each
    # build of them shows these again.
    if known is None and "warning:" in (log := build[table.COMPILE].log):
        reporter.note(log)
    report = build[table.MEASURE]
    outputs = build[table.OUTPUTS] | build[table.DOCUMENTS]
    try:
        check_budget(report, project.profile.budget, project.profile.span)
    except OverBudgetError:
        with suppress(OSError):  # keep what was found
            # The old stamp would say that the published product is current. Reports are
            # kept, as `size`, `why` and what-ifs are asked when a product is too large.
            (project.work / stamp.STAMP_NAME).unlink(missing_ok=True)
            for name in ("report.json", "report.html"):
                write_if_changed(project.over_budget / name, outputs[name])
            remember(project, build, plan, outputs)
        raise
    lock = build[table.LOCK]
    text = lockfile.lock_text(lock)
    # Compared as text: formatting that somebody changed is a difference, as with
    # Cargo.lock.
    holds = text == lock_text_of(project.lock_file)
    writes = options.write_lock and not holds
    if options.locked and not holds:
        lines = lockfile.differences(old_lock, lock) if old_lock else ()
        raise lockfile.stale(str(project.lock_file), lines or ("only its formatting",))
    publish(
        project.folder,
        outputs,
        lock=project.lock_file if options.write_lock else None,
        lock_data=text.encode() if writes else None,
    )
    # From before the files were read (input_files.py): a change during the build makes
    # the stamp stale.
    states = _input_states(project, build)
    library = os.path.abspath(project.folder / build[table.COMMANDS].library)  # noqa: PTH100
    # The stamp goes last: it says that everything before it is done.
    with suppress(OSError):  # all is published; missing notes only slow the next build
        DISK.remove(project.over_budget)
        remember(project, build, plan, outputs)
        lock_file = os.path.abspath(project.lock_file)  # noqa: PTH100  # keeps links
        _write_stamp(
            project,
            outputs,
            states,
            warnings,
            library=library,
            lock=lock_file if holds or writes else "",
            toolchain=build[inputs.TOOLCHAIN],
            costs={
                "product": project.profile.name,
                **target_facts(build[inputs.TARGET]),
                "flash_bytes": report.totals.flash_bytes,
                "ram_bytes": report.totals.ram_bytes,
            },
        )
    return BuildReport(
        profile=project.profile.name,
        folder=project.folder,
        lock_file=project.lock_file if holds or writes else None,
        exports=export_steps(build[inputs.EXPORTED]),
        plan=plan,
        report=report,
        lock=lock,
        lock_changed=writes,
        inputs=tuple(states),
        library=library,
        missing=tuple(str(m) for m in build[table.RESOLVE].missing),
    )


def export_steps(exported: Mapping[str, Exported]) -> tuple[tuple[str, str], ...]:
    """(label, why it ran now or "") of stage export, by model."""
    return tuple((f"export {name}", one.reason) for name, one in exported.items())


def prove(build: Build) -> None:
    """Check that everything has a kernel and memory. Raises the problems of both."""
    try:
        _ = build[table.RESOLVE]
    except (KernelError, ProfileError) as error:  # others: there are no programs
        # Missing kernels and lack of memory are found in one go: both are remedied in
        # the profile.
        found = dict.fromkeys((*error.diagnostics, *_file_memory_problems(build)))
        raise type(error)(tuple(found)) from error
    _ = build[table.MEMORY]


def check_product(build: Build, reporter: Reporter) -> bool:
    """Check everything short of compiling, and report warnings.

    Returns:
        Whether it fits board and budget for sure: its code is estimated.
    """
    prove(build)
    # Limits on kernels, writes to constants and names of the API are checked there;
    # nothing is written.
    _ = build[table.GENERATE]
    memory, board = build[table.MEMORY], build[inputs.TARGET].board
    budget = build[inputs.BUDGET]
    over = check_estimate(memory, board, budget, build[inputs.SPAN])
    for text in (*build[table.WARNINGS], *over):
        reporter.note(text)
    is_limited = bool(board or budget.flash_bytes or budget.ram_bytes)
    is_guess = is_limited and memory.needs is not None and memory.needs.is_guess
    return not (over or memory.tight or is_guess)


def _file_memory_problems(build: Build) -> tuple[Diagnostic, ...]:
    """Problems of stage memory where a gap prevents adapting models."""
    try:
        _ = build[table.FILE_MEMORY]
    except OrchestratorError as error:
        return error.diagnostics
    return ()


def known_outputs(project: Project, build: Build) -> dict[str, bytes] | None:
    """The outputs of the last build, if they are complete and nothing changed."""
    if not build.plan().is_current or build.remembered(table.MEASURE) is None:
        return None
    with suppress(OSError):
        outputs = published_files(project.folder)
        # A published file that somebody changed or removed makes the build run.
        if identity_of(outputs) == project.notes.outputs:
            return outputs
    return None


def remember(project: Project, build: Build, plan: BuildPlan, outputs: Mapping[str, Bytes]) -> None:
    """Note inputs and results for the next build. Raises OSError."""
    results = build.results().items()
    project.notes.write(
        {stage.label: dict(stage.inputs) for stage in plan.stages},
        [(stage.label, stage.key, result) for stage, result in results],
        outputs=identity_of(outputs),
    )


class TargetFacts(TypedDict):
    """What a product is built for, as tables of products show it."""

    cpu: str
    toolchain: str
    optimize: str


def target_facts(target: Target) -> TargetFacts:
    """The facts of a target."""
    return {"cpu": target.cpu.name, "toolchain": target.toolchain, "optimize": target.optimize}


def _input_states(project: Project, build: Build) -> dict[str, stamp.State]:
    """States of all files that affect the outputs: inputs and the compiler."""
    states = dict(build[inputs.FILES].states)
    # Files of workspaces above the profile, which it inherits from.
    states |= {p: list(state) for p, state in project.profile.looked_for if state}
    for path in build[inputs.TOOLCHAIN].files:
        states[path] = stamp.state_of(path)
    # With --locked the lock is an input: a changed one must not be answered from the
    # stamp.
    if project.options.locked:
        absolute = str(project.lock_file.absolute())
        states[absolute] = stamp.state_of(absolute)
    return states


def _write_stamp(
    project: Project,
    outputs: Mapping[str, Bytes],
    inputs: Mapping[str, stamp.State],
    warnings: Sequence[str],
    *,
    library: str,
    lock: str,
    toolchain: Toolchain,
    costs: Mapping[str, object],
) -> None:
    """Record the states of all files, so that a build with nothing to do is fast.

    Such a build shows the warnings and costs of this one again.
    """
    # A file of a workspace may appear above the profile.
    files = dict(inputs) | {p: list(s) for p, s in project.profile.looked_for if not s}
    others = [str(project.folder / name) for name in outputs]
    others += [lock] if lock else []
    uses_path = toolchain.name == "gnu"
    if uses_path:
        # A compiler installed later in one of these folders may be found first.
        others += program_folders()
    for path in others:
        absolute = os.path.abspath(path)  # noqa: PTH100  # keeps links
        files[absolute] = stamp.state_of(absolute)
    # A source or header that is added to a folder may be found by an #include or a
    # pattern; folders change their time for it.
    folders = stamp.folders_of([f for f in files if f.endswith((*NATIVE_SUFFIXES, ".py"))])
    for path in folders:
        # Python's bytecode files come and go; outputs do not depend on them.
        if not path.endswith("__pycache__"):
            files.setdefault(path, stamp.state_of(path))
    common = _common_paths(toolchain, others=uses_path)
    own = {p: state for p, state in files.items() if not common(p)}
    shared = {p: state for p, state in files.items() if common(p)}
    common_inputs = sum(map(common, inputs))
    group = {"files": shared, "input_count": common_inputs}
    identity = digest(json.dumps(group).encode())
    path = str(project.work / stamp.STAMP_NAME)
    # The shared part first, then the stamp that names it: a kill in between leaves an
    # old stamp with another identity, which is stale.
    write_if_changed(
        Path(stamp.shared_file(path)), json.dumps({"identity": identity, **group}).encode()
    )
    text = json.dumps(
        {
            "profile": os.path.abspath(project.profile.file),  # noqa: PTH100
            "environment": stamp.environment(),
            "folder": str(project.folder),
            "lock": lock,
            "library": library,
            "warnings": warnings,
            "costs": costs,
            "shared": identity,
            "input_count": len(inputs) - common_inputs,
            "files": own,
        }
    )
    write_atomic(Path(path), text.encode())


def _common_paths(toolchain: Toolchain, *, others: bool) -> Callable[[str], bool]:
    """Whether a file is Orchestrator's, or the compiler's, and not of one product."""
    root = sources.native_root()
    folders = tuple(
        f"{folder}{os.sep}" for folder in (PACKAGE_FOLDER, root / "runtime", root / "kernels")
    )
    paths = {*toolchain.files}
    if others:
        paths.update(map(os.path.abspath, program_folders()))

    def is_common(path: str) -> bool:
        return path in paths or f"{path}{os.sep}".startswith(folders)

    return is_common


def build_variant(project: Project, profile: Profile, name: str, shell: Shell) -> BuildReport:
    """Build a variant of a product whose build folder is locked.

    Args:
        project: The product; its objects are used where they fit.
        profile: Profile of the variant.
        name: Name of the variant; an existing one is reused.
        shell: Tools to build with; its reporter gets the steps that run.

    Returns:
        Report of the build. Its folder stays complete while the product's is locked.

    Raises:
        OrchestratorError: Of the stage that failed.
    """
    # No lock: it would be that of another product.
    options = BuildOptions(
        out=variant_folder(project.work, name), jobs=project.options.jobs, write_lock=False
    )
    steps = replace(shell, reporter=StepsOnly(shell.reporter))
    return build_product(Project(profile, options), steps)


def _every_dtype_size(project: Project, shell: Shell) -> SizeReport | None:
    """The cost of the product with every dtype; None if it then fits no memory."""
    shell.reporter.stage("with every dtype", "requested by dtypes.compare")
    try:
        profile = EVERY_DTYPE.of(project.profile, ())
        return build_variant(project, profile, EVERY_DTYPE.text, shell).report
    except MemoryPlanError:
        shell.reporter.note("with every dtype the firmware would not fit its memories")
        return None
