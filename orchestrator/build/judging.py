"""The product beside its own program: random calls, compared bit for bit.

The reference is the program as it was exported, on this machine: no pass but those that
change what a model computes or takes (`ASKED`), no plan, every value in memory of its
own, and kernels without packed weights. It shares with the product what reads programs,
marks state, chooses kernels and loads a `.pte`, the passes of `ASKED`, plain kernels.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

import numpy as np

from orchestrator.build.device_status import explain_failure
from orchestrator.build.firmware import carry_out, need_runnable
from orchestrator.build.on_host import host_profile, probed_program, with_files, with_programs
from orchestrator.build.product import build_variant
from orchestrator.build.project import Project, Shell
from orchestrator.build.variant import without_bounds
from orchestrator.core.bounds import SizeBound
from orchestrator.core.lazy_bytes import chunks_of
from orchestrator.errors import Diagnostic, MismatchError, SourceSpan, UsageError
from orchestrator.planner.policy import Fuse, Planner
from orchestrator.profile.choices import PASSES, Load
from orchestrator.profile.tables import Profile
from orchestrator.program.encode import write_program
from orchestrator.running.compare import decoded, index_of
from orchestrator.running.device import Device
from orchestrator.running.new_scenario import random_input
from orchestrator.running.npy import Array
from orchestrator.running.product import Port, Product, ProductMethod, read_product
from orchestrator.running.protocol import CallResult, DeviceError
from orchestrator.running.report import Ran
from orchestrator.running.scenario import Scenario, read_scenario
from orchestrator.running.values import Call, ListValue, RunValue
from orchestrator.shell.build_folder import exclusive
from orchestrator.shell.files import read_file, read_text_file, reason_of
from orchestrator.targets.boards import Concurrency

# Run the scenario of a built product, and compare its outputs.

_TIMEOUT_S: Final = 600.0
"""Most time for one run, the default of `orchestrator run`."""


def found_scenario(profile: Profile) -> Path:
    """The scenario beside a profile. Raises UsageError without one (`no-scenario`)."""
    if path := own_scenario(profile):
        return path
    raise UsageError(
        Diagnostic(
            code="no-scenario",
            message=f"{profile.name} has no scenario to run",
            notes=tuple(("expected", str(path)) for path in _scenarios(profile)),
            hint="write one, or choose other products with -p",
        )
    )


def own_scenario(profile: Profile) -> Path | None:
    """The scenario beside a profile, `scenarios/NAME.json`; None without one."""
    return next((path for path in _scenarios(profile) if path.is_file()), None)


def _scenarios(profile: Profile) -> list[Path]:
    names = dict.fromkeys((profile.name, profile.file.stem))
    return [profile.file.parent / "scenarios" / f"{name}.json" for name in names]


def run_scenario(project: Project, path: Path) -> None:
    """Run the calls of a scenario on a product that is built.

    Args:
        project: The product.
        path: The scenario.

    Raises:
        UsageError: The scenario does not fit.
        ToolchainError: Nothing here runs the firmware.
        MismatchError: A call failed, or gave another output.
    """
    product = product_of(project)
    need_runnable(product)
    scenario = scenario_of(path, product)
    firmware = (project.folder / product.firmware).resolve()
    results = carry_out(product, firmware, scenario.calls, timeout_s=_TIMEOUT_S).results
    failure = explain_failure(project, scenario.calls, results)
    ran = Ran(calls=scenario.calls, results=results, tolerance=scenario.tolerance, failure=failure)
    MismatchError.raise_if(ran.problems)


def product_of(project: Project) -> Product:
    """What a build says about its firmware.

    Raises:
        UsageError: There is no build (`not-built`).
    """
    path = project.folder / "product.json"
    try:
        text = read_text_file(path)
    except (OSError, UnicodeDecodeError) as error:
        profile = project.profile.named
        raise UsageError.of(
            "not-built",
            f"{profile} is not built",
            expected=str(path),
            hint=f"run `orchestrator build {profile}` first",
        ) from error
    return read_product(text)


def read_bytes(path: str) -> bytes:
    """A file of a scenario or of the command line."""
    return read_file(Path(path))


def scenario_of(
    path: Path, product: Product, read: Callable[[str], bytes] = read_bytes
) -> Scenario:
    """The calls of a file.

    Args:
        path: The file.
        product: What is called.
        read: Gives the bytes of the files that it names.

    Raises:
        UsageError: It cannot be read, or is not for this product (`bad-scenario`).
    """
    try:
        text = read_text_file(path)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError.of(
            "bad-scenario",
            "cannot read the scenario",
            where=SourceSpan(file=str(path)),
            found=getattr(error, "strerror", None) or reason_of(error),
            hint="name a JSON file with runs and tolerance",
        ) from error
    return read_scenario(text, file=str(path), product=product, read_bytes=read)


Calls: TypeAlias = "tuple[Call, ...]"

# Without them the reference would be another model: with other inputs, or other
# weights. All other passes promise the same bits, which is what is judged (decision
# 0040).
ASKED: Final = frozenset({"fold_batch_norm", "keep_inputs", "quantized_io", "round_weights"})
"""Passes that do what the profile says of a model, and that the reference has, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """The first output of a method that differs.

    Args:
        call: 0-based position among all calls.
        output: 0-based position of the output; -1 if the call failed.
        index: Of the first element that differs; empty unless it is a tensor's.
        got: What the product gives, as text.
        want: What the reference gives.
    """

    call: int
    output: int
    index: tuple[int, ...]
    got: str
    want: str

    @property
    def text(self) -> str:
        """For a line of a table."""
        where = f"call {self.call}"
        if self.output >= 0:
            where += f", output {self.output}"
        if self.index:
            where += f" {list(self.index)}"
        return f"{where}: {self.got}, reference {self.want}"


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodVerdict:
    """What was found of one method.

    Args:
        method: Of the product.
        runs: How many of its calls were compared.
        outputs: How many outputs of them.
        difference: The first one; None if all bits are equal.
    """

    method: ProductMethod
    runs: int
    outputs: int
    difference: Difference | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Both products' outputs, compared.

    Args:
        methods: In the product's order; those that cannot be called with random inputs
            and are in no scenario have no runs.
        calls: What was carried out.
        results: What the reference gave.
        refused: Random calls that were left out, as the reference refuses them.
    """

    methods: tuple[MethodVerdict, ...]
    calls: tuple[Call, ...]
    results: tuple[CallResult, ...]
    refused: int = 0

    @property
    def is_equal(self) -> bool:
        """Whether no bit differs."""
        return not self.differing

    @property
    def differing(self) -> tuple[str, ...]:
        """Models of the methods that differ."""
        return tuple(m.method.model for m in self.methods if m.difference is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What is tried.

    Args:
        runs: Random calls of each method.
        seed: Of their inputs.
        scenario: A scenario whose calls follow; None without.
        timeout_s: Of a run of all calls.
        on: The device that has the product's firmware; None: this machine or an emulator.
    """

    # As [test] of profiles. Two in each order of the methods and of each kind of sizes
    # (`_random_calls`, `_value`).
    runs: int = 4
    seed: int = 0
    scenario: Path | None = None
    timeout_s: float = 600.0
    on: Device | None = None


