"""Passes judged by what the product costs with them, and by what the board has.

A pass may cost memory for what it saves elsewhere: constants for fewer calls, tensors
that live longer for fewer copies. Whether that pays is known once memory is planned: so
each is tried in its modest form, and left out, and stays if the product is no better.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from orchestrator.errors import MemoryPlanError, ModelError
from orchestrator.memory.estimate import estimated_costs
from orchestrator.memory.plan import MemoryPlan
from orchestrator.method.linked import Linkage
from orchestrator.method.passes import PASSES, BorderError
from orchestrator.method.passes.fold import SMALL_BYTES
from orchestrator.method.replan import Adapted
from orchestrator.targets.cores import Board

if TYPE_CHECKING:
    from orchestrator.profile.tables import BudgetTable

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
        trades = [(n, p) for n, linkage in linkages.items() for p in _trades(linkage)]
        if not trades:
            return models, ()
        fitted = fits = self._fits(models)
        chosen: dict[str, Restraints] = {name: {} for name in models}
        for name, one in trades:
            stays = self._stays(one, models)
            if fits and stays:
                continue
            costs = self._costs(name, models[name])
            out = "there is no room" if stays else "costs more memory than it saves"
            for why in ("", out) if PASSES[one].modest else (out,):
                restraints = chosen[name] | {one: why}
                try:
                    model = self.restrained(name, restraints)
                except (BorderError, ModelError):
                    continue  # the profile wants what the pass gives
                found, tried = self._costs(name, model), {**models, name: model}
                is_less = any(a < b for a, b in zip(found, costs, strict=True))
                now_fits = (is_less or not fits) and self._fits(tried)
                is_better = is_less and not (fits and stays)
                if now_fits > fits or (now_fits is fits and is_better):
                    models, costs, fits = tried, found, now_fits
                    chosen[name] = restraints
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
