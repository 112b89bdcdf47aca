"""Scratch memory of the calls of a product."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast

from orchestrator.catalog.cmsis_nn_operators import cmsis_nn_sizes
from orchestrator.errors import Diagnostic, KernelError
from orchestrator.scratch.program_scratch import scratch_requests
from orchestrator.selection.call_facts import MethodFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from orchestrator.catalog.scratch_arguments import ScratchRequest
    from orchestrator.core.kernel import Kernel
    from orchestrator.program.program import KernelCall, Method, Program
    from orchestrator.selection.op_info import OpCall, OpInfo
    from orchestrator.selection.resolution import Resolution


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchCall:
    """One scratch argument of one call.

    Args:
        model: Whose call it is.
        method: Likewise.
        instruction: Its index in the method.
        operator: That is called.
        argument: Name in the op schema.
        value: Index of the tensor that the call gives.
        library: Whose kernel serves the call.
        reserved_bytes: What the program has.
        cmsis_nn_bytes: What CMSIS-NN would need; None if it has no such operator.
        needed_bytes: What the kernel needs.
    """

    model: str
    method: str
    instruction: int
    operator: str
    argument: str
    value: int
    library: str
    reserved_bytes: int
    cmsis_nn_bytes: int | None
    needed_bytes: int


def scratch_calls(
    programs: Mapping[str, Program],
    infos: Iterable[OpInfo],
    resolution: Resolution,
    isa: str,
) -> tuple[ScratchCall, ...]:
    """Scratch arguments of all calls, in the order of models and instructions.

    Args:
        programs: By model name.
        infos: Of the models; their order is kept.
        resolution: Has the kernels. A call that it has none for is left out.
        isa: Of the target.

    Raises:
        KernelError: Every call whose size cannot be told.
    """
    kernels = {
        (operator.name, key): binding.kernel
        for operator in resolution.operators
        for binding in operator.bindings
        for key in binding.keys
    }
    found: list[ScratchCall] = []
    problems: list[Diagnostic] = []
    for info in infos:
        methods = {m.name: m for m in programs[info.model].methods}
        facts = {name: MethodFacts.of(method) for name, method in methods.items()}
        for call in info.calls:
            kernel = kernels.get((call.operator, call.pattern.key))
            if kernel is None or not kernel.scratch:
                continue
            asked = _Asked(methods[call.method], facts[call.method], call, isa)
            try:
                found += asked.calls(info.model, kernel)
            except KernelError as error:
                problems += error.diagnostics
    if problems:
        raise KernelError(problems)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A call that is asked about."""

    method: Method
    facts: MethodFacts
    call: OpCall
    isa: str

    def requests(self, kernel: Kernel) -> tuple[ScratchRequest, ...]:
        """What a kernel would need for it. Raises KernelError."""
        instruction = self.method.instructions[self.call.instruction]
        # What was extracted as a call is one.
        called = cast("KernelCall", instruction)
        return scratch_requests(self.method, called, kernel, self.isa, facts=self.facts)

    def calls(self, model: str, kernel: Kernel) -> Iterator[ScratchCall]:
        """Its scratch arguments. Raises KernelError."""
        expressions = cmsis_nn_sizes(kernel.schema)
        as_cmsis_nn = replace(kernel, scratch=expressions)
        others = self.requests(as_cmsis_nn) if expressions else ()
        sizes = {request.argument: request.size_bytes for request in others}
        for request in self.requests(kernel):
            yield ScratchCall(
                model=model,
                method=self.method.name,
                instruction=self.call.instruction,
                operator=str(self.call.operator),
                argument=request.argument,
                value=request.value,
                library=kernel.library,
                reserved_bytes=request.reserved_bytes,
                cmsis_nn_bytes=sizes.get(request.argument),
                needed_bytes=request.size_bytes,
            )
