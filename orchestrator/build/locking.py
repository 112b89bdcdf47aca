"""Stage lock: the facts that a lock records about a build."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

import orchestrator
from orchestrator.build import lockfile
from orchestrator.build.engine import digest
from orchestrator.build.exporting import Exported
from orchestrator.build.libraries import Libraries
from orchestrator.build.reading import OperatorFile, relative
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.emit.artifact import Artifact, GeneratedFile
from orchestrator.emit.compile import SOURCES, CompilePlan, CompileUnit
from orchestrator.errors import UsageError
from orchestrator.measure.size import SizeReport
from orchestrator.memory.plan import MemoryPlan, memory_facts
from orchestrator.profile.kernels import KernelsTable
from orchestrator.profile.lowering import quantize_text, vela_text
from orchestrator.profile.tables import Profile
from orchestrator.provenance.sbom import DOCUMENTS
from orchestrator.shell.distribution import DISTRIBUTION
from orchestrator.shell.files import WriteError, check_writable, read_text_file, reason_of
from orchestrator.shell.input_files import InputFiles
from orchestrator.targets.cores import Target, Toolchain

# Left out of locks, as are pictures: a lock holds on every machine (decisions 0013,
# 0023).
MACHINE_FILES = frozenset({"build.ninja", "compile_commands.json"})
"""Published files with absolute paths, for editors and for ninja."""

PICTURES = frozenset({"report.html"})
"""Published files to look at: the lock has their data, but not how they look."""

NOT_LOCKED = MACHINE_FILES | PICTURES


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
        raise lockfile.damaged(str(file), reason_of(error)) from error
    return lockfile.parse_lock(text, file=str(file))


def needed_lock(file: Path) -> lockfile.Lock:
    """The lock in a file. Raises LockError, including when there is no file."""
    lock = read_lock(file)
    if lock is None:
        raise lockfile.stale(str(file), ("there is no lock file",))
    return lock


def lock_text_of(file: Path) -> str | None:
    """Text of a lock; None if it cannot be read."""
    with suppress(OSError, UnicodeDecodeError):
        return read_text_file(file)
    return None


def lock_before(
    file: Path, now: lockfile.Lock, *, locked: bool, frozen: bool, write_lock: bool
) -> lockfile.Lock | None:
    """The lock that a build starts from, if it uses one.

    A lock that cannot be written is reported here, before anything is compiled.

    Args:
        file: The lock.
        now: The lock that the build would write, as far as it is known.
        locked: The lock must not change.
        frozen: Its inputs must be those of `now`.
        write_lock: It will be written if it changes.

    Raises:
        LockError: It is damaged or newer; it is missing (`locked`); it has other inputs
            (`frozen`).
        UsageError: It has to change, but cannot be written (`unwritable-lock`).
    """
    if locked:
        lock = needed_lock(file)
        if frozen:
            check_inputs(file, lock, now)
        return lock
    if not write_lock:
        return None
    before = read_lock(file)
    # Where inputs are equal the lock will not change, and a read-only checkout need not
    # be writable.
    if before is None or before.inputs() != now.inputs():
        _need_writable(file)
    return before


def _need_writable(file: Path) -> None:
    try:
        check_writable(file)
    except WriteError as error:
        raise UsageError.of(
            "unwritable-lock",
            str(error),
            hint="`--lock FILE` writes the lock elsewhere, `--no-lock` writes none",
        ) from error


def check_inputs(file: Path, lock: lockfile.Lock, now: lockfile.Lock) -> None:
    """Compare a lock with the current inputs. Raises LockError."""
    if lines := lockfile.differences(lock.inputs(), now.inputs()):
        raise lockfile.stale(str(file), lines)


def list_memory_facts(
    *, memory: MemoryPlan, isa: str, function_files: Mapping[str, str], native: Mapping[str, bytes]
) -> lockfile.Facts:
    """Arenas, and the scratch memory that they were planned with."""
    return memory_facts(memory, isa=isa, library=lambda name: digest(native[function_files[name]]))


def list_artefacts(
    *, generated: Sequence[GeneratedFile], outputs: Mapping[str, Bytes]
) -> lockfile.Facts:
    """Outputs that are neither generated nor documents, nor of the machine."""
    named = {file.path for file in generated} | NOT_LOCKED | DOCUMENTS
    return _facts_of({p: data for p, data in outputs.items() if p not in named})


def _facts_of(files: Mapping[str, Bytes]) -> lockfile.Facts:
    return lockfile.output_facts(
        Artifact(path=path, sha256=digest(data), size_bytes=len(data))
        for path, data in files.items()
    )


def make_lock(
    *,
    lock_inputs: lockfile.Lock,
    generated: Sequence[GeneratedFile],
    artefacts: lockfile.Facts,
    documents: Mapping[str, bytes],
    firmware_facts: lockfile.Facts,
    memory_facts: lockfile.Facts,
    report: SizeReport,
) -> lockfile.Lock:
    """Stage lock: the lock of a build with these outputs."""
    return replace(
        lock_inputs,
        firmware=firmware_facts,
        memory=memory_facts,
        size=lockfile.facts((name, f"{count} bytes") for name, count in sizes_of(report).items()),
        generated=lockfile.facts((f.path, f.sha256) for f in generated),
        outputs=lockfile.facts([*artefacts, *_facts_of(documents)]),
    )


def sizes_of(report: SizeReport) -> dict[str, int]:
    """The sizes that a lock names, in bytes."""
    totals = report.totals
    found = {
        "flash": totals.flash_bytes,
        # Both are in the lock, so that a review sees whether the model or the code
        # grew.
        "flash without models": totals.flash_bytes_without_models,
        "ram": totals.ram_bytes,
    }
    return found | ({"stack": report.stack.stack_bytes} if report.stack else {})


def digest_profile_files(*, profile: Profile, files: InputFiles) -> dict[str, str]:
    """Digests of the profile and of its base, by path relative to the profile."""
    return {relative(profile, path): digest(files.read(path)) for path in profile.files}


def name_function_files(*, kernels: KernelsTable, libraries: Libraries) -> dict[str, str]:
    """Path of each library's functions.yaml among all sources."""
    return {name: libraries.functions(name) for name in kernels.libraries}


