"""A product's models on the development machine, whatever its target is.

Kernels give the same bits on every target, so a host answers for the device. Also
programs that are compared with a model: they have no profile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from orchestrator.build import inputs, table
from orchestrator.build.product import build_variant
from orchestrator.build.project import Project, Shell, open_build
from orchestrator.build.variant import without_bounds
from orchestrator.evaluation.layers import Probe, probed
from orchestrator.planner.policy import Planner, ScratchPolicy
from orchestrator.profile.choices import Load, Optimize
from orchestrator.profile.load import load_profile
from orchestrator.profile.paths import NamedFile
from orchestrator.profile.tables import Profile
from orchestrator.program.program import Program
from orchestrator.running.product import Product, read_product
from orchestrator.shell import sources
from orchestrator.shell.build_folder import exclusive
from orchestrator.shell.exported import PROGRAM
from orchestrator.shell.files import read_text_file

HOST = "host"
MODEL = "reference"
"""Name of the model in the profile of a program."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostProduct:
    """A product that was built beside another.

    Args:
        product: Its description.
        firmware: The program that runs it.
    """

    product: Product
    firmware: bytes


def host_profile(profile: Profile) -> Profile:
    """A profile for the development machine, with the models of this one.

    Everything that depends on the device is left out: board, memories, bounds and
    hooks. Scratch memory and arenas are planned for the host.
    """
    target = profile.target
    memory = profile.memory
    models = tuple(
        model.model_copy(update={"region": None, "regions": {}, "tensors": ()})
        for model in profile.models
    )
    return without_bounds(profile).model_copy(
        update={
            # Speed: it runs data sets and references, and its size matters to nobody.
            # All variants give the same bits.
            "target": type(target)(cpu=HOST, optimize=Optimize.SPEED).with_defaults(),
            "memory": memory.model_copy(update={"regions": (), "planner": Planner.BEST}),
            # Sizes in the program are those of the device's kernels.
            "scratch": profile.scratch.model_copy(update={"policy": ScratchPolicy.PLAN}),
            "schedule": type(profile.schedule)(),
            "trace": type(profile.trace)(),
            "integrity": type(profile.integrity)(),
            "models": models,
        }
    )


def with_programs(project: Project, shell: Shell) -> Profile:
    """The profile with programs in the place of the models that it gives as Python.

    They are exported for the target of the profile, and not again for another.

    Raises:
        OrchestratorError: A model cannot be exported.
    """
    profile = project.profile
    if all(model.source is None for model in profile.models):
        return profile
    # An export for Cortex-M depends on the core: on the host it would be another
    # program.
    exported = open_build(project, shell)[inputs.EXPORTED]
    paths = {name: one.entry.folder / PROGRAM for name, one in exported.items()}
    return with_files(profile, paths)


def with_files(profile: Profile, paths: Mapping[str, Path]) -> Profile:
    """The profile with other files for some of its models, by name."""
    models = tuple(
        model
        if model.name not in paths
        else model.model_copy(
            update={
                "source": None,
                "path_": NamedFile(path=paths[model.name], written=str(paths[model.name])),
            }
        )
        for model in profile.models
    )
    return profile.model_copy(update={"models": models})


def program_profile(program: Path) -> Profile:
    """A profile for the development machine with one program, and every library.

    Args:
        program: Its model is called as `MODEL`.
    """
    text = (
        f'schema = 1\nname = "reference"\n[target]\ncpu = "{HOST}"\n'
        f'optimize = "{Optimize.SPEED}"\n[[models]]\nname = "{MODEL}"\n'
        f"path = {json.dumps(str(program.absolute()))}\n"
        f'load = "{Load.PRELINKED}"\n'
        f"[kernels]\nlibraries = {json.dumps(sorted_libraries())}\n"
    )
    profile = load_profile(
        program.with_suffix(".toml"),
        text_of=lambda _: text,
        is_file=Path.is_file,
        known_libraries=sources.library_names(),
    )
    return profile.model_copy(update={"files": ()})  # there is no such file


def sorted_libraries() -> list[str]:
    """Every library, with the most general one last."""
    # Libraries are tried in order: portable has nearly every operator and would win
    # over special ones.
    return sorted(sources.library_names(), key=lambda name: (name == "portable", name))


def probed_program(
    project: Project, model: str, method: str, shell: Shell
) -> tuple[Program, tuple[Probe, ...]]:
    """A model's program with every result of a method's calls as an output.

    Raises:
        OrchestratorError: Of the stage that failed.
    """
    build = open_build(project, shell)
    schemas = build[table.RESOLVE].schemas
    return probed(build[table.MARKED_PROGRAMS][model], method, schemas)


def build_on_host(project: Project, profile: Profile, name: str, shell: Shell) -> HostProduct:
    """Build a profile for the host in the work folder of a project.

    Args:
        project: Its outputs, lock and notes do not change.
        profile: What to build.
        name: Of the variant; an earlier build of that name is reused.
        shell: Tools to build with.

    Raises:
        OrchestratorError: Of the stage that failed.
    """
    with exclusive(project.folder):
        folder = build_variant(project, profile, name, shell).folder
        product = read_product(read_text_file(folder / "product.json"))
        firmware = (folder / product.firmware).read_bytes()
    return HostProduct(product=product, firmware=firmware)
