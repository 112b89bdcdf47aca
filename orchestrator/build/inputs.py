"""What a build reads, as a table: settings of the profile, models, sources, compiler.

An input has a label, under which plans show it (`profile [budget]`, `model kws`), and
the digests of its items. Those without are in messages only, or in the lock, so that
no remembered result depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

from orchestrator.build.engine import Effect, Given, Item, Values, digest, repr_digest
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
from orchestrator.core.operator import OpSchema
from orchestrator.errors import SourceSpan
from orchestrator.measure.size import SizeReport
from orchestrator.profile.choices import Load
from orchestrator.program.program import Program
from orchestrator.shell.compile_folder import CompileFolder
from orchestrator.shell.exported import PublishedExports
from orchestrator.shell.input_files import InputFiles
from orchestrator.shell.process import Processes
from orchestrator.shell.reporter import Reporter
from orchestrator.shell.toolchain import Toolchains
from orchestrator.targets.boards import Pins
from orchestrator.targets.cores import Target, Toolchain

if TYPE_CHECKING:
    from orchestrator.build.engine import Input
    from orchestrator.profile.kernels import OperatorsTable
    from orchestrator.profile.tables import Profile

T = TypeVar("T")

VALUES: Final = Values()

# What the caller of a build gives.

PROFILE: Given[Profile] = VALUES.add(Given(gives="profile"))
FILES: Given[InputFiles] = VALUES.add(Given(gives="files"))
FOLDER: Given[Path] = VALUES.add(Given(gives="folder"))
WORK: Given[Path] = VALUES.add(Given(gives="work"))
TOOLCHAINS: Given[Toolchains] = VALUES.add(Given(gives="toolchains"))
PROCESSES: Given[Processes] = VALUES.add(Given(gives="processes"))
TRUST_CACHE: Given[bool] = VALUES.add(Given(gives="trust_cache"))
EXPORT_CHOICE: Given[ExportChoice] = VALUES.add(Given(gives="export_choice"))
PUBLISHED: Given[Callable[[], PublishedExports | None]] = VALUES.add(Given(gives="published"))
REPORTER: Effect[Reporter] = VALUES.add(Effect(gives="reporter"))
COMPILE_FOLDER: Effect[CompileFolder] = VALUES.add(Effect(gives="compile_folder"))
BUILTINS: Effect[Callable[[Toolchain, Target], bytes]] = VALUES.add(Effect(gives="builtins"))
EVERY_DTYPE_SIZE: Effect[Callable[[], SizeReport | None]] = VALUES.add(
    Effect(gives="every_dtype_size")
)

# Settings of the profile.


def setting(gives: str, table: str, run: Callable[[Profile], T]) -> Input[T]:
    """A setting that plans show as `profile [table]`."""
    return VALUES.input(
        gives=gives,
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
ROUNDING = setting("rounding", "models", lambda p: {m.name: m.rounding for m in p.models})
LIMITS = setting("limits", "limits", lambda p: {m.name: m.instruction_limit for m in p.models})
UPDATES = setting("updates", "models", lambda p: {m.name: p.version for m in p.models if m.update})
"""By model that takes signed updates, the version of the firmware."""
INSTANCES = setting(
    "instances", "models", lambda p: {m.name: m.instance_of for m in p.models if m.instance_of}
)
OPERATORS = setting("operators", "operators", _operators)
DTYPES = setting("dtypes", "dtypes", lambda p: p.dtypes)
KERNELS = setting("kernels", "kernels", lambda p: p.kernels)
PASSES = setting("passes", "passes", lambda p: p.passes)
SCRATCH = setting("scratch", "scratch", lambda p: p.scratch)
PLANNER = setting("planner", "memory", lambda p: p.memory.planner)
FUSING = setting("fusing", "memory", lambda p: p.memory.fusing)
MAX_STEP_CYCLES = setting("max_step_cycles", "schedule", lambda p: p.schedule.max_step_cycles)
ALIGNMENT = setting(
    "alignment",
    "memory",
    lambda p: max([p.memory.alignment, *(x.align for m in p.models for x in m.io.ports)]),
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
    "speed_budget", "budget", lambda p: p.budget if favours_speed(target_choice=p.target) else None
)
"""Bounds of a product that favours speed: its passes may cost as much."""

# Where the profile says something: in messages only.

SPAN: Input[Callable[..., SourceSpan]] = VALUES.input(
    gives="span", run=lambda *, profile: profile.span
)
MODEL_SPANS = VALUES.input(gives="model_spans", run=find_model_spans)
ORIGIN_SPAN = VALUES.input(gives="origin_span", run=find_origin_span)

# Orchestrator itself, and the target.

ORCHESTRATOR = VALUES.input(
    gives="orchestrator",
    run=digest_program,
    label="orchestrator",
    digests=lambda found: {"": found},
)
HOST_TOOLCHAIN = VALUES.input(
    gives="host_toolchain", run=name_host_toolchain, label="profile [target]", digests=repr_digest
)
TARGET = VALUES.derived(gives="target", run=choose_target)
FAST = VALUES.derived(gives="fast", run=favours_speed)
ISA = VALUES.derived(gives="isa", run=name_isa)
TOOLCHAIN = VALUES.input(
    gives="toolchain", run=find_toolchain, label="toolchain", digests=repr_digest
)

# Kernels on offer.

LIBRARIES = VALUES.input(gives="libraries", run=lambda *, profile: find_libraries(profile))
LIBRARY_TEXTS = VALUES.input(
    gives="library_texts", run=read_library_texts, label="library", digests=digest_texts
)
OFFERED: Input[Callable[[], Mapping[str, OpSchema]]] = VALUES.input(
    gives="offered", run=name_offered
)
"""For exports, which note what they asked for."""

# Models.

EXPORTED: Input[dict[str, Exported]] = VALUES.input(gives="exported", run=export_models)
"""Stage export: it remembers by itself, and later stages depend on the programs."""
MODEL_NAMES = VALUES.input(
    gives="model_names",
    run=lambda *, profile: {model.name: model.name for model in profile.models},
    label="model",
    digests=lambda found: {name: digest(name.encode()) for name in found},
)
MODEL_BYTES = VALUES.input(gives="model_bytes", run=read_models, label="model", digests=digest_each)
DATA_FILES = VALUES.input(
    gives="data_files", run=read_data_files, label="model", digests=digest_data
)
MODEL_PATHS = VALUES.input(
    gives="model_paths", run=lambda *, profile: {m.name: str(m.path) for m in profile.models}
)
SIZE_BOUNDS = VALUES.input(
    gives="size_bounds",
    run=lambda *, exported: {n: e.facts.bounds for n, e in exported.items()},
    label="input sizes",
    digests=lambda found: {name: digest(str(bounds).encode()) for name, bounds in found.items()},
)
TAKES: Input[dict[str, bool]] = VALUES.input(
    gives="takes", run=lambda *, profile: {d.backend: d.named_data for d in profile.delegates}
)
"""By backend, whether its delegate takes named data. `DELEGATES` has the digests."""
PROGRAMS = VALUES.derived(gives="programs", run=decode_programs)
MODEL: Item[str] = VALUES.add(Item(gives="model", of=MODEL_NAMES))
PROGRAM: Item[Program] = VALUES.add(Item(gives="program", of=PROGRAMS))

# Operators and sources.

OPERATOR_FILES = VALUES.input(
    gives="operator_files",
    run=read_operator_files,
    label="file",
    digests=lambda found: {file.label: digest(file.data) for file in found},
)
LIBRARY_OPTIONS = VALUES.input(
    gives="library_options",
    run=lambda *, profile, libraries: library_options(profile, libraries),
    label="library",
    digests=digest_reprs,
)
EVERY_LIBRARY = VALUES.input(gives="every_library", run=read_every_library)
DELEGATES = VALUES.input(
    gives="delegates",
    run=lambda *, profile, libraries: delegate_codes(profile, libraries),
    label="delegate",
    digests=lambda found: {c.backend: digest(repr(c).encode()) for c in found},
)
DELEGATE_OPTIONS = VALUES.input(
    gives="delegate_options",
    run=lambda *, profile, libraries: delegate_options(profile, libraries),
    label="delegate",
    digests=digest_reprs,
)
NATIVE = VALUES.input(
    gives="native",
    run=lambda *, profile, libraries, files: {
        name: files.read(path) for name, path in native_paths(profile, libraries, files).items()
    },
    label="source",
    digests=digest_each,
)
