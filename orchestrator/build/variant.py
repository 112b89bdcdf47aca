"""What-if: a profile with a change, to build and compare."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, UsageError, did_you_mean
from orchestrator.measure.size import SizeOperator
from orchestrator.profile.choices import DtypeSelect, Optimize
from orchestrator.profile.kernels import DtypesTable, OperatorsTable
from orchestrator.profile.tables import Profile
from orchestrator.profile.target import TargetTable
from orchestrator.targets.cores import CPUS

# All other keys (`operators.all`, lists in files) name sets, of which one operator
# cannot be taken.
_REMOVABLE = frozenset({"operators.include", "dtypes.operators"})
"""Keys of the profile that name single operators."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A change of a product; an empty field keeps what the profile has.

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
        """The command line options of this change; "" without any."""
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

        Bounds are left out: a variant may exceed them, to show what the change costs.

        Args:
            profile: Profile of the product.
            operators: Operators of the product as it is built.

        Raises:
            UsageError: There is no such model (`unknown-model`), operator
                (`not-in-product`) or toolchain (`usage`), or an operator to
                leave out is needed (`operator-needed`): all problems.
        """
        problems = [
            *self._unknown_models(profile),
            *self._operator_problems(profile, operators),
            *self._toolchain_problems(profile),
        ]
        UsageError.raise_if(problems)
        rest = without_bounds(_without_models(profile, frozenset(self.without_models)))
        return rest.model_copy(
            update={
                "target": self._target(rest.target),
                "operators": self._operators(rest.operators),
                "dtypes": self._dtypes(rest.dtypes),
            }
        )

    def _target(self, table: TargetTable) -> TargetTable:
        update: dict[str, object] = {}
        if self.optimize:
            update["optimize"] = Optimize(self.optimize)
        if self.toolchain:
            update["toolchain"] = self.toolchain
        return table.model_copy(update=update)

    def _operators(self, table: OperatorsTable) -> OperatorsTable:
        include = (o for o in table.include if str(o) not in self.without_operators)
        return table.model_copy(update={"include": tuple(include)})

    def _dtypes(self, table: DtypesTable) -> DtypesTable:
        kept = {
            name: dtypes
            for name, dtypes in table.operators_.items()
            if str(OperatorName.parse(name)) not in self.without_operators
        }
        update: dict[str, object] = {"operators_": kept}
        if self.dtypes:
            update["select"] = DtypeSelect(self.dtypes)
        return table.model_copy(update=update)

    def _unknown_models(self, profile: Profile) -> Iterator[Diagnostic]:
        known = [model.name for model in profile.models]
        for name in self.without_models:
            if name not in known:
                yield Diagnostic.of(
                    "unknown-model",
                    f'{profile.name} has no model "{name}"',
                    models=", ".join(known) or "none",
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
                yield Diagnostic.of(
                    "operator-needed",
                    f"{name} cannot be left out: models call it",
                    called_by=", ".join(models),
                    hint=f"leave out what calls it: {options}",
                )
            elif keys:
                yield Diagnostic.of(
                    "operator-needed",
                    f"{name} cannot be left out: the profile lists more than single operators",
                    requested_by=", ".join(keys),
                    hint="only operators of operators.include and dtypes.operators can"
                    " be left out one by one",
                )

    def _toolchain_problems(self, profile: Profile) -> Iterator[Diagnostic]:
        known = CPUS[profile.target.cpu].toolchains
        if self.toolchain and self.toolchain not in known:
            yield Diagnostic.of(
                "usage",
                f"{profile.target.cpu} has no toolchain {self.toolchain}",
                expected=" or ".join(known),
                hint="choose one of these",
            )


EVERY_DTYPE = Variant(dtypes=DtypeSelect.ALL.value)
"""A profile with every dtype of every kernel."""


def _without_models(profile: Profile, names: frozenset[str]) -> Profile:
    """A profile without these models; the others keep their lines."""
    kept = [i for i, model in enumerate(profile.models) if model.name not in names]
    new_index = {old: new for new, old in enumerate(kept)}
    spans = []
    for path, span in profile.spans:
        index = path[1] if path[0] == "models" and len(path) > 1 else None
        if index is None:
            spans.append((path, span))
        elif index in new_index:
            # Messages about the variant still show the line of the profile: models
            # count from 0 without those that are left out.
            spans.append((("models", new_index[index], *path[2:]), span))
    models = tuple(profile.models[index] for index in kept)
    return profile.model_copy(update={"models": models, "spans": tuple(spans)})


def without_bounds(profile: Profile) -> Profile:
    """A profile without bounds and without a comparison of dtypes."""
    dtypes = profile.dtypes.model_copy(update={"compare": False})
    return profile.model_copy(
        update={
            "dtypes": dtypes,
            "registry": type(profile.registry)(),
            "budget": type(profile.budget)(),
        }
    )
