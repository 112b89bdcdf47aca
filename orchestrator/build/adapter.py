"""Models after passes and planning: linked methods, or programs to load.

Imports numpy, so that builds import it only when a model is adapted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from types import MappingProxyType
from typing import TypeAlias

from orchestrator.core.border import ModelIo
from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.errors import MemoryPlanError, ModelError
from orchestrator.memory.estimate import estimated_costs
from orchestrator.memory.plan import MemoryPlan
from orchestrator.method.linked import Linkage, LinkedMethod
from orchestrator.method.passes import (
    MAKES_CONSTANTS,
    PASSES,
    BorderError,
    UnlinkError,
    ledger_of,
    not_run,
    run_passes,
    unlink_program,
)
from orchestrator.method.passes.fold import SMALL_BYTES
from orchestrator.method.replan import Adapted, adapt_linked, adapt_program, can_plan
from orchestrator.method.rows.adapt import with_rows
from orchestrator.method.windows import Core
from orchestrator.planner.blocks import Block, BlockPlan
from orchestrator.planner.policy import Fusing
from orchestrator.profile.tables import BudgetTable
from orchestrator.program.program import Program
from orchestrator.targets.cores import Board


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """Adapts models to the target.

    Args:
        passes: Names of the passes that run.
        schemas: Schemas of the operators that have a kernel.
        planner: Lays arenas out; None keeps the offsets.
        isa: Instruction set of the core.
        fast: Whether the product favours speed.
        unaligned: Whether code may load words from any address.
        fusing: How far calls of prelinked models run by rows; None if they do not.
        most_step: Instructions that one of their calls may take, where it can be split.
    """

    passes: Sequence[str]
    schemas: Mapping[OperatorName, OpSchema]
    planner: Callable[[Sequence[Block]], BlockPlan] | None
    isa: str
    fast: bool = False
    unaligned: bool = True
    fusing: Fusing | None = None
    most_step: float = inf

    def passed(
        self,
        linkage: Linkage,
        program: Program,
        *,
        is_prelinked: bool,
        restraints: Mapping[str, str] = MappingProxyType({}),
    ) -> Linkage:
        """A model after the passes that come before planning.

        Args:
            linkage: Its methods `before` passes.
            program: What they were linked from.
            is_prelinked: Whether the device does not load it.
            restraints: Passes that do less or nothing: `disabled` of `run_passes`.

        Raises:
            BorderError: An input or output cannot be as the profile says.
        """
        # A loaded program finds these constants by name on the device, in files that
        # may be replaced: folded into the program they would stay what they were at the
        # build.
        if program.external and not is_prelinked:
            why = "constants outside the program stay there"
            restraints = {**restraints, **dict.fromkeys(MAKES_CONSTANTS, why)}
        replans = self.planner is not None
        # Scratch memory that packed weights need has no place in a plan that the
        # profile keeps, nor in a program whose calls other runtimes have to understand
        # (decision 0024).
        plans = is_prelinked and replans
        methods = tuple(
            run_passes(
                method,
                self.passes,
                planned=False,
                # A pass for an ISA needs memory, which a kept plan has not.
                isa=self.isa if plans else "",
                fast=self.fast,
                unaligned=self.unaligned,
                plans=plans and can_plan(method),
                replans=replans and can_plan(method),
                disabled=restraints,
            )
            for method in linkage.before
        )
        return replace(linkage, methods=methods)

    def prelinked(
        self, original: Program, program: Program, methods: Sequence[LinkedMethod]
    ) -> Adapted:
        """A model that the device does not load.

        Args:
            original: The program as it was read.
            program: The same program with scratch tensors of the right size.
            methods: Its linked methods, after the passes that come before planning.
        """
        return self._linked(original, program, methods, self.isa)

    def _linked(
        self, original: Program, program: Program, methods: Sequence[LinkedMethod], isa: str = ""
    ) -> Adapted:
        adapted = adapt_linked(original, program, methods, plan=self.planner)
        linked = tuple(
            run_passes(method, self.passes, planned=True, isa=isa)
            for method in adapted.linked or ()
        )
        adapted = replace(adapted, linked=linked, ledger=ledger_of(linked))
        # Rows from the caller and a limit on steps need plans by rows even where
        # [memory] fuse is off.
        is_given = any(p.rows for m in methods for p in m.io.ports)
        if not isa or not (self.fusing or is_given or self.most_step < inf):
            return adapted
        core = Core(isa, self.fast)
        return with_rows(adapted, core, fusing=self.fusing, most_step=self.most_step)

    def loaded(
        self, model: str, original: Program, program: Program, linkage: Linkage, io: ModelIo
    ) -> Adapted:
        """A model that the device loads; arguments as for `prelinked`.

        Where passes change nothing, the program keeps its bytes except for offsets and
        sizes.

        Raises:
            EditError: Scratch tensors cannot be resized in these bytes.
        """
        problem = "; ".join(linkage.problems)
        if linkage.methods and not problem:
            linked = self._linked(original, program, linkage.methods)
            try:
                # A program that no pass changes keeps the bytes that its exporter wrote
                # (decision 0010): written anew, it would differ in every offset.
                if any(r.changed for m in linked.ledger for r in m.passes):
                    return _unlinked(linked)
            except UnlinkError as error:
                problem = str(error)
        else:
            linked = None
        adapted = adapt_program(original, program, self.schemas, plan=self.planner, io=io)
        ledger = (
            not_run(model, program, PASSES, self.passes, problem)
            if problem or linked is None
            else linked.ledger
        )
        return replace(adapted, ledger=ledger)


def _unlinked(linked: Adapted) -> Adapted:
    """A model whose linked methods became a program again, after passes."""
    methods = linked.linked or ()
    return replace(
        linked,
        program=unlink_program(linked.program, methods),
        linked=None,
        # The data are in the program now; the methods are kept for their origins, by
        # which `decode` maps instructions back. With data, notes of the build would
        # hold the weights twice.
        passed=tuple(replace(method, data=()) for method in methods),
    )


# Passes judged by what the product costs with them, and by what the board has.
#
# A pass may cost memory for what it saves elsewhere: constants for fewer calls, tensors that live
# longer for fewer copies. Whether that pays is known once memory is planned: so each is tried in
# its modest form, and left out, and stays if the product is no better.

# fold_constants once made 6.4 MB of flash of a model of 477 KB, and alias_copies an
# arena 768 bytes larger: each looked at what it removes.
# tests/unit/build/test_trades.py has such programs.
Restraints: TypeAlias = "dict[str, str]"
"""Passes that do nothing, each with the reason; "" for one that is only modest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Leaves out what does not pay; for speed, only what there is no room for.

    Args:
        restrained: Makes a model with less of some passes.
        plan: Plans the memory of models, and places it on a board, if there is one.
        board: Of the target.
        budget: Of a product that favours speed; None for others.
    """

    restrained: Callable[[str, Restraints], Adapted]
    plan: Callable[[Mapping[str, Adapted], Board | None], MemoryPlan]
    board: Board | None
    budget: BudgetTable | None

    def judged(
        self, models: Mapping[str, Adapted], linkages: Mapping[str, Linkage]
    ) -> tuple[Mapping[str, Adapted], tuple[str, ...]]:
        """Models after all passes with as much of each as pays, and warnings."""
        # Only passes whose ledger shows more constants, or any change: each trial plans
        # a model again.
        trades = [(n, p) for n, linkage in linkages.items() for p in _trades(linkage)]
        if not trades:
            return models, ()
        fitted = fits = self._fits(models)
        chosen: dict[str, Restraints] = {name: {} for name in models}
        for name, one in trades:
            stays = self._stays(one, models)
            if fits and stays:
                continue
            # Without a board: an arena's bytes do not depend on where it lies, and
            # there is no error if it fits nowhere.
            costs = self._costs(name, models[name])
            out = "there is no room" if stays else "costs more memory than it saves"
            # Less of a pass first: it may keep what is for nothing, such as constants
            # that are smaller than what they replace.
            for why in ("", out) if PASSES[one].may_be_modest else (out,):
                restraints = chosen[name] | {one: why}
                try:
                    model = self.restrained(name, restraints)
                except (BorderError, ModelError):
                    # Not a failure of the build: the pass then stays as it is.
                    continue  # the profile wants what the pass gives
                found, tried = self._costs(name, model), {**models, name: model}
                is_less = any(a < b for a, b in zip(found, costs, strict=True))
                now_fits = (is_less or not fits) and self._fits(tried)
                is_better = is_less and not (fits and stays)
                # To fit counts more than any saving; among products that fit, or do
                # not, less memory counts, unless the pass is for speed and there is
                # room.
                if now_fits > fits or (now_fits is fits and is_better):
                    models, costs, fits = tried, found, now_fits
                    chosen[name] = restraints
        # What was left out before other passes made room is tried once more: the order
        # of passes shall not decide.
        warnings = []
        taken = [(name, *one) for name, r in chosen.items() for one in r.items()]
        for name, one, why in taken if fits and not fitted else ():
            fewer = {k: v for k, v in chosen[name].items() if k != one}
            tried = {**models, name: self.restrained(name, fewer)}
            if not self._fits(tried):
                how = "nothing" if why else "less"
                text = f"{one} does {how}, else the product does not fit the board"
                warnings.append(f"warning[pass-left-out]: model {name}: {text}")
            elif self._stays(one, tried):
                models, chosen[name] = tried, fewer
        return models, tuple(warnings)

    def _costs(self, name: str, model: Adapted) -> tuple[int, int, int]:
        """Bytes of a model's arenas; with states; with flash, too."""
        memory = self.plan({name: model}, None)
        flash = sum(m.program_bytes for m in memory.models)
        if model.linked is not None:  # tables of calls are not among these
            # 32 bytes, the least flash of a call (method/passes/fold.py). Without it,
            # folding a call into a constant of the size of its tables would look dear.
            flash += SMALL_BYTES * sum(
                min(record.after.calls for record in method.passes) for method in model.ledger
            )
        ram = memory.arena_bytes + memory.state_bytes
        return memory.arena_bytes, ram, ram + flash

    def _fits(self, models: Mapping[str, Adapted]) -> bool:
        try:
            self.plan(models, self.board)
        except MemoryPlanError:
            return False
        return True

    def _stays(self, one: str, models: Mapping[str, Adapted]) -> bool:
        """Whether speed is worth memory, and the budget has it, and that of code."""
        if PASSES[one].trades == "room" or self.budget is None:
            return PASSES[one].trades == "room"
        memory = self.plan(models, None)
        costs = estimated_costs(memory, self.board)
        bounds = (("flash", self.budget.flash_bytes), ("ram", self.budget.ram_bytes))
        return all(m is None or sum(costs[key].values()) <= m for key, m in bounds)


def _trades(linkage: Linkage) -> Iterator[str]:
    """Passes that may have cost memory."""
    records = [r for m in linkage.methods for r in m.passes if linkage.before]
    for name, step in PASSES.items():
        if step.trades and any(
            r.after.constant_bytes > r.before.constant_bytes
            if step.trades == "flash"
            else r.changed
            for r in records
            if r.name == name
        ):
            yield name
