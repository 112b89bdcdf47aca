"""The build plan: which stages run, on what, and why.

Pure: it compares digests of each stage's inputs with those of the last build.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

Inputs = tuple[tuple[str, str], ...]
"""Sorted (label, digest) pairs: `("model kws", "3f…")`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStage:
    """One stage of the plan.

    Args:
        name: `extract`, `aggregate`, `resolve`, `prelink`, `replan`, `memory`,
            `generate`, `compile`, `measure` or `lock`.
        subject: The model, for stages that run per model; else "".
        inputs: What it depends on.
        reason: Why it runs; "" if its result is known.
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
        """Digest of the inputs: the stage's result is known by it."""
        return key_of(self.label, self.inputs)


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPlan:
    """Stages in the order they run."""

    stages: tuple[PlannedStage, ...]

    def stage(self, name: str, subject: str = "") -> PlannedStage:
        """The stage of this name. Raises KeyError if there is none."""
        for stage in self.stages:
            if (stage.name, stage.subject) == (name, subject):
                return stage
        raise KeyError(name)

    @property
    def is_current(self) -> bool:
        """Nothing has to run."""
        return not any(stage.reason for stage in self.stages)


def key_of(label: str, inputs: Inputs) -> str:
    """Digest that stands for a stage and its inputs."""
    text = "\n".join((label, *(f"{name}\t{digest}" for name, digest in inputs)))
    return hashlib.sha256(text.encode()).hexdigest()


def plan_build(
    *,
    orchestrator: str,
    models: Mapping[str, str],
    operator_files: Mapping[str, str],
    libraries: Mapping[str, str],
    delegates: Mapping[str, str],
    sources: Mapping[str, str],
    sections: Mapping[str, str],
    toolchain: str,
    prelinked: bool = False,
    previous: Mapping[str, Mapping[str, str]],
) -> BuildPlan:
    """Decide what runs.

    Args:
        orchestrator: Digest of the program itself.
        models: By name: digest of the program file.
        operator_files: By path: digests of the files of `operators.include_yaml`.
        libraries: By name of the kernel library: digest of its functions.yaml, and of
            the names of its files.
        delegates: By backend: digest of what the profile says and of the names of its
            sources.
        sources: By path: digests of runtime and kernel files.
        sections: By profile table (`name`, `target`, `models`, `operators`, `dtypes`,
            `kernels`, `prelink`, `scratch`, `memory`, `registry`, `trace`, `integrity`,
            `budget`): digest of its settings; of `models`, their order and how they
            are loaded.
        toolchain: Identity of the compiler; "" if it is not looked at.
        prelinked: Passes run over some model.
        previous: By stage label: its inputs in the last build that finished it.
    """
    stages: list[PlannedStage] = []

    def add(name: str, subject: str = "", **inputs: Mapping[str, str]) -> str:
        pairs = {"orchestrator": orchestrator}
        for kind, digests in inputs.items():
            prefix = kind.replace("_", " ").strip()
            for key, digest in digests.items():
                pairs[f"{prefix} {key}".strip()] = digest
        found = tuple(sorted(pairs.items()))
        label = f"{name} {subject}".strip()
        stages.append(
            PlannedStage(
                name=name,
                subject=subject,
                inputs=found,
                reason=_reason(dict(found), previous.get(label)),
            )
        )
        return stages[-1].key

    def settings(*names: str) -> dict[str, str]:
        return {f"[{n}]": sections[n] for n in names}

    extracts = {
        f"extract {name}": add("extract", name, model={name: digest})
        for name, digest in models.items()
    }
    aggregate = add(
        "aggregate",
        stage=extracts,
        profile=settings("operators", "dtypes"),
        file=operator_files,
    )
    resolve = add(
        "resolve",
        stage={"aggregate": aggregate},
        profile=settings("dtypes", "kernels"),
        library=libraries,
        delegate=delegates,
    )
    before_replan = {"resolve": resolve}
    if prelinked:
        before_replan["prelink"] = add(
            "prelink",
            stage={"resolve": resolve},
            model=models,
            profile=settings("models", "prelink", "scratch", "target"),
        )
    replan = add(
        "replan",
        stage=before_replan,
        model=models,
        profile=settings("memory", "models", "scratch", "target"),
    )
    memory = add(
        "memory",
        stage={"replan": replan},
        model=models,
        profile=settings("target", "models", "memory"),
        delegate=delegates,
    )
    generate = add(
        "generate",
        stage={"resolve": resolve, "memory": memory},
        profile=settings("name", "limits", "registry", "trace", "integrity"),
    )
    compiled = add(
        "compile",
        stage={"generate": generate},
        source=sources,
        profile=settings("target", "trace", "integrity", "scratch"),
        toolchain={"": toolchain},
    )
    measure = add(
        "measure", stage={"compile": compiled}, profile=settings("budget", "target")
    )
    add("lock", stage={"measure": measure}, profile=settings("name"))
    return BuildPlan(stages=tuple(stages))


def _reason(inputs: Mapping[str, str], previous: Mapping[str, str] | None) -> str:
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


_SHOWN = 3


def _change(before: str | None, after: str) -> str:
    if before is None:
        return "is new"
    return "was not looked at" if not after else "changed"
