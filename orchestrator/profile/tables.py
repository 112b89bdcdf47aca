"""The whole profile: its tables, the rules over several values, and its keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Final, Self, get_args, get_origin

from pydantic import AfterValidator, Field, StrictBool, StrictInt, StrictStr, WithJsonSchema
from pydantic.fields import FieldInfo

from orchestrator.core.spelling import VERSION, packed_version
from orchestrator.errors import Diagnostic, SourceSpan, did_you_mean
from orchestrator.planner.policy import RuntimeCheck, ScratchPolicy
from orchestrator.printable import printable
from orchestrator.profile.choices import IO_PASSES, PASSES, WEIGHT_PASSES, CheckImage
from orchestrator.profile.delegates import DelegateTable, delegate_problems
from orchestrator.profile.fields import (
    MAX_NAME_LENGTH,
    Size,
    choice,
    name_like,
    only,
    problem,
    shown,
    sorted_set,
    text_schema,
    whole_number,
)
from orchestrator.profile.io import skip_problems
from orchestrator.profile.kernels import (
    DtypesTable,
    KernelsTable,
    OperatorsTable,
    kernel_problems,
    operator_list_problems,
)
from orchestrator.profile.memory import MemoryTable, memory_problems
from orchestrator.profile.models import ModelTable, model_problems
from orchestrator.profile.paths import Facts, RelativePath
from orchestrator.profile.source_map import KeyPath, find_span
from orchestrator.profile.table import BrokenValueError, Table, keys_of, sound
from orchestrator.profile.target import (
    ProfileMatrixTable,
    TargetTable,
    board_problems,
    float_abi_problems,
    isa_problems,
    nonsecure_problems,
    toolchain_problems,
    unaligned_problems,
    via_problems,
)
from orchestrator.targets.c_names import HEADERS, LIBRARIES

# Rises when an old file would mean something else. Keys that are added leave it: an
# older version refuses keys that it does not know.
SCHEMA_VERSION: Final = 1
_PRODUCT_NAME: Final = "[a-z][a-z0-9-]*"
_OF_THE_RUNTIME: Final = "orch(-.*)?"


def check_schema(value: int) -> int:
    """A validator for the version of a file's format."""
    if value != SCHEMA_VERSION:
        raise problem(
            "unknown-schema",
            f"{{key}} {shown(value)} is not supported by this version",
            expected=str(SCHEMA_VERSION),
            hint=f"write schema = {SCHEMA_VERSION}"
            if value < SCHEMA_VERSION
            else "install the version of orchestrator the profile was written for",
        )
    return value


def taken_by(name: str) -> str:
    """What has the name that a product's header, library and functions would have."""
    if re.fullmatch(_OF_THE_RUNTIME, name):
        return "functions and headers of the runtime begin with orch"
    if name in HEADERS:
        return f"C libraries and compilers have a header {name}.h"
    if name in LIBRARIES:
        return f"toolchains have a library lib{name}.a"
    return ""


def _check_name(value: str) -> str:
    """Check a product's name."""
    taken = taken_by(value)
    if not taken:
        return value
    raise problem(
        "bad-value",
        f"{{key}} cannot be {shown(value)}: {taken}",
        hint=f'choose another name, such as "my-{value}"',
    )


_TAKEN: Final = [{"pattern": f"^{_OF_THE_RUNTIME}$"}, {"enum": sorted(HEADERS | LIBRARIES)}]


class PassesTable(Table):
    """Passes over models, prelinked and loaded.

    None changes outputs, unless `fold_batch_norm` is true or a model has `weights`. The
    table's former name, `[prelink]`, still works.
    """

    skip: Annotated[
        tuple[Annotated[StrictStr, *choice(PASSES, "unknown-pass")], ...],
        AfterValidator(sorted_set),
    ] = Field(
        default=(),
        description=f"Passes to skip. {'. '.join(f'`{n}`: {use}' for n, use in PASSES.items())}.",
        examples=[["fold_permutes"]],
    )
    fold_batch_norm: StrictBool = Field(
        default=False,
        description="Whether batch normalization becomes part of the float weights "
        "before it. Outputs then differ in their last bits: docs/runtime.md.",
        examples=[True],
    )