def trial_of(profile: Profile) -> Trial:
    """What the profile wants to be tried, with its scenario."""
    table = profile.test
    return Trial(runs=table.runs, seed=table.seed, scenario=own_scenario(profile))


def reference_profile(profile: Profile) -> Profile:
    """The profile of the reference, for the development machine."""
    on_host = host_profile(profile)
    models = tuple(
        model.model_copy(
            update={
                "load": Load.PTE,
                # The reference may take longer than the device's limit allows: what is
                # compared are values.
                "max_instructions": 0,
                "update": False,
                "io_": None if model.io_ is None else model.io_.whole(),
            }
        )
        for model in on_host.models
    )
    memory = on_host.memory.model_copy(
        update={"planner": Planner.SEPARATE, "fuse": Fuse.OFF, "concurrency": Concurrency.PARALLEL}
    )
    # A pass that the profile skips is skipped in the reference, too.
    skip = tuple(sorted({*PASSES} - (ASKED - {*profile.passes.skip})))
    passes = profile.passes.model_copy(update={"skip": skip})
    return on_host.model_copy(update={"models": models, "memory": memory, "passes": passes})


def judge(project: Project, trial: Trial, shell: Shell) -> Verdict:
    """Run a built product and its reference, and compare all bits of all outputs.

    Args:
        project: The product; its build is current.
        trial: What is tried.
        shell: Tools to build the reference with.

    Raises:
        UsageError: The scenario does not fit, or the program refuses a call of it
            (`bad-scenario`), or all random ones (`nothing-to-test`).
        ToolchainError: Nothing here runs the firmware.
        OrchestratorError: The reference cannot be built, or a firmware failed.
    """
    product = product_of(project)
    need_runnable(product, trial.on)
    # The reference first: calls that the program itself refuses are no difference.
    variants = _Variants(project, trial, shell)
    tried, path = _random_calls(product, trial), trial.scenario
    more = () if path is None else scenario_of(path, product).calls
    profile = with_programs(project, shell)
    calls, want = variants.reference(profile, "reference", tried, more)
    firmware = (project.folder / product.firmware).resolve()
    found = _verdict(product, calls, _run(product, firmware, calls, trial, trial.on), want)
    if not calls:
        raise UsageError.of(
            "nothing-to-test",
            "no call of the product could be compared",
            found="no random values for the inputs, or the program refused every call",
            hint="write a scenario, and name it with --scenario",
        )
    return replace(found, refused=len(tried + more) - len(calls))


