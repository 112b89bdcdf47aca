"""The stages of a build, in order: what each one reads and gives, and its function.

A function gets exactly the values that its stage reads, as keyword arguments, and can
reach nothing else. Whether a stage runs follows from the same declaration: it runs if
one of the inputs that it reads changed, itself or through derived values, or a stage
that it reads (`orchestrator.build.engine`). Inputs are in `orchestrator.build.inputs`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from orchestrator.build import inputs
from orchestrator.build.compiling import (
    collect_outputs,
    collect_report_facts,
    compile_product,
    measure_product,
    plan_commands,
    write_commands_json,
)
from orchestrator.build.documents import write_documents
from orchestrator.build.engine import Derived, EachStage, Input, Stage
from orchestrator.build.generating import (
    generate_files,
    list_firmware_facts,
    loads_inline_constants,
)
from orchestrator.build.locking import (
    digest_profile_files,
    list_artefacts,
    list_distributions,
    list_export_facts,
    list_memory_facts,
    lock_inputs,
    make_lock,
    name_function_files,
)
from orchestrator.build.methods import (
    find_scratch_needs,
    mark_state,
    models_with_passes,
    plan_adapted_memory,
    prelink_models,
    replan_models,
    size_scratch,
)
from orchestrator.build.product_warnings import list_absolute_paths, list_warnings
from orchestrator.build.selecting import (
    aggregate_selection,
    extract_program,
    read_kernels,
    read_operator_lists,
    resolve_selection,
)

if TYPE_CHECKING:
    from orchestrator.build.engine import Value

# The selection, and the kernels that serve it.

EXTRACT = EachStage(
    name="extract",
    each=inputs.MODEL_NAMES,
    reads=(inputs.MODEL, inputs.PROGRAM),
    run=extract_program,
    gives="op_infos",
    is_common=True,
)
OPERATOR_LISTS = Derived(
    reads=(inputs.OPERATOR_FILES,), run=read_operator_lists, gives="operator_lists"
)
AGGREGATE = Stage(
    name="aggregate",
    reads=(EXTRACT, inputs.OPERATORS, inputs.DTYPES, OPERATOR_LISTS, inputs.SPAN),
    run=aggregate_selection,
    gives="selection",
)
CATALOG = Derived(
    reads=(inputs.LIBRARY_TEXTS, inputs.KERNELS, inputs.SPAN),
    run=read_kernels,
    gives="catalog",
)
RESOLVE = Stage(
    name="resolve",
    reads=(
        inputs.PROGRAMS,
        EXTRACT,
        AGGREGATE,
        CATALOG,
        inputs.DELEGATES,
        inputs.OPERATORS,
        inputs.DTYPES,
        inputs.SPAN,
        inputs.ORIGIN_SPAN,
        inputs.EVERY_LIBRARY,
    ),
    run=resolve_selection,
    gives="resolution",
)

# Models adapted to the target.

SCRATCH_NEEDS = Derived(
    reads=(inputs.PROGRAMS, RESOLVE, inputs.SCRATCH, inputs.ISA, inputs.MODEL_SPANS),
    run=find_scratch_needs,
    gives="scratch_needs",
)
MARKED_PROGRAMS = Derived(
    reads=(
        inputs.PROGRAMS,
        RESOLVE,
        inputs.SHARED_STATE,
        inputs.PLANNER,
        inputs.MODEL_SPANS,
    ),
    run=mark_state,
    gives="marked_programs",
)
SIZED_PROGRAMS = Derived(
    reads=(MARKED_PROGRAMS, SCRATCH_NEEDS, RESOLVE, inputs.PINS, inputs.SPAN),
    run=size_scratch,
    gives="sized_programs",
)
PASS_MODELS = Derived(
    reads=(inputs.LOADS, inputs.PASSES), run=models_with_passes, gives="pass_models"
)
PRELINK = Stage(
    name="prelink",
    only_for=PASS_MODELS,
    otherwise={},
    reads=(
        PASS_MODELS,
        SIZED_PROGRAMS,
        EXTRACT,
        RESOLVE,
        inputs.LOADS,
        inputs.PASSES,
        inputs.PLANNER,
        inputs.ISA,
        inputs.FAST,
        inputs.IO,
        inputs.ROUNDING,
        inputs.SPAN,
        inputs.MODEL_SPANS,
        inputs.REPORTER,
    ),
    run=prelink_models,
    gives="linkages",
    is_common=True,
)
REPLAN = Stage(
    name="replan",
    reads=(
        inputs.PROGRAMS,
        SIZED_PROGRAMS,
        PRELINK,
        inputs.LOADS,
        inputs.PASSES,
        inputs.PLANNER,
        inputs.FUSING,
        inputs.ISA,
        inputs.FAST,
        inputs.IO,
        inputs.SIZE_BOUNDS,
        inputs.SPAN,
        EXTRACT,
        AGGREGATE,
        RESOLVE,
        inputs.OPERATORS,
        inputs.DTYPES,
        OPERATOR_LISTS,
        CATALOG,
        inputs.DELEGATES,
        inputs.MODEL_SPANS,
        inputs.ORIGIN_SPAN,
        inputs.EVERY_LIBRARY,
        inputs.TARGET,
        inputs.PINS,
        inputs.CONCURRENCY,
        inputs.ALIGNMENT,
        inputs.INTEGRITY,
        inputs.UPDATES,
        inputs.SPEED_BUDGET,
        inputs.REPORTER,
    ),
    run=replan_models,
    gives="adapted",
    is_common=True,
)
MEMORY = Stage(
    name="memory",
    reads=(
        REPLAN,
        inputs.PROGRAMS,
        inputs.TARGET,
        inputs.DELEGATES,
        SCRATCH_NEEDS,
        inputs.PINS,
        inputs.CONCURRENCY,
        inputs.ALIGNMENT,
        inputs.INTEGRITY,
        inputs.UPDATES,
        inputs.MODEL_SPANS,
    ),
    run=plan_adapted_memory,
    gives="memory",
)

# Generated sources.

INLINE_CONSTANTS = Derived(
    reads=(inputs.PROGRAMS, inputs.LOADS),
    run=loads_inline_constants,
    gives="inline_constants",
)
FIRMWARE_FACTS = Derived(
    reads=(
        inputs.NAME,
        REPLAN,
        MEMORY,
        inputs.TARGET,
        INLINE_CONSTANTS,
        inputs.UPDATES,
    ),
    run=list_firmware_facts,
    gives="firmware_facts",
)
GENERATE = Stage(
    name="generate",
    reads=(
        inputs.NAME,
        inputs.PROGRAMS,
        REPLAN,
        RESOLVE,
        CATALOG,
        MEMORY,
        inputs.TARGET,
        inputs.LIMITS,
        inputs.INSTANCES,
        inputs.UPDATES,
        inputs.REGISTRY,
        inputs.TRACE,
        inputs.INTEGRITY,
        inputs.NONSECURE,
        FIRMWARE_FACTS,
        inputs.SPAN,
        inputs.MODEL_SPANS,
    ),
    run=generate_files,
    gives="generated",
)
COMMANDS = Derived(
    reads=(
        inputs.NAME,
        inputs.TARGET,
        inputs.TOOLCHAIN,
        inputs.PROGRAMS,
        REPLAN,
        MEMORY,
        inputs.LOADS,
        inputs.NATIVE,
        inputs.LIBRARY_OPTIONS,
        inputs.DELEGATE_OPTIONS,
        inputs.TRACE,
        inputs.INTEGRITY,
        inputs.SCRATCH,
        INLINE_CONSTANTS,
        inputs.UPDATES,
        inputs.SECTIONS,
    ),
    run=plan_commands,
    gives="commands",
)

# Firmware and library, and their cost.

COMPILE = Stage(
    name="compile",
    # ninja keeps what it compiled.
    is_remembered=False,
    reads=(
        COMMANDS,
        GENERATE,
        REPLAN,
        MEMORY,
        inputs.PROGRAMS,
        inputs.PINS,
        inputs.NATIVE,
        inputs.TARGET,
        inputs.TOOLCHAIN,
        inputs.BUILTINS,
        inputs.COMPILE_FOLDER,
    ),
    run=compile_product,
    gives="compiled",
)
MEASURE = Stage(
    name="measure",
    reads=(
        inputs.NAME,
        COMPILE,
        REPLAN,
        MEMORY,
        inputs.TARGET,
        inputs.BUDGET,
        inputs.DTYPES,
        inputs.SPAN,
        inputs.EVERY_DTYPE_SIZE,
    ),
    run=measure_product,
    gives="report",
)
REPORT_FACTS = Derived(
    reads=(inputs.PROGRAMS, REPLAN, MEMORY, MEASURE, inputs.TARGET, inputs.BUDGET),
    run=collect_report_facts,
    gives="report_page_facts",
)
COMMANDS_JSON = Input(
    reads=(COMMANDS, inputs.TOOLCHAIN, inputs.LIBRARIES, inputs.WORK),
    run=write_commands_json,
    gives="commands_json",
)
OUTPUTS = Derived(
    reads=(
        inputs.NAME,
        COMMANDS,
        COMPILE,
        GENERATE,
        REPLAN,
        MEASURE,
        REPORT_FACTS,
        inputs.NATIVE,
        inputs.TARGET,
        inputs.TRACE,
        COMMANDS_JSON,
    ),
    run=collect_outputs,
    gives="outputs",
)

# The lock: inputs and outputs of the build.

PROFILE_FILES = Input(
    reads=(inputs.PROFILE, inputs.FILES),
    run=digest_profile_files,
    gives="profile_files",
)
INHERITED = Input(
    reads=(inputs.PROFILE,),
    run=lambda *, profile: profile.inherited,
    gives="inherited",
)
FUNCTION_FILES = Derived(
    reads=(inputs.KERNELS, inputs.LIBRARIES),
    run=name_function_files,
    gives="function_files",
)
EXPORT_FACTS = Input(
    reads=(inputs.PROFILE, inputs.EXPORTED), run=list_export_facts, gives="export_facts"
)
DISTRIBUTIONS = Input(
    reads=(inputs.TOOLCHAIN, inputs.EXPORTED),
    run=list_distributions,
    gives="distributions",
)
LOCK_INPUTS = Derived(
    reads=(
        inputs.NAME,
        PROFILE_FILES,
        INHERITED,
        inputs.OPERATOR_FILES,
        inputs.MODEL_BYTES,
        inputs.DATA_FILES,
        inputs.NATIVE,
        FUNCTION_FILES,
        COMMANDS,
        inputs.TARGET,
        inputs.TOOLCHAIN,
        DISTRIBUTIONS,
        EXPORT_FACTS,
    ),
    run=lock_inputs,
    gives="lock_inputs",
)
MEMORY_FACTS = Derived(
    reads=(MEMORY, inputs.ISA, FUNCTION_FILES, inputs.NATIVE),
    run=list_memory_facts,
    gives="memory_facts",
)
ARTEFACTS = Derived(reads=(GENERATE, OUTPUTS), run=list_artefacts, gives="artefacts")
DOCUMENTS = Derived(
    reads=(
        inputs.PRODUCT,
        inputs.CARDS,
        inputs.LOADS,
        inputs.PROGRAMS,
        inputs.LIBRARIES,
        MEASURE,
        LOCK_INPUTS,
        FIRMWARE_FACTS,
        ARTEFACTS,
    ),
    run=write_documents,
    gives="documents",
)
"""Published, too, but not in `OUTPUTS`: they depend on the text of the profile."""
LOCK = Stage(
    name="lock",
    # The lock records digests of the profile's files; other stages read settings only.
    is_remembered=False,
    reads=(
        LOCK_INPUTS,
        GENERATE,
        ARTEFACTS,
        DOCUMENTS,
        FIRMWARE_FACTS,
        MEMORY_FACTS,
        MEASURE,
    ),
    run=make_lock,
    gives="lock",
)

ABSOLUTE_PATHS = Input(
    reads=(inputs.PROFILE,), run=list_absolute_paths, gives="absolute_paths"
)
WARNINGS = Derived(
    reads=(
        inputs.PROGRAMS,
        MARKED_PROGRAMS,
        RESOLVE,
        inputs.OPERATORS,
        inputs.DELEGATES,
        inputs.EXPORTED,
        ABSOLUTE_PATHS,
        MEMORY,
        REPLAN,
    ),
    run=list_warnings,
    gives="warnings",
)

STAGES: Final[tuple[Value[Any], ...]] = (
    inputs.EXPORTED,
    EXTRACT,
    AGGREGATE,
    RESOLVE,
    PRELINK,
    REPLAN,
    MEMORY,
    GENERATE,
    COMPILE,
    MEASURE,
    LOCK,
)
