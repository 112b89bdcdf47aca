"""The stages up to the compiler: results made when asked for, or remembered."""

from __future__ import annotations

import json
import pickle
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import orchestrator
from orchestrator.build.adapting import firmware_facts_of, memory_of, prelink, replan
from orchestrator.build.collector import Collector
from orchestrator.build.inputs import BuildOptions, Inputs, digest
from orchestrator.build.plan import BuildPlan, PlannedStage, plan_build
from orchestrator.build.selecting import (
    allowed_names,
    check_arguments,
    product_resolution,
    product_selection,
    resolved,
    union_of,
)
from orchestrator.catalog.scratch_arguments import scratch_arguments
from orchestrator.emit.artifact import GeneratedFile
from orchestrator.method.compact import table_layout
from orchestrator.shell.files import read_own_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.emit.compile import CompilePlan
    from orchestrator.memory.plan import MemoryPlan
    from orchestrator.method.linked import Linkage, LinkedMethod
    from orchestrator.method.replan import Adapted
    from orchestrator.profile import Profile
    from orchestrator.program.program import Program
    from orchestrator.selection.op_info import OpInfo, Selection
    from orchestrator.selection.resolution import Resolution

GENERATOR = f"Orchestrator {orchestrator.__version__}"
_T = TypeVar("_T")


