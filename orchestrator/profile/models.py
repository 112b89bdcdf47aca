"""`[[models]]`: programs, and Python code that is exported to programs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Annotated, Final, Self

from pydantic import AfterValidator, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from orchestrator.core.border import NO_IO, ModelIo
from orchestrator.core.rounding import WeightRounding
from orchestrator.errors import Diagnostic, SourceSpan, did_you_mean
from orchestrator.planner.policy import SharedState
from orchestrator.profile.choices import Load
from orchestrator.profile.fields import (
    ModelName,
    choice,
    is_model_name,
    key_text,
    near_name,
    not_empty,
    only,
    problem,
    shown,
    whole_number,
)
from orchestrator.profile.io import IoTable, io_problems
from orchestrator.profile.lowering import (
    ETHOS_U,
    LOWERINGS,
    NO_VELA,
    PORTABLE,
    VELA_MEMORY_MODES,
    Quantize,
    Vela,
    system_configs_of,
    unsupported,
)
from orchestrator.profile.lowering_tables import (
    CardTable,
    QuantizeTable,
    VelaTable,
    WeightsTable,
    weight_problems,
)
from orchestrator.profile.paths import Facts, ModelCode, ModelPath, NamedFile, RelativePattern
from orchestrator.profile.source_map import KeyPath
from orchestrator.profile.table import BrokenValueError, Table, sound
from orchestrator.targets.boards import Pins, TensorKind, TensorPin

DEFAULT_MAX_INSTRUCTIONS: Final = 1_000_000
"""Default instruction limit for a run of a program that the device loads.

