"""What a build reads, as a table: settings of the profile, models, sources, compiler.

An input has a label, under which plans show it (`profile [budget]`, `model kws`), and
the digests of its items. Those without are in messages only, or in the lock, so that
no remembered result depends on them.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from orchestrator.build.engine import (
    Derived,
    Effect,
    Given,
    Input,
    Item,
    digest,
    repr_digest,
)
from orchestrator.build.exporting import ExportChoice, Exported, export_models
from orchestrator.build.libraries import (
    Libraries,
    delegate_codes,
    delegate_options,
    find_libraries,
    library_options,
    library_text,
    native_paths,
)
from orchestrator.errors import Diagnostic, ModelError, ProfileError, SourceSpan
from orchestrator.shell import sources
from orchestrator.shell.files import MOST_LIST_BYTES
from orchestrator.targets.cores import CPUS, resolve_target

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.catalog import Catalog, LibraryText
    from orchestrator.measure.size import SizeReport
    from orchestrator.profile import Profile
    from orchestrator.profile.checked import Load, OperatorRequests, TargetChoice
    from orchestrator.program.program import Program
    from orchestrator.selection.op_info import Origin
    from orchestrator.shell.compile_folder import CompileFolder
    from orchestrator.shell.input_files import InputFiles
    from orchestrator.shell.process import Processes
    from orchestrator.shell.reporter import Reporter
    from orchestrator.shell.toolchain import Toolchains
    from orchestrator.targets.cores import Target
    from orchestrator.targets.regions import Pins, RegionChoice
    from orchestrator.targets.toolchain import Toolchain

T = TypeVar("T")

# Given by whoever builds.

PROFILE: Given[Profile] = Given(gives="profile")
FILES: Given[InputFiles] = Given(gives="files")
FOLDER: Given[Path] = Given(gives="folder")
WORK: Given[Path] = Given(gives="work")
TOOLCHAINS: Given[Toolchains] = Given(gives="toolchains")
PROCESSES: Given[Processes] = Given(gives="processes")
TRUST_CACHE: Given[bool] = Given(gives="trust_cache")
EXPORT_CHOICE: Given[ExportChoice] = Given(gives="export_choice")
REPORTER: Effect[Reporter] = Effect(gives="reporter")
COMPILE_FOLDER: Effect[CompileFolder] = Effect(gives="compile_folder")
BUILTINS: Effect[Callable[[Toolchain, Target], bytes]] = Effect(gives="builtins")
EVERY_DTYPE_SIZE: Effect[Callable[[], SizeReport | None]] = Effect(
    gives="every_dtype_size"
)


# Settings of the profile.


def setting(gives: str, table: str, run: Callable[[Profile], T]) -> Input[T]:
    """A setting that plans show as `profile [table]`."""
    return Input(
        gives=gives,
        reads=(PROFILE,),
        run=lambda *, profile: run(profile),
        label=f"profile [{table}]",
        digests=repr_digest,
    )


def _loads(profile: Profile) -> dict[str, Load]:
    """How each model gets onto the device, in the profile's order."""
    return {model.name: model.load for model in profile.models}


def _pins(profile: Profile) -> dict[str, Pins]:
    """Where arenas and tensors of each model have to lie."""
    return {model.name: model.pins for model in profile.models}


def _operators(profile: Profile) -> OperatorRequests:
    """Without files, whose content counts: `OPERATOR_FILES`."""
    return replace(profile.operators, include_yaml=())


NAME = setting("name", "name", lambda p: p.name)
TARGET_CHOICE = setting("target_choice", "target", lambda p: p.target)
LOADS = setting("loads", "models", _loads)
PINS = setting("pins", "models", _pins)
LIMITS = setting(
    "limits", "limits", lambda p: {m.name: m.instruction_limit for m in p.models}
)
OPERATORS = setting("operators", "operators", _operators)
DTYPES = setting("dtypes", "dtypes", lambda p: p.dtypes)
KERNELS = setting("kernels", "kernels", lambda p: p.kernels)
PRELINK = setting("prelink", "prelink", lambda p: p.prelink)
SCRATCH = setting("scratch", "scratch", lambda p: p.scratch)
PLANNER = setting("planner", "memory", lambda p: p.memory.planner)
CONCURRENCY = setting("concurrency", "memory", lambda p: p.memory.concurrency)
REGIONS = setting("regions", "memory", lambda p: p.memory.regions)
REGISTRY = setting("registry", "registry", lambda p: p.registry)
TRACE = setting("trace", "trace", lambda p: p.trace)
INTEGRITY = setting("integrity", "integrity", lambda p: p.integrity)
BUDGET = setting("budget", "budget", lambda p: p.budget)


