"""Products made ready to measure a run: the built one, or a variant beside it.

On a host a variant with trace hooks is built and its clock is read around every
instruction. On an emulated board the emulator sees everything, so that the firmware is
the one that ships, without hooks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.build.side import built, variant_beside
from orchestrator.build.variant import without_bounds
from orchestrator.errors import CompileError, Diagnostic
from orchestrator.memory.plan import method_symbol
from orchestrator.memory.product import instruction_bytes, instructions_offset
from orchestrator.method.compact import table_layout
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.program.program import DelegateCall, KernelCall
from orchestrator.running.counting import CountPlan, Table
from orchestrator.running.product import Product, read_product
from orchestrator.shell.files import read_text_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from orchestrator.build.pipeline import Pipeline
    from orchestrator.measure.size import SizeReport
    from orchestrator.program.program import Instruction, Method
    from orchestrator.running.costs import Operators
    from orchestrator.shell.reporter import Reporter


@dataclass(frozen=True, slots=True, kw_only=True)
class Instrument:
    """A firmware that can be measured, and what its instructions mean.

    Args:
        product: What it is.
        firmware: The program.
        operators: By index of the method in the product's method table.
        plan: For boards: what the emulator is to count.
    """

    product: Product
    firmware: bytes
    operators: Mapping[int, Operators]
    plan: CountPlan | None


def instrument(base: Pipeline, reporter: Reporter) -> Instrument:
    """A product ready to be measured; outputs, lock and notes stay as they are.

    Raises:
        OrchestratorError: The product is not built as it is now (`no-report`,
            `stale-build`), or its variant cannot be built.
    """
    is_host = base.target.board is None
    with built(base) as now:
        folder, report = base.folder, now
        if base.profile.trace.enable != is_host:
            trace = base.profile.trace.model_copy(update={"enable": is_host})
            profile = without_bounds(base.profile).model_copy(update={"trace": trace})
            name = "with trace hooks" if is_host else "without trace hooks"
            folder, report = variant_beside(base, profile, name, reporter)
        product = read_product(read_text_file(folder / "product.json"))
        firmware = (folder / product.firmware).read_bytes()
    methods = _methods(base)
    return Instrument(
        product=product,
        firmware=firmware,
        operators={index: _operators(method) for index, method in enumerate(methods)},
        plan=None if is_host else _plan(base, report, product, methods),
    )


def _methods(base: Pipeline) -> list[Method | LinkedMethod]:
    """Methods in the order of the product's table, as the device runs them."""
    plan = base.plan(with_toolchain=False)
    linked = base.linked(plan)
    return [
        linked[name][index] if name in linked else method
        for name, program in base.built(plan).items()
        for index, method in enumerate(program.methods)
    ]


def _operators(method: Method | LinkedMethod) -> Operators:
    if isinstance(method, LinkedMethod):
        return tuple(
            str(i.operator) if isinstance(i, LinkedCall) else ""
            for i in method.instructions
        )
    return tuple(_called(i, method) for i in method.instructions)


def _called(instruction: Instruction, method: Method) -> str:
    """An operator, or the backend of a delegate."""
    match instruction:
        case KernelCall(operator=operator):
            return str(method.operators[operator])
        case DelegateCall(delegate=delegate):
            return method.delegates[delegate].backend
    return ""


_LOADERS = ("orch::load_linked", "orch::start_prelinked")


def _plan(
    base: Pipeline,
    report: SizeReport,
    product: Product,
    methods: list[Method | LinkedMethod],
) -> CountPlan:
    """Where the firmware has what is to be counted."""
    symbols = {s.name: s for s in report.symbols}
    missing = [] if "orch::execute" in symbols else ["orch::execute"]
    pointer_bytes = base.target.cpu.pointer_bytes
    linked = base.linked(base.plan(with_toolchain=False))
    compact = table_layout(base.programs, linked).compact
    tables = []
    for described, method in zip(product.methods, methods, strict=True):
        symbol = method_symbol(product.profile, described.model, described.name)
        offset, end = 0, "code" if compact else "instructions"
        if not isinstance(method, LinkedMethod):
            offset = instructions_offset(method, pointer_bytes=pointer_bytes)
            end = "state"
        name = f"orch::(anonymous namespace)::{symbol}_{end}"
        count = len(method.instructions)
        if name not in symbols and count:
            missing.append(name)
        tables.append(
            Table(
                address=symbols[name].address + offset if name in symbols else 0,
                stride=instruction_bytes(pointer_bytes, compact=compact),
                count=count,
            )
        )
    if missing:
        raise CompileError(
            Diagnostic(
                code="not-countable",
                message="the firmware lacks what its instructions are counted by",
                notes=(("missing", ", ".join(missing)),),
                hint="build the profile again",
            )
        )
    executor = symbols["orch::execute"]
    return CountPlan(
        executor=(executor.address, executor.size_bytes),
        tables=tuple(tables),
        functions=tuple(symbols[n].address for n in _LOADERS if n in symbols),
    )
