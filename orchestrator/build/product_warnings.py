"""Warnings about a product that can be built."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from orchestrator.build.exporting import Exported
from orchestrator.build.methods import AdaptedModels
from orchestrator.build.selecting import allowed_names
from orchestrator.memory.plan import MemoryPlan
from orchestrator.method.link import reordered_reads
from orchestrator.method.state import zeroed_state
from orchestrator.profile.kernels import OperatorsTable
from orchestrator.profile.tables import Profile
from orchestrator.program.program import KernelCall, Method, Program
from orchestrator.program.values import BoolValue, TensorValue
from orchestrator.selection.resolution import DelegateCode, Resolution

# What torch.export makes of Dropout in training mode. In eval mode it leaves nothing.
_DROPOUT = "aten::native_dropout.out"
_TRAIN = 2
"""Place of `train` among its arguments: input, p, train, out0, out1."""


_MOST_NAMES: Final = 5
"""How many buffers a warning lists."""


def list_absolute_paths(*, profile: Profile) -> tuple[tuple[str, str], ...]:
    """(model, path) of the models and data that the profile names by absolute paths."""
    return tuple(
        (model.name, path)
        for model in profile.models
        for path in (model.written, *(file.written for file in model.data))
        if path.startswith("/")
    )


def system_warnings() -> tuple[str, ...]:
    """The warning that no build was tested on this system, where that is so."""
    if sys.platform == "linux":
        return ()
    return (
        f"warning[untested-system]: builds are tested on Linux, not on {sys.platform};"
        " if a build is killed, compilers that it started go on",
    )


def list_warnings(
    *,
    programs: Mapping[str, Program],
    marked_programs: Mapping[str, Program],
    resolution: Resolution,
    operators: OperatorsTable,
    delegates: Sequence[DelegateCode],
    exported: Mapping[str, Exported],
    absolute_paths: Sequence[tuple[str, str]],
    memory: MemoryPlan,
    adapted: AdaptedModels,
) -> list[str]:
    """Warnings, one text each."""
    missing = resolution.missing
    found = [
        f"warning[missing-kernel]: {m}; the profile allows that,"
        " and methods that call it do not load"
        for m in missing
    ]
    names = {m.name for m in missing}
    found += [
        f"warning[{code}]: model {name}: {text}"
        for name, one in exported.items()
        for code, text in one.facts.warnings
    ]
    found += [
        f"warning[not-missing]: operators.allow_missing names {name}, which is not missing"
        for name in operators.allow_missing
        if names.isdisjoint(allowed_names(name))
    ]
    found += [
        f"warning[absolute-path]: model {model} is at {path}: profile and lock"
        " are for this machine alone"
        for model, path in absolute_paths
    ]
    found += [
        f"warning[unused-delegate]: no model needs the delegate {code.backend}, it is not linked"
        for code in delegates
        if code.backend not in resolution.delegate_states
    ]
    found += [
        f"warning[may-not-fit]: the firmware may need {size:,} bytes of {region}, more"
        " than it has: code is estimated from above, and linking decides"
        for region, size in memory.tight
    ]
    found += [
        f"warning[reordered-view]: model {model}: {text}"
        for model, program in programs.items()
        for method in program.methods
        for text in _reordered(method)
    ]
    found += [
        f"warning[state-without-data]: model {model}: the program has no initial data"
        f" for {buffers}, which begin with zeros; InitializedMutableBufferPass stores"
        " it at export"
        for model, program in marked_programs.items()
        if (buffers := _without_data(program))
    ]
    found += [
        f"warning[training-mode]: model {model}: {method.name} calls"
        f" {_DROPOUT}, which sets items to 0 at random: call .eval() on the model, and"
        " pass training=self.training to functional.dropout, before it is exported"
        for model, program in programs.items()
        for method in program.methods
        if _drops_out(method)
    ]
    return [*found, *adapted.warnings]


def _without_data(program: Program) -> str:
    """State that begins with zeros, for a sentence; "" if there is none."""
    names = [
        value.extra.qualified_name
        if isinstance(value, TensorValue) and value.extra and value.extra.qualified_name
        else f"value {index} of {method.name} ({size_bytes} bytes)"
        for method in program.methods
        for index, size_bytes in zeroed_state(program, method).items()
        for value in [method.values[index]]
    ]
    names = [*dict.fromkeys(names)]
    more = len(names) - _MOST_NAMES
    return ", ".join(names[:_MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _drops_out(method: Method) -> bool:
    """Whether a method has dropout as training has it."""
    return any(
        isinstance(call, KernelCall)
        and str(method.operators[call.operator]) == _DROPOUT
        and any(method.values[a] != BoolValue(value=False) for a in call.args[_TRAIN : _TRAIN + 1])
        for call in method.instructions
    )


def _reordered(method: Method) -> Iterator[str]:
    """Reads of views whose items lie in another order, which no runtime notices."""
    for found in reordered_reads(method):
        call = method.instructions[found.instruction]
        frames = method.frames[found.instruction] if method.frames else ()
        reader = (
            str(method.operators[call.operator])
            if isinstance(call, KernelCall)
            else "an instruction"
        )
        where = f" ({frames[-1].filename}:{frames[-1].line})" if frames else ""
        yield (
            f"{method.name}: {reader}{where} reads {list(found.read.sizes)} with dim"
            f" order {list(found.read.dim_order)} from memory that holds"
            f" {list(found.written.sizes)} with dim order"
            f" {list(found.written.dim_order)}: results are wrong on every runtime;"
            " call .contiguous() before the view and export again"
        )
