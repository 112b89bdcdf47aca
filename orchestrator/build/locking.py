"""What a lock says of a build."""

from __future__ import annotations

import os
import posixpath
import re
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING

import orchestrator
from orchestrator.build import lockfile
from orchestrator.build.inputs import Inputs, digest
from orchestrator.emit.artifact import Artifact, GeneratedFile
from orchestrator.emit.compile import SOURCES
from orchestrator.errors import Diagnostic, UsageError
from orchestrator.profile.lowering import quantize_text, vela_text
from orchestrator.shell.distribution import DISTRIBUTION
from orchestrator.shell.files import WriteError, check_writable, read_text_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from orchestrator.build.plan import BuildPlan
    from orchestrator.build.stages import Stages
    from orchestrator.emit.compile import CompilePlan, CompileUnit
    from orchestrator.targets.toolchain import Toolchain

MACHINE_FILES = frozenset({"build.ninja", "compile_commands.json"})
"""Published files that name folders of the machine, for editors and for ninja."""


def read_lock(file: Path) -> lockfile.Lock | None:
    """The lock in a file; None if there is no file.

    Raises:
        LockError: It is damaged, or a newer Orchestrator made it.
    """
    try:
        text = read_text_file(file)
    except FileNotFoundError:
        return None
    except (IsADirectoryError, UnicodeDecodeError) as error:
        raise lockfile.damaged(str(file), str(error)) from error
    return lockfile.parse_lock(text, file=str(file))


def needed_lock(file: Path) -> lockfile.Lock:
    """The lock in a file. Raises LockError, also if there is no file."""
    lock = read_lock(file)
    if lock is None:
        raise lockfile.stale(str(file), ("there is no lock file",))
    return lock


def lock_text_of(file: Path) -> str | None:
    """Text of a lock; None if it cannot be read."""
    with suppress(OSError, UnicodeDecodeError):
        return read_text_file(file)
    return None


def lock_before(stages: Stages, plan: BuildPlan) -> lockfile.Lock | None:
    """The lock that a build begins with, if it is to use one.

    Whatever forbids to write it is found here, before anything is compiled.

    Raises:
        LockError: It is damaged or newer; with `locked` missing; with `frozen` not of
            these inputs.
        UsageError: It will change, and cannot be written (`unwritable-lock`).
    """
    options, file = stages.options, stages.lock_file
    if options.locked:
        lock = needed_lock(file)
        if options.frozen:
            check_inputs(stages, plan, lock)
        return lock
    if not options.write_lock:
        return None
    before = read_lock(file)
    now = lock_inputs(stages, stages.compile_plan(plan))
    if before is None or before.inputs() != now.inputs():
        _need_writable(file)
    return before


def _need_writable(file: Path) -> None:
    try:
        check_writable(file)
    except WriteError as error:
        raise UsageError(
            Diagnostic(
                code="unwritable-lock",
                message=str(error),
                hint="`--lock FILE` writes the lock elsewhere, `--no-lock` writes none",
            )
        ) from error


def check_inputs(stages: Stages, plan: BuildPlan, lock: lockfile.Lock) -> None:
    """Compare a lock with what a build would read. Raises LockError."""
    now = lock_inputs(stages, stages.compile_plan(plan))
    if lines := lockfile.differences(lock.inputs(), now.inputs()):
        raise lockfile.stale(str(stages.lock_file), lines)


def lock_of(
    inputs: Inputs,
    compile_plan: CompilePlan,
    *,
    generated: tuple[GeneratedFile, ...],
    outputs: Mapping[str, bytes],
    firmware: lockfile.Facts,
    memory: lockfile.Facts,
) -> lockfile.Lock:
    """The lock of a finished build.

    Args:
        inputs: What was read.
        compile_plan: What was compiled.
        generated: Generated files.
        outputs: Every published file by path.
        firmware: What it has for programs that come later.
        memory: Its arenas, and the scratch memory they were planned for.
    """
    named = {file.path for file in generated}
    return replace(
        lock_inputs(inputs, compile_plan),
        firmware=firmware,
        memory=memory,
        generated=lockfile.facts((f.path, f.sha256) for f in generated),
        outputs=lockfile.output_facts(
            Artifact(path=path, sha256=digest(data), size_bytes=len(data))
            for path, data in outputs.items()
            if path not in MACHINE_FILES and path not in named
        ),
    )