def need_equal(project: Project, shell: Shell) -> Verdict:
    """Compare a built product with its program, as the profile wants it.

    Raises:
        MismatchError: They differ (`differs-from-program`).
        OrchestratorError: As `judge`.
    """
    verdict = judge(project, trial_of(project.profile), shell)
    if not verdict.is_equal:
        raise problems_of(project.profile, verdict)
    return verdict


def _run(
    product: Product, firmware: Path, calls: Sequence[Call], trial: Trial, on: Device | None = None
) -> tuple[CallResult, ...]:
    """Results of calls, up to the first that fails."""
    methods = {(m.model, m.name): m for m in product.methods}
    # Indices of methods may differ between product and reference; names do not.
    own = [replace(c, method=methods[c.method.model, c.method.name]) for c in calls]
    if not own:
        return ()
    return carry_out(product, firmware, own, timeout_s=trial.timeout_s, on=on).results


@dataclass(frozen=True, slots=True)
class _Variants:
    """Builds and runs products beside a product."""

    project: Project
    trial: Trial
    shell: Shell

    def reference(
        self, profile: Profile, name: str, calls: Calls, more: Calls = ()
    ) -> tuple[Calls, tuple[CallResult, ...]]:
        """The calls that the reference of a profile carries out, and its results.

        Random sizes and indices may be none that the program takes: such a call ends a
        run, and is left out; the next one begins anew. One of a scenario is an error.
        """
        rest, kept = calls + more, calls[:0]
        results: tuple[CallResult, ...] = ()
        with exclusive(self.project.folder):
            product, firmware = self._built(reference_profile(profile), name)
            while rest:
                found = _run(product, firmware, rest, self.trial)
                done = tuple(x for x in found if x.error is DeviceError.Ok)
                kept, results = kept + rest[: len(done)], results + done
                if len(done) < len(found) and len(rest) - len(done) <= len(more):
                    number = len(more) - len(rest) + len(done)
                    error, method = found[-1].error, more[number].method
                    raise UsageError.of(
                        "bad-scenario",
                        f"the program refuses call {number} of the scenario: {method}",
                        where=SourceSpan(file=str(self.trial.scenario)),
                        found=f"{error.name}: {error.meaning}",
                        hint="correct the inputs of the call, or leave it out",
                    )
                rest = rest[len(found) :]
                # State after a refused call is whatever the call left: the next one
                # begins anew, in the product as well. Before, each refused call made
                # all calls run again from the start.
                rest = (*(replace(c, fresh=True) for c in rest[:1]), *rest[1:])
        return kept, results

    def results(
        self, profile: Profile, name: str, calls: Sequence[Call]
    ) -> tuple[Product, tuple[CallResult, ...]]:
        """The results of a variant of the product."""
        with exclusive(self.project.folder):
            product, firmware = self._built(without_bounds(profile), name)
            return product, _run(product, firmware, calls, self.trial)

    def _built(self, profile: Profile, name: str) -> tuple[Product, Path]:
        report = build_variant(self.project, profile, f"test {name}", self.shell)
        product = read_product(read_text_file(report.folder / "product.json"))
        return product, (report.folder / product.firmware).resolve()


def _random_calls(product: Product, trial: Trial) -> tuple[Call, ...]:
    """Calls of all methods, to and fro: each after each other, and twice in a row."""
    random = np.random.default_rng(trial.seed)
    calls: list[Call] = []
    for model in product.models:
        methods = [m for m in product.methods if m.model == model]
        for run in range(trial.runs):
            # Methods that share state, an arena or scratch memory disturb each other in
            # one order and not in the other.
            for method in methods[:: -1 if run % 2 else 1]:
                values = [_value(port, random, run) for port in method.inputs]
                inputs = tuple(value for value in values if value is not None)
                if len(inputs) == len(values):
                    calls.append(Call(method=method, inputs=inputs))
    return tuple(calls)


