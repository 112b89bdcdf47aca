"""Memory and functions behind include/<profile>.h."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from orchestrator.emit.artifact import GeneratedFile
from orchestrator.emit.generate.integrity import intact_functions
from orchestrator.emit.generate.load_interface import load_interface
from orchestrator.emit.generate.ports import ApiMethod, memory_of
from orchestrator.emit.generate.prelinked import constant_symbol, constant_symbols, prelinked_block
from orchestrator.emit.generate.prepared import prepared_declaration, prepared_header
from orchestrator.emit.generate.product import Product
from orchestrator.emit.generate.render import render
from orchestrator.emit.generate.tables import (
    external_symbols,
    external_table,
    kernel_declaration,
    model_symbol,
)
from orchestrator.memory.plan import (
    MemoryPlan,
    arena_section,
    common_section,
    common_symbol,
    method_symbol,
    own_constants,
)
from orchestrator.method.compact import table_layout
from orchestrator.method.linked import LinkedCall
from orchestrator.profile.choices import CheckImage
from orchestrator.program.program import Method
from orchestrator.program.values import TensorValue
from orchestrator.targets.boards import ARENA_ALIGNMENT


def api_source(product: Product) -> GeneratedFile:
    """Memory of every method, the method table, and the functions of the header."""
    programs, memory, linked = product.programs, product.memory, product.linked
    methods, delegates = product.methods, product.resolution.delegate_states
    checked, at_load = product.checked, product.integrity is CheckImage.LOAD
    schemas, shared = product.resolution.schemas, product.context
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
    groups = _sharing(methods, memory)
    # Methods that share state are made ready together: the initial state is copied
    # once, whichever runs first.
    together = {m.base: group for group in groups for m in group}
    ready = [m for m in methods if m.base not in together] if at_load else []
    features = {
        "orch/delegate.h": delegates,
        "orch/integrity.h": checked,
        "orch/random.h": shared["has_random"],
        "orch/part.h": methods,
        "orch/rows.h": layout.given_rows,
        "orch/check_update.h": product.updates,
        "orch/caller.h": any(m.given for m in methods),
        "orch/together.h": groups,
    }
    prepared = {prepared_header(c.prepared) for c in calls if c.prepared is not None}
    text = render(
        "api.cpp",
        **shared,
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
        layout=layout,
        tables=tables,
        alignment=memory.alignment if memory.alignment != ARENA_ALIGNMENT else "kArenaAlignment",
        delegates=delegates,
        sharing=groups,
        together=together,
        loads={m.base: load_interface(m) for m in methods if m.model not in linked},
        at_load=at_load,
        intact=intact_functions(methods, programs, linked, tables, ready=ready, layout=layout)
        if checked
        else "",
        # All methods of a loaded program have the same checksums.
        # A program of several methods would be read once per method otherwise.
        checked_once={(m.base if m.model in linked else m.model): m.base for m in methods}.values(),
        data=external_table(programs, linked),
        arena_section=arena_section,
        common_section=common_section,
        common_symbol=common_symbol,
        method_symbol=method_symbol,
        model_symbol=model_symbol,
        state_size=_state_size,
    )
    return GeneratedFile("gen/src/api.cpp", text)


def _sharing(methods: Sequence[ApiMethod], memory: MemoryPlan) -> list[list[ApiMethod]]:
    """Groups of methods that share state, by model."""
    return [
        found
        for _, group in groupby(methods, attrgetter("model"))
        if (found := [m for m in group if any(a.shared for a in memory_of(memory, m).arenas)])
    ]


def _declarations(calls: Sequence[LinkedCall]) -> list[str]:
    """Declarations of the functions that calls name."""
    prepared = {c.function for c in calls if c.prepared is not None}
    return [
        prepared_declaration(f) if f in prepared else kernel_declaration(f)
        for f in sorted({call.function for call in calls})
    ]


def _state_size(method: Method, delegates: Mapping[str, int]) -> str:
    """The size of a method's state, as a C++ expression over the loader's layout."""
    # What load_method.cpp puts into the block, in its order: values, instructions,
    # sizes of dynamic tensors with one word of capacity each.
    # tests/integration/test_loader.py: a byte less is refused.
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
    # Rounded up before delegates: their state is aligned (kDelegateStateAlignment).
    return f"in_words({text})\n                      + {states}"
