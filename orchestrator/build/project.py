"""A project: a profile with the options of its build, and the values of that build."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from orchestrator.build import inputs, table
from orchestrator.build.engine import Build, Results, Value
from orchestrator.build.exporting import ExportChoice
from orchestrator.build.published import KnownLists, PublishedFiles, published_at
from orchestrator.errors import ProfileError, SourceSpan
from orchestrator.profile.load import Member, load_profile
from orchestrator.profile.tables import Profile
from orchestrator.program.foreign import NAME, TEXT, foreign
from orchestrator.shell import files, process, sources
from orchestrator.shell.build_folder import OVER_BUDGET, WORK, BuildNotes
from orchestrator.shell.compile_folder import CompileFolder
from orchestrator.shell.exported import EXPORTS
from orchestrator.shell.input_files import CommonFiles, InputFiles
from orchestrator.shell.process import Processes
from orchestrator.shell.reporter import Reporter
from orchestrator.shell.settings import Settings, read_settings
from orchestrator.shell.toolchain import InstalledToolchains, Toolchains
from orchestrator.workspace.load import Workspace, matrix_problems
from orchestrator.workspace.lookup import is_name, member_at, member_of
from orchestrator.workspace.product import WORKSPACE_FILE, Product


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """Options of a build.

    Args:
        out: Build folder; None for build/<profile name>.
        jobs: Compile steps at a time; None lets ninja choose.
        locked: The lock must not change.
        frozen: Its inputs must be those of the lock before anything runs.
        lock: The lock; None for the one beside the profile.
        write_lock: Write the lock.
        trust_cache: Use digests of compilers from this machine's cache.
        export: How models that are given as Python are exported.
    """

    out: Path | None = None
    jobs: int | None = None
    locked: bool = False
    frozen: bool = False
    lock: Path | None = None
    write_lock: bool = True
    trust_cache: bool = True
    export: ExportChoice = field(default_factory=ExportChoice)

    @property
    def shares(self) -> bool:
        """Whether objects and exports may be those of other builds.

        Not where each has to come from the compiler itself.
        """
        # `--frozen` and `verify` are asked because something elsewhere is not trusted.
        return self.trust_cache and not self.frozen


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """The tools of a build, and where its progress goes.

    Args:
        reporter: Gets the progress.
        toolchains: Compilers; None for those of this machine.
        processes: Runs the Python that exports models.
        compile_folder: Compiles; None for ninja in the work folder.
        common: Files that all builds of a command read; None to read them each time.
        results: Of stages, from other products of the command; None for none.
        lists: Of what is published.
    """

    reporter: Reporter = field(default_factory=Reporter)
    toolchains: Toolchains | None = None
    processes: Processes = process
    compile_folder: CompileFolder | None = None
    common: CommonFiles | None = None
    results: Results | None = None
    lists: KnownLists = field(default_factory=KnownLists)

    def published(self, settings: Settings) -> PublishedFiles | None:
        """What other machines published; None if settings name no place.

        Raises:
            ToolchainError: There is no key to check it with.
        """
        return published_at(self.lists, self.reporter.note, settings)


@dataclass(frozen=True, slots=True)
class Project:
    """A profile to build.

    Args:
        profile: What to build.
        options: How to build it.
    """

    profile: Profile
    options: BuildOptions = field(default_factory=BuildOptions)

    @property
    def folder(self) -> Path:
        """The build folder."""
        root = self.profile.build_root
        return self.options.out or root / "build" / self.profile.name

    @property
    def work(self) -> Path:
        """Its folder for files that are not published."""
        return self.folder / WORK

    @property
    def reports(self) -> Path:
        """Folder with the last build's reports, which may exceed its budget."""
        return self.over_budget if self.over_budget.is_dir() else self.folder

    @property
    def over_budget(self) -> Path:
        """Folder of the reports of a build that exceeds its budget."""
        return self.work / OVER_BUDGET

    @property
    def lock_file(self) -> Path:
        """The lock."""
        return self.options.lock or self.profile.lock_file

    @property
    def settings(self) -> Settings:
        """Those of the user and, where there are none, of the profile's workspace."""
        return read_settings(dict(self.profile.settings))

    @property
    def export(self) -> ExportChoice:
        """How models that are given as Python are exported."""
        choice = self.options.export
        return replace(choice, cache=choice.cache or self.settings.cache / EXPORTS)

    @property
    def notes(self) -> BuildNotes:
        """The notes of the last build."""
        return BuildNotes(self.work)


def piped_name(path: Path) -> Path | None:
    """The name under which a profile is read from a pipe; None if it is a file.

    `-` is stdin; `/dev/fd/63`, of a process substitution, becomes `-63`: the paths in
    such a profile start at the current folder.
    """
    if str(path) == "-":
        return path
    number = str(path).removeprefix("/dev/fd/").removeprefix("/proc/self/fd/")
    # A regular file under /dev/fd is read as a file: it has a size and can be read
    # again.
    if number.isdigit() and number != str(path) and path.is_fifo():
        return Path(f"-{number}")
    return None


