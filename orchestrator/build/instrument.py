"""Products prepared for measuring a run: the built one, or a variant beside it.

On a host a variant with trace hooks is built and its clock is read around every
instruction. On an emulated board the emulator counts, so the firmware measured is
the one that ships, without hooks. A device has the built one, which needs hooks to
read the core's counter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from orchestrator.build import inputs, table
from orchestrator.build.engine import Build
from orchestrator.build.product import build_variant, known_outputs
from orchestrator.build.project import Project, Shell, open_build
from orchestrator.build.report_file import last_report
from orchestrator.build.variant import Variant, without_bounds
from orchestrator.errors import CompileError, SourceSpan, UsageError
from orchestrator.measure.elf import ElfFile
from orchestrator.measure.size import SizeReport
from orchestrator.measure.thumb import events
from orchestrator.memory.plan import method_symbol
from orchestrator.memory.product import instructions_offset
from orchestrator.method.compact import instruction_bytes, table_layout
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.method.steps import is_given, step_table
from orchestrator.program.program import DelegateCall, Instruction, KernelCall, Method
from orchestrator.running.costs import Counter, CycleEstimate, Operators
from orchestrator.running.counting import Code, CountPlan, Table
from orchestrator.running.device import Device
from orchestrator.running.product import Product, read_product
from orchestrator.shell.build_folder import exclusive
from orchestrator.shell.files import read_text_file
from orchestrator.targets.timing import TIMINGS

# What-if: the cost of a product, and its cost with a change.


def what_if(project: Project, variant: Variant, shell: Shell) -> tuple[SizeReport, SizeReport]:
    """The cost of a product, and its cost with a change.

    The variant is really built. Outputs, lock and notes of the product do not
    change; another build of it waits.

    Raises:
        OrchestratorError: The product has no current build (`no-report`,
            `stale-build`), the change makes no sense (see `Variant.of`), or the variant
            cannot be built.
    """
    with built(project, shell) as now:
        profile = variant.of(project.profile, now.operators)
        return now, build_variant(project, profile, variant.text, shell).report


@contextmanager
def built(project: Project, shell: Shell) -> Iterator[SizeReport]:
    """The cost of a product; its build folder is locked meanwhile.

    Raises:
        UsageError: It is not built (`no-report`), or changed since (`stale-build`).
    """
    last_report(project)
    with exclusive(project.folder):
        build = open_build(project, shell)
        # A build over its budget publishes nothing but leaves a report, with which
        # what-ifs are asked most.
        is_known = known_outputs(project, build) is not None
        report = build.remembered(table.MEASURE)
        if report is None or not (is_known or project.over_budget.is_dir()):
            raise UsageError.of(
                "stale-build",
                f"something changed since {project.profile.name} was built",
                found=f"an older build in {project.folder}",
                hint=f"run `orchestrator build {project.profile.named}` first",
            )
        yield report


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """A firmware that can be measured, with the operators of its instructions.

    Args:
        product: The product it was built from.
        firmware: The program.
        operators: By index of the method in the product's method table.
        plan: For emulated boards: what the emulator counts.
        estimate: For emulated boards with cores whose cycles are known.
        counter: For devices: what counts.
    """

    product: Product
    firmware: bytes
    operators: Mapping[int, Operators]
    plan: CountPlan | None
    estimate: CycleEstimate | None
    counter: Counter | None = None


def instrument(project: Project, shell: Shell, on: Device | None = None) -> Instrument:
    """Prepare a product for measuring; outputs, lock and notes do not change.

    Args:
        project: It is built.
        shell: Builds a variant.
        on: The device that has the product; None: this machine, or an emulator.

    Raises:
        OrchestratorError: The product has no current build (`no-report`,
            `stale-build`), its variant cannot be built, or a device has it without
            hooks (`no-trace-hooks`).
    """
    build = open_build(project, shell)
    target = build[inputs.TARGET]
    needs_hooks = target.board is None or on is not None
    timing = None if needs_hooks else TIMINGS.get(target.cpu.name)
    wait_states = project.profile.target.flash_wait_states
    if on and not project.profile.trace.enable:
        raise UsageError.of(
            "no-trace-hooks",
            f"{project.profile.name} has no trace hooks, which read the counter of a device",
            where=SourceSpan(file=str(project.profile.file)),
            hint="write enable = true in [trace], build and flash it",
        )
    with built(project, shell) as now:
        folder, report = project.folder, now
        # Hooks cost instructions: on a board the emulator counts the very firmware that
        # ships; a host has no such counter, and its clock is read in the hooks.
        if project.profile.trace.enable != needs_hooks:
            trace = project.profile.trace.model_copy(update={"enable": needs_hooks})
            profile = without_bounds(project.profile).model_copy(update={"trace": trace})
            name = "with trace hooks" if needs_hooks else "without trace hooks"
            variant = build_variant(project, profile, name, shell)
            folder, report = variant.folder, variant.report
        product = read_product(read_text_file(folder / "product.json"))
        firmware = (folder / product.firmware).read_bytes()
    methods = _methods(build)
    code = _code(firmware) if timing else ()
    return Instrument(
        product=product,
        firmware=firmware,
        operators={index: _operators(method) for index, method in enumerate(methods)},
        plan=None if needs_hooks else _plan(build, report, product, methods, code),
        estimate=CycleEstimate(
            cpu=target.cpu.name,
            timing=timing,
            wait_states=wait_states,
            data_wait_states=project.profile.target.data_wait_states,
        )
        if timing
        else None,
        counter=Counter(
            device=str(on),
            board=product.board or "",
            counter="SysTick" if target.cpu.is_arm else "mcycle",
            wait_states=wait_states,
        )
        if on
        else None,
    )


def _methods(build: Build) -> list[Method | LinkedMethod]:
    """Methods in the order of the product's table, as the device runs them."""
    adapted = build[table.REPLAN]
    linked = adapted.linked
    return [
        linked[name][index] if name in linked else method
        for name, program in adapted.programs.items()
        for index, method in enumerate(program.methods)
    ]


