"""Models after passes and planning: linked methods, or programs to load.

Imports numpy, so that builds import it only when a model is adapted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from types import MappingProxyType

from orchestrator.core.border import ModelIo
from orchestrator.core.operator import OperatorName, OpSchema
from orchestrator.method.linked import Linkage, LinkedMethod
from orchestrator.method.passes import (
    MAKES_CONSTANTS,
    PASSES,
    UnlinkError,
    ledger_of,
    not_run,
    run_passes,
    unlink_program,
)
from orchestrator.method.replan import Adapted, adapt_linked, adapt_program, can_plan
from orchestrator.method.rows.adapt import with_rows
from orchestrator.method.rows.costs import Core
from orchestrator.planner.blocks import Block, BlockPlan
from orchestrator.planner.policy import Fusing
from orchestrator.program.program import Program


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """Adapts models to the target.

    Args:
        passes: Names of the passes that run.
        schemas: Schemas of the operators that have a kernel.
        planner: Lays arenas out; None keeps the offsets.
        isa: Instruction set of the core.
        fast: Whether the product favours speed.
        fusing: How far calls of prelinked models run by rows; None if they do not.
        most_step: Instructions that one of their calls may take, where it can be split.
    """

    passes: Sequence[str]
    schemas: Mapping[OperatorName, OpSchema]
    planner: Callable[[Sequence[Block]], BlockPlan] | None
    isa: str
    fast: bool = False
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
        if program.external and not is_prelinked:
            why = "constants outside the program stay there"
            restraints = {**restraints, **dict.fromkeys(MAKES_CONSTANTS, why)}
        replans = self.planner is not None
        plans = is_prelinked and replans
        methods = tuple(
            run_passes(
                method,
                self.passes,
                planned=False,
                # A pass for an ISA needs memory, which a kept plan has not.
                isa=self.isa if plans else "",
                fast=self.fast,
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
        passed=tuple(replace(method, data=()) for method in methods),
    )
