"""The stages of a build, in order: what each one reads and gives, and its function.

A stage reads what the parameters of its function name; the function gets exactly these
values, as keyword arguments, and can reach nothing else. Whether a stage runs follows
from the same declaration: it runs if one of the inputs that it reads changed, itself or
through derived values, or a stage that it reads (`orchestrator.build.engine`). Inputs
are in `orchestrator.build.inputs`.
"""

from __future__ import annotations

from inspect import signature
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
from orchestrator.build.engine import Derived, EachStage, Input, Stage, Value
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
    from collections.abc import Callable


def _reads(run: Callable[..., object]) -> tuple[Value[Any], ...]:
    """The values that a function's parameters name: inputs, and those made above."""
    found = (*vars(inputs).values(), *globals().values())
    known = {value.gives: value for value in found if isinstance(value, Value)}
    return tuple(known[name] for name in signature(run).parameters)


# The selection, and the kernels that serve it.

EXTRACT = EachStage(
    name="extract",
    each=inputs.MODEL_NAMES,
    reads=_reads(extract_program),
    run=extract_program,
    gives="op_infos",
    is_common=True,
)
OPERATOR_LISTS = Derived(
    reads=_reads(read_operator_lists), run=read_operator_lists, gives="operator_lists"
)
AGGREGATE = Stage(
    name="aggregate",
    reads=_reads(aggregate_selection),
    run=aggregate_selection,
    gives="selection",
)
CATALOG = Derived(reads=_reads(read_kernels), run=read_kernels, gives="catalog")
RESOLVE = Stage(
    name="resolve",
    reads=_reads(resolve_selection),
    run=resolve_selection,
    gives="resolution",
)

# Models adapted to the target.

SCRATCH_NEEDS = Derived(
    reads=_reads(find_scratch_needs), run=find_scratch_needs, gives="scratch_needs"
)
MARKED_PROGRAMS = Derived(
    reads=_reads(mark_state), run=mark_state, gives="marked_programs"
)
SIZED_PROGRAMS = Derived(
    reads=_reads(size_scratch), run=size_scratch, gives="sized_programs"
)
PASS_MODELS = Derived(
    reads=_reads(models_with_passes), run=models_with_passes, gives="pass_models"
)
PRELINK = Stage(
    name="prelink",
    only_for=PASS_MODELS,
    otherwise={},
    reads=_reads(prelink_models),
    run=prelink_models,
    gives="linkages",
    is_common=True,
)
REPLAN = Stage(
    name="replan",
    reads=_reads(replan_models),
    run=replan_models,
    gives="adapted",
    is_common=True,
)
MEMORY = Stage(
    name="memory",
    reads=_reads(plan_adapted_memory),
    run=plan_adapted_memory,
    gives="memory",
)

# Generated sources.

INLINE_CONSTANTS = Derived(
    reads=_reads(loads_inline_constants),
    run=loads_inline_constants,
    gives="inline_constants",
)
FIRMWARE_FACTS = Derived(
    reads=_reads(list_firmware_facts), run=list_firmware_facts, gives="firmware_facts"
)
GENERATE = Stage(
    name="generate", reads=_reads(generate_files), run=generate_files, gives="generated"
)
COMMANDS = Derived(reads=_reads(plan_commands), run=plan_commands, gives="commands")

# Firmware and library, and their cost.

COMPILE = Stage(
    name="compile",
    # ninja keeps what it compiled.
    is_remembered=False,
    reads=_reads(compile_product),
    run=compile_product,
    gives="compiled",
)
MEASURE = Stage(
    name="measure", reads=_reads(measure_product), run=measure_product, gives="report"
)
REPORT_FACTS = Derived(
    reads=_reads(collect_report_facts),
    run=collect_report_facts,
    gives="report_page_facts",
)
COMMANDS_JSON = Input(
    reads=_reads(write_commands_json), run=write_commands_json, gives="commands_json"
)
OUTPUTS = Derived(reads=_reads(collect_outputs), run=collect_outputs, gives="outputs")

# The lock: inputs and outputs of the build.

PROFILE_FILES = Input(
    reads=_reads(digest_profile_files), run=digest_profile_files, gives="profile_files"
)
INHERITED = Input(
    reads=(inputs.PROFILE,), run=lambda *, profile: profile.inherited, gives="inherited"
)
FUNCTION_FILES = Derived(
    reads=_reads(name_function_files), run=name_function_files, gives="function_files"
)
EXPORT_FACTS = Input(
    reads=_reads(list_export_facts), run=list_export_facts, gives="export_facts"
)
DISTRIBUTIONS = Input(
    reads=_reads(list_distributions), run=list_distributions, gives="distributions"
)
LOCK_INPUTS = Derived(reads=_reads(lock_inputs), run=lock_inputs, gives="lock_inputs")
MEMORY_FACTS = Derived(
    reads=_reads(list_memory_facts), run=list_memory_facts, gives="memory_facts"
)
ARTEFACTS = Derived(reads=(GENERATE, OUTPUTS), run=list_artefacts, gives="artefacts")
DOCUMENTS = Derived(
    reads=_reads(write_documents), run=write_documents, gives="documents"
)
"""Published, too, but not in `OUTPUTS`: they depend on the text of the profile."""
LOCK = Stage(
    name="lock",
    # The lock records digests of the profile's files; other stages read settings only.
    is_remembered=False,
    reads=_reads(make_lock),
    run=make_lock,
    gives="lock",
)

ABSOLUTE_PATHS = Input(
    reads=_reads(list_absolute_paths), run=list_absolute_paths, gives="absolute_paths"
)
WARNINGS = Derived(reads=_reads(list_warnings), run=list_warnings, gives="warnings")

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