def _value(port: Port, random: np.random.Generator, run: int) -> RunValue | None:
    """A random input; every other time, sizes that may change are about half as large.

    Those with bounds all at once; else in turn: programs do not say which may change.
    """
    if port.is_dynamic and run % 2:
        sizes = [*port.sizes]
        above = [n for n, size in enumerate(sizes) if size > 1]
        free = [SizeBound(input=0, dim=n, least=1, step=1) for n in above]
        turn = run // 2 % max(1, len(free))
        for bound in port.bounds or free[turn : turn + 1]:
            least, step = bound.least, bound.step
            # The size nearest to half of the largest one that the export allows.
            steps = (sizes[bound.dim] // 2 - least + step // 2) // step
            sizes[bound.dim] = least + max(0, steps) * step
        port = port.model_copy(update={"sizes": tuple(sizes)})
    return random_input(port, random)


def _verdict(
    product: Product, calls: Calls, got: tuple[CallResult, ...], want: tuple[CallResult, ...]
) -> Verdict:
    first: dict[int, Difference] = {}
    for number, (call, one, other) in enumerate(zip(calls, got, want, strict=False)):
        ports = product.methods[call.method.index].outputs
        found = next(_differences(number, one, other, ports), None)
        if found is not None:
            first.setdefault(call.method.index, found)
    runs = Counter(c.method.index for c, *_ in zip(calls, got, want, strict=False))
    return Verdict(
        methods=tuple(
            MethodVerdict(
                method=method,
                runs=runs[method.index],
                outputs=runs[method.index] * len(method.outputs),
                difference=first.get(method.index),
            )
            for method in product.methods
        ),
        calls=calls,
        results=want,
    )


def _differences(
    number: int, got: CallResult, want: CallResult, ports: Sequence[Port]
) -> Iterator[Difference]:
    # A status is an output, too: the same call must be refused for the same reason.
    if got.error is not want.error:
        yield Difference(call=number, output=-1, index=(), got=got.error.name, want=want.error.name)
        return
    pairs = zip(got.outputs, want.outputs, ports, strict=True)
    for output, (one, other, port) in enumerate(pairs):
        for index, ours, theirs in _values(one, other, port):
            yield Difference(call=number, output=output, index=index, got=ours, want=theirs)


def _values(
    got: RunValue, want: RunValue, port: Port
) -> Iterator[tuple[tuple[int, ...], str, str]]:
    """Where two values first differ in a bit: index, and both as text."""
    if isinstance(got, Array) and isinstance(want, Array):
        if got.shape != want.shape or got.dtype != want.dtype:
            yield (), str(got), str(want)
        # Bytes first: nearly always equal, and then no array is made.
        elif got.data != want.data:
            ours, theirs = (decoded(x, port.dtype) for x in (got, want))
            # Both parts of complex numbers, each on its own.
            # Complex numbers with a NaN in one part compare as different from
            # themselves, whatever the other part is.
            a, b = (x.view(x.real.dtype).reshape(x.size, -1) for x in (ours, theirs))
            bits = f"u{a.itemsize}"
            differ = a.view(bits) != b.view(bits)
            # The sign of NaN depends on the processor.
            differ &= (a == a) | (b == b)  # noqa: PLR0124
            for at in np.nonzero(differ.any(1))[0][:1]:
                yield index_of(int(at), got.shape), str(ours[at]), str(theirs[at])
    elif isinstance(got, ListValue) and isinstance(want, ListValue):
        if len(got.items) != len(want.items):
            yield (), f"{len(got.items)} items", f"{len(want.items)} items"
        items = zip(got.items, want.items, port.items or repeat(port), strict=False)
        for number, item in enumerate(items):
            yield from (((number, *i), a, b) for i, a, b in _values(*item))
    elif repr(got) != repr(want):
        yield (), repr(got), repr(want)


def bisect(project: Project, verdict: Verdict, trial: Trial, shell: Shell) -> dict[str, str]:
    """Find the first pass, or the part of the plan, without which the bits are equal.

    Each model is looked at by itself: another one may differ for another reason.

    Args:
        project: The product.
        verdict: That there is a difference.
        trial: The one that found it.
        shell: Tools to build variants with.

    Returns:
        By model that differs: what it is, and the first instruction whose result
        differs, where that shows.

    Raises:
        OrchestratorError: A variant cannot be built or run.
    """
    causes = {}
    for model in dict.fromkeys(verdict.differing):
        search = _Search(verdict, model, _Variants(project, trial, shell))
        causes[model] = search.culprit() + search.instruction()
    return causes


class _Search:
    """Builds and runs variants of a product, a model of which differs from its program."""

    def __init__(self, verdict: Verdict, model: str, variants: _Variants) -> None:
        self._verdict = verdict
        self._model = model
        self._variants = variants
        self._profile = with_programs(variants.project, variants.shell)

    def culprit(self) -> str:
        """What makes the difference; the profile then has little beside it."""
        profile = self._profile
        if profile.memory.fuse is not Fuse.OFF:
            self._profile = self._memory(fuse=Fuse.OFF)
            if not self._differs("whole tensors"):
                self._profile = profile
                return "running by rows (memory.fuse)"
        names = [n for n in PASSES if n not in {*profile.passes.skip, *ASKED}]
        profile = self._profile

        def with_first(count: int) -> bool:
            skip = tuple(sorted({*profile.passes.skip, *names[count:]}))
            table = profile.passes.model_copy(update={"skip": skip})
            self._profile = profile.model_copy(update={"passes": table})
            return self._differs(f"{count} passes")

        # With no pass at all, what remains is the plan or the target.
        if with_first(0):
            profile = self._profile
            self._profile = self._memory(planner=Planner.SEPARATE)
            if self._differs("separate values"):
                return "kernels or generated code of the target"
            self._profile = profile
            return "the plan of memory (memory.planner)"
        low, high = 0, len(names)
        # Passes run in one order, so the first k of them are a product of their own,
        # and k is found by bisection.
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if with_first(middle) else (middle, high)
        with_first(high)
        return f"the pass {names[high - 1]}"

    def instruction(self) -> str:
        """The first call whose result differs, for the end of a sentence.

        Results of all calls become outputs for this, which may hide the difference;
        models of several methods are not looked at.
        """
        model = self._model
        found, *others = (m for m in self._verdict.methods if m.method.model == model)
        name = found.method.name
        # Outputs of all calls keep values alive, and state of other methods would be
        # left out of the changed program.
        if others:
            return ""
        variants = self._variants
        options = variants.project.options
        project = Project(self._profile, options)
        changed, probes = probed_program(project, model, name, variants.shell)
        calls = tuple(c for c in self._verdict.calls if c.method is found.method)
        with tempfile.TemporaryDirectory(prefix="orchestrator-test-") as folder:
            path = Path(folder) / "probed.pte"
            with path.open("wb") as file:
                # In pieces: the program may have more constants than there is memory to
                # spare.
                file.writelines(chunks_of(write_program(changed)))
            profile = with_files(self._profile, {model: path})
            calls, want = variants.reference(profile, "reference of results", calls)
            product, got = variants.results(profile, "results", calls)
        first = _verdict(product, calls, got, want)
        shown = [m.difference.output for m in first.methods if m.difference is not None]
        return "".join(
            f", instruction {p.instruction} of {model}.{name} ({p.operator})"
            for p in probes
            if p.output in shown
        )

    def _differs(self, name: str) -> bool:
        verdict = self._verdict
        product, got = self._variants.results(self._profile, name, verdict.calls)
        return self._model in _verdict(product, verdict.calls, got, verdict.results).differing

    def _memory(self, **update: object) -> Profile:
        table = self._profile.memory.model_copy(update=update)
        return self._profile.model_copy(update={"memory": table})


def problems_of(
    profile: Profile, verdict: Verdict, causes: Mapping[str, str] = MappingProxyType({})
) -> MismatchError:
    """The error about a product that differs from its program.

    Args:
        profile: Of the product.
        verdict: With differences.
        causes: What `bisect` found, by model; empty if it was not asked.
    """
    return MismatchError(
        [
            Diagnostic.of(
                "differs-from-program",
                f"{m.method} differs from its program",
                where=SourceSpan(file=str(profile.file)),
                found=m.difference.text,
                **({"cause": causes[m.method.model]} if causes else {}),
                hint="this is a bug of Orchestrator: please report it, with the program"
                if causes
                else "add --bisect to find the pass or the part of the plan",
            )
            for m in verdict.methods
            if m.difference is not None
        ]
    )
