"""The passes: changes of a linked method that keep every bit of its outputs.

All but `fold_batch_norm` and `round_weights`, which the profile has to ask for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

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
from orchestrator.method.passes.context import Context
from orchestrator.method.passes.dataflow import renumbered, with_slots_of
from orchestrator.method.passes.evaluate import has_evaluator
from orchestrator.method.passes.fold import fold_transposes, may_be_transposed
from orchestrator.method.passes.in_place import in_place, may_be_in_place
from orchestrator.method.passes.ledger_lines import (
    NO_IO,
    NO_OPERATOR,
    NO_PLAN,
    NO_ROUNDING,
    counts_of,
    not_wanted,
)
from orchestrator.method.passes.order import order_calls
from orchestrator.method.passes.pack_weights import pack_weights, round_weights, rounding_notes
from orchestrator.method.passes.packing.convolution import FUNCTIONS
from orchestrator.method.passes.packing.mixed import MIXED
from orchestrator.method.passes.packing.phases import TRANSPOSED
from orchestrator.method.passes.pads import fold_pads, is_pad
from orchestrator.method.passes.prepare_calls import may_be_prepared, prepare_calls
from orchestrator.method.passes.tables import cancel_quantize, is_quantize
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
            # Constants are equal by their bytes, wherever the program has them; names are for
            # people.
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


Change: TypeAlias = Callable[[LinkedMethod, Context], LinkedMethod]
"""Returns the changed method, or the same object if nothing changed."""
Need: TypeAlias = Literal["io", "rounding", "plan", "prelinked", "isa"]
_ISAS: Final = ("scalar", "dsp", "mve")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """A change of a method.

    Args:
        change: What it does.
        calls: Whether it applies to a call; None if it changes slots only.
        needs: What it does not run without: `io` and `rounding`, what the profile says of
            inputs and outputs, and of weights; `plan`, that memory is planned afterwards;
            `prelinked`, that the device does not load the method; `isa`, that in addition
            the core has an instruction set of Cortex-M.
        planned: Whether it runs after memory is planned. Before, slots that it shares
            would tie lifetimes together.
        notes: What a change made of single calls, from the methods before and after.
        trades: What it may cost, so that builds judge it: `flash`, constants that it
            makes; `ram`, tensors that live longer; `room`, a little of both for calls
            that are much faster, which only counts where a product does not fit.
        may_be_modest: Whether it can cost less where a build wants that.
    """

    change: Change
    calls: Callable[[LinkedCall], bool] | None = None
    needs: tuple[Need, ...] = ()
    planned: bool = False
    notes: Callable[[LinkedMethod, LinkedMethod], tuple[str, ...]] | None = None
    trades: Literal["", "flash", "ram", "room"] = ""
    may_be_modest: bool = False

    def concerns(self, method: LinkedMethod) -> bool:
        """Whether a method has a call to which the pass applies."""
        calls = self.calls
        return calls is None or any(
            isinstance(i, LinkedCall) and calls(i) for i in method.instructions
        )

    def why_not(self, method: LinkedMethod, context: Context) -> str:
        """Why it does not run on a method; "" if it does."""
        needs, isa = self.needs, context.isa
        jumps = sum(isinstance(i, JumpFalseCall) for i in method.instructions)
        reasons = {
            NO_PLAN: "plan" in needs and not context.replans,
            NO_IO: "io" in needs and not method.io.needs_passes,
            NO_ROUNDING: "rounding" in needs and method.rounding is None,
            NO_OPERATOR: not self.concerns(method),
            "only prelinked": "prelinked" in needs and not isa,
            f"only prelinked, for {' and '.join(_ISAS)}": "isa" in needs and isa not in _ISAS,
            "too many jumps": jumps * len(method.instructions) > _MOST_PATHS and "io" not in needs,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")


def _of(operators: frozenset[str]) -> Callable[[LinkedCall], bool]:
    return lambda call: str(call.operator) in operators


def _anywhere(change: Callable[[LinkedMethod], LinkedMethod]) -> Change:
    """A change that is the same in every context."""
    return lambda method, _: change(method)


# Passes that remove calls come first: fewer calls shorten lifetimes, which decide what
# `in_place` can share. Slots are cleaned up last, when no pass needs them any more;
# prepared calls have no arguments that other passes could read.
PASSES: Final[Mapping[str, Pass]] = MappingProxyType(
    {
        "fold_permutes": Pass(
            change=_anywhere(fold_permutes), calls=_of(frozenset({PERMUTE})), trades="flash"
        ),
        "fold_constants": Pass(
            change=fold_constants,
            calls=_of(moving_operators() - {PERMUTE}),
            trades="flash",
            may_be_modest=True,
        ),
        "evaluate_constants": Pass(change=_anywhere(evaluate_constants), calls=has_evaluator),
        "alias_copies": Pass(change=alias_copies, calls=_of(moving_operators()), trades="ram"),
        "fold_pads": Pass(change=fold_pads, calls=is_pad, trades="ram"),
        "fold_transposes": Pass(change=fold_transposes, calls=may_be_transposed, trades="ram"),
        "fold_batch_norm": Pass(change=fold_batch_norm, calls=is_batch_norm),
        "cancel_quantize": Pass(
            change=cancel_quantize, calls=is_quantize, trades="flash", may_be_modest=True
        ),
        "drop_unused_calls": Pass(change=_anywhere(drop_unused_calls), calls=may_be_unused),
        "keep_inputs": Pass(change=_anywhere(keep_inputs), needs=("io",)),
        "quantized_io": Pass(change=_anywhere(quantized_io), needs=("io",)),
        "in_place": Pass(change=_anywhere(in_place), calls=may_be_in_place, needs=("plan",)),
        # Before pack_weights: limits become those of packed calls.
        "fuse_activations": Pass(change=fuse_activations, calls=may_be_activation, trades="ram"),
        "fuse_float_activations": Pass(
            change=fuse_float_activations, calls=is_activation, needs=("plan", "isa")
        ),
        # Before pack_weights, which finds weights that 4 bits hold.
        "round_weights": Pass(
            change=_anywhere(round_weights),
            calls=lambda call: call.function in FUNCTIONS,
            needs=("rounding", "plan"),
            notes=rounding_notes,
        ),
        "pack_weights": Pass(
            change=pack_weights,
            calls=lambda call: call.function in {*FUNCTIONS, *TRANSPOSED, MIXED},
            needs=("isa",),
            trades="room",
        ),
        # After pack_weights: scratch memory of packed calls counts.
        "order_calls": Pass(change=_anywhere(order_calls), needs=("plan",)),
        "drop_values": Pass(change=_anywhere(drop_values)),
        "prepare_calls": Pass(
            change=prepare_calls, calls=may_be_prepared, needs=("prelinked",), planned=True
        ),
        "share_values": Pass(change=_anywhere(share_values), planned=True),
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
    unaligned: bool = True,
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
        unaligned: Whether code may load words from any address.
        disabled: Passes that must not run, each with the reason; "" for one that must
            cost less.

    Raises:
        BorderError: An input or output cannot be as the profile says.
    """
    wanted = frozenset(names)
    context = Context(isa=isa, fast=fast, unaligned=unaligned, plans=plans, replans=replans)
    records = [*method.passes]
    before = counts_of(method)
    for name, step in PASSES.items():
        if planned not in (None, step.planned):
            continue
        skipped = disabled.get(name) or step.why_not(method, context)
        skipped = skipped if name in wanted else not_wanted(name)
        own = replace(context, modest=name in disabled)
        changed = method if skipped else step.change(method, own)
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
