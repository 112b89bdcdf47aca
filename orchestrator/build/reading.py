"""Read the inputs of a build, which `orchestrator.build.inputs` lists."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.build.borders import stream_model
from orchestrator.build.engine import digest
from orchestrator.build.exporting import Exported
from orchestrator.build.libraries import Libraries, library_text
from orchestrator.catalog import Catalog, LibraryText, read_catalog
from orchestrator.core.border import ModelIo
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.errors import Diagnostic, ModelError, ProfileError, SourceSpan
from orchestrator.profile.choices import Optimize
from orchestrator.profile.memory import RegionTable, with_regions
from orchestrator.profile.tables import Profile
from orchestrator.profile.target import TargetTable
from orchestrator.program.external import read_flat_tensors, with_data
from orchestrator.program.program import Program
from orchestrator.program.reader import read_program
from orchestrator.selection.op_info import Origin
from orchestrator.shell import sources
from orchestrator.shell.files import MOST_LIST_BYTES
from orchestrator.shell.input_files import InputFiles
from orchestrator.shell.toolchain import Toolchains
from orchestrator.targets.boards import Places
from orchestrator.targets.cores import CPUS, Target, Toolchain, resolve_target


def find_model_spans(*, profile: Profile) -> dict[str, SourceSpan]:
    """The line of each model."""
    return {
        model.name: profile.span("models", index, model.key)
        for index, model in enumerate(profile.models)
    }


def find_origin_span(
    *, profile: Profile, model_spans: Mapping[str, SourceSpan]
) -> Callable[[Origin], SourceSpan | None]:
    """A function that finds the profile line that selects an operator."""

    def span_of(origin: Origin) -> SourceSpan | None:
        if origin.method or origin.source in model_spans:
            return model_spans.get(origin.source)
        return profile.span(*origin.source.split("."))

    return span_of


def digest_program(*, files: InputFiles) -> str:
    """Digest of Orchestrator's own code: results of other code are not reused."""
    whole = hashlib.sha256()
    # Not the version: a checkout changes without one.
    for path in files.package_files():
        whole.update(files.read(path))
    return whole.hexdigest()


def name_host_toolchain(*, profile: Profile, toolchains: Toolchains) -> str:
    """The host's toolchain, if the profile does not choose one; else ""."""
    return "" if profile.target.toolchain else toolchains.name_for_host()


def choose_target(
    *,
    target_choice: TargetTable,
    host_toolchain: str,
    regions: tuple[RegionTable, ...],
    places: Places,
) -> Target:
    """The target of the build."""
    board = target_choice.described_board
    return resolve_target(
        cpu=target_choice.cpu,
        isa=target_choice.isa,
        board=board and with_regions(board, regions, places),
        toolchain=target_choice.toolchain or host_toolchain,
        optimize=target_choice.optimize.value,
        unaligned=target_choice.unaligned,
        float_abi=target_choice.float_abi,
        via=target_choice.via.value,
    )


def favours_speed(*, target_choice: TargetTable) -> bool:
    """Whether speed is worth flash."""
    return target_choice.optimize is Optimize.SPEED


def allows_unaligned(*, target_choice: TargetTable) -> bool:
    """Whether code may load words from any address."""
    return target_choice.unaligned


def name_isa(*, target_choice: TargetTable) -> str:
    """Name of the instruction set."""
    return CPUS[target_choice.cpu].isas[target_choice.isa].name


def find_toolchain(*, target: Target, toolchains: Toolchains, trust_cache: bool) -> Toolchain:
    """The compiler. Raises ToolchainError."""
    return toolchains.find(target, trust_cache=trust_cache)


def relative(profile: Profile, path: Path) -> str:
    """Path of a file relative to the profile, the same on every machine."""
    return Path(os.path.relpath(path, profile.folder)).as_posix()


def read_models(
    *, profile: Profile, files: InputFiles, exported: Mapping[str, Exported]
) -> dict[str, Bytes]:
    """Programs by model name. Raises ModelError with every problem."""
    problems: list[Diagnostic] = []
    data: dict[str, Bytes] = {}
    for index, model in enumerate(profile.models):
        if model.source is not None:
            data[model.name] = exported[model.name].program
            continue
        try:
            data[model.name] = files.lazy(model.path)
        except OSError as error:
            message = f'model "{model.name}" cannot be read'
            where = profile.span("models", index, "path")
            problems.append(_unreadable("unreadable-model", message, where, error))
    ModelError.raise_if(problems)
    return data


