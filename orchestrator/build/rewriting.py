"""A program as a build would write it for firmware of which only the lock is there."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from orchestrator.build import table
from orchestrator.build.lockfile import Lock
from orchestrator.build.project import BuildOptions, Project, Shell, open_build
from orchestrator.errors import OrchestratorError
from orchestrator.profile.load import load_profile
from orchestrator.shell.sources import library_names

_LIST = "/functions.yaml"


def rewritten(program: Path, lock: Lock, model: str, shell: Shell) -> bytes | None:
    """The program with scratch memory, arenas and calls for the core of a firmware.

    The profile is not needed: what it says beyond target and libraries makes programs
    smaller, but does not decide whether they run. Nothing is compiled.

    Args:
        program: Its file.
        lock: Of the firmware.
        model: Whose place it takes.
        shell: Tools, and where progress goes.

    Returns:
        The program; None if only a build with the profile could write it, as with
        kernels of the user's own.
    """
    lists = [p for p, _ in lock.sources if p.endswith(_LIST)]
    used = {path.split("/")[1] for path in lists}
    shipped = library_names()
    # Kernels of the user's own need their functions.yaml, which a lock names by digest
    # alone.
    if not used <= set(shipped):
        return None
    text = _profile(program, lock, model, [n for n in shipped if n in used])
    with tempfile.TemporaryDirectory(prefix="orchestrator-update-") as folder:
        try:
            profile = load_profile(
                Path("update.toml"),
                text_of=lambda _: text,
                is_file=Path.is_file,
                known_libraries=shipped,
            )
            options = BuildOptions(out=Path(folder), write_lock=False)
            build = open_build(Project(profile, options), shell)
            return bytes(build[table.REPLAN].files[f"models/{model}.pte"])
        except OrchestratorError:
            return None


def _profile(program: Path, lock: Lock, model: str, libraries: list[str]) -> str:
    """A profile with the target of the lock and one model."""
    target = dict(lock.target)
    # What a program's bytes depend on; memories, budget and names belong to the
    # firmware.
    values = {key: target[key] for key in ("cpu", "isa", "optimize")}
    lines = [
        "schema = 1",
        'name = "update"',
        f"[kernels]\nlibraries = {json.dumps(libraries)}",
        "[target]",
        *(f"{key} = {json.dumps(value)}" for key, value in values.items()),
        f"toolchain = {json.dumps(dict(lock.toolchain)['name'])}",
        "[[models]]",
        f"name = {json.dumps(model)}",
        f"path = {json.dumps(str(program.absolute()), ensure_ascii=False)}",
    ]
    return "\n".join(lines) + "\n"
