"""The passes: changes of a linked method that keep every bit of its outputs.

All but `fold_batch_norm` and `round_weights`, which the profile has to ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from types import MappingProxyType
from typing import Final, Literal

from orchestrator.method.ledger import PassRecord
from orchestrator.method.linked import INDEX_LISTS, LinkedCall, LinkedMethod
from orchestrator.method.passes.activations import (
    fuse_activations,
    fuse_float_activations,
    is_activation,
    may_be_activation,
)
from orchestrator.method.passes.aliases import alias_copies
from orchestrator.method.passes.batch_norm import fold_batch_norm, is_batch_norm
from orchestrator.method.passes.border import keep_inputs, quantized_io
from orchestrator.method.passes.constants import (
    PERMUTE,
    evaluate_constants,
    fold_constants,
    fold_permutes,
)
from orchestrator.method.passes.dataflow import renumbered, with_slots_of
from orchestrator.method.passes.evaluate import has_evaluator
from orchestrator.method.passes.fold import fold_transposes, may_be_transposed
from orchestrator.method.passes.in_place import in_place, may_be_in_place
from orchestrator.method.passes.islands import cancel_quantize, is_quantize
from orchestrator.method.passes.ledger_lines import (
    NO_IO,
    NO_OPERATOR,
    NO_PLAN,
    NO_ROUNDING,
    counts_of,
    not_wanted,
)
from orchestrator.method.passes.order import order_calls
from orchestrator.method.passes.pack_weights import (
    pack_for_dsp,
    pack_for_mve,
    pack_for_scalar,
    round_weights,
    rounding_notes,
)
from orchestrator.method.passes.packing.convolution import FUNCTIONS
from orchestrator.method.passes.packing.mixed import MIXED
from orchestrator.method.passes.packing.phases import TRANSPOSED
from orchestrator.method.passes.pads import fold_pads, is_pad
from orchestrator.method.passes.prepare_calls import may_be_prepared, prepare_calls
from orchestrator.method.passes.unused import drop_unused_calls, may_be_unused
from orchestrator.method.passes.views import moving_operators
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import TensorValue

MAKES_CONSTANTS: Final = ("fold_permutes", "fold_constants", "evaluate_constants")
"""Passes that replace calls by constants."""


def share_values(method: LinkedMethod) -> LinkedMethod:
    """Give equal values that never change one slot.

    Tensors of the same kind at the same place are equal, even with different lifetimes.
    """
    targets = {i.target for i in method.instructions if isinstance(i, MoveCall)}
    written = method.written
    data = method.contents
    given = targets | method.given
    first: dict[object, int] = {}
    new_index: dict[int, int] = {}

    def place(index: int) -> int:
        if index < 0 or index in new_index:
            return new_index.get(index, index)
        value = method.values[index]
        key: object
        if isinstance(value, TensorValue):
            shareable = index not in given and not value.is_dynamic
            key = (replace(value, data_buffer_index=0, extra=None), data.get(index))
        else:
            shareable = index not in written
            if isinstance(value, INDEX_LISTS):
                value = type(value)(tuple(map(place, value.items)))
            key = repr(value)  # distinguishes 0.0 from -0.0, and 1 from true
        new_index[index] = first.setdefault(key, index) if shareable else index
        return new_index[index]

    for index in range(len(method.values)):
        place(index)
    return drop_values(renumbered(method, new_index))


def drop_values(method: LinkedMethod) -> LinkedMethod:
    """Remove unused slots."""
    used = method.used(prepared=True)
    if len(used) == len(method.values):
        return method
    return with_slots_of(method, sorted(used))


def _keep(method: LinkedMethod) -> LinkedMethod:
    return method


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A change of a method.

    Args:
        change: Returns the changed method, or the same object if nothing changed.
        calls: Whether the pass applies to a call; None if it changes slots only.
        planned: Whether it runs after memory is planned. Before, slots that it shares
            would tie lifetimes together.
        before_plan: Changes methods whose memory is planned afterwards, in place of
            `change`.
        of_io: Whether it does what the profile says of inputs and outputs.
        of_rounding: Whether it does what the profile says of weights.
        notes: What a change made of single calls, from the methods before and after.
        of_plan: Whether it runs only where memory is planned afterwards.
        isas: Changes for methods that cores with these instruction sets run, and that
            the device does not load, in place of `change`.
        fast: The same for products that favour speed, where they differ.
        prelinked: Changes methods that the device does not load, for cores with an
            instruction set, in place of `change`.
        trades: What it may cost, so that builds judge it: `flash`, constants that it
            makes; `ram`, tensors that live longer; `room`, a little of both for calls
            that are much faster, which only counts where a product does not fit.
        modest: Changes methods where the pass must cost less, in place of all others.
    """

    change: Callable[[LinkedMethod], LinkedMethod] = _keep
    calls: Callable[[LinkedCall], bool] | None = None
    planned: bool = False
    before_plan: Callable[[LinkedMethod], LinkedMethod] | None = None
    of_io: bool = False
    of_rounding: bool = False
    notes: Callable[[LinkedMethod, LinkedMethod], tuple[str, ...]] | None = None
    of_plan: bool = False
    isas: Mapping[str, Callable[[LinkedMethod], LinkedMethod]] = field(default_factory=dict)
    fast: Mapping[str, Callable[[LinkedMethod], LinkedMethod]] = field(default_factory=dict)
    prelinked: Callable[[LinkedMethod, str], LinkedMethod] | None = None
    trades: Literal["", "flash", "ram", "room"] = ""
    modest: Callable[[LinkedMethod], LinkedMethod] | None = None

    def concerns(self, method: LinkedMethod) -> bool:
        """Whether a method has a call to which the pass applies."""
        calls = self.calls
        return calls is None or any(
            isinstance(i, LinkedCall) and calls(i) for i in method.instructions
        )