# Where the profile says something: in messages only.


def _model_spans(*, profile: Profile) -> dict[str, SourceSpan]:
    """The line of each model."""
    return {
        model.name: profile.span("models", index, model.key)
        for index, model in enumerate(profile.models)
    }


def _origin_span(
    *, profile: Profile, model_spans: Mapping[str, SourceSpan]
) -> Callable[[Origin], SourceSpan | None]:
    """The line because of which an operator is selected."""

    def span_of(origin: Origin) -> SourceSpan | None:
        if origin.method or origin.source in model_spans:
            return model_spans.get(origin.source)
        return profile.span(*origin.source.split("."))

    return span_of


SPAN: Input[Callable[..., SourceSpan]] = Input(
    gives="span", reads=(PROFILE,), run=lambda *, profile: profile.span
)
MODEL_SPANS = Input(gives="model_spans", reads=(PROFILE,), run=_model_spans)
ORIGIN_SPAN = Input(gives="origin_span", reads=(PROFILE, MODEL_SPANS), run=_origin_span)


# Orchestrator itself, and the target.


def _orchestrator(*, files: InputFiles) -> str:
    """Digest of all its code: results hold only for this code."""
    whole = hashlib.sha256()
    for path in sources.package_files():
        whole.update(files.read(path))
    return whole.hexdigest()


def _host_toolchain(*, profile: Profile, toolchains: Toolchains) -> str:
    """The toolchain, where the profile leaves it to what a host has; else ""."""
    return "" if profile.target.toolchain else toolchains.name_for_host()


def _target(
    *,
    target_choice: TargetChoice,
    host_toolchain: str,
    regions: tuple[RegionChoice, ...],
) -> Target:
    """What is built for."""
    return resolve_target(
        cpu=target_choice.cpu,
        isa=target_choice.isa,
        board=target_choice.board,
        toolchain=target_choice.toolchain or host_toolchain,
        optimize=target_choice.optimize.value,
        unaligned=target_choice.unaligned,
        regions=regions,
    )


def _isa(*, target_choice: TargetChoice) -> str:
    """Name of the instruction set."""
    return CPUS[target_choice.cpu].isas[target_choice.isa].name


def _toolchain(
    *, target: Target, toolchains: Toolchains, trust_cache: bool
) -> Toolchain:
    """The compiler. Raises ToolchainError."""
    return toolchains.find(target, trust_cache=trust_cache)


ORCHESTRATOR = Input(
    gives="orchestrator",
    reads=(FILES,),
    run=_orchestrator,
    label="orchestrator",
    digests=lambda found: {"": found},
)
HOST_TOOLCHAIN = Input(
    gives="host_toolchain",
    reads=(PROFILE, TOOLCHAINS),
    run=_host_toolchain,
    label="profile [target]",
    digests=repr_digest,
)
TARGET = Derived(
    gives="target", reads=(TARGET_CHOICE, HOST_TOOLCHAIN, REGIONS), run=_target
)
ISA = Derived(gives="isa", reads=(TARGET_CHOICE,), run=_isa)
TOOLCHAIN = Input(
    gives="toolchain",
    reads=(TARGET, TOOLCHAINS, TRUST_CACHE),
    run=_toolchain,
    label="toolchain",
    digests=repr_digest,
)


# Models.


def relative(profile: Profile, path: Path) -> str:
    """Path of a file relative to the profile, the same on every machine."""
    return Path(os.path.relpath(path, profile.folder)).as_posix()


