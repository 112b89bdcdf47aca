"""Memory and functions behind include/<profile>.h."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.emit.artifact import GeneratedFile
from orchestrator.emit.generate.integrity import intact_functions
from orchestrator.emit.generate.load_interface import load_interface
from orchestrator.emit.generate.ports import api_methods, memory_of, update_names
from orchestrator.emit.generate.prelinked import constant_symbol, constant_symbols, prelinked_block
from orchestrator.emit.generate.prepared import prepared_declaration, prepared_header
from orchestrator.emit.generate.render import render
from orchestrator.emit.generate.shared import common_constant, sharing
from orchestrator.emit.generate.tables import (
    external_symbols,
    external_table,
    kernel_declaration,
    model_symbol,
)
from orchestrator.emit.generate.update import PARAMETERS
from orchestrator.memory.plan import (
    MemoryPlan,
    arena_section,
    common_section,
    common_symbol,
    identifier,
    method_symbol,
    own_constants,
)
from orchestrator.method.compact import table_layout
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.profile.choices import CheckImage
from orchestrator.program.program import Method, Program
from orchestrator.program.values import TensorValue
from orchestrator.targets.boards import ARENA_ALIGNMENT

if TYPE_CHECKING:
    from orchestrator.emit.generate.update import UpdateTarget


def api_source(
    profile: str,
    head: str,
    programs: Mapping[str, Program],
    memory: MemoryPlan,
    linked: Mapping[str, Sequence[LinkedMethod]] = MappingProxyType({}),
    *,
    delegates: Mapping[str, int] = MappingProxyType({}),
    integrity: CheckImage = CheckImage.NEVER,
    limits: Mapping[str, int] = MappingProxyType({}),
    schemas: Mapping[OperatorName, OpSchema] = MappingProxyType({}),
    has_random: bool = False,
    updates: Mapping[str, UpdateTarget] = MappingProxyType({}),
) -> GeneratedFile:
    """Memory of every method, the method table, and the functions of the header.

    Args:
        profile: Name of the profile.
        head: Text of the first line.
        programs: By model name, in the profile's order.
        memory: Sizes of all blocks.
        linked: By name of a prelinked model: its methods in the program's order.
        delegates: State bytes of the delegates of the product, by backend.
        integrity: When the product checks that flash holds what was linked.
        limits: By model, the most instructions that a run executes; 0: any number.
        schemas: Schemas of operators that prelinked methods call, for comments.
        has_random: Kernels draw random numbers.
        updates: By model that takes signed updates, which ones.
    """
    checked, at_load = integrity is not CheckImage.NEVER, integrity is CheckImage.LOAD
    methods = api_methods(profile, programs, checked=checked, updates=updates)
    own = own_constants(linked)
    constants = constant_symbols(own)
    layout = table_layout(programs, linked)
    tables = {
        m.base: prelinked_block(
            linked[m.model][m.index], m.base, constants, layout=layout, schemas=schemas
        )
        for m in methods
        if m.model in linked
    }
    calls = [
        i
        for of_model in linked.values()
        for m in of_model
        for i in m.instructions
        if isinstance(i, LinkedCall)
    ]
    groups = sharing(methods, memory)
    together = {m.base: group for group in groups for m in group}
    ready = [m for m in methods if m.base not in together] if at_load else []
    features = {
        "orch/delegate.h": delegates,
        "orch/integrity.h": checked,
        "orch/random.h": has_random,
        "orch/part.h": methods,
        "orch/rows.h": layout.given_rows,
        "orch/check_update.h": updates,
        "orch/caller.h": any(m.given for m in methods),
        "orch/together.h": groups,
    }
    prepared = {prepared_header(c.prepared) for c in calls if c.prepared is not None}
    text = render(
        "api.cpp",
        profile=profile,
        head=head,
        base=identifier(profile),
        headers=[*(name for name, is_used in features.items() if is_used), *sorted(prepared)],
        symbols=[
            symbol
            for name in programs
            for symbol in (
                [constant_symbol(name, i) for i in range(len(own[name]))]
                if name in linked
                else [model_symbol(name), *external_symbols(programs, name)]
            )
        ],
        declarations=_declarations(calls),
        programs=programs,
        methods=methods,
        linked=linked,
        layout=layout,
        tables=tables,
        memory=memory,
        alignment=memory.alignment if memory.alignment != ARENA_ALIGNMENT else "kArenaAlignment",
        delegates=delegates,
        limits=limits,
        sharing=groups,
        together=together,
        loads={m.base: load_interface(m) for m in methods if m.model not in linked},
        checked=checked,
        at_load=at_load,
        intact=intact_functions(methods, programs, linked, tables, ready=ready, layout=layout)
        if checked
        else "",
        # All methods of a loaded program have the same checksums.
        checked_once={(m.base if m.model in linked else m.model): m.base for m in methods}.values(),
        data=external_table(programs, linked),
        has_random=has_random,
        updates=updates,
        update_parameters=PARAMETERS,
        update_names=update_names,
        arena_section=arena_section,
        common_constant=common_constant,
        common_section=common_section,
        common_symbol=common_symbol,
        memory_of=memory_of,
        method_symbol=method_symbol,
        model_symbol=model_symbol,
        state_size=_state_size,
    )
    return GeneratedFile("gen/src/api.cpp", text)


def _declarations(calls: Sequence[LinkedCall]) -> list[str]:
    """Declarations of the functions that calls name."""
    prepared = {c.function for c in calls if c.prepared is not None}
    return [
        prepared_declaration(f) if f in prepared else kernel_declaration(f)
        for f in sorted({call.function for call in calls})
    ]


def _state_size(method: Method, delegates: Mapping[str, int]) -> str:
    """The size of a method's state, as a C++ expression over the loader's layout."""
    words = sum(
        1 + len(v.sizes) for v in method.values if isinstance(v, TensorValue) and v.is_dynamic
    )
    text = (
        f"{len(method.values)} * sizeof(Value)"
        f" + {len(method.instructions)} * sizeof(Instruction)\n"
        f"                      + {words} * sizeof(int32_t)"
    )
    if not delegates or not method.delegates:
        return text
    text += f"\n                      + {len(method.delegates)} * sizeof(DelegateHandle)"
    sizes = [delegates.get(d.backend, 0) for d in method.delegates]
    if not any(sizes):
        return text
    states = " + ".join(f"in_words({s})" for s in sizes)
    return f"in_words({text})\n                      + {states}"
