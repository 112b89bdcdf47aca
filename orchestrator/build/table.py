"""The stages of a build, in order: what each one gives, and its function.

A stage reads the values that the parameters of its function name; the function can
reach nothing else. Whether a stage runs follows from the same parameters: it runs if
one of the inputs that it reads changed, itself or through derived values, or a stage
that it reads (`orchestrator.build.engine`). Inputs are in `orchestrator.build.inputs`.
"""

from __future__ import annotations

from typing import Any, Final

from orchestrator.build import inputs
from orchestrator.build.compiling import (
    collect_outputs,
    collect_report_facts,
    compile_product,
    measure_product,
    plan_commands,
    write_commands_json,
    write_images,
)
from orchestrator.build.documents import write_documents
from orchestrator.build.engine import Value
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
    MemoryPlanner,
    find_scratch_needs,
    mark_state,
    models_with_passes,
    plan_adapted_memory,
    plan_file_memory,
    prelink_models,
    replan_models,
    size_scratch,
)
from orchestrator.build.product_warnings import list_absolute_paths, list_warnings
from orchestrator.build.selecting import (
    KernelFinder,
    Selector,
    aggregate_selection,
    extract_program,
    read_kernels,
    read_operator_lists,
    resolve_selection,
)

VALUES: Final = inputs.VALUES.copy()

# The selection, and the kernels that serve it.

# `is_common`: products of one command that share a model share its stages. Extract,
# prelink and replan take 23, 7 and 7 ms of processor time for a product of the
# benchmark's fleet (decision 0036).
EXTRACT = VALUES.each_stage(
    name="extract", each=inputs.MODEL_NAMES, run=extract_program, gives="op_infos", is_common=True
)
OPERATOR_LISTS = VALUES.derived(run=read_operator_lists, gives="operator_lists")
SELECTOR = VALUES.derived(run=Selector, gives="selector")
AGGREGATE = VALUES.stage(name="aggregate", run=aggregate_selection, gives="selection")
CATALOG = VALUES.derived(run=read_kernels, gives="catalog")
KERNEL_FINDER = VALUES.derived(run=KernelFinder, gives="kernel_finder")
RESOLVE = VALUES.stage(name="resolve", run=resolve_selection, gives="resolution")

# Models adapted to the target.

SCRATCH_NEEDS = VALUES.derived(run=find_scratch_needs, gives="scratch_needs")
MARKED_PROGRAMS = VALUES.derived(run=mark_state, gives="marked_programs")
SIZED_PROGRAMS = VALUES.derived(run=size_scratch, gives="sized_programs")
PASS_MODELS = VALUES.derived(run=models_with_passes, gives="pass_models")
PRELINK = VALUES.stage(
    name="prelink",
    only_for=PASS_MODELS,
    otherwise={},
    run=prelink_models,
    gives="linkages",
    is_common=True,
)
MEMORY_PLANNER = VALUES.derived(run=MemoryPlanner, gives="memory_planner")
REPLAN = VALUES.stage(name="replan", run=replan_models, gives="adapted", is_common=True)
MEMORY = VALUES.stage(name="memory", run=plan_adapted_memory, gives="memory")
FILE_MEMORY = VALUES.derived(run=plan_file_memory, gives="file_memory")

# Generated sources.

INLINE_CONSTANTS = VALUES.derived(run=loads_inline_constants, gives="inline_constants")
FIRMWARE_FACTS = VALUES.derived(run=list_firmware_facts, gives="firmware_facts")
GENERATE = VALUES.stage(name="generate", run=generate_files, gives="generated")
COMMANDS = VALUES.derived(run=plan_commands, gives="commands")

# Firmware and library, and their cost.

COMPILE = VALUES.stage(
    name="compile",
    # ninja keeps what it compiled.
    is_remembered=False,
    run=compile_product,
    gives="compiled",
)
MEASURE = VALUES.stage(name="measure", run=measure_product, gives="report")
# Derived, not remembered: it is made of what stages remember, and as large as they.
REPORT_FACTS = VALUES.derived(run=collect_report_facts, gives="report_page_facts")
# An input without digests, as it has the absolute path of the build folder: no other
# result may depend on it.
COMMANDS_JSON = VALUES.input(run=write_commands_json, gives="commands_json")
FIRMWARE_IMAGES = VALUES.derived(run=write_images, gives="firmware_images")
OUTPUTS = VALUES.derived(run=collect_outputs, gives="outputs")

# The lock: inputs and outputs of the build.

PROFILE_FILES = VALUES.input(run=digest_profile_files, gives="profile_files")
INHERITED = VALUES.input(run=lambda *, profile: profile.inherited, gives="inherited")
FUNCTION_FILES = VALUES.derived(run=name_function_files, gives="function_files")
EXPORT_FACTS = VALUES.input(run=list_export_facts, gives="export_facts")
DISTRIBUTIONS = VALUES.input(run=list_distributions, gives="distributions")
LOCK_INPUTS = VALUES.derived(run=lock_inputs, gives="lock_inputs")
MEMORY_FACTS = VALUES.derived(run=list_memory_facts, gives="memory_facts")
ARTEFACTS = VALUES.derived(run=list_artefacts, gives="artefacts")
DOCUMENTS = VALUES.derived(run=write_documents, gives="documents")
"""Published, too, but not in `OUTPUTS`: they depend on the text of the profile."""
LOCK = VALUES.stage(
    name="lock",
    # The lock records digests of the profile's files; other stages read settings only.
    is_remembered=False,
    run=make_lock,
    gives="lock",
)

ABSOLUTE_PATHS = VALUES.input(run=list_absolute_paths, gives="absolute_paths")
WARNINGS = VALUES.derived(run=list_warnings, gives="warnings")

# The order of plans and progress; what runs follows from what is read. EXPORTED is
# shown as the first, though it is an input.
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