class Stages(Inputs):
    """The pure part of the pipeline over the inputs."""

    def __init__(self, profile: Profile, options: BuildOptions) -> None:
        super().__init__(profile, options)
        self.results: dict[str, object] = {}

    def plan(self, *, with_toolchain: bool, as_before: bool = False) -> BuildPlan:
        """Which stages would run, and why.

        Args:
            with_toolchain: Look for the compiler, which may be missing.
            as_before: Take one that is not looked for to be that of the last build.
        """
        toolchain = ""
        if with_toolchain:
            toolchain = digest(repr(self.toolchain).encode())
        elif as_before:
            toolchain = self.previous.get("compile", {}).get("toolchain", "")
        return plan_build(
            orchestrator=self.program_digest,
            models={n: self.model_digest(n) for n in self.model_bytes},
            operator_files={n: digest(d) for n, d in self.operator_files.items()},
            libraries={
                name: digest(
                    self.native_bytes[self.libraries.functions(name)]
                    + self.libraries.identity(name).encode()
                )
                for name in self.profile.kernels.libraries
            },
            delegates={
                name: digest(text.encode())
                for name, text in self.libraries.delegate_identities.items()
            },
            sources=self.native,
            sections=self.sections,
            toolchain=toolchain,
            prelinked=bool(self.passed),
            previous=self.previous,
        )

    @cached_property
    def previous(self) -> dict[str, dict[str, str]]:
        """What the last finished build noted: its stages' inputs, and its outputs."""
        found = read_own_json(self.work / "stages.json")
        if not isinstance(found, dict):
            return {}
        return {k: v for k, v in found.items() if isinstance(v, dict)}

    def memo(self, stage: PlannedStage, compute: Callable[[], _T]) -> _T:
        """A stage's result: from this run, from the last one, or computed."""
        if stage.label not in self.results:
            known = self.remembered(stage)
            self.results[stage.label] = compute() if known is None else known
        return self.results[stage.label]  # type: ignore[return-value]  # stored above

    def remembered(self, stage: PlannedStage) -> object:
        """A stage's result in the last build; None if that does not hold any more."""
        if stage.reason:
            return None
        path = self.work / "results" / f"{stage.label.replace(' ', '-')}.pickle"
        # A damaged or foreign file only means that the stage runs again.
        with suppress(Exception):
            key, result = pickle.loads(path.read_bytes())  # noqa: S301  # ours
            return result if key == stage.key else None
        return None

    def op_infos(self, plan: BuildPlan) -> list[OpInfo]:
        """Stage extract, for every model."""
        from orchestrator.selection.extract import extract  # noqa: PLC0415

        return [
            self.memo(
                plan.stage("extract", model.name),
                lambda name=model.name: extract(self.programs[name], model=name),  # type: ignore[misc]
            )
            for model in self.profile.models
        ]

    def selection(self, plan: BuildPlan) -> Selection:
        """Stage aggregate. Raises ProfileError, and KernelError for an overlap."""
        from orchestrator.selection.overlap import check_overlap  # noqa: PLC0415

        def compute() -> Selection:
            infos = self.op_infos(plan)
            if self.profile.operators.overlap.value == "error":
                where = self.profile.span("operators", "overlap")
                check_overlap(infos, where=where)
            return union_of(self, infos)

        return self.memo(plan.stage("aggregate"), compute)

    def resolution(self, plan: BuildPlan) -> Resolution:
        """Stage resolve. Raises KernelError with every gap."""
        from orchestrator.selection.overlap import (  # noqa: PLC0415
            check_library_overlap,
        )

        def compute() -> Resolution:
            selection = self.selection(plan)
            if self.profile.operators.overlap.value == "error":
                where = self.profile.span("operators", "overlap")
                check_library_overlap(selection, self.catalog, where=where)
            resolution = resolved(self, selection)
            check_arguments(self, self.op_infos(plan), resolution)
            return resolution

        return self.memo(plan.stage("resolve"), compute)

    def warnings(self, plan: BuildPlan) -> list[str]:
        """What a user has to know of a product that can be built."""
        missing = self.resolution(plan).missing
        found = [
            f"warning[missing-kernel]: {m}; the profile allows that,"
            " and methods that call it do not load"
            for m in missing
        ]
        names = {m.name for m in missing}
        found += [
            f"warning[{code}]: model {name}: {text}"
            for name, exported in self.exported.items()
            for code, text in exported.facts["warnings"]
        ]
        found += [
            f"warning[not-missing]: operators.allow_missing names {name},"
            " which is not missing"
            for name in self.profile.operators.allow_missing
            if names.isdisjoint(allowed_names(name))
        ]
        found += [
            f"warning[absolute-path]: model {model.name} is at {path}: profile and lock"
            " are for this machine alone"
            for model in self.profile.models
            for path in (model.written, *(file.written for file in model.data))
            if path.startswith("/")
        ]
        linked = self.resolution(plan).delegate_states
        found += [
            f"warning[unused-delegate]: no model needs the delegate {code.backend},"
            " it is not linked"
            for code in self.libraries.delegates
            if code.backend not in linked
        ]
        return found

    @property
    def prelinked(self) -> tuple[str, ...]:
        """Names of the models that the device need not load."""
        models = self.profile.models
        return tuple(m.name for m in models if m.load.value == "prelinked")

    @property
    def passed(self) -> tuple[str, ...]:
        """Names of the models that passes run on: all, unless every one is skipped."""
        from orchestrator.profile.choices import PASSES  # noqa: PLC0415

        every = len(self.profile.prelink.skip) < len(PASSES)
        return tuple(n for n in self.programs if every or n in self.prelinked)

    def unplanned(self, plan: BuildPlan) -> dict[str, Linkage]:
        """Stage prelink: methods where the program has them. Raises ModelError."""
        if not self.passed:
            return {}
        return self.memo(plan.stage("prelink"), lambda: prelink(self, plan))

    def adapted(self, plan: BuildPlan) -> dict[str, Adapted]:
        """Stage replan: every model as it is built. Raises MemoryPlanError."""
        return self.memo(plan.stage("replan"), lambda: replan(self, plan))

    def linked(self, plan: BuildPlan) -> dict[str, tuple[LinkedMethod, ...]]:
        """Methods of prelinked models."""
        found = self.adapted(plan).items()
        return {name: a.linked for name, a in found if a.linked is not None}

    def passed_methods(self, plan: BuildPlan) -> dict[str, tuple[LinkedMethod, ...]]:
        """Methods of models that are loaded and that passes changed, without data."""
        found = self.adapted(plan).items()
        return {name: a.passed for name, a in found if a.passed is not None}

    def built(self, plan: BuildPlan) -> dict[str, Program]:
        """Programs as they are built."""
        return {name: a.program for name, a in self.adapted(plan).items()}

    def memory(self, plan: BuildPlan) -> MemoryPlan:
        """Stage memory. Raises MemoryPlanError, ModelError."""
        return self.memo(plan.stage("memory"), lambda: memory_of(self, plan))

    def generated(self, plan: BuildPlan) -> tuple[GeneratedFile, ...]:
        """Stage generate: everything but what the compiler makes."""
        return self.memo(plan.stage("generate"), lambda: self._generate(plan))

    def _generate(self, plan: BuildPlan) -> tuple[GeneratedFile, ...]:
        from orchestrator.emit.executorch_headers import (  # noqa: PLC0415
            check_max_kernels,
            executorch_headers,
        )
        from orchestrator.emit.generate import generate  # noqa: PLC0415
        from orchestrator.memory.memory_json import memory_plan_json  # noqa: PLC0415
        from orchestrator.method.writes import check_writes  # noqa: PLC0415
        from orchestrator.running.product import product_json  # noqa: PLC0415
        from orchestrator.selection.resolve import resolution_json  # noqa: PLC0415
        from orchestrator.selection.selected_yaml import (  # noqa: PLC0415
            selected_operators_yaml,
        )

        name = self.profile.name
        selection = product_selection(self, plan)
        resolution = product_resolution(self, plan)
        memory = self.memory(plan)
        check_writes(self.programs, self.resolution(plan), self.model_spans)
        max_kernels = self.profile.registry.max_kernels
        where = self.profile.span("registry", "max_kernels")
        check_max_kernels(resolution, max_kernels, where=where)
        used = {library for library, _ in resolution.sources}
        kernels = tuple(
            k for lib, ks in self.catalog.libraries if lib in used for k in ks
        )
        files = [
            *generate(
                profile=name,
                generator=GENERATOR,
                programs=self.built(plan),
                resolution=resolution,
                kernels=kernels,
                memory=memory,
                target=self.target,
                linked=self.linked(plan),
                traced=self.profile.trace.enable,
                integrity=self.profile.integrity.check,
                limits={m.name: m.instruction_limit for m in self.profile.models},
            ),
            *executorch_headers(
                f"Generated by {GENERATOR} for profile {name}. Do not edit.",
                selection,
                resolution,
                max_kernels=max_kernels,
            ),
            GeneratedFile(
                "selected_operators.yaml",
                selected_operators_yaml(
                    selection,
                    generator=GENERATOR,
                    notes=[
                        f"Missing, as the profile allows: {m}"
                        for m in resolution.missing
                    ],
                ),
            ),
            GeneratedFile("resolution.json", resolution_json(resolution)),
            GeneratedFile("memory_plan.json", memory_plan_json(memory)),
            GeneratedFile("firmware.json", self._firmware_json(plan)),
            GeneratedFile(
                "product.json",
                product_json(
                    profile=name,
                    programs=self.built(plan),
                    memory=memory,
                    target=self.target,
                ),
            ),
        ]
        return tuple(sorted(files))

    def firmware_facts(self, plan: BuildPlan) -> tuple[tuple[str, str], ...]:
        """What the product has for programs that come later."""
        return firmware_facts_of(self, plan)

    def memory_facts(self, plan: BuildPlan) -> tuple[tuple[str, str], ...]:
        """Arenas, and the scratch memory they were planned for."""
        from orchestrator.memory.contract import memory_facts  # noqa: PLC0415

        return memory_facts(
            self.memory(plan),
            isa=self.target.isa.name,
            library=lambda name: self.native[self.libraries.functions(name)],
        )

    def _firmware_json(self, plan: BuildPlan) -> str:
        facts = dict(self.firmware_facts(plan))
        return json.dumps({"schema": 1, "firmware": facts}, indent=1) + "\n"

    def checks_scratch(self, plan: BuildPlan) -> bool:
        """Whether kernels compare their scratch memory, and there are such kernels."""
        check, optimize = self.profile.scratch.runtime_check, self.target.optimize
        return check.applies(optimize) and any(
            scratch_arguments(operator.schema)
            for operator in product_resolution(self, plan).operators
        )

    def compile_plan(self, plan: BuildPlan) -> CompilePlan:
        """Every compile and link step."""
        from orchestrator.emit.compile import plan_compile  # noqa: PLC0415

        freestanding = ("freestanding/",) if self.target.freestanding else ()
        platform = f"platform/{self.target.platform}/"
        tops = ("src/", "app/", platform, *freestanding)
        runtime = tuple(
            name.removeprefix("runtime/")
            for name in self.native
            if name.startswith("runtime/") and name.endswith(".cpp")
        )
        return plan_compile(
            profile=self.profile.name,
            target=self.target,
            toolchain=self.toolchain,
            resolution=product_resolution(self, plan),
            runtime_sources=tuple(n for n in runtime if n.startswith(tops)),
            models=tuple(n for n in self.programs if n not in self.linked(plan)),
            custom=self.libraries.options,
            delegates=self.libraries.delegate_options,
            traced=self.profile.trace.enable,
            checked=self.profile.integrity.check.value != "never",
            scratch_checks=self.checks_scratch(plan),
            programs=self.programs,
            caller_bytes=self.memory(plan).caller_bytes,
            external=any(
                program.external
                for name, program in self.built(plan).items()
                if name not in self.prelinked
            ),
            inline_constants=self.loads_inline_constants,
            common_arenas=bool(self.memory(plan).common),
            tables=table_layout(self.programs, self.linked(plan)),
        )

    def check(self) -> BuildPlan:
        """Everything short of compiling. Raises whatever is wrong."""
        plan = self.plan(with_toolchain=False)
        self.prove(plan)
        self.generated(plan)
        return plan

    def prove(self, plan: BuildPlan) -> None:
        """Everything has a kernel and memory. Raises all problems of both stages."""
        errors = Collector()
        with errors:
            self.resolution(plan)
        with errors:
            if errors.errors:
                memory_of(self, None)  # of the programs as they are
            else:
                self.memory(plan)
        errors.raise_first()
