"""What a built firmware costs in flash and RAM, and what each byte is for."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from orchestrator.errors import UsageError
from orchestrator.method.ledger import MethodPasses  # a report is read by its types


class ContributorKind(StrEnum):
    """What bytes are for; in the order in which reports list it."""

    MODEL = "model"
    KERNEL = "kernel"
    KERNEL_TABLE = "kernel_table"
    DELEGATE = "delegate"
    RUNTIME = "runtime"
    API = "api"
    APPLICATION = "application"
    PLATFORM = "platform"
    MEMORY_FUNCTIONS = "memory_functions"
    TOOLCHAIN = "toolchain"
    CONSTANTS = "constants"
    ARENA = "arena"
    METHOD_STATE = "method_state"
    STACK = "stack"
    OTHER = "other"
    PADDING = "padding"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contributor:
    """One part of the product.

    Args:
        kind: What it is.
        name: Unique within its kind: a model, `portable/op_add`, `sum.forward`.
        flash_bytes: Code, constants, and the load image of initialised variables.
        ram_bytes: Static RAM.
    """

    kind: ContributorKind
    name: str
    flash_bytes: int
    ram_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SizePart:
    """Bytes of one contributor in one section that the same operators need.

    Args:
        section: Output section; "" for gaps between sections.
        kind: Of the contributor.
        contributor: Its name.
        operators: Those that need these bytes, if nothing else does; sorted. Empty
            where something else needs them, or the objects are missing.
        flash_bytes: As in `Contributor`.
        ram_bytes: Likewise.
    """

    section: str
    kind: ContributorKind
    contributor: str
    operators: tuple[str, ...]
    flash_bytes: int
    ram_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeOperator:
    """An operator that kernels are linked for.

    Args:
        name: Of the operator.
        functions: Qualified C++ names of its kernels; distinct, sorted.
        models: That call it; sorted.
        keys: Of the profile that request it, `operators.include`; sorted.
    """

    name: str
    functions: tuple[str, ...]
    models: tuple[str, ...]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LargerKernel:
    """An operator whose code is larger with the selected dtypes than with every one.

    Args:
        operator: Its name.
        selected_bytes: Flash its kernels need with the selected dtypes, with what they
            share with other operators.
        every_bytes: With every dtype.
    """

    operator: str
    selected_bytes: int
    every_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeComparison:
    """What selecting dtypes does to a firmware.

    Args:
        selected_flash_bytes: Of the firmware with the selected dtypes.
        every_flash_bytes: With every dtype of every kernel.
        selected_ram_bytes: Likewise.
        every_ram_bytes: Likewise.
        larger: Operators that the selection makes larger; the most harmful first.
    """

    selected_flash_bytes: int
    every_flash_bytes: int
    selected_ram_bytes: int
    every_ram_bytes: int
    larger: tuple[LargerKernel, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTarget:
    """What was built for; `board` is "" for hosts."""

    cpu: str
    isa: str
    board: str
    toolchain: str
    optimize: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTotals:
    """Everything the firmware occupies, in bytes.

    On a host, "flash" is what is loaded from the file.

    Args:
        flash_bytes: Code, constants, models, load image of initialised variables.
        model_bytes: The models' programs, part of `flash_bytes`.
        ram_bytes: All static RAM: the four below together.
        arena_bytes: Planned tensors.
        state_bytes: Method states.
        data_bytes: All other variables, and padding.
        stack_bytes: Reserved for the stack; 0 on hosts.
    """

    flash_bytes: int
    model_bytes: int
    ram_bytes: int
    arena_bytes: int
    state_bytes: int
    data_bytes: int
    stack_bytes: int

    @property
    def flash_bytes_without_models(self) -> int:
        """Flash of everything but the models' programs."""
        return self.flash_bytes - self.model_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionUse:
    """How full a memory of the board is, gaps included; `kind` is flash or ram."""

    name: str
    kind: str
    size_bytes: int
    used_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeSection:
    """An output section of the ELF that occupies memory.

    Args:
        name: As the linker script has it.
        address: Where the program sees it.
        size_bytes: Without the gap before it.
        region: Memory it lies in; "" on hosts.
        load_region: Memory its initial contents lie in if that is another one, or "".
        in_flash: Counts as flash.
        in_ram: Counts as RAM.
    """

    name: str
    address: int
    size_bytes: int
    region: str
    load_region: str
    in_flash: bool
    in_ram: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeSymbol:
    """A function or object of the ELF.

    Args:
        name: Qualified name without parameters, or the symbol itself.
        symbol: As in the symbol table.
        aliases: Other symbols of the same bytes, sorted.
        is_function: Function or object.
        address: Of its first byte.
        size_bytes: As the compiler says.
        section: Output section.
        object: What it was compiled from: `kernels/portable/op_add.cpp`,
            `libgcc.a(_divdi3.o)`; "" if the map does not say.
        kind: Of the contributor it counts for.
        contributor: Name of that contributor.
    """

    name: str
    symbol: str
    aliases: tuple[str, ...]
    is_function: bool
    address: int
    size_bytes: int
    section: str
    object: str
    kind: ContributorKind
    contributor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StackPart:
    """Bytes of stack that one part of the firmware may use at once."""

    name: str
    stack_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FirmwareStack:
    """Worst stack use of a firmware, from reset on: its deepest chain of calls.

    Args:
        stack_bytes: The parts together.
        reserve_bytes: Reserved by the linker script.
        parts: The functions of that chain, outermost first.
        unknown: Functions of unknown frame size, which do not count, and functions that
            call themselves, which count once.
    """

    stack_bytes: int
    reserve_bytes: int
    parts: tuple[StackPart, ...]
    unknown: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodStack:
    """Worst stack use of a method, below the stack pointer of the caller.

    Interrupts come on top.

    Args:
        load_bytes: Of loading it.
        run_bytes: Of running it once it is loaded.
        entries: Of each function of the API, loading included; in the header's order.
        unknown: Functions of unknown frame size, and those that call themselves. If
            there are any, the true numbers may be larger.
    """

    load_bytes: int
    run_bytes: int
    entries: tuple[StackPart, ...]
    unknown: tuple[str, ...]

    @property
    def worst_bytes(self) -> int:
        """The deepest stack of any function of the API."""
        return max(e.stack_bytes for e in self.entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMethod:
    """All memory of one method of one model, in bytes.

    Args:
        model: Its model.
        method: Its name.
        arena_bytes: Planned arenas in order of their memory id, from 1.
        state_bytes: Values, dynamic sizes and decoded instructions.
        temporary_bytes: That kernels take while they run, besides arena and stack.
        input_bytes: The caller's memory per input; of dynamic ones the upper bound.
        output_bytes: Likewise.
        stack: Worst use; None on hosts, where libraries of the system are called.
    """

    model: str
    method: str
    arena_bytes: tuple[int, ...]
    state_bytes: int
    temporary_bytes: int
    input_bytes: tuple[int, ...]
    output_bytes: tuple[int, ...]
    stack: MethodStack | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeReport:
    """What a built firmware costs.

    The contributors' flash and RAM add up to the totals exactly; so do those of the
    parts, and the used bytes of the regions on a board.

    Args:
        profile: Name of the profile.
        target: What was built for.
        totals: Everything.
        regions: Memories of the board in its order; empty on hosts.
        sections: By address; empty sections are left out.
        contributors: By kind, then by size, the largest first.
        symbols: The largest first.
        stack: Worst use; None on hosts, where libraries of the system are called.
        parts: The contributors by section and by who needs them; empty in reports of
            earlier versions.
        operators: By name.
        dtype_comparison: With `dtypes.compare` only.
        missing: Kernels and delegates that models need and the profile allows to lack.
        methods: Memory of every method, in the order of the profile; empty in reports
            of earlier versions.
        prelink: What passes did to the methods of models.
        named_data: Model, key and bytes of what delegates find: part of the models.
    """

    profile: str
    target: SizeTarget
    totals: SizeTotals
    regions: tuple[RegionUse, ...]
    sections: tuple[SizeSection, ...]
    contributors: tuple[Contributor, ...]
    symbols: tuple[SizeSymbol, ...]
    stack: FirmwareStack | None
    parts: tuple[SizePart, ...] = ()
    operators: tuple[SizeOperator, ...] = ()
    dtype_comparison: DtypeComparison | None = None
    missing: tuple[str, ...] = ()
    methods: tuple[SizeMethod, ...] = ()
    prelink: tuple[MethodPasses, ...] = ()
    named_data: tuple[tuple[str, str, int], ...] = ()

    @property
    def stack_bytes(self) -> int | None:
        """Worst stack use; None on hosts."""
        return self.stack.stack_bytes if self.stack else None


# `report.json`: a size report as text, and back.

# Keys that are added leave it as it is: readers skip those that they do not know.
SCHEMA: Final = 1
"""Version of the form; rises when readers would misunderstand another one."""


def report_json(report: SizeReport) -> str:
    """Canonical JSON text of a report, ending in a newline.

    It holds no path of the machine and changes only if the report does. Totals that
    follow from others are written too, for readers of the file.
    """
    document: dict[str, Any] = {"schema": SCHEMA, **asdict(report)}
    totals = report.totals
    # Reports are named in locks by their digest: without named data one stays the text
    # that it was before the key came.
    if not report.named_data:
        del document["named_data"]
    document["totals"]["flash_bytes_without_models"] = totals.flash_bytes_without_models
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def read_report(text: str, *, file: str = "report.json") -> SizeReport:
    """The report that `report_json` wrote.

    Args:
        text: Of the file.
        file: Its name, for messages.

    Raises:
        UsageError: Not a report, or one of another version (`bad-report`).
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad(file, "no JSON", f"{error}") from error
    if not isinstance(document, dict) or "schema" not in document:
        raise _bad(file, "no schema version", "a size report")
    if document["schema"] != SCHEMA:
        raise _bad(file, f"schema version {document['schema']}", f"version {SCHEMA}")
    try:
        # Keys that a report has besides are derived values.
        return _adapter().validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in first["loc"])
        raise _bad(file, f"report{place}: {first['msg']}", "a size report") from None


@cache
def _adapter() -> TypeAdapter[SizeReport]:
    return TypeAdapter(SizeReport)


def _bad(file: str, found: str, expected: str) -> UsageError:
    return UsageError.of(
        "bad-report",
        f"{file} is not a size report of this version",
        found=found,
        expected=expected,
        hint="build the product again with this version of Orchestrator",
    )