def _model_bytes(
    *, profile: Profile, files: InputFiles, exported: Mapping[str, Exported]
) -> dict[str, bytes]:
    """Programs by model name. Raises ModelError with every problem."""
    problems: list[Diagnostic] = []
    data: dict[str, bytes] = {}
    for index, model in enumerate(profile.models):
        if model.source is not None:
            data[model.name] = exported[model.name].program
            continue
        try:
            data[model.name] = files.read(model.path)
        except OSError as error:
            message = f'model "{model.name}" cannot be read'
            where = profile.span("models", index, "path")
            problems.append(_unreadable("unreadable-model", message, where, error))
    if problems:
        raise ModelError(problems)
    return data


def _unreadable(
    code: str, message: str, where: SourceSpan, error: OSError
) -> Diagnostic:
    return Diagnostic(
        code=code,
        message=message,
        where=where,
        notes=(("found", error.strerror or str(error)),),
        hint="check the file's permissions",
    )


def _data_files(*, profile: Profile, files: InputFiles) -> dict[str, dict[str, bytes]]:
    """Data files by model name, then by path relative to the profile."""
    data: dict[str, dict[str, bytes]] = {}
    problems: list[Diagnostic] = []
    for index, model in enumerate(profile.models):
        found = data.setdefault(model.name, {})
        for at, file in enumerate(model.data):
            try:
                found[relative(profile, file.path)] = files.read(file.path)
            except OSError as error:
                message = f'data of model "{model.name}" cannot be read'
                where = profile.span("models", index, "data", at)
                problems.append(_unreadable("unreadable-model", message, where, error))
    if problems:
        raise ModelError(problems)
    return data


def _programs(
    *,
    model_bytes: Mapping[str, bytes],
    data_files: Mapping[str, Mapping[str, bytes]],
    model_paths: Mapping[str, str],
    model_spans: Mapping[str, SourceSpan],
) -> dict[str, Program]:
    """Decoded programs by model name. Raises ModelError with every problem."""
    from orchestrator.program.external import with_data  # noqa: PLC0415
    from orchestrator.program.flat_tensor import read_flat_tensors  # noqa: PLC0415
    from orchestrator.program.reader import read_program  # noqa: PLC0415

    programs: dict[str, Program] = {}
    problems: list[Diagnostic] = []
    for name, data in model_bytes.items():
        try:
            programs[name] = with_data(
                read_program(data, file=model_paths[name]),
                {
                    label: read_flat_tensors(items, file=label)
                    for label, items in data_files[name].items()
                },
                model=name,
                where=model_spans[name],
            )
        except ModelError as error:
            named_by = ("named by", str(model_spans[name]))
            problems += [
                replace(d, notes=(*d.notes, named_by)) for d in error.diagnostics
            ]
    if problems:
        raise ModelError(problems)
    return programs


def _digest_each(found: Mapping[str, bytes]) -> dict[str, str]:
    return {name: digest(data) for name, data in found.items()}


def _data_digests(found: Mapping[str, Mapping[str, bytes]]) -> dict[str, str]:
    return {
        model: digest("\n".join(map(digest, files.values())).encode())
        for model, files in found.items()
    }


EXPORTED: Input[dict[str, Exported]] = Input(
    gives="exported",
    reads=(PROFILE, FILES, EXPORT_CHOICE, FOLDER, PROCESSES, REPORTER),
    run=export_models,
)
"""Stage export: it remembers by itself, and later stages depend on the programs."""
MODEL_NAMES = Input(
    gives="model_names",
    reads=(PROFILE,),
    run=lambda *, profile: {model.name: model.name for model in profile.models},
    label="model",
    digests=lambda found: {name: digest(name.encode()) for name in found},
)
MODEL_BYTES = Input(
    gives="model_bytes",
    reads=(PROFILE, FILES, EXPORTED),
    run=_model_bytes,
    label="model",
    digests=_digest_each,
)
DATA_FILES = Input(
    gives="data_files",
    reads=(PROFILE, FILES),
    run=_data_files,
    label="model",
    digests=_data_digests,
)
MODEL_PATHS = Input(
    gives="model_paths",
    reads=(PROFILE,),
    run=lambda *, profile: {m.name: str(m.path) for m in profile.models},
)
PROGRAMS = Derived(
    gives="programs",
    reads=(MODEL_BYTES, DATA_FILES, MODEL_PATHS, MODEL_SPANS),
    run=_programs,
)
MODEL: Item[str] = Item(gives="model", of=MODEL_NAMES)
PROGRAM: Item[Program] = Item(gives="program", of=PROGRAMS)


