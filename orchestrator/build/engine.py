"""The engine of a build: makes values when they are needed, and plans what runs.

A value is given, read, or made by a function of the values that it declares. The
function gets exactly these, as keyword arguments. What a stage depends on follows from
the same declaration: labels with digests of all inputs that it reads, directly or
through derived values, and the keys of the stages that it reads.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from types import MappingProxyType
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from orchestrator.core.lazy_bytes import Bytes, sha256_of

# The build plan: which stages run, on what, and why.
#
# Pure: it compares digests of each stage's inputs with those of the last build.

Inputs = tuple[tuple[str, str], ...]
"""Sorted (label, digest) pairs: `("model kws", "3f…")`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStage:
    """One run of a stage.

    Args:
        name: Of the stage, see `orchestrator.build.table`.
        subject: The model, for stages that run per model; else "".
        inputs: What it depends on.
        reason: Why it runs; "" if its recorded result still holds.
    """

    name: str
    subject: str
    inputs: Inputs
    reason: str

    @property
    def label(self) -> str:
        """`extract kws`."""
        return f"{self.name} {self.subject}".strip()

    @property
    def key(self) -> str:
        """Digest of the inputs, under which the stage's result is recorded."""
        return key_of(self.label, self.inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """Stages in the order they run."""

    stages: tuple[PlannedStage, ...]

    def stage(self, name: str, subject: str = "") -> PlannedStage:
        """The stage with this name. Raises KeyError if there is none."""
        for stage in self.stages:
            if (stage.name, stage.subject) == (name, subject):
                return stage
        raise KeyError(name)

    @property
    def is_current(self) -> bool:
        """Whether nothing has to run."""
        return not any(stage.reason for stage in self.stages)


def key_of(label: str, inputs: Inputs) -> str:
    """Digest of a stage's label and inputs."""
    # Labels are names of tables, models and files; none of them has a tab or a newline,
    # which would let two lists give one text.
    text = "\n".join((label, *(f"{name}\t{digest}" for name, digest in inputs)))
    return hashlib.sha256(text.encode()).hexdigest()


def reason_of(inputs: Mapping[str, str], previous: Mapping[str, str] | None) -> str:
    """Why a stage runs: which of its inputs changed."""
    if previous is None:
        return "first build"
    changed = [
        f"{name} {_change(previous.get(name), digest)}"
        for name, digest in inputs.items()
        if previous.get(name) != digest
    ]
    changed += [f"{name} is gone" for name in previous if name not in inputs]
    if len(changed) > _SHOWN:
        return f"{', '.join(changed[:_SHOWN])} and {len(changed) - _SHOWN} more"
    return ", ".join(changed)


# Changed inputs in one line of `plan`, chosen by hand: the rest is counted.
_SHOWN = 3


def _change(before: str | None, after: str) -> str:
    if before is None:
        return "is new"
    # "" is the digest of an input that `plan` must not read, as a model that would have
    # to be exported.
    return "was not looked at" if not after else "changed"


T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
ValueT = TypeVar("ValueT", bound="Value[Any]")


def digest(data: Bytes) -> str:
    """SHA-256 in hex."""
    return sha256_of(data)


def repr_digest(value: object) -> dict[str, str]:
    """The digest of a value whose `repr` shows all of it."""
    # Settings are frozen tables whose repr has every field; a field left out of it
    # would be a change that no stage sees. tests/integration/test_stale.py changes each
    # key of the profile in turn.
    return {"": digest(repr(value).encode())}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Value(Generic[T_co]):
    """A handle for one value of a build: `build[MEMORY]` is a `MemoryPlan`.

    Args:
        gives: Its name: the keyword by which functions get it.
        reads: The values that it is made from.
    """

    gives: str
    reads: Sequence[Value[Any]] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Given(Value[T_co]):
    """A value that the caller of the build supplies. Only inputs read it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Effect(Given[T_co]):
    """A tool that a stage uses, such as a compiler; results do not depend on it."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Input(Value[T_co]):
    """A value from outside: settings, files, the compiler.

    Args:
        run: Reads it.
        label: Kind of its items in a plan: `model`, `profile [budget]`.
        digests: By name of an item ("" if it is one alone): its digest. None for a
            value that no remembered result depends on: lines of the profile, hints.
    """

    run: Callable[..., T_co]
    label: str = ""
    digests: Callable[[Any], Mapping[str, str]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Derived(Value[T_co]):
    """A value made cheaply from others: its readers depend on what it reads.

    Args:
        run: Makes it.
    """

    run: Callable[..., T_co]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Item(Value[T_co]):
    """The item for the current model of a value that has one item per model."""

    of: Value[Mapping[str, T_co]]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stage(Value[T_co]):
    """A step of a build.

    Args:
        name: As plans show it.
        run: Makes the value; never called while the remembered one holds.
        only_for: The stage runs only if this collection has something in it.
        otherwise: Its value if it does not run.
        is_remembered: Whether the next build reuses the value. If not, it is
            made whenever something reads it.
        is_common: Whether builds of other products may have the same value.
    """

    name: str
    run: Callable[..., T_co]
    only_for: Value[Collection[str]] | None = None
    otherwise: Any = None
    is_remembered: bool = True
    is_common: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class EachStage(Value["dict[str, T_co]"], Generic[T_co]):
    """A step that runs once for each model, on its items.

    Args:
        name: As plans show it, followed by the model.
        each: Names of the models.
        run: Makes the value for one.
        is_common: As of `Stage`.
    """

    name: str
    each: Value[Collection[str]]
    run: Callable[..., T_co]
    is_common: bool = False


AnyStage: TypeAlias = "Stage[Any] | EachStage[Any]"


class Values:
    """Values by name. A function reads those that its parameters name.

    Args:
        known: Those that there are already.
    """

    def __init__(self, known: Mapping[str, Value[Any]] = MappingProxyType({})) -> None:
        self._known = dict(known)

    def copy(self) -> Values:
        """This returns the same values, to which others can be added."""
        return Values(self._known)

    def add(self, value: ValueT) -> ValueT:
        """Let functions of later values name this one."""
        self._known[value.gives] = value
        return value

    def input(self, run: Callable[..., T], **more: Any) -> Input[T]:  # noqa: ANN401
        """Add an input; `more` are its fields."""
        return self.add(Input(run=run, reads=self._read_by(run), **more))

    def derived(self, run: Callable[..., T], gives: str) -> Derived[T]:
        """Add a derived value."""
        return self.add(Derived(run=run, reads=self._read_by(run), gives=gives))

    def stage(self, run: Callable[..., T], **more: Any) -> Stage[T]:  # noqa: ANN401
        """Add a stage."""
        return self.add(Stage(run=run, reads=self._read_by(run), **more))

    def each_stage(self, run: Callable[..., T], **more: Any) -> EachStage[T]:  # noqa: ANN401
        """Add a stage that runs once for each model."""
        return self.add(EachStage(run=run, reads=self._read_by(run), **more))

    def _read_by(self, run: Callable[..., object]) -> tuple[Value[Any], ...]:
        # A stage cannot reach what it did not declare, and declares by naming a
        # parameter: lists beside the functions once lacked an input, and nothing
        # noticed (tests/unit/build/test_plan.py).
        return tuple(self._known[name] for name in signature(run).parameters)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Given in the place of an input that cannot be read, or need not be.

    Args:
        digest: What plans take for its digest; "" if it was not looked at.
    """

    digest: str = ""


class Observer(Protocol):
    """Hears which stages run."""

    def __call__(self, text: str, number: int = 1, total: int = 1, /) -> None:
        """A run of a stage begins: number 1 to `total` of the stage's."""


class Notes(Protocol):
    """What the last finished build recorded for the next one."""

    def inputs(self, label: str) -> Mapping[str, str] | None:
        """Digests by label of what a stage depended on; None if it did not run."""

    def result(self, label: str, key: str) -> object | None:
        """The value that a stage made, if it was recorded under this key."""


class Results(Protocol):
    """Results of stages by key, from builds of other products."""

    def get(self, key: str, /) -> object | None:
        """The value that a stage made under this key; None if it is not known."""

    def put(self, key: str, value: object, /) -> None:
        """Keep a value. It is frozen: who gets it must not change it."""


class Build:
    """Values of one build. Each is made once, when it is first needed.

    Args:
        stages: In the order of the plan.
        given: Values that the build starts with; of any kind.
        notes: Of the last build.
        always: An input that every stage depends on: the program itself.
        known: Values that were made already.
        digests: Digests of inputs that were computed already.
        observer: Hears which stages run.
        results: Of other products: stages that are `is_common` use and fill them.
    """

    def __init__(
        self,
        stages: Sequence[Value[Any]],
        given: Mapping[Value[Any], object],
        *,
        notes: Notes,
        always: Input[Any],
        known: Mapping[Value[Any], object] = MappingProxyType({}),
        digests: Mapping[Value[Any], Mapping[str, str]] = MappingProxyType({}),
        observer: Observer | None = None,
        results: Results | None = None,
    ) -> None:
        self._stages = tuple(s for s in stages if isinstance(s, Stage | EachStage))
        self._given = dict(given)
        self._notes = notes
        self._always = always
        self._observer = observer
        self._results = results
        self._known = {**known, **given}
        self._digests = dict(digests)
        self._planned: dict[AnyStage, tuple[PlannedStage, ...]] = {}
        # Many values read the same derived ones, which read others: without it a build asked some
        # 20,000 times, a twentieth of the time of a small one.
        self._read: dict[tuple[Value[Any], str], list[tuple[str, str]]] = {}

    def __getitem__(self, value: Value[T]) -> T:
        """The value. Raises the error of the function that cannot make it."""
        if value not in self._known:
            self._known[value] = self._make(value)
        # Unread is for inputs that are only compared; a stage that needs one would
        # compute with nothing.
        found = self._known[value]
        assert not isinstance(found, Unread), value.gives  # noqa: S101  # an error in the table of stages
        return found  # type: ignore[return-value]  # made by this value's function

    def replace(self, given: Mapping[Value[Any], object]) -> Build:
        """A build like this with other given values; keeps what they do not change."""
        changed = set(given)
        # In the order of dependence: what reads a changed value is changed itself, and
        # so on.
        for value in all_of([*self._stages, *self._known]):
            if changed.intersection(_sources(value)):
                changed.add(value)
        return Build(
            self._stages,
            {**self._given, **given},
            notes=self._notes,
            always=self._always,
            known={v: x for v, x in self._known.items() if v not in changed},
            digests={v: x for v, x in self._digests.items() if v not in changed},
            observer=self._observer,
            results=self._results,
        )

    def plan(self) -> BuildPlan:
        """Which stages would run, and why."""
        planned = (p for stage in self._stages for p in self.planned(stage))
        return BuildPlan(stages=tuple(planned))

    def planned(self, stage: AnyStage) -> tuple[PlannedStage, ...]:
        """The runs of a stage: one, one for each model, or none."""
        if stage not in self._planned:
            # One run with no subject; none if there is nothing to do, so that plans do
            # not show an empty stage.
            subjects: Collection[str] = ("",)
            if isinstance(stage, EachStage):
                subjects = self[stage.each]
            elif stage.only_for is not None and not self[stage.only_for]:
                subjects = ()
            self._planned[stage] = tuple(self._plan(stage, s) for s in subjects)
        return self._planned[stage]

    def remembered(self, stage: Stage[T]) -> T | None:
        """The value that the last build made, if it is still valid."""
        (planned,) = self.planned(stage)
        return self._remembered(planned)  # type: ignore[return-value]  # by its key

    def results(self) -> dict[PlannedStage, object]:
        """What stages made in this build or before, to be remembered."""
        found: dict[PlannedStage, object] = {}
        for stage in self._stages:
            if stage not in self._known:
                continue
            value: Any = self._known[stage]
            for planned in self.planned(stage):
                if isinstance(stage, EachStage):
                    found[planned] = value[planned.subject]
                elif stage.is_remembered:
                    found[planned] = value
        return found

    def _plan(self, stage: AnyStage, subject: str) -> PlannedStage:
        found: dict[str, set[str]] = {}
        # Orchestrator's own files: a new version may make other values of the same
        # inputs.
        for read in (self._always, *stage.reads):
            for label, one in self._dependencies(read, subject):
                found.setdefault(label, set()).add(one)
        inputs = {label: _joined(each) for label, each in sorted(found.items())}
        label = f"{stage.name} {subject}".strip()
        return PlannedStage(
            name=stage.name,
            subject=subject,
            inputs=tuple(inputs.items()),
            reason=reason_of(inputs, self._notes.inputs(label)),
        )

    def _dependencies(self, value: Value[Any], subject: str) -> list[tuple[str, str]]:
        """(label, digest) of everything that a reader of this value depends on."""
        match value:
            case Input(digests=None) | Given():
                return []
            case Input(label=label):
                if value not in self._digests:
                    self._digests[value] = self._input_digests(value)
                items = self._digests[value]
                # A stage for one model depends on that model's item only: changing one
                # model leaves the others' results.
                if subject in items:
                    items = {subject: items[subject]}
                return [(f"{label} {n}".strip(), d) for n, d in items.items()]
            case Stage() | EachStage():
                # By key, not by value: whether a stage runs is known before any has
                # run. So a stage whose result happens to be the same lets its readers
                # run.
                return [(f"stage {p.label}", p.key) for p in self.planned(value)]
            case Item(of=of):
                return self._dependencies(of, subject)
        # A derived value has no key: its readers depend on what it reads.
        if (value, subject) not in self._read:
            found = (d for read in value.reads for d in self._dependencies(read, subject))
            self._read[value, subject] = list(dict.fromkeys(found))
        return self._read[value, subject]

    def _input_digests(self, value: Input[Any]) -> Mapping[str, str]:
        given = self._given.get(value)
        if isinstance(given, Unread):
            return {"": given.digest}
        assert value.digests is not None  # noqa: S101  # see above
        return value.digests(self[value])

    def _make(self, value: Value[Any]) -> object:
        match value:
            case EachStage():
                return {p.subject: self._run(value, p) for p in self.planned(value)}
            case Stage():
                for planned in self.planned(value):
                    return self._run(value, planned)
                return value.otherwise
            case Input() | Derived():
                return value.run(**self._arguments(value, ""))
        raise KeyError(value.gives)

    def _run(self, stage: AnyStage, planned: PlannedStage) -> object:
        is_remembered = isinstance(stage, EachStage) or stage.is_remembered
        found = self._remembered(planned) if is_remembered else None
        common = self._results if stage.is_common else None
        # Last build's notes first, as they cost a file; then what another product of
        # this command made under the same key.
        if found is None and common is not None:
            found = common.get(planned.key)
        if found is None:
            arguments = self._arguments(stage, planned.subject)
            if self._observer is not None:
                runs = self.planned(stage)
                self._observer(planned.label, runs.index(planned) + 1, len(runs))
            found = stage.run(**arguments)
            if common is not None:
                common.put(planned.key, found)
        return found

    def _remembered(self, planned: PlannedStage) -> object | None:
        # The note is of another key then; `result` compares it again, as notes and
        # results are two files.
        if planned.reason:
            return None
        return self._notes.result(planned.label, planned.key)

    def _arguments(self, value: Value[Any], subject: str) -> dict[str, object]:
        return {
            read.gives: self[read.of][subject] if isinstance(read, Item) else self[read]
            for read in value.reads
        }


def _joined(digests: set[str]) -> str:
    """One digest of several inputs with one label: two settings of one table."""
    if len(digests) == 1:
        return next(iter(digests))
    return digest("\n".join(sorted(digests)).encode())


def _sources(value: Value[Any]) -> list[Value[Any]]:
    """The values that a value is made from, and those that decide if it is made."""
    found = list(value.reads)
    match value:
        case Item(of=of):
            found.append(of)
        case EachStage(each=each):
            found.append(each)
        case Stage(only_for=condition) if condition is not None:
            found.append(condition)
    return found


def all_of(values: Sequence[Value[Any]]) -> tuple[Value[Any], ...]:
    """Values and everything they are made from; each comes after what it reads."""
    found: dict[Value[Any], None] = {}

    def add(value: Value[Any]) -> None:
        if value not in found:
            for source in _sources(value):
                add(source)
            found[value] = None

    for value in values:
        add(value)
    return tuple(found)