def load(path: Path) -> Profile:
    """Load the profile of the product that the user names.

    Args:
        path: A file, stdin (`-`) or a process substitution; or the name of a product
            of the workspace that the current folder is in.

    Raises:
        ProfileError: Every problem of the file, or of its workspace's.
        UsageError: It gives several products in its workspace.
    """
    pipe = piped_name(path)
    if pipe is not None:
        return _load(pipe, None, pipe=pipe)
    profile, member, workspace = member_at(path)
    try:
        return _checked(_load(profile, member), workspace)
    except ProfileError as error:
        if other := _no_profile(path):
            raise other from error
        raise


def _no_profile(path: Path) -> ProfileError | None:
    """The error of a file of another kind; None if it seems to be a profile."""
    empty = found = foreign(b"")
    is_folder = os.path.isdir(path)  # noqa: PTH112  # a name may be too long for a file
    with suppress(OSError):
        # Read only after the profile failed: an ordinary profile pays nothing for the
        # hint.
        found = foreign(bytes(files.lazy_file(path)))
    what, hint = (found.what, found.hint) if found else ("", "")
    folder = path if is_folder else path.parent
    if is_folder or path.name == WORKSPACE_FILE:
        what, hint = "a folder", ""
        inside = [*folder.glob("*.toml")]
        if folder / WORKSPACE_FILE in inside:
            what = "a workspace"
            hint = f"name a product of it, or build all with --workspace {folder}"
        elif len(inside) == 1:
            hint = f"name the profile in it: {inside[0]}"
    elif found in {None, empty}:
        return None
    elif path.suffix in (".pte", ".pt2", ".py"):
        hint = f"`orchestrator init {path}` writes a profile for it"
    elif path.suffix == ".lock":
        what, profile = "a lock", path.with_suffix(".toml")
        hint = f"name its profile: {profile}" if profile.exists() else ""
    elif path.suffix == ".json":
        hint = f"name the profile first; a scenario follows it: --scenario {path}"
    elif found == TEXT:
        return None
    return ProfileError.of(
        "no-profile",
        f"{path} is not a profile",
        where=SourceSpan(file=str(path)),
        found=what,
        expected="a TOML file",
        hint=hint.removeprefix(NAME) or "name a profile; `orchestrator init MODEL` writes one",
    )


def project_at(path: Path) -> Project | None:
    """The product that an option names by its profile or name. Raises as `load`."""
    is_profile = path.suffix == ".toml" or (is_name(path) and member_at(path)[2])
    return Project(load(path)) if is_profile else None


def load_product(workspace: Workspace, product: Product) -> Profile:
    """Load the profile of a product of a workspace.

    Raises:
        ProfileError: Every problem of the profile.
    """
    profile = _load(product.profile, member_of(workspace, product))
    return _checked(profile, workspace)


def _checked(profile: Profile, workspace: Workspace | None) -> Profile:
    if workspace is None:
        return profile
    ProfileError.raise_if([*matrix_problems(profile, workspace)])
    return profile


def _load(path: Path, member: Member | None, *, pipe: Path | None = None) -> Profile:
    def text_of(file: Path) -> str:
        if file == pipe:
            files.remember_pipe(file, int(str(file).removeprefix("-") or 0))
        return files.read_text_file(file, most_bytes=files.MOST_PROFILE_BYTES)

    return load_profile(
        path,
        text_of=text_of,
        is_file=Path.is_file,
        known_libraries=sources.library_names(),
        member=member,
    )


def open_build(
    project: Project,
    shell: Shell | None = None,
    *,
    given: Mapping[Value[Any], object] = MappingProxyType({}),
    digests: Mapping[Value[Any], Mapping[str, str]] = MappingProxyType({}),
) -> Build:
    """The values of a project's build, each made when it is needed.

    Args:
        project: What to build.
        shell: Tools to build with; None for this machine's, without progress.
        given: More values that the build starts with.
        digests: Digests of inputs that were computed already.
    """
    shell = shell or Shell()
    options, settings = project.options, project.settings
    toolchains = shell.toolchains or InstalledToolchains(settings.cache)
    return Build(
        table.STAGES,
        {
            inputs.PROFILE: project.profile,
            inputs.FILES: InputFiles(shell.common),
            inputs.FOLDER: project.folder,
            inputs.WORK: project.work,
            inputs.TOOLCHAINS: toolchains,
            inputs.PROCESSES: shell.processes,
            # Digests to compare with a lock are computed from the files themselves.
            # Who can write to the cache must not decide what is compared with a lock
            # (decision 0013).
            inputs.TRUST_CACHE: options.trust_cache and not options.locked,
            inputs.EXPORT_CHOICE: replace(project.export, fetched=options.shares),
            inputs.PUBLISHED: partial(shell.published, settings),
            inputs.REPORTER: shell.reporter,
            inputs.BUILTINS: toolchains.builtins,
            **given,
        },
        notes=project.notes,
        always=inputs.ORCHESTRATOR,
        digests=digests,
        observer=shell.reporter.working,
        results=shell.results,
    )
