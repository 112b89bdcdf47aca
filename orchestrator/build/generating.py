"""Stage generate: every file that does not come from the compiler."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import orchestrator
from orchestrator.catalog import Catalog
from orchestrator.emit.artifact import GeneratedFile
from orchestrator.errors import SourceSpan
from orchestrator.memory.plan import MemoryPlan
from orchestrator.profile.choices import Load
from orchestrator.program.program import Program
from orchestrator.selection.resolution import Resolution
from orchestrator.targets.cores import Target

if TYPE_CHECKING:
    from orchestrator.build import lockfile
    from orchestrator.build.methods import AdaptedModels
    from orchestrator.emit.generate.update import UpdateTarget
    from orchestrator.profile.tables import IntegrityTable, RegistryTable, TraceTable

GENERATOR = f"Orchestrator {orchestrator.__version__}"


def loads_inline_constants(*, programs: Mapping[str, Program], loads: Mapping[str, Load]) -> bool:
    """Whether the device's loader has to find constants inside flatbuffers."""
    return any(
        program.inline_constants for name, program in programs.items() if loads[name] is Load.PTE
    )


def list_firmware_facts(
    *,
    name: str,
    adapted: AdaptedModels,
    memory: MemoryPlan,
    target: Target,
    inline_constants: bool,
    updates: Mapping[str, str],
) -> lockfile.Facts:
    """What the firmware offers to programs that are installed later."""
    from orchestrator.compat.check import firmware_of  # noqa: PLC0415
    from orchestrator.compat.firmware import firmware_facts  # noqa: PLC0415
    from orchestrator.update.container import fact_text, identity_of, update_fact  # noqa: PLC0415

    firmware = firmware_of(
        resolution=adapted.resolution,
        memory=memory,
        programs=adapted.programs,
        pointer_bytes=target.cpu.pointer_bytes,
        inline_constants=inline_constants,
        isa=target.isa.name,
    )
    facts = firmware_facts(firmware)
    accepted = {
        update_fact(model): fact_text(
            identity_of(
                product=name, cpu=target.cpu.name, isa=target.isa.name, model=model, facts=facts
            ),
            version,
        )
        for model, version in updates.items()
    }
    return tuple(sorted((dict(facts) | accepted).items()))


def generate_files(
    *,
    name: str,
    product: tuple[str, str, str],
    programs: Mapping[str, Program],
    adapted: AdaptedModels,
    resolution: Resolution,
    catalog: Catalog,
    memory: MemoryPlan,
    target: Target,
    limits: Mapping[str, int],
    instances: Mapping[str, str],
    updates: Mapping[str, str],
    registry: RegistryTable,
    trace: TraceTable,
    integrity: IntegrityTable,
    nonsecure: bool,
    firmware_facts: lockfile.Facts,
    span: Callable[..., SourceSpan],
    model_spans: Mapping[str, SourceSpan],
) -> tuple[GeneratedFile, ...]:
    """Stage generate: sources, headers, lists and facts, sorted by path.

    Raises:
        ModelError: A program writes to memory that is constant.
        KernelError: More kernels than `registry.max_kernels`.
    """
    from orchestrator.build.stepping import longest_steps  # noqa: PLC0415  # numpy
    from orchestrator.emit.executorch_headers import check_max_kernels, executorch_headers  # noqa: PLC0415
    from orchestrator.emit.generate import generate  # noqa: PLC0415
    from orchestrator.memory.memory_json import memory_plan_json  # noqa: PLC0415
    from orchestrator.method.writes import check_writes  # noqa: PLC0415
    from orchestrator.running.product import product_json  # noqa: PLC0415
    from orchestrator.selection.resolve import resolution_json  # noqa: PLC0415
    from orchestrator.selection.selected_yaml import selected_operators_yaml  # noqa: PLC0415

    check_writes(programs, resolution, model_spans)
    max_kernels = registry.max_kernels
    where = span("registry", "max_kernels")
    check_max_kernels(adapted.resolution, max_kernels, where=where)
    used = {library for library, _ in adapted.resolution.sources}
    kernels = tuple(k for lib, ks in catalog.libraries if lib in used for k in ks)
    firmware = {"schema": 1, "firmware": dict(firmware_facts)}
    files = [
        *generate(
            profile=name,
            generator=GENERATOR,
            programs=adapted.programs,
            resolution=adapted.resolution,
            kernels=kernels,
            memory=memory,
            target=target,
            linked=adapted.linked,
            traced=trace.enable,
            integrity=integrity.check,
            limits=limits,
            instances=instances,
            updates=_update_targets(updates, dict(firmware_facts)),
            nonsecure=nonsecure,
            steps=longest_steps(adapted.linked, target),
            versions={"VERSION": product[1], "ORCHESTRATOR_VERSION": orchestrator.__version__},
        ),
        *executorch_headers(
            f"Generated by {GENERATOR} for profile {name}. Do not edit.",
            adapted.selection,
            adapted.resolution,
            max_kernels=max_kernels,
        ),
        GeneratedFile(
            "selected_operators.yaml",
            selected_operators_yaml(
                adapted.selection,
                generator=GENERATOR,
                notes=[f"Missing, as the profile allows: {m}" for m in adapted.resolution.missing],
            ),
        ),
        GeneratedFile("resolution.json", resolution_json(adapted.resolution)),
        GeneratedFile("memory_plan.json", memory_plan_json(memory)),
        GeneratedFile("firmware.json", json.dumps(firmware, indent=1) + "\n"),
        GeneratedFile(
            "product.json",
            product_json(profile=name, programs=adapted.programs, memory=memory, target=target),
        ),
    ]
    return tuple(sorted(files))


def _update_targets(
    updates: Mapping[str, str], facts: Mapping[str, str]
) -> dict[str, UpdateTarget]:
    """What the firmware accepts, by model that takes signed updates."""
    from orchestrator.emit.generate.update import UpdateTarget  # noqa: PLC0415
    from orchestrator.update.container import read_fact, update_fact  # noqa: PLC0415

    found = {model: read_fact(facts[update_fact(model)]) for model in updates}
    return {
        model: UpdateTarget(identity=identity, firmware_version=version)
        for model, (identity, version) in found.items()
    }
