"""A checked profile: what later stages get, free of pydantic.

Every type here is frozen, picklable and cheap to construct.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from orchestrator.errors import SourceSpan
from orchestrator.planner.policy import Planner, RuntimeCheck, ScratchPolicy
from orchestrator.profile.integrity import CheckImage
from orchestrator.profile.lowering import NO_VELA
from orchestrator.targets.regions import NO_PINS, Concurrency, Pins, RegionChoice

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.core.dtype import ScalarType
    from orchestrator.core.kernel import KernelKey
    from orchestrator.core.operator import OperatorName
    from orchestrator.profile.lowering import Quantize, Vela

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and array indices from the top of a TOML file: `("models", 0, "path")`."""

Spans: TypeAlias = tuple[tuple[KeyPath, SourceSpan], ...]


class Optimize(StrEnum):
    """What the compiler optimizes for."""

    SIZE = "size"
    SPEED = "speed"
    DEBUG = "debug"


class Load(StrEnum):
    """How a model gets onto the device."""

    PTE = "pte"
    PRELINKED = "prelinked"


class DtypeSelect(StrEnum):
    """Which dtypes are compiled into the selected kernels."""

    MODELS = "models"
    ALL = "all"


class Overlap(StrEnum):
    """Whether several models, or several libraries, may bring one operator."""

    ALLOW = "allow"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetChoice:
    """What is built for, with defaults filled in.

    Args:
        cpu: Key of `targets.CPUS`.
        isa: Key of that cpu's ISAs.
        board: Key of `targets.BOARDS`; None on a host.
        toolchain: One of `targets.TOOLCHAINS`; None leaves it to what a host has.
        optimize: What the compiler optimizes for.
        unaligned: Code may load words from any address, if the cpu can do it.
    """

    cpu: str
    isa: str
    board: str | None = None
    toolchain: str | None = None
    optimize: Optimize = Optimize.SIZE
    unaligned: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedFile:
    """A file, folder or pattern of files that a profile names.

    Args:
        path: Where it is, seen from where the user named the profile.
        written: The path as the profile has it.
    """

    path: Path
    written: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSource:
    """Python code that gives a model.

    Args:
        function: Name of a callable in the file of the model.
        lowering: One of `core.lowering.LOWERINGS`.
        quantize: How; None leaves the model as it is.
        vela: What Vela is told; its file as seen from where the user named the profile.
        reads: Files and patterns of files that its code reads.
    """

    function: str
    lowering: str
    quantize: Quantize | None = None
    vela: Vela = NO_VELA
    reads: tuple[NamedFile, ...] = ()


DEFAULT_MAX_INSTRUCTIONS: Final = 1_000_000
"""Of a run of a program that the device loads, where the profile says nothing.

Programs without loops have some hundred; loops run theirs some thousand times.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEntry:
    """A model of the product.

    Args:
        name: Unique in the profile; a C identifier in small letters.
        path: Where the program is, or the Python file that it is made of, seen from
            where the user named the profile.
        written: The path as the profile has it.
        source: How the program is made; None if there is one.
        load: How it gets onto the device.
        data: Files with constants that the program leaves outside.
        pins: Memories that its arenas have to lie in.
        max_instructions: As the profile has it; None: it says nothing.
    """

    name: str
    path: Path
    written: str
    source: ModelSource | None = None
    load: Load = Load.PTE
    data: tuple[NamedFile, ...] = ()
    pins: Pins = NO_PINS
    max_instructions: int | None = None

    @property
    def instruction_limit(self) -> int:
        """How many instructions a run executes; 0: any number.

        A prelinked program is known, and no other one comes in its place.
        """
        if self.max_instructions is not None:
            return self.max_instructions
        return DEFAULT_MAX_INSTRUCTIONS if self.load is Load.PTE else 0

    @property
    def key(self) -> str:
        """The key of the profile that says where it comes from."""
        return "path" if self.source is None else "source"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorRequests:
    """Operators wanted besides those of the models.

    Args:
        include: Sorted, distinct.
        include_yaml: Files that list operators, in the profile's order.
        every: Select every operator the libraries have.
        overlap: Whether several models, or several libraries, may bring one operator.
        allow_missing: Operators and backends that need no kernel or delegate, as the
            profile names them; sorted, distinct.
    """

    include: tuple[OperatorName, ...] = ()
    include_yaml: tuple[NamedFile, ...] = ()
    every: bool = False
    overlap: Overlap = Overlap.ALLOW
    allow_missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeRequest:
    """Dtypes and kernel keys wanted for one operator; sorted, at least one of them."""

    operator: OperatorName
    dtypes: tuple[ScalarType, ...] = ()
    keys: tuple[KernelKey, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DtypeRequests:
    """Which dtypes are compiled in; `operators` is sorted by operator.

    `compare`: measure what every dtype would cost.
    """

    select: DtypeSelect = DtypeSelect.MODELS
    operators: tuple[DtypeRequest, ...] = ()
    compare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CustomLibrary:
    """A kernel library of the user's.

    Args:
        name: Unique among all kernel libraries.
        functions: Its functions.yaml.
        sources: Patterns of files compiled whenever one of its kernels is linked,
            besides those its functions.yaml names.
        include: Folders in which its sources find headers.
        defines: Macros of its sources, `NAME` or `NAME=VALUE`.
    """

    name: str
    functions: NamedFile
    sources: tuple[NamedFile, ...] = ()
    include: tuple[NamedFile, ...] = ()
    defines: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelChoice:
    """Where kernels come from.

    Args:
        libraries: All that are used; the first that has a fitting kernel wins.
        custom: Those of them that are the user's, in the profile's order.
        operators: (operator, libraries tried for it instead of all), sorted.
    """

    libraries: tuple[str, ...] = ("portable",)
    custom: tuple[CustomLibrary, ...] = ()
    operators: tuple[tuple[OperatorName, tuple[str, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegateEntry:
    """A delegate of the user's.

    Args:
        backend: Id in the programs; unique.
        namespace: C++ namespace of its functions.
        sources: Patterns of files.
        include: Folders in which its sources find headers.
        defines: Macros of its sources, `NAME` or `NAME=VALUE`.
        state_bytes: RAM of each part of a model.
    """

    backend: str
    namespace: str
    sources: tuple[NamedFile, ...]
    include: tuple[NamedFile, ...] = ()
    defines: tuple[str, ...] = ()
    state_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Prelink:
    """Passes over models; `skip` names those that are left out."""

    skip: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memories of the board in the profile's order, and where planned tensors lie."""

    concurrency: Concurrency = Concurrency.PARALLEL
    regions: tuple[RegionChoice, ...] = ()
    planner: Planner = Planner.BEST