Programs without loops have a few hundred instructions; loops may repeat theirs a few
thousand times.
"""

_TENSOR = f"({'|'.join(TensorKind)}) (0|[1-9][0-9]{{0,8}})"


def _check_ids(value: dict[str, str]) -> dict[str, str]:
    for key in value:
        if not (key.isascii() and key.isdigit() and not key.startswith("0")):
            raise problem(
                "bad-value",
                f"{{key}} has the key {shown(key)}",
                expected='memory ids of the program, regions = {1 = "dtcm"}',
                hint="`orchestrator inspect` shows the memory ids of a program",
            )
    return value


_Tensor = Annotated[
    StrictStr,
    only(
        re.compile(_TENSOR).fullmatch,
        expected="input, output or value, and a number",
        hint='write tensor = "input 0"; `orchestrator inspect --json` lists them',
    ),
    Field(json_schema_extra={"pattern": f"^{_TENSOR}$"}),
]


class TensorTable(Table):
    """A tensor of a model that lies in a memory of its own choice: docs/memory.md."""

    tensor: _Tensor = Field(
        description="Which one: `input` or `output` and its number, or `value` and its "
        "index in the program. `orchestrator inspect --json` lists them.",
        examples=["input 0"],
    )
    method: StrictStr | None = Field(
        default=None,
        description="Method of the tensor. Default: every method.",
        examples=["forward"],
    )
    region: ModelName = Field(description="Memory of the board that it lies in.", examples=["dtcm"])

    @property
    def pin(self) -> TensorPin:
        """The tensor as later stages take it."""
        kind, index = self.tensor.split()
        return TensorPin(
            kind=TensorKind(kind), index=int(index), method=self.method, region=self.region
        )


class ModelTable(Table):
    """A model of the product; any number of them."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["path"]}, {"required": ["source"]}],
            "dependentRequired": {
                key: ["source"] for key in ("lowering", "quantize", "vela", "reads")
            },
        }
    )

    name: ModelName = Field(
        # A factory, not a default: the schema would show "", which the pattern refuses.
        default_factory=str,
        description="Name in generated code and reports, unique in the profile. "
        "Default: the file name without its suffix.",
        examples=["person"],
    )
    path_: ModelPath | None = Field(
        default=None,
        alias="path",
        description="The exported program, a `.pte` file. Either this or `source`. "
        "May be absolute: then the profile is one for this machine, with a warning.",
        examples=["../models/vww_int8.pte"],
    )
    source: ModelCode | None = Field(
        default=None,
        description="Python file and a callable in it that gives the model; the build "
        "exports it for the target: docs/export.md.",
        examples=["../models/vww.py:build"],
    )
    lowering: Annotated[StrictStr, *choice(LOWERINGS, "unknown-lowering")] = Field(
        default_factory=lambda: PORTABLE,
        description="With `source`: what the model is lowered for. `portable`: "
        "kernels alone. `cortex-m`: int8 kernels. `xnnpack`, `ethos-u55-128` and "
        "its like: a delegate. Default: `portable`.",
        examples=["cortex-m"],
    )
    quantize_: QuantizeTable | None = Field(
        default=None,
        alias="quantize",
        description="With `source`: quantize the model. Default: no quantization.",
    )
    vela_: VelaTable | None = Field(
        default=None,
        alias="vela",
        description="With `source` and a lowering for Ethos-U: options of Vela.",
    )
    reads: tuple[RelativePattern, ...] = Field(
        default=(),
        description="With `source`: files, or patterns of files, that its code reads "
        "other than with Python's own `open` and `import`, which are tracked.",
        examples=[["../models/vww.onnx"]],
    )
    region: ModelName | None = Field(
        default=None,
        description="Memory of the board that its arenas lie in. Default: the first that they fit.",
        examples=["dtcm"],
    )
    regions: Annotated[
        dict[str, ModelName], AfterValidator(not_empty), AfterValidator(_check_ids)
    ] = Field(
        default_factory=dict,
        json_schema_extra={"minProperties": 1, "propertyNames": {"pattern": "^[1-9][0-9]*$"}},
        description="The same for single arenas, by memory id of the program. "
        "Default: what `region` says.",
        examples=[{"1": "dtcm", "2": "sram"}],
    )
    tensors: tuple[TensorTable, ...] = Field(
        default=(), description="Single tensors that lie in another memory than their arena."
    )
    io_: IoTable | None = Field(
        default=None,
        alias="io",
        description="Inputs and outputs that are not as the program has them. "
        "Default: as the program has them.",
    )
    weights: WeightsTable | None = Field(
        default=None,
        description='With `load = "prelinked"`: weights of fewer bits. Default: as '
        "the program has them.",
    )
    card: CardTable | None = Field(
        default=None, description="What only you know of the model, for the SBOM. Default: nothing."
    )
    data: tuple[ModelPath, ...] = Field(
        default=(),
        description="Files with the constants that the program leaves outside, `.ptd`. "
        "The build checks name, dtype and size of each, and links them.",
        examples=[["../models/vww_int8.ptd"]],
    )
    load: Annotated[Load, *choice(Load)] = Field(
        default=Load.PTE,
        description="`pte`: the device loads the program, which lies in its flash. "
        "`prelinked`: the build has done that, the device starts with constant tables.",
        examples=["pte"],
    )
    shared_state: Annotated[SharedState, *choice(SharedState)] | None = Field(
        default=None,
        description="Whether the methods of the program share their state. `yes`: the "
        "build stops if they cannot. `no`: each method has its own. Default: as the "
        "program has it; the build stops if it says both.",
        examples=["no"],
    )
    update: StrictBool = Field(
        default=False,
        description='With `load = "pte"`: the product takes signed updates of the model'
        ": docs/howto-signed-updates.md.",
        examples=[True],
    )
    instances: Annotated[StrictInt, *whole_number(1, 64, hint="each instance has its own RAM")] = (
        Field(
            default=1,
            description="How many of it the product has, for two microphones, say: each has"
            " its own state and arenas, all share weights and kernels. They are models of"
            " the names `person_0`, `person_1` and so on: docs/howto-several-models.md.",
            examples=[2],
        )
    )
    max_instructions: (
        Annotated[
            StrictInt,
            *whole_number(
                0,
                2**32 - 1,  # the runtime counts them in 32 bits
                hint="write how many instructions a run may take; 0 is no limit",
            ),
        ]
        | None
    ) = Field(
        default=None,
        description='With `load = "pte"`: how many instructions of the program a run'
        " executes before it ends with `InstructionLimit`, so that no program loops for"
        " ever. 0: any number. Default: 1000000.",
        examples=[20000],
    )

    @property
    def file(self) -> NamedFile:
        """The program, or the Python file that makes it."""
        file = self.path_ or self.source
        if file is None:
            raise ValueError("a rule of the profile requires path or source")
        return file

    @property
    def path(self) -> Path:
        """Path of the file, relative to the user's current folder."""
        return self.file.path

    @property
    def written(self) -> str:
        """Path of the file as written in the profile."""
        return self.file.written

    @property
    def key(self) -> str:
        """The key of the profile that names its file."""
        return "source" if self.path_ is None else "path"

    @property
    def instruction_limit(self) -> int:
        """Most instructions that a run executes; 0: any number.

        A prelinked program needs no limit, as no other program can replace it.
        """
        if self.max_instructions is not None:
            return self.max_instructions
        # A prelinked model is part of the firmware and cannot be replaced: the build
        # knows its loops, no update brings others.
        return DEFAULT_MAX_INSTRUCTIONS if self.load is Load.PTE else 0

    @property
    def quantize(self) -> Quantize | None:
        """How it is quantized; None for no quantization."""
        return None if self.quantize_ is None else Quantize(**dict(self.quantize_))

    @property
    def vela(self) -> Vela:
        """Options of Vela; `config` is relative to the user's current folder."""
        table = self.vela_
        if table is None:
            return NO_VELA
        return Vela(
            system_config=table.system_config or "",
            memory_mode=table.memory_mode or "",
            config="" if table.config is None else table.config.path.as_posix(),
            flags=table.flags,
        )

    @property
    def io(self) -> ModelIo:
        """What is said of its inputs and outputs."""
        return NO_IO if self.io_ is None else self.io_.io

    @property
    def rounding(self) -> WeightRounding | None:
        """What is said of its weights."""
        return None if self.weights is None else self.weights.rounding

    @property
    def pins(self) -> Pins:
        """Memories that its arenas have to lie in."""
        return Pins(
            every=self.region,
            by_id=tuple(sorted((int(i), name) for i, name in self.regions.items())),
            tensors=tuple(tensor.pin for tensor in self.tensors),
        )

    @property
    def lowered_for(self) -> str | None:
        """The lowering; None for a program."""
        return None if "source" not in self.written_keys else self.lowering

    def with_defaults(self) -> Self:
        """The table with a name."""
        update = {"name": self.name or PurePosixPath(self.written).stem}
        return self.model_copy(update=update)

    @property
    def instance_of(self) -> str:
        """What the profile names a model of which this is one instance; "" for others.

        Only after `with_instances`.
        """
        return self.name.rpartition("_")[0] if self.instances > 1 else ""