def _operators(method: Method | LinkedMethod) -> Operators:
    if isinstance(method, LinkedMethod):
        return tuple(
            str(i.operator) if isinstance(i, LinkedCall) else "" for i in method.instructions
        )
    return tuple(_called(i, method) for i in method.instructions)


def _called(instruction: Instruction, method: Method) -> str:
    """The operator, or the backend of a delegate, that an instruction calls."""
    match instruction:
        case KernelCall(operator=operator):
            return str(method.operators[operator])
        case DelegateCall(delegate=delegate):
            return method.delegates[delegate].backend
    return ""


def _code(firmware: bytes) -> tuple[Code, ...]:
    """What the instructions of a firmware are, where they run."""
    file = ElfFile(firmware)
    return tuple(
        Code(address=section.address, events=events(file.contents(section)))
        for section in file.sections
        if section.is_code
    )


# C++ names of the runtime: a function that is renamed or inlined there fails as
# `not-countable`.
_STEPS = ("orch::execute_steps", "orch::make_step")
# What runs before the first instruction of a method is counted apart.
_LOADERS = ("orch::load_linked", "orch::start_prelinked")


def _plan(
    build: Build,
    report: SizeReport,
    product: Product,
    methods: list[Method | LinkedMethod],
    code: tuple[Code, ...],
) -> CountPlan:
    """The addresses in the firmware at which the emulator counts."""
    symbols = {s.name: s for s in report.symbols}
    missing = [] if "orch::execute" in symbols else ["orch::execute"]
    pointer_bytes = build[inputs.TARGET].cpu.pointer_bytes
    linked = build[table.REPLAN].linked
    layout = table_layout(build[inputs.PROGRAMS], linked)
    tables = []
    for described, method in zip(product.methods, methods, strict=True):
        symbol = method_symbol(product.profile, described.model, described.name)
        offset, end = 0, "code" if layout.compact else "instructions"
        if not isinstance(method, LinkedMethod):
            offset = instructions_offset(method, pointer_bytes=pointer_bytes)
            end = "state"
        count = len(method.instructions)
        stride = instruction_bytes(pointer_bytes, layout=layout)
        steps: tuple[int, ...] = ()
        pieces = 1
        if isinstance(method, LinkedMethod) and method.by_rows:
            steps = tuple(map(len, step_table(method).steps))
            end, count, stride = "steps", sum(steps), 1
            pieces += sum(map(is_given, method.instructions))
        # Tables are in an anonymous namespace of the generated source; the report has
        # names as the demangler writes them.
        name = f"orch::(anonymous namespace)::{symbol}_{end}"
        if name not in symbols and count:
            missing.append(name)
        tables.append(
            Table(
                address=symbols[name].address + offset if name in symbols else 0,
                stride=stride,
                count=count,
                steps=steps,
                pieces=pieces,
            )
        )
    if missing:
        raise CompileError.of(
            "not-countable",
            "the firmware lacks symbols needed to count instructions",
            missing=", ".join(missing),
            hint="build the profile again",
        )
    executor = symbols["orch::execute"]
    parts = [symbols[name] for name in _STEPS if name in symbols]
    return CountPlan(
        executor=(executor.address, executor.size_bytes),
        steps=tuple((part.address, part.size_bytes) for part in parts),
        tables=tuple(tables),
        functions=tuple(symbols[n].address for n in _LOADERS if n in symbols),
        code=code,
    )
