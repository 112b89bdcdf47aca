"""`[operators]`, `[dtypes]`, `[kernels]`: what is selected, where kernels come from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, StrictBool, StrictStr, WithJsonSchema

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, did_you_mean
from orchestrator.profile.choices import DtypeSelect, Overlap
from orchestrator.profile.fields import (
    OPERATOR,
    Define,
    ModelName,
    Operator,
    ReadFrom,
    Symbol,
    choice,
    is_model_name,
    key_text,
    near_name,
    not_empty,
    problem,
    read_operator,
    shown,
    sorted_set,
    text_schema,
)
from orchestrator.profile.lowering import kernel_libraries, needed_library
from orchestrator.profile.models import ModelTable
from orchestrator.profile.paths import Facts, RelativePath, SourcePattern
from orchestrator.profile.source_map import KeyPath
from orchestrator.profile.table import BrokenValueError, Table, sound

# `kernels/util` has what libraries share; a library's objects and reports are below
# `kernels/NAME`.
_RESERVED: Final = ("util",)
"""Names that no library may have: other folders beside the libraries."""
_IMPLICIT: Final = ("prim_ops",)
"""Always tried last: every program may call their operators."""


# ExecuTorch's selected_operators.yaml: "v1/", then dtype and dim order of each tensor.
_KERNEL_KEY: Final = r"v1/[0-9]+;[0-9,]*(\|[0-9]+;[0-9,]*)*"


def _check_operator(value: str) -> str:
    read_operator(value)
    return value


def _check_operator_or_backend(value: str) -> str:
    # The id of a backend, such as XnnpackBackend, has no namespace.
    return value if re.fullmatch(r"[A-Za-z]\w*", value) else _check_operator(value)


def _read_dtype(value: str) -> ScalarType | KernelKey:
    if value in ScalarType.__members__:
        return ScalarType[value]
    with suppress(ValueError):
        if value.startswith("v1") and (key := KernelKey.parse(value)).tensors:
            return key
    raise problem(
        "bad-dtype",
        f"{{key}} is neither a dtype nor a kernel key: {shown(value)}",
        expected="a dtype such as Float, or a kernel key such as v1/6;0,1|6;0,1",
        hint=did_you_mean(value, ScalarType.__members__)
        or "write Float, Half, Char, Int, Long, Bool or another name of ScalarType",
    )


_OperatorKey = Annotated[
    StrictStr, AfterValidator(_check_operator), text_schema("operator", OPERATOR)
]
"""An operator as written in the profile, which is needed to find its line."""
_OperatorOrBackend = Annotated[
    StrictStr,
    AfterValidator(_check_operator_or_backend),
    text_schema("operator or backend", OPERATOR),
]
_Dtype = Annotated[
    ScalarType | KernelKey,
    ReadFrom(StrictStr, _read_dtype),
    WithJsonSchema(
        {
            "title": "dtype or kernel key",
            "anyOf": [
                {"type": "string", "enum": list(ScalarType.__members__)},
                {"type": "string", "pattern": f"^{_KERNEL_KEY}$"},
            ],
        }
    ),
]


def _close_operators(schema: dict[str, Any]) -> None:
    """Make the schema reject invalid operator names and empty arrays."""
    schema["additionalProperties"] = False
    for items in schema["patternProperties"].values():
        items["minItems"] = 1


class OperatorsTable(Table):
    """Operators besides those the models use; all keys add to them.

    With neither models nor operators the product is a runtime without kernels.
    """

    include: Annotated[tuple[Operator, ...], AfterValidator(sorted_set)] = Field(
        default=(), description="Names of operators.", examples=[["aten::add.out"]]
    )
    include_yaml: tuple[RelativePath, ...] = Field(
        default=(),
        description="Files that list operators: the `functions.yaml` of a kernel "
        "library, whose operators are wanted with every dtype, or the "
        "`selected_operators.yaml` of another build, with its kernel keys.",
        examples=[["extra_ops.yaml"]],
    )
    every: StrictBool = Field(
        default=False,
        alias="all",
        description="Select every operator the kernel libraries have.",
        examples=[False],
    )
    overlap: Annotated[Overlap, *choice(Overlap)] = Field(
        default=Overlap.ALLOW,
        description="`error`: reject operators that more than one model calls, "
        "regardless of dtypes, and selected operators that more than one kernel "
        "library has, unless `kernels.operators` says which one is meant.",
        examples=["allow"],
    )
    allow_missing: Annotated[tuple[_OperatorOrBackend, ...], AfterValidator(sorted_set)] = Field(
        default=(),
        description="Operators that may lack a kernel, and backends that may lack a "
        "delegate: the product is built all the same, every output says so, and "
        "methods that need one of them do not load.",
        examples=[["my_ops::fancy.out", "XnnpackBackend"]],
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeRequest:
    """Dtypes and kernel keys requested for one operator; sorted, not both empty."""

    operator: OperatorName
    dtypes: tuple[ScalarType, ...] = ()
    keys: tuple[KernelKey, ...] = ()


class DtypesTable(Table):
    """Which dtypes are compiled into the selected kernels."""

    select: Annotated[DtypeSelect, *choice(DtypeSelect)] = Field(
        default=DtypeSelect.MODELS,
        description="`models`: per operator, those the models use. "
        "`all`: every dtype a kernel has.",
        examples=["models"],
    )
    operators_: dict[_OperatorKey, Annotated[tuple[_Dtype, ...], AfterValidator(not_empty)]] = (
        Field(
            default={},
            alias="operators",
            description="Dtypes or kernel keys of single operators; adds to `select`.",
            examples=[{"aten::add.out": ["Float", "Int"]}],
            json_schema_extra=_close_operators,
        )
    )
    compare: StrictBool = Field(
        default=False,
        description="Build with every dtype, too, and report which operators the "
        "selection makes larger.",
        examples=[True],
    )

    @property
    def operators(self) -> tuple[DtypeRequest, ...]:
        """The requests by operator, sorted; merges the two spellings of a name."""
        items: dict[OperatorName, set[ScalarType | KernelKey]] = {}
        for operator, dtypes in self.operators_.items():
            items.setdefault(OperatorName.parse(operator), set()).update(dtypes)
        return tuple(
            DtypeRequest(
                operator=operator,
                dtypes=tuple(sorted(i for i in found if isinstance(i, ScalarType))),
                keys=tuple(sorted(i for i in found if isinstance(i, KernelKey))),
            )
            for operator, found in sorted(items.items())
        )


class CustomTable(Table):
    """A kernel library of your own; any number of them.

    docs/kernels.md shows how to write one.
    """

    name: ModelName = Field(
        default_factory=str,
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
        description="Folders in which its sources find headers, besides the folder of `functions`.",
        examples=[["my_ops/include"]],
    )
    defines: tuple[Define, ...] = Field(
        default=(), description="Macros of its sources.", examples=[["MY_OPS_TABLES=2"]]
    )
    exports: Annotated[tuple[Symbol, ...], AfterValidator(sorted_set)] = Field(
        default=(),
        description="Functions and variables of its sources that the application "
        "uses, by their names in C. Other names are the product's own.",
        examples=[["my_ops_start"]],
    )

    @property
    def default_name(self) -> str:
        """Name of the folder that `functions` is in; "" if a library cannot have it."""
        name = PurePosixPath(self.functions.written).parent.name
        return name if is_model_name(name) else ""

    def with_defaults(self) -> Self:
        """The table with a name."""
        return self.model_copy(update={"name": self.name or self.default_name})


_Libraries = Annotated[tuple[StrictStr, ...], AfterValidator(not_empty)]


class KernelsTable(Table):
    """Where kernels come from."""

    libraries: _Libraries = Field(
        default_factory=tuple,
        exclude=True,  # from the table's default: the schema allows no empty array
        description="Kernel libraries; the first that has a fitting kernel wins. "
        "Custom libraries that are not named here come before all that are; "
        "`prim_ops` comes last. Default: `portable`, before it `quantized` if a model "
        "has `source`, and before both `cortex_m` if one is lowered for `cortex-m`, "
        "before that `cortex_m_int16` if it has int16 activations.",
        examples=[["portable"]],
        json_schema_extra={"minItems": 1, "uniqueItems": True},
    )
    operators_: dict[_OperatorKey, _Libraries] = Field(
        default={},
        alias="operators",
        description="Libraries for single operators, in place of `libraries`: only "
        "these are tried, in this order.",
        examples=[{"aten::add.out": ["my_ops"]}],
        json_schema_extra=_close_operators,
    )
    custom: tuple[CustomTable, ...] = Field(default=(), description="Kernel libraries of your own.")

    @property
    def operators(self) -> tuple[tuple[OperatorName, tuple[str, ...]], ...]:
        """(operator, libraries tried for it instead of all), sorted."""
        chosen = self.operators_.items()
        return tuple(sorted((OperatorName.parse(o), names) for o, names in chosen))

    def with_defaults(self, models: Iterable[ModelTable], shipped: Collection[str]) -> Self:
        """The table with all libraries in the order they are tried, and all names.

        Args:
            models: Models of the profile.
            shipped: Names of the kernel libraries that exist without the profile.
        """
        custom = tuple(table.with_defaults() for table in self.custom)
        named = self.libraries or _default_libraries(models)
        return self.model_copy(
            update={
                "libraries": (
                    *(table.name for table in custom if table.name not in named),
                    *named,
                    *(n for n in _IMPLICIT if n in shipped and n not in named),
                ),
                "custom": custom,
            }
        )


def _default_libraries(models: Iterable[ModelTable]) -> tuple[str, ...]:
    """Libraries that the models call, in the order in which they are tried."""
    chosen = [kernel_libraries(m.lowered_for, m.quantize) for m in models]
    # Each list is a tail of the longest one.
    return max(chosen, key=len, default=kernel_libraries(None))


def operator_list_problems(operators: OperatorsTable, facts: Facts) -> Iterator[Diagnostic]:
    """Problems of operator lists that are missing."""
    for index, file in sound(operators.include_yaml):
        yield from facts.missing_file(
            file,
            *("operators", "include_yaml", index),
            what="operator list",
            expected="a functions.yaml or selected_operators.yaml",
        )


def kernel_problems(
    kernels: KernelsTable, models: Callable[[], Iterable[ModelTable]], facts: Facts
) -> Iterator[Diagnostic]:
    """Problems of `[kernels]` beyond single values.

    Args:
        kernels: The table.
        models: Returns the models of the profile, which may be broken.
        facts: Further facts.
    """
    names: Mapping[int, str] = {}
    with suppress(BrokenValueError):
        names = _custom_names(kernels.custom)
        yield from _custom_problems(kernels.custom, names, facts)
    known = sorted({*facts.libraries, *names.values()})
    with suppress(BrokenValueError):
        where: KeyPath = ("kernels", "libraries")
        yield from _name_problems(kernels.libraries, where, known, facts)
    with suppress(BrokenValueError):
        for operator, libraries in kernels.operators_.items():
            where = ("kernels", "operators", operator)
            yield from _name_problems(libraries, where, known, facts)
    with suppress(BrokenValueError):
        yield from _left_out_problems(kernels, models(), facts)
    with suppress(BrokenValueError):
        listed = kernels.libraries or _default_libraries(models())
        used = {*names.values(), *(name for _, name in sound(listed)), *_IMPLICIT}
        yield from _unused_problems(kernels, {*known} - used, facts)


def _custom_names(custom: Iterable[CustomTable]) -> Mapping[int, str]:
    """Names of custom libraries by index, without those that have none."""
    names = {}
    for index, table in sound(custom):
        with suppress(BrokenValueError):
            if name := table.name or table.default_name:
                names[index] = name
    return names


def _custom_problems(
    custom: Iterable[CustomTable], names: Mapping[int, str], facts: Facts
) -> Iterator[Diagnostic]:
    """Problems of missing files and duplicate names of custom libraries."""
    first: dict[str, int] = {}
    for index, table in sound(custom):
        where: KeyPath = ("kernels", "custom", index)
        with suppress(BrokenValueError):
            yield from facts.missing_file(
                table.functions,
                *where,
                "functions",
                what="list of kernels",
                expected="a functions.yaml",
            )
        with suppress(BrokenValueError):
            yield from facts.missing_files(
                table.sources,
                *where,
                "sources",
                what="source",
                expected="a source of the kernel library",
            )
        name = names.get(index)
        if name is None:
            with suppress(BrokenValueError):
                if not table.name:
                    yield _nameless(table, where, facts)
        elif name in facts.libraries or name in _RESERVED:
            yield _duplicate(table, where, name, "Orchestrator has one itself", facts)
        elif name in first:
            other = ("kernels", "custom", first[name])
            found = f"{key_text(other)} is too, {facts.span(*other, 'functions')}"
            yield _duplicate(table, where, name, found, facts)
        else:
            first[name] = index


def _nameless(table: CustomTable, where: KeyPath, facts: Facts) -> Diagnostic:
    folder = PurePosixPath(table.functions.written).parent.name
    return Diagnostic.of(
        "missing-key",
        f"{key_text(where)} needs a name: its folder {shown(folder)} cannot be one",
        where=facts.span(*where, "functions"),
        expected="a small letter, then small letters, digits or _",
        hint=f'add name = "{near_name(folder, "_") or "my_ops"}"',
    )


def _duplicate(
    table: CustomTable, where: KeyPath, name: str, found: str, facts: Facts
) -> Diagnostic:
    key = "name" if "name" in table.written_keys else "functions"
    return Diagnostic.of(
        "duplicate-library",
        f"two kernel libraries are named {shown(name)}",
        where=facts.span(*where, key),
        found=found,
        expected="a unique name for each library",
        hint=f'write name = "my_{name}", or another name',
    )


def _name_problems(
    libraries: Iterable[str], key_path: KeyPath, known: Collection[str], facts: Facts
) -> Iterator[Diagnostic]:
    """Problems of libraries that a key lists twice, or that do not exist."""
    names = ", ".join(known)
    seen: dict[str, int] = {}
    for index, library in sound(libraries):
        if library in seen:
            yield Diagnostic.of(
                "duplicate-library",
                f"the kernel library {shown(library)} is named twice",
                where=facts.span(*key_path, index),
                found=f"items {seen[library]} and {index}",
                expected="each library once, in the order of preference",
                hint="remove the second",
            )
        elif library not in known:
            yield Diagnostic.of(
                "unknown-library",
                f"there is no kernel library {shown(library)}",
                where=facts.span(*key_path, index),
                expected=names,
                hint=did_you_mean(library, known)
                or f"choose {names.replace(', ', ' or ')}, or add it to [[kernels.custom]]",
            )
        seen.setdefault(library, index)


def _left_out_problems(
    kernels: KernelsTable, models: Iterable[ModelTable], facts: Facts
) -> Iterator[Diagnostic]:
    """Problems of models quantized for kernels of a library that is left out."""
    # A custom library may have kernels for the same operators.
    if not kernels.libraries or kernels.custom or kernels.operators_:
        return
    listed = [name for _, name in sound(kernels.libraries)]
    for index, model in sound(models):
        lowering = model.lowered_for
        if lowering is None or model.quantize is None:
            continue
        library = needed_library(lowering, model.quantize)
        if not library or library in listed:
            continue
        needed = kernel_libraries(lowering, model.quantize)
        missing = [n for n in needed if n not in listed]
        every = ", ".join(map(shown, [*missing, *listed]))
        yield Diagnostic.of(
            "missing-library",
            f"a model quantized for {lowering} needs the kernel library {shown(library)}",
            where=facts.span("kernels", "libraries"),
            required_by=str(facts.span("models", index)),
            hint=f"write libraries = [{every}], or leave it out",
        )
        return


def _unused_problems(
    kernels: KernelsTable, unused: Collection[str], facts: Facts
) -> Iterator[Diagnostic]:
    """Problems of libraries for single operators that the product does not use."""
    for operator, libraries in kernels.operators_.items():
        for index, name in sound(libraries):
            if name in unused:
                yield Diagnostic.of(
                    "unused-library",
                    f"the profile does not use the kernel library {shown(name)}",
                    where=facts.span("kernels", "operators", operator, index),
                    expected="a library of kernels.libraries or a custom one",
                    hint=f"add {shown(name)} to kernels.libraries",
                )