# 3,000 kept `check` busy for 8 s.
_MOST_MODELS: Final = 500
"""Each takes milliseconds in every stage, even where all have one program."""


def with_instances(
    models: Sequence[ModelTable], spans: Iterable[tuple[KeyPath, SourceSpan]]
) -> tuple[tuple[ModelTable, ...], tuple[tuple[KeyPath, SourceSpan], ...]]:
    """Each instance as a model of its own, and the lines of them.

    Args:
        models: Models of the profile, with names.
        spans: Where each key path was written.
    """
    expanded: list[ModelTable] = []
    places: dict[int, list[int]] = {}
    for index, model in enumerate(models):
        names = instance_names(model.name, model.instances)
        places[index] = [len(expanded) + at for at in range(len(names))]
        expanded += [model.model_copy(update={"name": name}) for name in names]
    found: list[tuple[KeyPath, SourceSpan]] = []
    for path, span in spans:
        match path:
            case ("models", int(index), *keys) if index in places:
                found += [(("models", at, *keys), span) for at in places[index]]
            case _:
                found.append((path, span))
    return tuple(expanded), tuple(found)


def instance_names(name: str, instances: int) -> tuple[str, ...]:
    """Names of the models that the instances of a model are."""
    if instances == 1:
        return (name,)
    return tuple(f"{name}_{number}" for number in range(instances))


