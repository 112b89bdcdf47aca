"""What a build reads, as a table: settings of the profile, models, sources, compiler.

An input has a label, under which plans show it (`profile [budget]`, `model kws`), and
the digests of its items. Those without are in messages only, or in the lock, so that
no remembered result depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, TypeVar

from orchestrator.build.engine import Effect, Given, Input, Item, Values, digest, repr_digest
from orchestrator.build.exporting import (
    ExportChoice,
    Exported,
    ExportRequest,
    export_models,
    pending_exports,
)
from orchestrator.build.libraries import (
    delegate_codes,
    delegate_options,
    find_libraries,
    library_options,
    native_paths,
)
from orchestrator.build.reading import (
    allows_unaligned,
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
from orchestrator.profile.kernels import OperatorsTable
from orchestrator.profile.lowering_tables import CardTable
from orchestrator.profile.models import ModelTable
from orchestrator.profile.tables import Profile
from orchestrator.program.program import Program
from orchestrator.shell.compile_folder import CompileFolder
from orchestrator.shell.exported import PublishedExports
from orchestrator.shell.input_files import InputFiles
from orchestrator.shell.process import Processes
from orchestrator.shell.reporter import Reporter
from orchestrator.shell.toolchain import Toolchains
from orchestrator.targets.cores import Target, Toolchain

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


def by_model(gives: str, run: Callable[[ModelTable], T]) -> Input[dict[str, T]]:
    """A setting of each model by its name, in the profile's order."""
    return setting(gives, "models", lambda p: {m.name: run(m) for m in p.models})


# Paths are not part of the settings: a list that moved with the same bytes changes
# nothing.
def _operators(profile: Profile) -> OperatorsTable:
    """Without files, whose content counts: `OPERATOR_FILES`."""
    return profile.operators.model_copy(update={"include_yaml": ()})


NAME = setting("name", "name", lambda p: p.name)
# Texts for documents: a changed description makes them anew and compiles nothing
# (`DOCUMENTS` in table.py).
PRODUCT = setting("product", "version", lambda p: (p.name, p.version, p.description))
CARDS = by_model("cards", lambda m: m.card or CardTable())
# Images are made of what was linked: other formats let nothing else be made anew.
TARGET_CHOICE = setting(
    "target_choice", "target", lambda p: p.target.model_copy(update={"images": ()})
)
IMAGES = setting("images", "target", lambda p: p.target.images)
NONSECURE = setting("nonsecure", "target", lambda p: p.target.nonsecure_entries)
LOADS = by_model("loads", lambda m: m.load)
PINS = by_model("pins", lambda m: m.pins)
IO = by_model("io", lambda m: m.io)
STREAMS = setting(
    "streams",
    "models",
    lambda p: {m.name: m.io for m in p.models if any(x.stream for x in m.io.ports)},
)
SHARED_STATE = by_model("shared_state", lambda m: m.shared_state)
ROUNDING = by_model("rounding", lambda m: m.rounding)
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
# None where size is wanted, so that a changed budget lets only products that trade
# memory for speed be planned again.
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
# What is installed decides on `host`: as an input, a compiler that appears makes the
# stages run that it concerns.
HOST_TOOLCHAIN = VALUES.input(
    gives="host_toolchain", run=name_host_toolchain, label="profile [target]", digests=repr_digest
)
TARGET = VALUES.derived(gives="target", run=choose_target)
FAST = VALUES.derived(gives="fast", run=favours_speed)
UNALIGNED = VALUES.derived(gives="unaligned", run=allows_unaligned)
ISA = VALUES.derived(gives="isa", run=name_isa)
TOOLCHAIN = VALUES.input(
    gives="toolchain", run=find_toolchain, label="toolchain", digests=repr_digest
)

# Kernels on offer.

LIBRARIES = VALUES.input(gives="libraries", run=find_libraries)
LIBRARY_TEXTS = VALUES.input(
    gives="library_texts", run=read_library_texts, label="library", digests=digest_texts
)
# A function: reading every list of kernels takes longer than finding that an export is
# current.
OFFERED: Input[Callable[[], Mapping[str, OpSchema]]] = VALUES.input(
    gives="offered", run=name_offered
)
"""For exports, which note what they asked for."""

# Models.

EXPORT_REQUEST = VALUES.input(gives="export_request", run=ExportRequest)
# An input, not a stage: what an export depends on is known only after it ran, so no key
# can name it beforehand (decision 0011).
EXPORTED: Input[dict[str, Exported]] = VALUES.input(gives="exported", run=export_models)
"""Stage export: it remembers by itself, and later stages depend on the programs."""
PENDING_EXPORTS: Input[dict[str, str]] = VALUES.input(gives="pending_exports", run=pending_exports)
"""Why models would be exported now, by name; to know that, no code of a model runs."""
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
# Beside the program, which has no room for them: they come with the export, so a .pte
# has none.
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
    gives="library_options", run=library_options, label="library", digests=digest_reprs
)
EVERY_LIBRARY = VALUES.input(gives="every_library", run=read_every_library)
DELEGATES = VALUES.input(
    gives="delegates",
    run=delegate_codes,
    label="delegate",
    digests=lambda found: {c.backend: digest(repr(c).encode()) for c in found},
)
DELEGATE_OPTIONS = VALUES.input(
    gives="delegate_options", run=delegate_options, label="delegate", digests=digest_reprs
)
NATIVE = VALUES.input(
    gives="native",
    run=lambda *, profile, libraries, files: {
        name: files.read(path) for name, path in native_paths(profile, libraries, files).items()
    },
    label="source",
    digests=digest_each,
)
