"""What a build reads, as a table: settings of the profile, models, sources, compiler.

An input has a label, under which plans show it (`profile [budget]`, `model kws`), and
the digests of its items. Those without are in messages only, or in the lock, so that
no remembered result depends on them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from orchestrator.build.engine import (
    Derived,
    Effect,
    Given,
    Input,
    Item,
    digest,
    repr_digest,
)
from orchestrator.build.exporting import ExportChoice, Exported, export_models
from orchestrator.build.libraries import (
    delegate_codes,
    delegate_options,
    find_libraries,
    library_options,
    native_paths,
)
from orchestrator.build.reading import (
    choose_target,
    decode_programs,
    digest_data,
    digest_each,
    digest_program,
    digest_reprs,
    digest_texts,
    favours_speed,
    find_model_spans,
    find_origin_span,
    find_toolchain,
    name_host_toolchain,
    name_isa,
    read_data_files,
    read_every_library,
    read_library_texts,
    read_models,
    read_operator_files,
)
from orchestrator.build.selecting import name_offered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from orchestrator.errors import SourceSpan
    from orchestrator.measure.size import SizeReport
    from orchestrator.profile import Load, OperatorsTable, Profile
    from orchestrator.program.program import Program
    from orchestrator.shell.compile_folder import CompileFolder
    from orchestrator.shell.exported import PublishedExports
    from orchestrator.shell.input_files import InputFiles
    from orchestrator.shell.process import Processes
    from orchestrator.shell.reporter import Reporter
    from orchestrator.shell.toolchain import Toolchains
    from orchestrator.targets.cores import Target
    from orchestrator.targets.regions import Pins
    from orchestrator.targets.toolchain import Toolchain

T = TypeVar("T")

# What the caller of a build gives.

PROFILE: Given[Profile] = Given(gives="profile")
FILES: Given[InputFiles] = Given(gives="files")
FOLDER: Given[Path] = Given(gives="folder")
WORK: Given[Path] = Given(gives="work")
TOOLCHAINS: Given[Toolchains] = Given(gives="toolchains")
PROCESSES: Given[Processes] = Given(gives="processes")
TRUST_CACHE: Given[bool] = Given(gives="trust_cache")
EXPORT_CHOICE: Given[ExportChoice] = Given(gives="export_choice")
PUBLISHED: Given[Callable[[], PublishedExports | None]] = Given(gives="published")
REPORTER: Effect[Reporter] = Effect(gives="reporter")
COMPILE_FOLDER: Effect[CompileFolder] = Effect(gives="compile_folder")
BUILTINS: Effect[Callable[[Toolchain, Target], bytes]] = Effect(gives="builtins")
EVERY_DTYPE_SIZE: Effect[Callable[[], SizeReport | None]] = Effect(
    gives="every_dtype_size"
)

# Settings of the profile.


def setting(gives: str, table: str, run: Callable[[Profile], T]) -> Input[T]:
    """A setting that plans show as `profile [table]`."""
    return Input(
        gives=gives,
        reads=(PROFILE,),
        run=lambda *, profile: run(profile),
        label=f"profile [{table}]",
        digests=repr_digest,
    )


def _loads(profile: Profile) -> dict[str, Load]:
    """How each model gets onto the device, in the profile's order."""
    return {model.name: model.load for model in profile.models}


def _pins(profile: Profile) -> dict[str, Pins]:
    """Where arenas and tensors of each model have to lie."""
    return {model.name: model.pins for model in profile.models}


def _operators(profile: Profile) -> OperatorsTable:
    """Without files, whose content counts: `OPERATOR_FILES`."""
    return profile.operators.model_copy(update={"include_yaml": ()})


