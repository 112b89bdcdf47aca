"""Check a lock against its inputs and outputs, and identify a file; changes nothing."""

from __future__ import annotations

import tempfile
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from orchestrator.build import lockfile, table
from orchestrator.build.exporting import ExportChoice
from orchestrator.build.judging import need_equal
from orchestrator.build.lockfile import Lock
from orchestrator.build.locking import MACHINE_FILES, PICTURES, check_inputs, needed_lock
from orchestrator.build.product import BuildReport, build_product, known_outputs, prove
from orchestrator.build.project import BuildOptions, Project, Shell, open_build
from orchestrator.errors import (
    Diagnostic,
    LockError,
    ReproducibilityError,
    SourceSpan,
    ToolchainError,
    UsageError,
)
from orchestrator.profile.choices import Image
from orchestrator.profile.tables import Profile
from orchestrator.provenance.sbom import SBOM, STATEMENT
from orchestrator.shell.build_folder import WORK, claim, copy_work, exclusive
from orchestrator.shell.cache import file_digest
from orchestrator.shell.publish import published_files


def check_lock(project: Project, shell: Shell) -> None:
    """Compare the lock with the one that a build would write.

    If the last build had other inputs, or its outputs are incomplete, the product
    is built in a temporary folder, from a copy of its objects.

    Raises:
        LockError: They differ, or there is no readable lock.
        OrchestratorError: Of the stage that failed.
    """
    build = open_build(project, shell)
    prove(build)
    lock = needed_lock(project.lock_file)
    check_inputs(project.lock_file, lock, build[table.LOCK_INPUTS])
    is_built = project.work.is_dir()
    # `lock --check` writes nothing (decision 0013): it does not even make a build
    # folder to lock.
    with exclusive(project.folder) if is_built else nullcontext():
        outputs = known_outputs(project, build)
        if outputs is not None:
            now = build.replace({table.OUTPUTS: outputs})[table.LOCK]
            if lines := lockfile.differences(lock, now):
                raise lockfile.stale(str(project.lock_file), lines)
            return
        with tempfile.TemporaryDirectory(prefix="orchestrator-lock-") as name:
            folder = Path(name) / project.profile.name
            if is_built:
                claim(folder)
                # With the times of all files: ninja compiles only what differs from the
                # last build.
                copy_work(project.work, folder / WORK)
            options = replace(project.options, out=folder, lock=project.lock_file)
            # The options say `locked`: the build raises what differs.
            build_product(Project(project.profile, options), shell)


def check_outputs(project: Project, shell: Shell) -> int:
    """Compare the published outputs with the lock, and the lock with its inputs.

    Nothing is compiled.

    Returns:
        How many files were compared.

    Raises:
        LockError: An output changed or is missing (`changed-output`), or the lock
            does not match its inputs (`stale-lock`).
    """
    lock = needed_lock(project.lock_file)
    build = open_build(project, shell)
    prove(build)
    check_inputs(project.lock_file, lock, build[table.LOCK_INPUTS])
    named = _named(lock)
    notes = []
    for path, digest in sorted(named.items()):
        found = ""
        with suppress(OSError):
            found = file_digest(project.folder / path)
        if found != digest:
            notes.append(("changed" if found else "missing", path))
    if notes:
        count = f"{len(notes)} outputs are" if len(notes) > 1 else "an output is"
        raise LockError(
            Diagnostic(
                code="changed-output",
                message=f"{count} not what the lock names",
                where=SourceSpan(file=str(project.lock_file)),
                notes=(*notes, ("folder", str(project.folder))),
                hint=f"`orchestrator build {project.profile.named} --locked` makes them again",
            )
        )
    return len(named)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artefact:
    """A file that a lock names.

    Args:
        sha256: Its digest.
        paths: Outputs with these bytes, relative to the build folder.
        kind: What the first of them is: `library`.
    """

    sha256: str
    paths: tuple[str, ...]
    kind: str