def _of(operators: frozenset[str]) -> Callable[[LinkedCall], bool]:
    return lambda call: str(call.operator) in operators


# Passes that remove calls come first: fewer calls shorten lifetimes, which decide what
# `in_place` can share. Slots are cleaned up last, when no pass needs them any more;
# prepared calls have no arguments that other passes could read.
PASSES: Final[Mapping[str, Pass]] = MappingProxyType(
    {
        "fold_permutes": Pass(
            change=fold_permutes, calls=_of(frozenset({PERMUTE})), trades="flash"
        ),
        "fold_constants": Pass(
            change=fold_constants,
            calls=_of(moving_operators() - {PERMUTE}),
            trades="flash",
            modest=partial(fold_constants, expands=False),
        ),
        "evaluate_constants": Pass(change=evaluate_constants, calls=has_evaluator),
        "alias_copies": Pass(
            change=alias_copies,
            calls=_of(moving_operators()),
            before_plan=partial(alias_copies, grows=True),
            trades="ram",
        ),
        "fold_pads": Pass(
            change=fold_pads, calls=is_pad, before_plan=partial(fold_pads, grows=True), trades="ram"
        ),
        "fold_transposes": Pass(
            change=fold_transposes,
            calls=may_be_transposed,
            before_plan=partial(fold_transposes, grows=True),
            trades="ram",
        ),
        "fold_batch_norm": Pass(
            change=fold_batch_norm,
            calls=is_batch_norm,
            before_plan=partial(fold_batch_norm, grows=True),
        ),
        "cancel_quantize": Pass(
            change=cancel_quantize,
            calls=is_quantize,
            before_plan=partial(cancel_quantize, planned=True),
            trades="flash",
            modest=cancel_quantize,
        ),
        "drop_unused_calls": Pass(change=drop_unused_calls, calls=may_be_unused),
        "keep_inputs": Pass(change=keep_inputs, of_io=True),
        "quantized_io": Pass(change=quantized_io, of_io=True),
        "in_place": Pass(change=in_place, calls=may_be_in_place),
        "fuse_activations": Pass(
            change=fuse_activations,
            calls=may_be_activation,
            before_plan=partial(fuse_activations, grows=True),
            trades="ram",
        ),
        "fuse_float_activations": Pass(
            calls=is_activation,
            of_plan=True,
            isas=MappingProxyType(
                {isa: partial(fuse_float_activations, isa=isa) for isa in ("scalar", "dsp", "mve")}
            ),
        ),
        "round_weights": Pass(
            change=round_weights,
            calls=lambda call: call.function in FUNCTIONS,
            of_rounding=True,
            of_plan=True,
            notes=rounding_notes,
        ),
        "pack_weights": Pass(
            calls=lambda call: call.function in {*FUNCTIONS, *TRANSPOSED, MIXED},
            isas=MappingProxyType(
                {"scalar": pack_for_scalar, "dsp": pack_for_dsp, "mve": pack_for_mve}
            ),
            fast=MappingProxyType({"mve": partial(pack_for_mve, fast=True)}),
            trades="room",
        ),
        "order_calls": Pass(change=order_calls, of_plan=True),
        "drop_values": Pass(change=drop_values),
        "prepare_calls": Pass(calls=may_be_prepared, planned=True, prelinked=prepare_calls),
        "share_values": Pass(change=share_values, planned=True),
    }
)
"""By name, in the order in which they run."""