NAME = setting("name", "name", lambda p: p.name)
PRODUCT = setting("product", "version", lambda p: (p.name, p.version, p.description))
CARDS = setting("cards", "models", lambda p: {m.name: m.card for m in p.models})
TARGET_CHOICE = setting("target_choice", "target", lambda p: p.target)
NONSECURE = setting("nonsecure", "target", lambda p: p.target.nonsecure_entries)
LOADS = setting("loads", "models", _loads)
PINS = setting("pins", "models", _pins)
IO = setting("io", "models", lambda p: {m.name: m.io for m in p.models})
STREAMS = setting(
    "streams",
    "models",
    lambda p: {m.name: m.io for m in p.models if any(x.stream for x in m.io.ports)},
)
SHARED_STATE = setting(
    "shared_state", "models", lambda p: {m.name: m.shared_state for m in p.models}
)
ROUNDING = setting(
    "rounding", "models", lambda p: {m.name: m.rounding for m in p.models}
)
LIMITS = setting(
    "limits", "limits", lambda p: {m.name: m.instruction_limit for m in p.models}
)
UPDATES = setting(
    "updates",
    "models",
    lambda p: {m.name: p.version for m in p.models if m.update},
)
"""By model that takes signed updates, the version of the firmware."""
INSTANCES = setting(
    "instances",
    "models",
    lambda p: {m.name: m.instance_of for m in p.models if m.instance_of},
)
OPERATORS = setting("operators", "operators", _operators)
DTYPES = setting("dtypes", "dtypes", lambda p: p.dtypes)
KERNELS = setting("kernels", "kernels", lambda p: p.kernels)
PASSES = setting("passes", "passes", lambda p: p.passes)
SCRATCH = setting("scratch", "scratch", lambda p: p.scratch)
PLANNER = setting("planner", "memory", lambda p: p.memory.planner)
FUSING = setting("fusing", "memory", lambda p: p.memory.fusing)
ALIGNMENT = setting(
    "alignment",
    "memory",
    lambda p: max(
        [p.memory.alignment, *(x.align for m in p.models for x in m.io.ports)]
    ),
)
CONCURRENCY = setting("concurrency", "memory", lambda p: p.memory.concurrency)
REGIONS = setting("regions", "memory", lambda p: p.memory.regions)
PLACES = setting("places", "memory", lambda p: p.memory.places)
SECTIONS = setting("sections", "memory", lambda p: p.memory.sections.names)
REGISTRY = setting("registry", "registry", lambda p: p.registry)
TRACE = setting("trace", "trace", lambda p: p.trace)
INTEGRITY = setting("integrity", "integrity", lambda p: p.integrity)
BUDGET = setting("budget", "budget", lambda p: p.budget)
SPEED_BUDGET = setting(
    "speed_budget",
    "budget",
    lambda p: p.budget if favours_speed(target_choice=p.target) else None,
)
"""Bounds of a product that favours speed: its passes may cost as much."""

# Where the profile says something: in messages only.

SPAN: Input[Callable[..., SourceSpan]] = Input(
    gives="span", reads=(PROFILE,), run=lambda *, profile: profile.span
)
MODEL_SPANS = Input(gives="model_spans", reads=(PROFILE,), run=find_model_spans)
ORIGIN_SPAN = Input(
    gives="origin_span", reads=(PROFILE, MODEL_SPANS), run=find_origin_span
)

# Orchestrator itself, and the target.

ORCHESTRATOR = Input(
    gives="orchestrator",
    reads=(FILES,),
    run=digest_program,
    label="orchestrator",
    digests=lambda found: {"": found},
)
HOST_TOOLCHAIN = Input(
    gives="host_toolchain",
    reads=(PROFILE, TOOLCHAINS),
    run=name_host_toolchain,
    label="profile [target]",
    digests=repr_digest,
)
TARGET = Derived(
    gives="target",
    reads=(TARGET_CHOICE, HOST_TOOLCHAIN, REGIONS, PLACES),
    run=choose_target,
)
FAST = Derived(gives="fast", reads=(TARGET_CHOICE,), run=favours_speed)
ISA = Derived(gives="isa", reads=(TARGET_CHOICE,), run=name_isa)
TOOLCHAIN = Input(
    gives="toolchain",
    reads=(TARGET, TOOLCHAINS, TRUST_CACHE),
    run=find_toolchain,
    label="toolchain",
    digests=repr_digest,
)

# Kernels on offer.