def identify(file: Path, lock_file: Path) -> Artefact:
    """Identify a file as an output of a lock.

    Raises:
        LockError: It is not an output (`not-locked`), or the lock cannot be read.
        OSError: The file cannot be read.
    """
    named = _named(needed_lock(lock_file))
    digest = file_digest(file)
    # Files that users link and flash come before the files these are made of.
    paths = sorted((n for n, d in named.items() if d == digest), key=_rank)
    if paths:
        return Artefact(sha256=digest, paths=tuple(paths), kind=_kind(paths[0]))
    expected = [
        (f"expected, {_kind(path)}", f"sha256 {found}")
        for path, found in sorted(named.items(), key=lambda item: _rank(item[0]))
        if Path(path).name == file.name
    ]
    # People ask for these by mistake, and "not in the lock" alone would look like a
    # broken build.
    if file.name in MACHINE_FILES:
        expected = [("why", f"{file.name} names folders of the machine")]
    if file.name in PICTURES:
        expected = [("why", f"{file.name} shows what report.json has; no lock names it")]
    raise LockError(
        Diagnostic(
            code="not-locked",
            message=f"{file} is not an output of {lock_file}",
            notes=(("found", f"sha256 {digest}"), *expected),
            hint="build the locked product with `orchestrator build --locked`",
        )
    )


def _named(lock: Lock) -> dict[str, str]:
    """Digests of all outputs by path."""
    outputs = {path: lockfile.digest_of(fact) for path, fact in lock.outputs}
    return {**dict(lock.generated), **outputs}


_KINDS = {
    **{f"firmware.{ending}": "firmware" for ending in ("elf", *Image)},
    "report.json": "report",
    SBOM: "SBOM",
    STATEMENT: "provenance",
}


def _kind(path: str) -> str:
    """The kind of an output, as messages show it."""
    if path in _KINDS:
        return _KINDS[path]
    folder, _, name = path.rpartition("/")
    if not folder and name.endswith(".a"):
        return "library"
    if path.startswith("include/"):
        return "header"
    if folder == "models":
        return "program"
    return "generated file"


def _rank(path: str) -> tuple[bool, str]:
    return _kind(path) == "generated file", path


# Build a product twice, and compare every published byte.


def build_twice(
    profile: Profile, options: BuildOptions, shell: Shell
) -> tuple[BuildReport, list[str]]:
    """Build in place and in a fresh folder; every published byte must be the same.

    The product must also give the outputs of its program, where something here runs it.

    Args:
        profile: Of the product.
        options: Its build folder and jobs.
        shell: Tools to build with.

    Returns:
        Report of the build in place, and the files that were compared.

    Raises:
        ReproducibilityError: Some differ (`not-reproducible`).
        MismatchError: Outputs differ (`differs-from-program`).
        OrchestratorError: Of the stage that failed.
    """
    # No object, export or digest from elsewhere: `verify` is about what this machine
    # makes from sources.
    exact = replace(options, write_lock=False, trust_cache=False)
    with tempfile.TemporaryDirectory(prefix="orchestrator-verify-") as name:
        # A deeper folder, so that a difference in path lengths shows as well.
        elsewhere = Path(name) / "another" / "folder"
        here = build_product(Project(profile, exact), shell)
        # An empty cache: the second build exports every model again.
        exports = ExportChoice(cache=Path(name) / "exports")
        fresh = replace(exact, out=elsewhere, export=exports)
        build_product(Project(profile, fresh), shell)
        ours, theirs = published_files(here.folder), published_files(elsewhere)
    compared = sorted((ours.keys() | theirs.keys()) - MACHINE_FILES)
    different = [n for n in compared if ours.get(n) != theirs.get(n)]
    if different:
        raise ReproducibilityError(
            Diagnostic(
                code="not-reproducible",
                message=f"{len(different)} files differ between two builds",
                where=SourceSpan(file=str(profile.file)),
                notes=tuple(("differs", n) for n in different),
                hint="find what reaches the file from outside the profile: paths,"
                " times or the environment",
            )
        )
    try:
        need_equal(Project(profile, exact), shell)
    except (ToolchainError, UsageError) as error:
        codes = {problem.code for problem in error.diagnostics}
        # These say that nothing here can run the product. Any other error ended
        # `verify` with exit code 0 and a note once: a broken scenario, a missing
        # compiler (tests/unit/build/test_verifying.py).
        if not codes <= {"no-emulator", "nothing-to-test", "unsupported-system"}:
            raise
        why = "; ".join(problem.message for problem in error.diagnostics)
        shell.reporter.note(f"not compared with its program: {why}")
    return here, compared