class ScratchTable(Table):
    """Memory that kernels need during a call only: docs/memory.md."""

    policy: Annotated[ScratchPolicy, *choice(ScratchPolicy)] = Field(
        default=ScratchPolicy.PLAN,
        description="`plan`: each call gets what its kernel needs on this target. "
        "`verify`: what the program has must be exactly that. `keep`: the program is "
        "trusted.",
        examples=["plan"],
    )
    runtime_check: Annotated[RuntimeCheck, *choice(RuntimeCheck)] = Field(
        default=RuntimeCheck.DEBUG,
        description="Kernels compare their scratch memory with what they need before "
        'they write to it: `never`, with `optimize = "debug"` only, or `always`.',
        examples=["always"],
    )


class RegistryTable(Table):
    """For builds of ExecuTorch with the headers of this product.

    The kernel table of this runtime is constant, exactly as long as what is linked,
    and takes no kernels at run time: nothing here changes it.
    """

    max_kernels: (
        Annotated[
            StrictInt,
            *whole_number(
                1,
                65535,
                hint="write how many kernels fit, or leave it out for as many as there are",
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="Slots of ExecuTorch's kernel registry, written into "
        "`selected_max_kernel_num.h` unchanged, with `operators.all` too: room for "
        "kernels that are registered by hand. At least as many as are linked. "
        "Default: as many as are linked; with `operators.all` what ExecuTorch takes.",
        examples=[64],
    )


class TraceTable(Table):
    """Hooks around every instruction, to measure on the device: docs/runtime.md."""

    enable: StrictBool = Field(
        default=False,
        description="The executor reads the product's counter before and after every "
        "instruction, and hands both over; a program links only with the two "
        "functions that the product's header declares.",
        examples=[True],
    )


class ScheduleTable(Table):
    """How long a step of a run may take: docs/runtime.md."""

    max_step_cycles: (
        Annotated[
            StrictInt, *whole_number(1, 2**32 - 1, hint="write how many cycles a step may take")
        ]
        | None
    ) = Field(
        default=None,
        description="Most cycles of a step of one instruction, by an estimate: longer "
        "calls of prelinked int8 models are split into rows, and what cannot be split "
        "so far is an error. Default: calls are not split.",
        examples=[100_000],
    )


class IntegrityTable(Table):
    """Checksums of flash, compared on the device: docs/runtime.md."""

    check: Annotated[CheckImage, *choice(CheckImage)] = Field(
        default=CheckImage.NEVER,
        description="`start`: the API has functions that compare, for the application "
        "to call. `load`: besides, the first call of each method compares what it "
        "uses. Where flash is damaged the status is `ImageDamaged`.",
        examples=["start"],
    )


class TestTable(Table):
    """What `orchestrator test` and `verify` run: docs/commands.md."""

    runs: Annotated[
        # Chosen by hand: `test` runs them in the emulator.
        StrictInt, *whole_number(1, 1000, hint="write how often each method is called")
    ] = Field(
        default=4, description="How often each method is called with random inputs.", examples=[10]
    )
    seed: Annotated[StrictInt, *whole_number(0, 2**32 - 1, hint="write any number")] = Field(
        default=0, description="Of the random inputs.", examples=[1]
    )


class BudgetTable(Table):
    """Bounds; a build that exceeds one fails and names the culprits."""

    flash_bytes: Size | None = Field(
        default=None,
        alias="flash",
        description="Most flash the firmware may use. Default: no bound.",
        examples=["96 KiB"],
    )
    ram_bytes: Size | None = Field(
        default=None,
        alias="ram",
        description="Most RAM the firmware may use. Default: no bound.",
        examples=["64 KiB"],
    )


_Version = Annotated[
    StrictStr,
    only(
        lambda text: packed_version(text) is not None,
        expected="MAJOR.MINOR.PATCH, at most 255.255.65535",
        hint='write version = "1.4.0"',
    ),
    text_schema("version", VERSION),
]
_Line = Annotated[
    StrictStr,
    only(
        lambda text: text == printable(text),
        expected="one line of text, without control characters",
        hint='write description = "Person detection, Cortex-M55"',
    ),
]


class ProfileTable(Table):
    """One product: models, target, kernels and budget."""

    schema_: Annotated[
        StrictInt,
        AfterValidator(check_schema),
        WithJsonSchema({"type": "integer", "const": SCHEMA_VERSION}),
    ] = Field(
        alias="schema", description="Version of the profile format.", examples=[SCHEMA_VERSION]
    )
    name: Annotated[
        StrictStr,
        AfterValidator(name_like(_PRODUCT_NAME, "-")),
        AfterValidator(_check_name),
        text_schema("name", _PRODUCT_NAME, maxLength=MAX_NAME_LENGTH, **{"not": {"anyOf": _TAKEN}}),
    ] = Field(
        description="Name of the product, and of its outputs; never inherited.",
        examples=["doorbell"],
    )
    description: _Line = Field(
        default="",
        description="One-line description; never inherited.",
        examples=["Person detection, Cortex-M55"],
    )
    version: _Version = Field(
        default="0.0.0",
        description="Version of the firmware, for the SBOM and for signed updates: "
        "three numbers, of at most 255, 255 and 65535.",
        examples=["1.4.0"],
    )
    extends: RelativePath | None = Field(
        default=None,
        description="A base profile, which extends none itself. Its tables are merged "
        "with those here, key by key; where both have a key, this profile wins; arrays "
        "are replaced whole. Default: no base.",
        examples=["base.toml"],
    )
    target: TargetTable = Field(description="Target of the build.")
    models: tuple[ModelTable, ...] = Field(default=(), description="The models of the product.")
    operators: OperatorsTable = Field(
        default=OperatorsTable(), description="Operators besides those of the models."
    )
    dtypes: DtypesTable = Field(default=DtypesTable(), description="Which dtypes are compiled in.")
    kernels: KernelsTable = Field(default=KernelsTable(), description="Where kernels come from.")
    delegates: tuple[DelegateTable, ...] = Field(default=(), description="Delegates of your own.")
    passes: PassesTable = Field(default=PassesTable(), description="Which passes run over models.")
    scratch: ScratchTable = Field(default=ScratchTable(), description="Scratch memory of kernels.")
    memory: MemoryTable = Field(
        default=MemoryTable(), description="Memories of the board, and where planned tensors lie."
    )
    registry: RegistryTable = Field(
        default=RegistryTable(), description="ExecuTorch's kernel registry."
    )
    trace: TraceTable = Field(
        default=TraceTable(), description="Hooks around every instruction of a run."
    )
    schedule: ScheduleTable = Field(
        default=ScheduleTable(), description="How long a step of a run may take."
    )
    integrity: IntegrityTable = Field(
        default=IntegrityTable(), description="Checksums of what lies in flash."
    )
    test: TestTable = Field(default=TestTable(), description="What `orchestrator test` runs.")
    budget: BudgetTable = Field(default=BudgetTable(), description="Bounds a build must keep.")
    matrix: ProfileMatrixTable = Field(
        default=ProfileMatrixTable(),
        description="Which targets of the workspace's matrix the product has.",
    )

    def with_defaults(self, shipped: Collection[str]) -> Self:
        """The profile with defaults that depend on other values.

        Args:
            shipped: Names of the kernel libraries that exist without the profile.
        """
        return self.model_copy(
            update={
                "target": self.target.with_defaults(),
                "models": tuple(model.with_defaults() for model in self.models),
                "kernels": self.kernels.with_defaults(self.models, shipped),
            }
        )


class Profile(ProfileTable):
    """One product: validated, with defaults, and with the place of every value.

    Args:
        file: The profile as the user named it.
        files: All files it was read from: the profile, then its base if it has one.
        spans: Where each key path was written; key paths are unique.
        inherited: Keys that it has from a workspace, each with its value as JSON.
        is_variant: One of several products that a workspace makes of the profile.
        build_root: Folder in which its build folder is, in `build`.
        looked_for: States of all files that might have been that of its workspace.
        settings: Variables that its workspace sets where the user did not.
    """

    file: Path
    files: tuple[Path, ...] = ()
    spans: tuple[tuple[KeyPath, SourceSpan], ...] = ()
    inherited: tuple[tuple[str, str], ...] = ()
    is_variant: bool = False
    build_root: Path = Path()
    looked_for: tuple[tuple[str, Sequence[int]], ...] = ()
    settings: tuple[tuple[str, str], ...] = ()

    @property
    def folder(self) -> Path:
        """Folder of the profile, from which its paths start."""
        return self.file.parent

    @property
    def named(self) -> str:
        """What commands take for it: the file, or the name of one of its products."""
        return self.name if self.is_variant else str(self.file)

    @property
    def lock_file(self) -> Path:
        """The lock: `<profile>.lock`, or `<product>.lock` if there are several."""
        if self.is_variant:
            return self.file.with_name(f"{self.name}.lock")
        return self.file.with_suffix(".lock")

    def span(self, *key_path: str | int) -> SourceSpan:
        """The place of a key path's value, in the profile or its base.

        A default has the span of the table it would be in, or, as a last resort, that
        of the whole file.
        """
        spans, index = self._span_index
        if spans is not self.spans:  # of the profile that this one is a copy of
            index = dict(self.spans)
        return find_span(index, key_path) or SourceSpan(file=str(self.file))

    @cached_property
    def _span_index(self) -> tuple[object, Mapping[KeyPath, SourceSpan]]:
        return self.spans, dict(self.spans)


def rule_problems(profile: ProfileTable, facts: Facts) -> Iterator[Diagnostic]:
    """All problems beyond single values.

    Args:
        profile: The valid part of each table.
        facts: Further facts for rules.
    """
    rules: tuple[Callable[[], Iterable[Diagnostic]], ...] = (
        lambda: isa_problems(profile.target, facts),
        lambda: board_problems(profile.target, facts),
        lambda: toolchain_problems(profile.target, facts),
        lambda: unaligned_problems(profile.target, facts),
        lambda: float_abi_problems(profile.target, facts),
        lambda: nonsecure_problems(profile.target, facts),
        lambda: via_problems(profile.target, facts),
        lambda: model_problems(profile.models, facts),
        lambda: _io_problems(profile, facts),
        lambda: operator_list_problems(profile.operators, facts),
        lambda: kernel_problems(profile.kernels, lambda: profile.models, facts),
        lambda: delegate_problems(profile.delegates, facts),
        lambda: memory_problems(profile.memory, profile.target, lambda: profile.models, facts),
        lambda: _selection_problems(facts),
    )
    for rule in rules:
        with suppress(BrokenValueError):
            yield from rule()


def _io_problems(profile: ProfileTable, facts: Facts) -> Iterator[Diagnostic]:
    """Passes that are skipped though a model needs them; one model is enough."""
    for key, passes in (("io", IO_PASSES), ("weights", WEIGHT_PASSES)):
        for index, model in sound(profile.models):
            if key in model.written_keys:
                skipped = [name for name in passes if name in profile.passes.skip]
                yield from skip_problems(skipped, ("models", index, key), facts)
                break


def _selection_problems(facts: Facts) -> Iterator[Diagnostic]:
    """A product without kernels is valid only if the profile says so explicitly."""
    selecting = ("models", "operators")
    unknown = set(facts.keys) - set(keys_of(ProfileTable).values())
    misspelt = any(did_you_mean(key, selecting) for key in unknown)
    if not misspelt and not set(selecting) & set(facts.keys):
        yield Diagnostic.of(
            "nothing-selected",
            "the profile selects neither models nor operators",
            where=facts.span("models"),
            expected="[[models]] or [operators]",
            hint='add [[models]] and below it path = "model.pte", or [operators] and'
            " below it include = [] for a runtime without kernels",
        )


@cache
def tables(root: type[Table] | None = None) -> Mapping[tuple[str, ...], type[Table]]:
    """All tables of the profile, by their keys from the top; `()` is the top.

    Args:
        root: The table of the whole file; None for a profile.
    """
    found: dict[tuple[str, ...], type[Table]] = {}

    def add(path: tuple[str, ...], table: type[Table]) -> None:
        found[path] = table
        for name, field in table.model_fields.items():
            for candidate in (field.annotation, *get_args(field.annotation)):
                if isinstance(candidate, type) and issubclass(candidate, Table):
                    add((*path, field.alias or name), candidate)
        if table.any_key is not None:
            add((*path, table.any_key[0]), table.any_key[1])

    add((), root or ProfileTable)
    return MappingProxyType(found)


def is_array(table: tuple[str, ...], root: type[Table] | None = None) -> bool:
    """Whether a profile may have several of the table."""
    return bool(table) and get_origin(field_of(table, root)[1].annotation) is tuple


def field_of(path: KeyPath, root: type[Table] | None = None) -> tuple[str, FieldInfo]:
    """Key and field of a key path, or, below a field, the field that contains it.

    Raises:
        KeyError: No table has such a key.
    """
    keys = tuple(key for key in path if isinstance(key, str))
    for length in range(len(keys) - 1, -1, -1):
        model = tables(root).get(keys[:length])
        for name, field in model.model_fields.items() if model else ():
            if (field.alias or name) == keys[length]:
                return keys[length], field
    raise KeyError(path)


def header_of(table: tuple[str, ...], root: type[Table] | None = None) -> str:
    """The header of a table: `[target]`, `[[models]]`."""
    text = f"[{'.'.join(table)}]"
    return f"[{text}]" if is_array(table, root) else text
