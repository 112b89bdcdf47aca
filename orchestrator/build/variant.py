"""What-if: a profile with something else in it, and what that takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.errors import Diagnostic, UsageError, did_you_mean
from orchestrator.profile.checked import (
    Budget,
    DtypeSelect,
    OperatorRequests,
    Optimize,
    Registry,
)
from orchestrator.targets.cores import CPUS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from orchestrator.measure.size import SizeOperator
    from orchestrator.profile import Profile

_REMOVABLE = frozenset({"operators.include", "dtypes.operators"})
"""Keys of the profile that name single operators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """How a product is to differ; what is empty stays as the profile has it.

    Args:
        without_models: Names of models to leave out.
        without_operators: Operators to leave out that only the profile names.
        dtypes: As `dtypes.select`.
        optimize: As `target.optimize`.
        toolchain: As `target.toolchain`.
    """

    without_models: tuple[str, ...] = ()
    without_operators: tuple[str, ...] = ()
    dtypes: str = ""
    optimize: str = ""
    toolchain: str = ""

    @property
    def text(self) -> str:
        """The options that ask for it; "" if nothing is to differ."""
        words = [f"--without-model {name}" for name in sorted(self.without_models)]
        words += [f"--without-op {name}" for name in sorted(self.without_operators)]
        words += [
            f"--{key} {value}"
            for key, value in (
                ("dtypes", self.dtypes),
                ("optimize", self.optimize),
                ("toolchain", self.toolchain),
            )
            if value
        ]
        return " ".join(words)

    def of(self, profile: Profile, operators: tuple[SizeOperator, ...]) -> Profile:
        """The profile with the change.

        Bounds are left out, which the product as it is keeps: the question is what the
        change costs.

        Args:
            profile: Of the product.
            operators: Of the product as it is built.

        Raises:
            UsageError: There is no such model (`unknown-model`), operator
                (`not-in-product`) or toolchain (`usage`), or an operator that is to be
                left out is needed (`operator-needed`): all problems.
        """
        problems = [
            *self._unknown_models(profile),
            *self._operator_problems(profile, operators),
            *self._toolchain_problems(profile),
        ]
        if problems:
            raise UsageError(problems)
        target = profile.target
        return replace(
            _without_models(profile, frozenset(self.without_models)),
            target=replace(
                target,
                optimize=Optimize(self.optimize or target.optimize),
                toolchain=self.toolchain or target.toolchain,
            ),
            operators=self._operators(profile.operators),
            dtypes=replace(
                profile.dtypes,
                select=DtypeSelect(self.dtypes or profile.dtypes.select),
                operators=tuple(
                    request
                    for request in profile.dtypes.operators
                    if str(request.operator) not in self.without_operators
                ),
                compare=False,
            ),
            registry=Registry(),
            budget=Budget(),
        )

    def _operators(self, requests: OperatorRequests) -> OperatorRequests:
        include = (o for o in requests.include if str(o) not in self.without_operators)
        return replace(requests, include=tuple(include))

    def _unknown_models(self, profile: Profile) -> Iterator[Diagnostic]:
        known = [model.name for model in profile.models]
        for name in self.without_models:
            if name not in known:
                yield Diagnostic(
                    code="unknown-model",
                    message=f'{profile.name} has no model "{name}"',
                    notes=(("models", ", ".join(known) or "none"),),
                    hint=did_you_mean(name, known) or "name a model of the profile",
                )

    def _operator_problems(
        self, profile: Profile, operators: tuple[SizeOperator, ...]
    ) -> Iterator[Diagnostic]:
        by_name = {operator.name: operator for operator in operators}
        for name in self.without_operators:
            operator = by_name.get(name)
            if operator is None:
                yield Diagnostic(
                    code="not-in-product",
                    message=f"{name} is not in {profile.name}",
                    hint=did_you_mean(name, by_name)
                    or "name an operator that `orchestrator size --by op` lists",
                )
                continue
            models = [m for m in operator.models if m not in self.without_models]
            keys = [key for key in operator.keys if key not in _REMOVABLE]
            if models:
                options = " ".join(f"--without-model {model}" for model in models)
                yield Diagnostic(
                    code="operator-needed",
                    message=f"{name} cannot be left out: models call it",
                    notes=(("called by", ", ".join(models)),),
                    hint=f"leave out what calls it: {options}",
                )
            elif keys:
                yield Diagnostic(
                    code="operator-needed",
                    message=f"{name} cannot be left out: the profile lists more than"
                    " single operators",
                    notes=(("asked for by", ", ".join(keys)),),
                    hint="only operators of operators.include and dtypes.operators can"
                    " be left out one by one",
                )

    def _toolchain_problems(self, profile: Profile) -> Iterator[Diagnostic]:
        known = CPUS[profile.target.cpu].toolchains
        if self.toolchain and self.toolchain not in known:
            yield Diagnostic(
                code="usage",
                message=f"{profile.target.cpu} has no toolchain {self.toolchain}",
                notes=(("expected", " or ".join(known)),),
                hint="choose one of these",
            )


EVERY_DTYPE = Variant(dtypes=DtypeSelect.ALL.value)
"""With every dtype of every kernel."""


def _without_models(profile: Profile, names: frozenset[str]) -> Profile:
    """Without these models; the lines of the others stay known."""
    kept = [i for i, model in enumerate(profile.models) if model.name not in names]
    new_index = {old: new for new, old in enumerate(kept)}
    spans = []
    for path, span in profile.spans:
        index = path[1] if path[0] == "models" and len(path) > 1 else None
        if index is None:
            spans.append((path, span))
        elif index in new_index:
            spans.append((("models", new_index[index], *path[2:]), span))
    return replace(
        profile,
        models=tuple(profile.models[index] for index in kept),
        spans=tuple(spans),
    )