# Operators and kernels.


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFile:
    """A file of `operators.include_yaml`.

    Args:
        label: Its path relative to the profile.
        data: Its bytes.
        path: As messages show it.
        where: The line of the profile that names it.
    """

    label: str
    data: bytes
    path: str
    where: SourceSpan


def _operator_files(*, profile: Profile, files: InputFiles) -> tuple[OperatorFile, ...]:
    """Files that list operators, in the profile's order. Raises ProfileError."""
    found: list[OperatorFile] = []
    problems: list[Diagnostic] = []
    for index, file in enumerate(profile.operators.include_yaml):
        where = profile.span("operators", "include_yaml", index)
        try:
            found.append(
                OperatorFile(
                    label=relative(profile, file.path),
                    data=files.read(file.path, most_bytes=MOST_LIST_BYTES),
                    path=str(file.path),
                    where=where,
                )
            )
        except OSError as error:
            message = f'operator list "{file.written}" cannot be read'
            problems.append(_unreadable("unreadable-file", message, where, error))
    if problems:
        raise ProfileError(problems)
    return tuple(found)


def _library_texts(
    *, profile: Profile, libraries: Libraries, files: InputFiles
) -> tuple[LibraryText, ...]:
    """Kernel lists of the profile's libraries, in its order. Raises ProfileError."""
    return tuple(
        library_text(profile, libraries, name, files)
        for name in profile.kernels.libraries
    )


def _text_digests(texts: tuple[LibraryText, ...]) -> dict[str, str]:
    return {
        t.name: digest(
            repr((t.text, t.folder, t.sources, sorted(t.files or ()))).encode()
        )
        for t in texts
    }


def _every_library(
    *, profile: Profile, libraries: Libraries, files: InputFiles
) -> Callable[[], Catalog]:
    """Kernels of all libraries, for hints: one that is broken has none."""

    def every_library() -> Catalog:
        from orchestrator.catalog import Catalog, read_catalog  # noqa: PLC0415

        names = [library.name for library in profile.kernels.custom]
        names += sources.library_names()
        with suppress(ProfileError):
            texts = [library_text(profile, libraries, n, files) for n in names]
            return read_catalog(texts)
        return Catalog()

    return every_library


def _repr_digests(found: Mapping[str, Any]) -> dict[str, str]:
    return {name: digest(repr(value).encode()) for name, value in found.items()}


OPERATOR_FILES = Input(
    gives="operator_files",
    reads=(PROFILE, FILES),
    run=_operator_files,
    label="file",
    digests=lambda found: {file.label: digest(file.data) for file in found},
)
LIBRARIES = Input(
    gives="libraries",
    reads=(PROFILE,),
    run=lambda *, profile: find_libraries(profile),
)
LIBRARY_TEXTS = Input(
    gives="library_texts",
    reads=(PROFILE, LIBRARIES, FILES),
    run=_library_texts,
    label="library",
    digests=_text_digests,
)
LIBRARY_OPTIONS = Input(
    gives="library_options",
    reads=(PROFILE, LIBRARIES),
    run=lambda *, profile, libraries: library_options(profile, libraries),
    label="library",
    digests=_repr_digests,
)
EVERY_LIBRARY = Input(
    gives="every_library", reads=(PROFILE, LIBRARIES, FILES), run=_every_library
)
DELEGATES = Input(
    gives="delegates",
    reads=(PROFILE, LIBRARIES),
    run=lambda *, profile, libraries: delegate_codes(profile, libraries),
    label="delegate",
    digests=lambda found: {c.backend: digest(repr(c).encode()) for c in found},
)
DELEGATE_OPTIONS = Input(
    gives="delegate_options",
    reads=(PROFILE, LIBRARIES),
    run=lambda *, profile, libraries: delegate_options(profile, libraries),
    label="delegate",
    digests=_repr_digests,
)
NATIVE = Input(
    gives="native",
    reads=(PROFILE, LIBRARIES, FILES),
    run=lambda *, profile, libraries, files: {
        name: files.read(path)
        for name, path in native_paths(profile, libraries).items()
    },
    label="source",
    digests=_digest_each,
)