def model_problems(models: Iterable[ModelTable], facts: Facts) -> Iterator[Diagnostic]:
    """Problems of `[[models]]` beyond single values."""
    first_with: dict[str, KeyPath] = {}
    count = 0
    for index, model in sound(models):
        where: KeyPath = ("models", index)
        with suppress(BrokenValueError):
            count += model.instances
        # Before anything is made of them: instances are multiplied out after the rules.
        if count > _MOST_MODELS:
            yield Diagnostic.of(
                "too-many-values",
                f"the profile has more than {_MOST_MODELS} models, instances included",
                where=facts.span(*where),
                expected="the models of one product",
                hint="make several profiles",
            )
            return
        for problems in (
            _origin_problems(model, where, facts),
            _limit_problems(model, where, facts),
            _file_problems(model, where, facts),
            _quantize_problems(model, where, facts),
            _vela_problems(model, where, facts),
            _io_problems(model, where, facts),
            _weight_problems(model, where, facts),
            _name_problems(model, where, facts, first_with),
        ):
            with suppress(BrokenValueError):
                yield from problems


def _origin_problems(model: ModelTable, where: KeyPath, facts: Facts) -> Iterator[Diagnostic]:
    """Problems of path and source, and of keys that belong to the other."""
    keys = model.written_keys
    if not keys & {"path", "source"}:
        yield Diagnostic.of(
            "missing-key",
            'the key "path" is missing in [[models]]',
            where=facts.span(*where),
            expected="an exported program, or `source`, the code of one",
            hint='add path = "../models/vww_int8.pte"',
        )
    elif {"path", "source"} <= keys:
        yield Diagnostic.of(
            "bad-choice",
            f"{key_text(where)} has both path and source",
            where=facts.span(*where, "source"),
            expected="a program, or the code that it is made of",
            hint="leave one of them out",
        )
    elif "source" not in keys:
        for key in ("lowering", "quantize", "vela", "reads"):
            if key in keys:
                yield Diagnostic.of(
                    "bad-choice",
                    f"{key_text((*where, key))} is for models with `source`",
                    where=facts.span(*where, key),
                    found="a program, which is lowered already",
                    hint=f"leave {key} out, or name the code of the model",
                )


def _limit_problems(model: ModelTable, where: KeyPath, facts: Facts) -> Iterator[Diagnostic]:
    if "max_instructions" in model.written_keys and model.load is Load.PRELINKED:
        yield Diagnostic.of(
            "bad-choice",
            f'{key_text((*where, "max_instructions"))} requires load = "pte"',
            where=facts.span(*where, "max_instructions"),
            found="a prelinked model, which no other program replaces",
            hint="leave max_instructions out",
        )
    if "update" in model.written_keys and model.load is Load.PRELINKED and model.update:
        yield Diagnostic.of(
            "bad-choice",
            f'{key_text((*where, "update"))} requires load = "pte"',
            where=facts.span(*where, "update"),
            found="a prelinked model, which no other program replaces",
            hint='write load = "pte", or leave update out',
        )


_FILES: Final = {
    "path": ("model file", "an exported program, a .pte file"),
    "source": ("model file", "Python code of the model"),
    "vela": ("configuration of Vela", "an .ini file with its sections"),
    "data": ("data file", "constants of the program, a .ptd file"),
    "reads": ("file", "what the code of the model reads"),
}
"""By key: what kind of file it names, and what the file should contain."""


def _files(model: ModelTable, where: KeyPath, key: str) -> Iterator[tuple[KeyPath, NamedFile]]:
    """Files that a key of a model names, without patterns."""
    where = (*where, key)
    match key:
        case "path" if model.path_ is not None:
            yield where, model.path_
        case "source" if "path" not in model.written_keys and model.source is not None:
            yield where, model.source
        case "vela" if model.vela_ is not None and model.vela_.config is not None:
            yield (*where, "config"), model.vela_.config
        case "data":
            for at, file in sound(model.data):
                yield (*where, at), file
        case "reads":
            for at, file in sound(model.reads):
                if not file.is_pattern:
                    yield (*where, at), file


def _file_problems(model: ModelTable, where: KeyPath, facts: Facts) -> Iterator[Diagnostic]:
    for key, (what, expected) in _FILES.items():
        with suppress(BrokenValueError):
            for place, file in _files(model, where, key):
                yield from facts.missing_file(file, *place, what=what, expected=expected)