def _unreadable(code: str, message: str, where: SourceSpan, error: OSError) -> Diagnostic:
    return Diagnostic.of(
        code,
        message,
        where=where,
        found=error.strerror or str(error),
        hint="check the file's permissions",
    )


def read_data_files(*, profile: Profile, files: InputFiles) -> dict[str, dict[str, Bytes]]:
    """Data files by model name, then by path relative to the profile."""
    data: dict[str, dict[str, Bytes]] = {}
    problems: list[Diagnostic] = []
    for index, model in enumerate(profile.models):
        found = data.setdefault(model.name, {})
        for at, file in enumerate(model.data):
            try:
                found[relative(profile, file.path)] = files.lazy(file.path)
            except OSError as error:
                message = f'data of model "{model.name}" cannot be read'
                where = profile.span("models", index, "data", at)
                problems.append(_unreadable("unreadable-model", message, where, error))
    ModelError.raise_if(problems)
    return data


def decode_programs(
    *,
    model_bytes: Mapping[str, Bytes],
    data_files: Mapping[str, Mapping[str, Bytes]],
    model_paths: Mapping[str, str],
    model_spans: Mapping[str, SourceSpan],
    streams: Mapping[str, ModelIo],
    takes: Mapping[str, bool],
    span: Callable[..., SourceSpan],
) -> dict[str, Program]:
    """Decoded programs by model name, inputs that are streams among them.

    Raises ModelError with every problem.
    """
    programs: dict[str, Program] = {}
    problems: list[Diagnostic] = []
    for name, data in model_bytes.items():
        try:
            program = with_data(
                read_program(data, file=model_paths[name]),
                {
                    label: read_flat_tensors(items, file=label)
                    for label, items in data_files[name].items()
                },
                model=name,
                where=model_spans[name],
                takes=takes,
            )
            if name in streams:
                program = stream_model(name, program, streams[name], [*model_paths], span)
            programs[name] = program
        except ModelError as error:
            # The problem is in the program's bytes; the line of the profile says which
            # one.
            named_by = ("named by", str(model_spans[name]))
            problems += [replace(d, notes=(*d.notes, named_by)) for d in error.diagnostics]
    ModelError.raise_if(problems)
    return programs


def digest_each(found: Mapping[str, Bytes]) -> dict[str, str]:
    """By name: the digest of a file's bytes."""
    return {name: digest(data) for name, data in found.items()}


def digest_data(found: Mapping[str, Mapping[str, Bytes]]) -> dict[str, str]:
    """By model: the digest of all its data files, also if there are none."""
    return {
        model: digest("\n".join(map(digest, files.values())).encode())
        for model, files in found.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorFile:
    """A file of `operators.include_yaml`.

    Args:
        label: Its path relative to the profile.
        data: Its bytes.
        path: Its path in messages.
        where: The line of the profile that names it.
    """

    label: str
    data: bytes
    path: str
    where: SourceSpan


def read_operator_files(*, profile: Profile, files: InputFiles) -> tuple[OperatorFile, ...]:
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
    ProfileError.raise_if(problems)
    return tuple(found)


def read_library_texts(
    *, profile: Profile, libraries: Libraries, files: InputFiles
) -> tuple[LibraryText, ...]:
    """Kernel lists of the profile's libraries, in its order. Raises ProfileError."""
    return tuple(
        library_text(profile, libraries, name, files) for name in profile.kernels.libraries
    )


def digest_texts(texts: tuple[LibraryText, ...]) -> dict[str, str]:
    """By library: the digest of its list, and of the names of its files."""
    return {
        # Names of files as well: a source that appears or goes changes what an entry
        # can name.
        t.name: digest(repr((t.text, t.folder, t.sources, sorted(t.files or ()))).encode())
        for t in texts
    }


def read_every_library(
    *, profile: Profile, libraries: Libraries, files: InputFiles
) -> Callable[[], Catalog]:
    """Kernels of all libraries, for hints; a broken library offers none."""

    def every_library() -> Catalog:
        names = [library.name for library in profile.kernels.custom]
        names += sources.library_names()
        with suppress(ProfileError):
            texts = [library_text(profile, libraries, n, files) for n in names]
            return read_catalog(texts)
        return Catalog()

    return every_library


def digest_reprs(found: Mapping[str, Any]) -> dict[str, str]:
    """By name: the digest of a value whose `repr` shows all of it."""
    return {name: digest(repr(value).encode()) for name, value in found.items()}
