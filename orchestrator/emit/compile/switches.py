"""Macros that leave out parts of the runtime that a product does not need."""

from __future__ import annotations

from collections.abc import Iterable

from orchestrator.method.compact import TableLayout
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.program.interface import has_lists, has_tensors_only
from orchestrator.program.program import Program

ONLY_FOR_DELEGATES = "src/load_delegates.cpp"
_ONLY_FOR_ROWS = "src/rows.cpp"
_LOADER = frozenset(
    {
        "src/find_kernel.cpp",
        ONLY_FOR_DELEGATES,
        "src/load_method.cpp",
        "src/load_values.cpp",
        "src/program.cpp",
    }
)
"""Sources that only products with a program to load need."""

_PRODUCT = "orch::portable::matrix_product"
_OF_SUMS = (_PRODUCT, "orch::portable::convolution")
_IN_PLACE = frozenset(f"{_PRODUCT}{how}" for how in ("_rows", "_scaled"))
"""Prepared calls that finish sums where they lie."""

BESIDE_MODELS = ("runtime/app/", "runtime/platform/")
"""Folders of sources that do not affect the time of an inference."""


def smallest(flags: tuple[str, ...]) -> tuple[str, ...]:
    """The flags with clang's -Oz in place of -Os, if they have that.

    Without outlining, as the stack use of outlined code would be unknown.
    """
    if "-Os" not in flags:
        return flags
    return (*("-Oz" if f == "-Os" else f for f in flags), "-mno-outline")


_ONLY_FOR_UPDATES = "src/update.cpp"


def has_source(source: str, tables: TableLayout, *, delegates: bool, updates: bool = False) -> bool:
    """Whether a product needs a file of runtime/src.

    Args:
        source: Path relative to runtime/.
        tables: Table layout of the product.
        delegates: Whether it links delegates.
        updates: Whether it takes signed updates.
    """
    return (
        (delegates or source != ONLY_FOR_DELEGATES)
        and (updates or source != _ONLY_FOR_UPDATES)
        and (not tables.compact or source not in _LOADER)
        and (tables.given_rows or source != _ONLY_FOR_ROWS)
    )


def port_switches(programs: Iterable[Program]) -> tuple[str, ...]:
    """Macros of the application: kinds of inputs and outputs in the product."""
    methods = [method for program in programs for method in program.methods]
    if any(map(has_lists, methods)):
        return ("-DORCH_LISTS=1",)
    tensors = bool(methods) and all(map(has_tensors_only, methods))
    return ("-DORCH_TENSORS_ONLY=1",) if tensors else ()


def value_flags(tables: TableLayout) -> tuple[str, ...]:
    """Flags that decide what values and tensors look like: of runtime and kernels."""
    index = (f"-DORCH_INDEX_BYTES={tables.index_bytes}",) if tables.compact else ()
    sizes = () if tables.dynamic_sizes else ("-DORCH_DYNAMIC_SIZES=0",)
    return (*index, *sizes)


def sums_flags(linked: Iterable[LinkedMethod], isa: str) -> tuple[str, ...]:
    """Macros for what vectors do with sums of floats before they store them.

    Args:
        linked: All methods of prelinked models.
        isa: Instruction set of the core.
    """
    if isa != "mve":
        return ()
    functions = {
        call.function
        for method in linked
        for call in method.instructions
        if isinstance(call, LinkedCall)
        and call.prepared is not None
        and call.function.startswith(_OF_SUMS)
    }
    added = any(f.startswith(_PRODUCT) and f not in _IN_PLACE for f in functions)
    limited = any(f.endswith(("_limited", "_relu")) for f in functions)
    return (*("-DORCH_SUMS_ADDED=1",) * added, *("-DORCH_SUMS_LIMITED=1",) * limited)


def method_flags(tables: TableLayout) -> tuple[str, ...]:
    """Flags that decide what tables of methods look like: not of kernels.

    Kernels see values, but no method. Without these flags more products have objects
    in common.
    """
    calls = () if tables.kernel_calls else ("-DORCH_KERNEL_CALLS=0",)
    steps = ("-DORCH_BY_ROWS=1",) if tables.steps else ()
    given = ("-DORCH_GIVEN_ROWS=1",) if tables.given_rows else ()
    return (*calls, *steps, *given)


def table_switches(source: str, tables: TableLayout) -> tuple[str, ...]:
    """Macros for one source of the runtime."""
    if source == "runtime/src/executor.cpp":
        flags = () if tables.control_flow else ("-DORCH_CONTROL_FLOW=0",)
        mixed = tables.prepared_calls and tables.kernel_calls
        return (*flags, "-DORCH_PREPARED_CALLS=1") if mixed else flags
    if source == "runtime/src/model.cpp":
        if not tables.initial_bytes:
            return ("-DORCH_INITIAL_BYTES=0",)
        return () if tables.initial_zeros else ("-DORCH_INITIAL_ZEROS=0",)
    return ()