@dataclass(frozen=True, slots=True, kw_only=True)
class Registry:
    """ExecuTorch's kernel registry; `max_kernels` None is as many as registered."""

    max_kernels: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scratch:
    """Memory of single calls."""

    policy: ScratchPolicy = ScratchPolicy.PLAN
    runtime_check: RuntimeCheck = RuntimeCheck.DEBUG


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Hooks around every instruction of a run."""

    enable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Integrity:
    """Checksums of what lies in flash."""

    check: CheckImage = CheckImage.NEVER


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Upper bounds in bytes; None is no bound."""

    flash_bytes: int | None = None
    ram_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One product: checked, defaults filled in, every value's origin known.

    Args:
        file: The profile as the user named it.
        files: Every file it was read from: the profile, then its base if it has one.
        name: Of the product.
        target: What is built for.
        description: One line for people.
        models: In the profile's order.
        operators: Wanted besides those of the models.
        dtypes: Which dtypes are compiled in.
        kernels: Where kernels come from.
        delegates: Those of the user, in the profile's order.
        prelink: Which passes run over models.
        scratch: Memory of single calls.
        memory: Memories of the board, and where planned tensors lie.
        registry: Of ExecuTorch's own build.
        trace: Hooks around instructions.
        integrity: Checksums of what lies in flash.
        budget: Upper bounds.
        spans: Where each key path was written; key paths are unique.
    """

    file: Path
    files: tuple[Path, ...] = ()
    name: str
    target: TargetChoice
    description: str = ""
    models: tuple[ModelEntry, ...] = ()
    operators: OperatorRequests = OperatorRequests()
    dtypes: DtypeRequests = DtypeRequests()
    kernels: KernelChoice = KernelChoice()
    delegates: tuple[DelegateEntry, ...] = ()
    prelink: Prelink = Prelink()
    scratch: Scratch = Scratch()
    memory: Memory = Memory()
    registry: Registry = Registry()
    trace: Trace = Trace()
    integrity: Integrity = Integrity()
    budget: Budget = Budget()
    spans: Spans = ()

    @property
    def folder(self) -> Path:
        """Folder of the profile, from which its paths start."""
        return self.file.parent

    def span(self, *key_path: str | int) -> SourceSpan:
        """Where the value of a key path was written, in the profile or its base.

        A value nobody wrote (a default) has the span of the table it would be in,
        and in the last resort that of the whole file.
        """
        return find_span(dict(self.spans), key_path) or SourceSpan(file=str(self.file))


def find_span(
    spans: Mapping[KeyPath, SourceSpan], key_path: KeyPath
) -> SourceSpan | None:
    """Span of the key path or of its nearest parent that has one."""
    for length in range(len(key_path), 0, -1):
        if span := spans.get(key_path[:length]):
            return span
    return None
