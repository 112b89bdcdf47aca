"""What a build reads: profile, models, sources, compiler. Each thing once."""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, ModelError, ProfileError, SourceSpan
from orchestrator.shell import files, sources, stamp
from orchestrator.shell.build_folder import WORK
from orchestrator.shell.reporter import Silent
from orchestrator.targets.cores import Target, resolve_target

if TYPE_CHECKING:
    from orchestrator.build.exporting import Exported
    from orchestrator.build.libraries import Libraries
    from orchestrator.catalog import Catalog
    from orchestrator.profile import Profile
    from orchestrator.program.program import Program
    from orchestrator.selection.op_info import Origin
    from orchestrator.shell.reporter import Reporter
    from orchestrator.targets.toolchain import Toolchain


def digest(data: bytes) -> str:
    """SHA-256 in hex."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportChoice:
    """How to export.

    Args:
        accelerate: Lower faster.
        verify: Lower both ways, and compare.
        again: Do not look for what is known.
        cache: Folder of what is known; None for the machine's.
    """

    accelerate: bool = True
    verify: bool = False
    again: bool = False
    cache: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """How to build.

    Args:
        out: Build folder; None for build/<profile name>.
        jobs: Compile steps at a time; None lets ninja choose.
        locked: The lock must not change.
        frozen: Its inputs must be those of the lock before anything runs.
        lock: The lock; None for the one beside the profile.
        write_lock: Write the lock.
        trust_cache: Digests of compilers that this machine's cache remembers will do.
        export: How models that are given as Python are exported.
    """

    out: Path | None = None
    jobs: int | None = None
    locked: bool = False
    frozen: bool = False
    lock: Path | None = None
    write_lock: bool = True
    trust_cache: bool = True
    export: ExportChoice = ExportChoice()


def load(path: Path) -> Profile:
    """The profile of a file.

    Raises:
        ProfileError: Whatever is wrong with it.
    """
    from orchestrator.profile import load_profile  # noqa: PLC0415  # imports pydantic

    return load_profile(
        path,
        text_of=lambda p: files.read_text_file(p, most_bytes=files.MOST_PROFILE_BYTES),
        is_file=Path.is_file,
        known_libraries=sources.library_names(),
    )


class Inputs:
    """A profile and everything it leads to, read when asked for, and only once."""

    def __init__(self, profile: Profile, options: BuildOptions) -> None:
        self.profile = profile
        self.options = options
        self.folder = options.out or Path("build") / profile.name
        self.work = self.folder / WORK
        self.lock_file = options.lock or profile.file.with_suffix(".lock")
        self.states: dict[str, stamp.State] = {}
        self.reporter: Reporter = Silent()

    def read_list(self, path: Path) -> bytes:
        """The same of a list of operators or kernels, which takes longer to read."""
        return self.read(path, most_bytes=files.MOST_LIST_BYTES)

    def read(self, path: Path, *, most_bytes: int = files.MOST_BYTES) -> bytes:
        """Bytes of an input; its state is noted first, for the stamp."""
        absolute = str(path.absolute())
        self.states.setdefault(absolute, stamp.state_of(absolute))
        return files.read_file(path, most_bytes=most_bytes)

    def digest_of(self, path: Path) -> str:
        """Digest of an input."""
        return digest(self.read(path))

    @cached_property
    def exported(self) -> dict[str, Exported]:
        """Models that are given as Python, as programs. Raises ModelError."""
        if all(model.source is None for model in self.profile.models):
            return {}
        from orchestrator.build.exporting import export_models  # noqa: PLC0415

        found = export_models(self)
        for path in (p for e in found.values() for p in e.paths):
            self.states.setdefault(path, stamp.state_of(path))
        return found

    @property
    def export_steps(self) -> list[tuple[str, str]]:
        """(label, why it ran now or "") of stage export, for each model it is for."""
        return [(f"export {n}", e.reason) for n, e in self.exported.items()]

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
            unaligned=choice.unaligned,
            regions=self.profile.memory.regions,
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
            if model.source is not None:
                data[model.name] = self.exported[model.name].program
                continue
            try:
                data[model.name] = self.read(model.path)
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
    def data_files(self) -> dict[str, dict[str, bytes]]:
        """Data files by model name, then by path relative to the profile."""
        data: dict[str, dict[str, bytes]] = {}
        problems: list[Diagnostic] = []
        for index, model in enumerate(self.profile.models):
            found = data.setdefault(model.name, {})
            for at, file in enumerate(model.data):
                try:
                    found[self.label(file.path)] = self.read(file.path)
                except OSError as error:
                    problems.append(
                        Diagnostic(
                            code="unreadable-model",
                            message=f'data of model "{model.name}" cannot be read',
                            where=self.profile.span("models", index, "data", at),
                            notes=(("found", error.strerror or str(error)),),
                            hint="check the file's permissions",
                        )
                    )
        if problems:
            raise ModelError(problems)
        return data

    @property
    def loads_external(self) -> bool:
        """Whether the device's loader has to find data outside of programs."""
        loaded = [m.name for m in self.profile.models if m.load.value == "pte"]
        return any(self.programs[name].external for name in loaded)

    @property
    def loads_inline_constants(self) -> bool:
        """Whether the device's loader has to find constants inside flatbuffers."""
        loaded = [m.name for m in self.profile.models if m.load.value == "pte"]
        return any(self.programs[name].inline_constants for name in loaded)

    def model_digest(self, name: str) -> str:
        """Digest of a program and its data files."""
        parts = [digest(d) for d in self.data_files[name].values()]
        own = digest(self.model_bytes[name])
        return digest("\n".join((own, *parts)).encode()) if parts else own

    @cached_property
    def operator_files(self) -> dict[str, bytes]:
        """Files of `operators.include_yaml`, by path relative to the profile."""
        data: dict[str, bytes] = {}
        problems: list[Diagnostic] = []
        for index, file in enumerate(self.profile.operators.include_yaml):
            try:
                data[self.label(file.path)] = self.read_list(file.path)
            except OSError as error:
                problems.append(
                    Diagnostic(
                        code="unreadable-file",
                        message=f'operator list "{file.written}" cannot be read',
                        where=self.profile.span("operators", "include_yaml", index),
                        notes=(("found", error.strerror or str(error)),),
                        hint="check the file's permissions",
                    )
                )
        if problems:
            raise ProfileError(problems)
        return data

    def label(self, path: Path) -> str:
        """Path of a file relative to the profile, the same on every machine."""
        return Path(os.path.relpath(path, self.profile.folder)).as_posix()

    @cached_property
    def programs(self) -> dict[str, Program]:
        """Decoded programs by model name. Raises ModelError with every problem."""
        from orchestrator.program.external import with_data  # noqa: PLC0415
        from orchestrator.program.flat_tensor import read_flat_tensors  # noqa: PLC0415
        from orchestrator.program.reader import read_program  # noqa: PLC0415

        programs: dict[str, Program] = {}
        problems: list[Diagnostic] = []
        for model in self.profile.models:
            data = self.model_bytes[model.name]
            try:
                program = read_program(data, file=str(model.path))
                programs[model.name] = with_data(
                    program,
                    {
                        label: read_flat_tensors(items, file=label)
                        for label, items in self.data_files[model.name].items()
                    },
                    model=model.name,
                    where=self.model_spans[model.name],
                )
            except ModelError as error:
                named_by = ("named by", str(self.model_spans[model.name]))
                problems += [
                    replace(d, notes=(*d.notes, named_by)) for d in error.diagnostics
                ]
        if problems:
            raise ModelError(problems)
        return programs

    @cached_property
    def model_spans(self) -> dict[str, SourceSpan]:
        """Profile line of each model."""
        return {
            model.name: self.profile.span("models", index, model.key)
            for index, model in enumerate(self.profile.models)
        }

    @cached_property
    def native_bytes(self) -> dict[str, bytes]:
        """Files of runtime and of the kernel libraries, by path; see `Libraries`."""
        return {
            name: self.read(path) for name, path in self.libraries.native_files.items()
        }

    @cached_property
    def native(self) -> dict[str, str]:
        """Their digests."""
        return {name: digest(data) for name, data in self.native_bytes.items()}

    @cached_property
    def libraries(self) -> Libraries:
        """Where the kernel libraries are. Raises ProfileError."""
        from orchestrator.build.libraries import Libraries  # noqa: PLC0415

        return Libraries(self.profile)

    @cached_property
    def catalog(self) -> Catalog:
        """Kernels of the profile's libraries."""
        from orchestrator.catalog import read_catalog  # noqa: PLC0415

        choice = self.profile.kernels
        texts = [
            self.libraries.text_of(n, read=self.read_list) for n in choice.libraries
        ]
        catalog = read_catalog(texts, choice.operators)
        self._check_choice(catalog)
        return catalog

    def _check_choice(self, catalog: Catalog) -> None:
        """Refuse libraries that have no kernel of the operator they are chosen for."""
        kernels = dict(catalog.libraries)
        problems = [
            Diagnostic(
                code="bad-choice",
                message=f"the kernel library {name} has no kernel of {operator}",
                where=self.profile.span("kernels", "operators", str(operator)),
                notes=(("expected", f"a library with a kernel of {operator}"),),
                hint=f'take "{name}" out there',
            )
            for operator, names in self.profile.kernels.operators
            for name in names
            if all(kernel.operator != operator for kernel in kernels.get(name, ()))
        ]
        if problems:
            raise ProfileError(problems)

    @cached_property
    def toolchain(self) -> Toolchain:
        """The compiler. Raises ToolchainError."""
        return self.found_toolchain(trust_cache=self.options.trust_cache)

    def found_toolchain(self, *, trust_cache: bool) -> Toolchain:
        """The compiler as it is now. Raises ToolchainError."""
        from orchestrator.shell.toolchain import find_toolchain  # noqa: PLC0415

        # What is compared with a lock is read, too.
        trusted = trust_cache and not self.options.locked
        return find_toolchain(self.target, trust_cache=trusted)

    @cached_property
    def program_digest(self) -> str:
        """Digest of Orchestrator itself: its results hold only for this code."""
        whole = hashlib.sha256()
        for path in sources.package_files():
            whole.update(self.read(path))
        return whole.hexdigest()

    @cached_property
    def sections(self) -> dict[str, str]:
        """Digests of the profile's tables, by name."""
        p = self.profile
        return {
            name: digest(repr(value).encode())
            for name, value in {
                "name": p.name,
                "target": (p.target, self.target.toolchain),
                "models": [(m.name, m.load, m.pins.tensors) for m in p.models],
                "limits": [m.instruction_limit for m in p.models],
                "prelink": p.prelink,
                "scratch": p.scratch,
                "memory": (p.memory, [model.pins for model in p.models]),
                # The content of the files counts, see operator_files.
                "operators": p.operators.model_copy(update={"include_yaml": ()}),
                "dtypes": p.dtypes,
                "kernels": p.kernels,
                "registry": p.registry,
                "trace": p.trace,
                "integrity": p.integrity,
                "budget": p.budget,
            }.items()
        }

    def span_of(self, origin: Origin) -> SourceSpan | None:
        """The profile line that asks for an operator."""
        if origin.method or origin.source in self.model_spans:
            return self.model_spans.get(origin.source)
        return self.profile.span(*origin.source.split("."))

    def every_library(self) -> Catalog:
        """Kernels of all libraries, for hints: one that is broken has none."""
        from orchestrator.catalog import Catalog, read_catalog  # noqa: PLC0415

        names = [library.name for library in self.profile.kernels.custom]
        names += sources.library_names()
        with suppress(ProfileError):
            texts = [self.libraries.text_of(n, read=self.read_list) for n in names]
            return read_catalog(texts)
        return Catalog()
