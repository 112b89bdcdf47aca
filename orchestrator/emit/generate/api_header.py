"""The public header: include/<profile>.h."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.core.spelling import packed_version
from orchestrator.emit.artifact import GeneratedFile
from orchestrator.emit.generate.instances import instances_of
from orchestrator.emit.generate.names import cpp_name, cpp_namespace, with_attributes
from orchestrator.emit.generate.ports import api_methods, has_complex, memory_of, update_names
from orchestrator.emit.generate.render import render
from orchestrator.emit.generate.shared import common_constant
from orchestrator.emit.generate.target_check import target_check
from orchestrator.emit.generate.trace import hook_names
from orchestrator.emit.generate.update import PARAMETERS
from orchestrator.memory.plan import MemoryPlan, identifier
from orchestrator.program.program import Program

if TYPE_CHECKING:
    from orchestrator.selection.resolution import Missing
    from orchestrator.targets.cores import Target


END: Final = "/* The same sizes in structs: no flash unless they are used. */"
"""Constants that are known after linking are inserted before it."""


def api_header(
    profile: str,
    head: str,
    programs: Mapping[str, Program],
    memory: MemoryPlan,
    missing: Sequence[Missing] = (),
    *,
    linked: Collection[str] = (),
    traced: bool = False,
    checked: bool = False,
    target: Target | None = None,
    limits: Mapping[str, int] = MappingProxyType({}),
    has_random: bool = False,
    instances: Mapping[str, str] = MappingProxyType({}),
    updates: Collection[str] = (),
    steps: Mapping[tuple[str, str], int | tuple[str, ...]] = MappingProxyType({}),
    versions: Mapping[str, str] = MappingProxyType({}),
) -> GeneratedFile:
    """The public header: constants for every buffer, typed functions, C and C++.

    Methods of models in `linked` take no other program: they are prelinked. With
    `traced` it declares the hooks, and numbers the methods as these get them; with
    `checked`, the functions that compare flash with what was linked; with `target`
    it does not compile for a core that cannot run the library. `limits`: by model,
    how many instructions a run executes; 0: any number. `has_random`: kernels draw
    random numbers. `instances`: by model that is an instance, what the profile names
    it. `updates`: models that take signed updates. `steps`: by model and method, cycles
    of its longest step, or operators whose steps have no estimate. `versions`: by name of
    a constant.
    """
    methods = api_methods(profile, programs, checked=checked, updates=updates)
    declared = {
        m.base: render(
            "method.h",
            m=m,
            memory=memory_of(memory, m),
            is_linked=m.model in linked,
            limit=limits.get(m.model, 0),
            longest_step=steps.get((m.model, m.method.name)),
            checked=checked,
        )
        for m in methods
    }
    hooks = hook_names(profile)
    text = render(
        "api.h",
        profile=profile,
        head=head,
        base=identifier(profile),
        upper=identifier(profile).upper(),
        namespace=cpp_namespace(profile),
        methods=methods,
        declared=declared,
        memory=memory,
        target=target,
        missing=missing,
        versions=versions,
        traced=traced,
        hooks=hooks,
        checked=checked,
        # A model's namespace of the same name may be beside it.
        cpp_check="check_" if "check" in map(cpp_name, programs) else "check",
        has_random=has_random,
        has_complex=has_complex(programs),
        has_quantization=any(port.quantization for m in methods for port in m.ports),
        instances=instances_of(profile, methods, instances),
        updates=updates,
        update_parameters=PARAMETERS,
        update_names=update_names,
        sizes_begin=END,
        unknown_stack=unknown_stack,
        common_constant=common_constant,
        memory_of=memory_of,
        packed_version=packed_version,
        target_check=target_check,
    )
    return GeneratedFile(f"gen/include/{profile}.h", with_attributes(text, users=hooks.values()))


def unknown_stack(base: str) -> str:
    """The stack of a method in its sizes, before it is known."""
    return f"0 /* {base}: stack not known */"