def lock_inputs(inputs: Inputs, compile_plan: CompilePlan) -> lockfile.Lock:
    """The part of a lock that is known before anything is compiled."""
    profile, target, toolchain = inputs.profile, inputs.target, inputs.toolchain
    native = inputs.native
    used = {
        *compile_plan.sources,
        *_reachable(compile_plan.units, inputs.native_bytes),
        *(inputs.libraries.functions(name) for name in profile.kernels.libraries),
    }
    files = {
        f"file {inputs.label(path)}": digest(inputs.read(path))
        for path in profile.files
    }
    files |= {f"file {k}": digest(data) for k, data in inputs.operator_files.items()}
    return lockfile.Lock(
        profile=lockfile.facts(
            [
                ("name", profile.name),
                *files.items(),
            ]
        ),
        models=lockfile.facts(
            [
                *((n, digest(d)) for n, d in inputs.model_bytes.items()),
                *(
                    (f"{name} {label}", digest(data))
                    for name, files in inputs.data_files.items()
                    for label, data in files.items()
                ),
            ]
        ),
        sources=lockfile.facts((name, native[name]) for name in used),
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
                ("name", toolchain.name),
                ("version", toolchain.version),
                ("flags", " ".join(compile_plan.flags)),
                ("link flags", " ".join(compile_plan.link_flags)),
                *((f"sha256 {role}", found) for role, found in toolchain.programs),
            ]
        ),
        python=lockfile.facts(
            {**exported_distributions(inputs), **_distributions(toolchain)}.items()
        ),
        exports=export_facts(inputs),
        outputs=(),
    )


def _distributions(toolchain: Toolchain) -> dict[str, str]:
    """Versions of the Python distributions that shape bytes of the outputs."""
    # numpy computes what is constant.
    found = {DISTRIBUTION: orchestrator.__version__, "numpy": version("numpy")}
    if toolchain.name == "zig":
        with suppress(PackageNotFoundError):
            found["ziglang"] = version("ziglang")
    return found


def exported_distributions(inputs: Inputs) -> dict[str, str]:
    """Versions of what took part in exporting models."""
    found: dict[str, str] = {}
    for exported in inputs.exported.values():
        found |= exported.facts["distributions"]
    return found


def export_facts(inputs: Inputs) -> lockfile.Facts:
    """What each exported model was made of, and how.

    Files beside or below the profile or the code have their path; those elsewhere,
    whose place is another on each machine, their name.
    """
    found: dict[str, str] = {}
    for model in inputs.profile.models:
        source = model.source
        if source is None:
            continue
        found[f"{model.name} source"] = f"{inputs.label(model.path)}:{source.function}"
        found[f"{model.name} lowering"] = model.lowering
        exported = inputs.exported[model.name]
        found[f"{model.name} python"] = exported.facts["python"]
        if model.quantize is not None:
            found[f"{model.name} quantize"] = quantize_text(model.quantize)
        if text := vela_text(model.vela, inputs.label(Path(model.vela.config))):
            found[f"{model.name} vela"] = text
        top = Path(os.path.commonpath([inputs.profile.folder, model.path.parent]))
        for label, (sha256, _) in exported.facts["files"].items():
            path = Path(os.path.normpath(model.path.parent / label))
            name = inputs.label(path) if path.is_relative_to(top) else path.name
            key = f"{model.name} file {name}"
            found[key] = " ".join(sorted({*found.get(key, "").split(), sha256}))
    return lockfile.facts(found.items())


_INCLUDE = re.compile(rb'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def _reachable(units: Iterable[CompileUnit], native: Mapping[str, bytes]) -> set[str]:
    """Headers that sources include, directly or not, among the known files."""
    starts: dict[tuple[str, ...], list[str]] = {}
    for unit in units:
        if unit.source.startswith(_PREFIX):
            start = unit.source.removeprefix(_PREFIX)
            starts.setdefault(_include_folders(unit), []).append(start)
    found: set[str] = set()
    for folders, queue in starts.items():
        found |= _reachable_from(queue, folders, native)
    return found


_PREFIX = f"{SOURCES}/"


def _include_folders(unit: CompileUnit) -> tuple[str, ...]:
    option = f"-I{_PREFIX}"
    return tuple(f.removeprefix(option) for f in unit.flags if f.startswith(option))


def _reachable_from(
    queue: list[str], folders: tuple[str, ...], native: Mapping[str, bytes]
) -> set[str]:
    found: set[str] = set()
    while queue:
        name = queue.pop()
        for text in _INCLUDE.findall(native[name]):
            included = text.decode(errors="replace")
            for folder in (posixpath.dirname(name), *folders):
                header = posixpath.normpath(f"{folder}/{included}")
                if header in native and header not in found:
                    found.add(header)
                    queue.append(header)
    return found
