"""The profile as pydantic sees it: keys, types, defaults, meaning.

The JSON Schema and the reference page are generated from these models. What needs
more than one value (an ISA against its cpu, names against each other, files) is
checked in `checks.py`, so that a wrong type in one place hides nothing in another.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    WithJsonSchema,
)

from orchestrator.profile.budget_table import BudgetTable
from orchestrator.profile.checked import DtypeSelect, Optimize, Overlap
from orchestrator.profile.delegates import DelegateTable  # noqa: TC001  # pydantic reads it
from orchestrator.profile.fields import (
    Define,
    Dtype,
    KernelCount,
    ModelName,
    Operator,
    OperatorOrBackend,
    RelativePath,
    SourcePattern,
    choice,
    not_empty,
    problem,
    shown,
)
from orchestrator.profile.model_tables import ModelTable  # noqa: TC001  # as above
from orchestrator.profile.product_name import ProductName  # noqa: TC001  # as above
from orchestrator.profile.region_tables import MemoryTable
from orchestrator.profile.runtime_tables import IntegrityTable, TraceTable
from orchestrator.profile.scratch_tables import ScratchTable
from orchestrator.profile.table import Table
from orchestrator.targets.boards import boards_of
from orchestrator.targets.cores import BOARDS, CPUS, TOOLCHAINS

SCHEMA_VERSION = 1

PASSES = (
    *("fold_permutes", "fold_constants", "evaluate_constants", "alias_copies"),
    *("drop_unused_calls", "in_place", "drop_values", "share_values"),
)
"""Names of the passes of stage `prelink`; a test holds the two equal."""

ISAS = tuple(dict.fromkeys(isa for cpu in CPUS.values() for isa in cpu.isas))


def _check_schema(value: int) -> int:
    if value != SCHEMA_VERSION:
        raise problem(
            "unknown-schema",
            f"{{key}} {shown(value)} is not known to this version",
            expected=str(SCHEMA_VERSION),
            hint=f"write schema = {SCHEMA_VERSION}"
            if value < SCHEMA_VERSION
            else "install the version of orchestrator the profile was written for",
        )
    return value


def _choices_by_cpu(schema: dict[str, Any]) -> None:
    """Narrow isa, board and toolchain to what the cpu has."""
    schema["allOf"] = [
        {
            "if": {"properties": {"cpu": {"const": name}}, "required": ["cpu"]},
            "then": {
                "properties": {
                    "isa": {"enum": list(cpu.isas)},
                    "board": {"enum": boards} if boards else False,
                    "toolchain": {"enum": list(cpu.toolchains)},
                }
            },
        }
        for name, cpu in CPUS.items()
        for boards in [list(boards_of(name, BOARDS))]
    ]


def _close_operators(schema: dict[str, Any]) -> None:
    """Refuse what is no operator name, and empty arrays, as the validators do."""
    schema["additionalProperties"] = False
    for items in schema["patternProperties"].values():
        items["minItems"] = 1


class TargetTable(Table):
    """What is built for. `orchestrator targets` lists what there is."""

    model_config = ConfigDict(json_schema_extra=_choices_by_cpu)

    cpu: Annotated[StrictStr, *choice(CPUS, "unknown-cpu")] = Field(
        description="Core the product runs on; `host` is the machine that builds.",
        examples=["cortex-m55"],
    )
    # Which variants a cpu has is checked in checks.py.
    isa: Annotated[StrictStr, choice(ISAS)[1]] | None = Field(
        default=None,
        description="Instruction set variant; each cpu has its own. "
        "Default: the first the cpu has.",
        examples=["mve"],
    )
    board: Annotated[StrictStr, *choice(BOARDS, "unknown-board")] | None = Field(
        default=None,
        description="Board that gives memory map, linker script and emulator; "
        "none on `host`. Default: that of the cpu.",
        examples=["mps3-an547"],
    )
    toolchain: Annotated[StrictStr, *choice(TOOLCHAINS, "unknown-toolchain")] | None = (
        Field(
            default=None,
            description="`zig`: clang and lld of the PyPI package ziglang. "
            "`gnu`: gcc of the system. "
            "Default: `zig`; on `host` the compiler of the system if there is one.",
            examples=["zig"],
        )
    )
    # Which cpus have a choice is checked in checks.py.
    unaligned: StrictBool | None = Field(
        default=None,
        description="Whether code may load words from any address. `false` for "
        "products that make that a fault (`CCR.UNALIGN_TRP`). "
        "Default: `true` where the cpu can do it.",
        examples=[True],
    )
    optimize: Annotated[StrictStr, *choice(Optimize)] = Field(
        default="size",
        description="What the compiler optimizes for.",
        examples=["size"],
    )


class OperatorsTable(Table):
    """Operators besides those the models use; all keys add to them.

    With neither models nor operators the product is a runtime without kernels.
    """

    include: tuple[Operator, ...] = Field(
        default=(),
        description="Names of operators.",
        examples=[["aten::add.out"]],
    )
    include_yaml: tuple[RelativePath, ...] = Field(
        default=(),
        description="Files that list operators: the `functions.yaml` of a kernel "
        "library, whose operators are wanted with every dtype, or the "
        "`selected_operators.yaml` of another build, with its kernel keys.",
        examples=[["extra_ops.yaml"]],
    )
    all: StrictBool = Field(
        default=False,
        description="Select every operator the kernel libraries have.",
        examples=[False],
    )
    overlap: Annotated[StrictStr, *choice(Overlap)] = Field(
        default="allow",
        description="`error`: refuse operators that more than one model brings, "
        "whatever their dtypes, and selected operators that more than one kernel "
        "library has, unless `kernels.operators` says which one is meant.",
        examples=["allow"],
    )
    allow_missing: tuple[OperatorOrBackend, ...] = Field(
        default=(),
        description="Operators that may lack a kernel, and backends that may lack a "
        "delegate: the product is built all the same, every output says so, and "
        "methods that need one of them do not load.",
        examples=[["my_ops::fancy.out", "XnnpackBackend"]],
    )


class DtypesTable(Table):
    """Which dtypes are compiled into the selected kernels."""

    select: Annotated[StrictStr, *choice(DtypeSelect)] = Field(
        default="models",
        description="`models`: per operator, those the models use. "
        "`all`: every dtype a kernel has.",
        examples=["models"],
    )
    operators: dict[
        Operator, Annotated[tuple[Dtype, ...], AfterValidator(not_empty)]
    ] = Field(
        default={},
        description="Dtypes or kernel keys of single operators; adds to `select`.",
        examples=[{"aten::add.out": ["Float", "Int"]}],
        json_schema_extra=_close_operators,
    )
    compare: StrictBool = Field(
        default=False,
        description="Build with every dtype, too, and tell which operators the "
        "selection makes larger.",
        examples=[True],
    )


class CustomTable(Table):
    """A kernel library of your own; any number of them.

    docs/kernels.md tells how to write one.
    """

    name: ModelName | None = Field(
        default=None,
        description="Name in `kernels.libraries` and in reports, unique among all "
        "libraries. Default: the name of the folder `functions` is in.",
        examples=["my_ops"],
    )
    functions: RelativePath = Field(
        description="The `functions.yaml` that declares its kernels.",
        examples=["my_ops/functions.yaml"],
    )
    sources: tuple[SourcePattern, ...] = Field(
        default=(),
        description="C++ (`.cpp`, `.cc`, `.cxx`), C (`.c`) and assembler (`.S`) files "
        "that are compiled whenever one of its kernels is linked, besides those that "
        "`functions` names; `*` stands for any part of a name, `**` for any folders.",
        examples=[["my_ops/*.cpp"]],
    )
    include: tuple[RelativePath, ...] = Field(
        default=(),
        description="Folders in which its sources find headers, besides the folder of "
        "`functions`.",
        examples=[["my_ops/include"]],
    )
    defines: tuple[Define, ...] = Field(
        default=(),
        description="Macros of its sources.",
        examples=[["MY_OPS_TABLES=2"]],
    )


_Libraries = Annotated[tuple[StrictStr, ...], AfterValidator(not_empty)]


class KernelsTable(Table):
    """Where kernels come from."""

    libraries: _Libraries | None = Field(
        default=None,
        description="Kernel libraries; the first that has a fitting kernel wins. "
        "Custom libraries that are not named here come before all that are; "
        "`prim_ops` comes last. Default: `portable`, before it `quantized` if a model "
        "has `source`, and before both `cortex_m` if one is lowered for `cortex-m`.",
        examples=[["portable"]],
        json_schema_extra={"minItems": 1, "uniqueItems": True},
    )
    operators: dict[Operator, _Libraries] = Field(
        default={},
        description="Libraries for single operators, in place of `libraries`: only "
        "these are tried, in this order.",
        examples=[{"aten::add.out": ["my_ops"]}],
        json_schema_extra=_close_operators,
    )
    custom: tuple[CustomTable, ...] = Field(
        default=(), description="Kernel libraries of your own."
    )


class PrelinkTable(Table):
    """Passes over models, prelinked and loaded; nothing of it changes outputs."""

    skip: tuple[Annotated[StrictStr, *choice(PASSES, "unknown-pass")], ...] = Field(
        default=(),
        description="Passes to leave out. `fold_permutes`, `fold_constants`, "
        "`evaluate_constants`: compute constants at build time. `alias_copies`: no "
        "needless copies. `drop_unused_calls`: no calls that nobody reads. `in_place`: "
        "outputs over inputs that are not needed any more. `drop_values`, "
        "`share_values`: no slot unused, and none twice.",
        examples=[["fold_permutes"]],
    )


class RegistryTable(Table):
    """For those who build ExecuTorch with the headers of this product.

    The kernel table of this runtime is constant, exactly as long as what is linked,
    and takes no kernels at run time: nothing here changes it.
    """

    max_kernels: KernelCount | None = Field(
        default=None,
        description="Slots of ExecuTorch's kernel registry, written into "
        "`selected_max_kernel_num.h` as it is, with `operators.all` too: room for "
        "kernels that are registered by hand. At least as many as are linked. "
        "Default: as many as are linked; with `operators.all` what ExecuTorch takes.",
        examples=[64],
    )


class ProfileTable(Table):
    """One product: models, target, kernels and budget."""

    schema_: Annotated[
        StrictInt,
        AfterValidator(_check_schema),
        WithJsonSchema({"type": "integer", "const": SCHEMA_VERSION}),
    ] = Field(
        alias="schema",
        description="Version of the profile's form.",
        examples=[SCHEMA_VERSION],
    )
    name: ProductName = Field(
        description="Name of the product, and of its outputs; never inherited.",
        examples=["doorbell"],
    )
    description: StrictStr = Field(
        default="",
        description="One line for people; never inherited.",
        examples=["Person detection, Cortex-M55"],
    )
    extends: RelativePath | None = Field(
        default=None,
        description="A base profile, which extends none itself. Its tables are merged "
        "with those here, key by key; where both have a key, this profile wins; arrays "
        "are replaced whole. Default: no base.",
        examples=["base.toml"],
    )
    target: TargetTable = Field(description="What is built for.")
    models: tuple[ModelTable, ...] = Field(
        default=(), description="The models of the product."
    )
    operators: OperatorsTable = Field(
        default=OperatorsTable(), description="Operators besides those of the models."
    )
    dtypes: DtypesTable = Field(
        default=DtypesTable(), description="Which dtypes are compiled in."
    )
    kernels: KernelsTable = Field(
        default=KernelsTable(), description="Where kernels come from."
    )
    delegates: tuple[DelegateTable, ...] = Field(
        default=(), description="Delegates of your own."
    )
    prelink: PrelinkTable = Field(
        default=PrelinkTable(), description="Which passes run over models."
    )
    scratch: ScratchTable = Field(
        default=ScratchTable(), description="Memory of single calls."
    )
    memory: MemoryTable = Field(
        default=MemoryTable(),
        description="Memories of the board, and where planned tensors lie.",
    )
    registry: RegistryTable = Field(
        default=RegistryTable(), description="ExecuTorch's kernel registry."
    )
    trace: TraceTable = Field(
        default=TraceTable(), description="Hooks around every instruction of a run."
    )
    integrity: IntegrityTable = Field(
        default=IntegrityTable(), description="Checksums of what lies in flash."
    )
    budget: BudgetTable = Field(
        default=BudgetTable(), description="Bounds a build must keep."
    )