LIBRARIES = Input(
    gives="libraries",
    reads=(PROFILE,),
    run=lambda *, profile: find_libraries(profile),
)
LIBRARY_TEXTS = Input(
    gives="library_texts",
    reads=(PROFILE, LIBRARIES, FILES),
    run=read_library_texts,
    label="library",
    digests=digest_texts,
)
OFFERED: Input[Callable[[], frozenset[str]]] = Input(
    gives="offered",
    reads=(LIBRARY_TEXTS, KERNELS, SPAN),
    run=name_offered,
)
"""For exports, which note what they asked for."""

# Models.

EXPORTED: Input[dict[str, Exported]] = Input(
    gives="exported",
    reads=(
        *(PROFILE, FILES, EXPORT_CHOICE, OFFERED, PUBLISHED),
        *(FOLDER, PROCESSES, REPORTER),
    ),
    run=export_models,
)
"""Stage export: it remembers by itself, and later stages depend on the programs."""
MODEL_NAMES = Input(
    gives="model_names",
    reads=(PROFILE,),
    run=lambda *, profile: {model.name: model.name for model in profile.models},
    label="model",
    digests=lambda found: {name: digest(name.encode()) for name in found},
)
MODEL_BYTES = Input(
    gives="model_bytes",
    reads=(PROFILE, FILES, EXPORTED),
    run=read_models,
    label="model",
    digests=digest_each,
)
DATA_FILES = Input(
    gives="data_files",
    reads=(PROFILE, FILES),
    run=read_data_files,
    label="model",
    digests=digest_data,
)
MODEL_PATHS = Input(
    gives="model_paths",
    reads=(PROFILE,),
    run=lambda *, profile: {m.name: str(m.path) for m in profile.models},
)
SIZE_BOUNDS = Input(
    gives="size_bounds",
    reads=(EXPORTED,),
    run=lambda *, exported: {n: e.facts.bounds for n, e in exported.items()},
    label="input sizes",
    digests=lambda found: {
        name: digest(str(bounds).encode()) for name, bounds in found.items()
    },
)
TAKES: Input[dict[str, bool]] = Input(
    gives="takes",
    reads=(PROFILE,),
    run=lambda *, profile: {d.backend: d.named_data for d in profile.delegates},
)
"""By backend, whether its delegate takes named data. `DELEGATES` has the digests."""
PROGRAMS = Derived(
    gives="programs",
    reads=(MODEL_BYTES, DATA_FILES, MODEL_PATHS, MODEL_SPANS, STREAMS, TAKES, SPAN),
    run=decode_programs,
)
MODEL: Item[str] = Item(gives="model", of=MODEL_NAMES)
PROGRAM: Item[Program] = Item(gives="program", of=PROGRAMS)

# Operators and sources.

OPERATOR_FILES = Input(
    gives="operator_files",
    reads=(PROFILE, FILES),
    run=read_operator_files,
    label="file",
    digests=lambda found: {file.label: digest(file.data) for file in found},
)
LIBRARY_OPTIONS = Input(
    gives="library_options",
    reads=(PROFILE, LIBRARIES),
    run=lambda *, profile, libraries: library_options(profile, libraries),
    label="library",
    digests=digest_reprs,
)
EVERY_LIBRARY = Input(
    gives="every_library", reads=(PROFILE, LIBRARIES, FILES), run=read_every_library
)
DELEGATES = Input(
    gives="delegates",
    reads=(PROFILE, LIBRARIES),
    run=lambda *, profile, libraries: delegate_codes(profile, libraries),
    label="delegate",
    digests=lambda found: {c.backend: digest(repr(c).encode()) for c in found},
)
DELEGATE_OPTIONS = Input(
    gives="delegate_options",
    reads=(PROFILE, LIBRARIES),
    run=lambda *, profile, libraries: delegate_options(profile, libraries),
    label="delegate",
    digests=digest_reprs,
)
NATIVE = Input(
    gives="native",
    reads=(PROFILE, LIBRARIES, FILES),
    run=lambda *, profile, libraries, files: {
        name: files.read(path)
        for name, path in native_paths(profile, libraries, files).items()
    },
    label="source",
    digests=digest_each,
)