# Named by hand, as `_reachable` follows includes of native sources and the generated
# header is none.
_SIZES: Final = "runtime/include/orch/sizes.h"
"""Only the generated header includes it."""


def lock_inputs(
    *,
    name: str,
    profile_files: Mapping[str, str],
    inherited: Sequence[tuple[str, str]],
    operator_files: Sequence[OperatorFile],
    model_bytes: Mapping[str, Bytes],
    data_files: Mapping[str, Mapping[str, Bytes]],
    native: Mapping[str, bytes],
    function_files: Mapping[str, str],
    commands: CompilePlan,
    target: Target,
    toolchain: Toolchain,
    distributions: Mapping[str, str],
    export_facts: lockfile.Facts,
) -> lockfile.Lock:
    """The part of a lock that is known before compiling."""
    used = {
        *commands.sources,
        _SIZES,
        *_reachable(commands.units, native),
        *function_files.values(),
    }
    files = {**profile_files, **{file.label: digest(file.data) for file in operator_files}}
    return lockfile.Lock(
        profile=lockfile.facts(
            [
                ("name", name),
                *((f"file {k}", found) for k, found in files.items()),
                *((f"workspace {key}", value) for key, value in inherited),
            ]
        ),
        models=lockfile.facts(
            [
                *((n, digest(d)) for n, d in model_bytes.items()),
                *(
                    (f"{model} {label}", digest(data))
                    for model, files in data_files.items()
                    for label, data in files.items()
                ),
            ]
        ),
        sources=lockfile.facts((path, digest(native[path])) for path in used),
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
                ("flags", " ".join(commands.flags)),
                ("link flags", " ".join(commands.link_flags)),
                *((f"sha256 {role}", found) for role, found in toolchain.programs),
            ]
        ),
        python=lockfile.facts(distributions.items()),
        exports=export_facts,
        outputs=(),
    )


def list_distributions(*, toolchain: Toolchain, exported: Mapping[str, Exported]) -> dict[str, str]:
    """Versions of the Python distributions that affect bytes of the outputs."""
    found: dict[str, str] = {}
    for one in exported.values():
        found |= one.facts.distributions
    # NumPy computes constants at build time.
    # The only packages that affect bytes (decision 0005); pycxxfilt, which names
    # symbols in reports, is pinned by pyproject.toml.
    found |= {DISTRIBUTION: orchestrator.__version__, "numpy": version("numpy")}
    if toolchain.name == "zig":
        with suppress(PackageNotFoundError):
            found["ziglang"] = version("ziglang")
    return found


def list_export_facts(*, profile: Profile, exported: Mapping[str, Exported]) -> lockfile.Facts:
    """The inputs and settings of each exported model.

    Files beside or below the profile or the code are listed by path; those elsewhere,
    whose location differs between machines, by name.
    """
    found: dict[str, str] = {}
    for model in profile.models:
        source = model.source
        if source is None:
            continue
        found[f"{model.name} source"] = f"{relative(profile, model.path)}:{source.function}"
        found[f"{model.name} lowering"] = model.lowering
        facts = exported[model.name].facts
        found[f"{model.name} python"] = facts.python
        if model.quantize is not None:
            found[f"{model.name} quantize"] = quantize_text(model.quantize)
        config = relative(profile, Path(model.vela.config))
        if text := vela_text(model.vela, config):
            found[f"{model.name} vela"] = text
        top = Path(os.path.commonpath([profile.folder, model.path.parent]))
        for label, (sha256, _) in facts.files.items():
            path = Path(os.path.normpath(model.path.parent / label))
            # The folder of site-packages is another one on each machine.
            name = relative(profile, path) if path.is_relative_to(top) else path.name
            key = f"{model.name} file {name}"
            found[key] = " ".join(sorted({*found.get(key, "").split(), sha256}))
    return lockfile.facts(found.items())


# Without a preprocessor: every #include counts, under whatever #if. A header too many
# in the lock makes it stale once too often; one too few would hide a change.
_INCLUDE = re.compile(rb'^\s*#\s*include\s*[<"]([^>"]+)[>"]', re.MULTILINE)


def _reachable(units: Iterable[CompileUnit], native: Mapping[str, bytes]) -> set[str]:
    """Headers among the known files that sources include, directly or indirectly."""
    # Grouped by include folders: most sources have the same ones, and each header is
    # then read once.
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