_MOST_PATHS: Final = 500_000
"""Jumps times instructions: passes follow every byte along all paths."""


def run_passes(
    method: LinkedMethod,
    names: Iterable[str],
    *,
    planned: bool | None = None,
    plans: bool = False,
    replans: bool = False,
    isa: str = "",
    fast: bool = False,
    disabled: Mapping[str, str] = MappingProxyType({}),
) -> LinkedMethod:
    """Run the named passes on a method, in the order of `PASSES`.

    The ledger (`LinkedMethod.passes`) lists every pass, even those that did not run.

    Args:
        method: The method.
        names: Passes to run.
        planned: Run only the passes after memory is planned, or only those before;
            None for all.
        plans: Whether memory is planned afterwards, of a method that the device does
            not load.
        replans: Whether memory is planned afterwards.
        isa: Instruction set of the core, if the device does not load the method.
        fast: Whether the product favours speed.
        disabled: Passes that must not run, each with the reason; "" for one that must
            cost less.

    Raises:
        BorderError: An input or output cannot be as the profile says.
    """
    wanted = frozenset(names)
    records = [*method.passes]
    before = counts_of(method)
    jumps = sum(isinstance(i, JumpFalseCall) for i in method.instructions)
    for name, step in PASSES.items():
        if planned not in (None, step.planned):
            continue
        skipped = disabled.get(name) or _skipped(step, method, isa)
        if jumps * len(method.instructions) > _MOST_PATHS and not step.of_io:
            skipped = skipped or "too many jumps"
        skipped = NO_PLAN if step.of_plan and not replans else skipped
        skipped = skipped if name in wanted else not_wanted(name)
        change = (step.before_plan if plans else None) or step.change
        change = (step.fast if fast else step.isas).get(isa, step.isas.get(isa, change))
        if step.prelinked:
            change = partial(_for_isa, step.prelinked, isa)
        if name in disabled:
            change = step.modest or change
        changed = method if skipped else change(method)
        after = before if changed is method else counts_of(changed)
        records.append(
            PassRecord(
                name=name,
                skipped=skipped,
                changed=changed is not method,
                before=before,
                after=after,
                notes=step.notes(method, changed) if step.notes and not skipped else (),
            )
        )
        method, before = changed, after
    return replace(method, passes=tuple(records))


def _for_isa(
    change: Callable[[LinkedMethod, str], LinkedMethod], isa: str, method: LinkedMethod
) -> LinkedMethod:
    return change(method, isa)


def _skipped(step: Pass, method: LinkedMethod, isa: str) -> str:
    if step.of_io and not method.io.needs_passes:
        return NO_IO
    if step.of_rounding and method.rounding is None:
        return NO_ROUNDING
    if not step.concerns(method):
        return NO_OPERATOR
    if step.prelinked and not isa:
        return "only prelinked"
    if not step.isas or isa in step.isas:
        return ""
    return f"only prelinked, for {' and '.join(step.isas)}"