def _name_problems(
    model: ModelTable, where: KeyPath, facts: Facts, first_with: dict[str, KeyPath]
) -> Iterator[Diagnostic]:
    """Problems of missing or duplicate names.

    Args:
        model: The model to check.
        where: Its key path.
        facts: Further facts.
        first_with: Origins of the names so far; the model's is added.
    """
    name: str = model.name
    key: KeyPath = (*where, "name")
    if not name:
        if not model.written_keys & {"path", "source"}:
            return
        name = PurePosixPath(model.written).stem
        key = (*where, model.key)
        if not is_model_name(name):
            yield Diagnostic.of(
                "missing-key",
                f'{key_text(where)} needs a name: its file name "{name}" cannot be one',
                where=facts.span(*key),
                expected="a small letter, then small letters, digits or _",
                hint=f'add name = "{near_name(name, "_") or "model"}"',
            )
    # The name itself too, though no instance has it: it is what users call the model.
    taken = {name, *instance_names(name, model.instances)}
    for name in sorted(taken):
        first = first_with.setdefault(name, key)
        if first is not key:
            verb = "write" if key[-1] == "name" else "add"
            yield Diagnostic.of(
                "duplicate-model",
                f'two models are named "{name}"',
                where=facts.span(*key),
                found=f'{key_text(first[:2])} is "{name}" too, {facts.span(*first)}',
                expected="a unique name for each model",
                hint=f'{verb} name = "{name}_2", or another name',
            )


def _quantize_problems(model: ModelTable, where: KeyPath, facts: Facts) -> Iterator[Diagnostic]:
    """Problems of settings that the lowering cannot quantize with."""
    if "source" not in model.written_keys or model.quantize is None:
        return
    if found := unsupported(model.lowering, model.quantize):
        key, expected = found
        path = (*where, "quantize", key)
        value = shown(getattr(model.quantize, key))
        yield Diagnostic.of(
            "bad-choice",
            f"{key_text(path)} cannot be {value} with {model.lowering}",
            where=facts.span(*path),
            expected=expected,
            hint="leave it out, or choose another lowering",
        )


def _io_problems(model: ModelTable, where: KeyPath, facts: Facts) -> Iterator[Diagnostic]:
    if model.io_ is not None:
        yield from io_problems(model.io_, model.load, (*where, "io"), facts)


def _weight_problems(model: ModelTable, where: KeyPath, facts: Facts) -> Iterator[Diagnostic]:
    if model.weights is not None:
        yield from weight_problems(model.load, (*where, "weights"), facts)


def _vela_problems(model: ModelTable, where: KeyPath, facts: Facts) -> Iterator[Diagnostic]:
    """Problems of Vela's options: it does not run, or lacks a named section."""
    where = (*where, "vela")
    if "source" not in model.written_keys or model.vela_ is None:
        return
    if model.lowering not in ETHOS_U:
        yield Diagnostic.of(
            "bad-choice",
            f"{key_text(where)} is for Ethos-U",
            where=facts.span(*where),
            found=f'lowering = "{model.lowering}"',
            hint="leave it out, or choose a lowering for Ethos-U",
        )
        return
    if model.vela_.config is not None:
        path = model.vela_.config.written
        # Vela 5.1 refuses other suffixes; spaces are where ExecuTorch's arm_vela.py
        # splits the line of options.
        if not path.endswith(".ini") or any(map(str.isspace, path)):
            yield Diagnostic.of(
                "bad-value",
                f"{key_text((*where, 'config'))} cannot be {shown(path)}",
                where=facts.span(*where, "config"),
                expected="a path without spaces that ends in .ini",
                hint="rename the file: Vela accepts no other name",
            )
        return
    for key, known in (
        ("system_config", system_configs_of(model.lowering)),
        ("memory_mode", VELA_MEMORY_MODES),
    ):
        with suppress(BrokenValueError):
            name = getattr(model.vela_, key)
            if name is not None and name not in known:
                yield Diagnostic.of(
                    "bad-choice",
                    f"{key_text((*where, key))} cannot be {shown(name)} with {model.lowering}",
                    where=facts.span(*where, key),
                    expected=", ".join(known),
                    hint=did_you_mean(name, known)
                    or "name one of them, or a file of your own with `config`",
                )
