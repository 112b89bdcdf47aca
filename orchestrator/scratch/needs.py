"""Scratch memory that calls need: one record per scratch argument, and the walk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from orchestrator.catalog.expressions.condition import scratch_bytes
from orchestrator.catalog.expressions.values import ExpressionError
from orchestrator.catalog.scratch_arguments import entry_of, scratch_arguments
from orchestrator.core.kernel import Kernel
from orchestrator.core.operator import OpSchema
from orchestrator.errors import Diagnostic, KernelError, SourceSpan
from orchestrator.planner.policy import ScratchPolicy
from orchestrator.program.program import KernelCall, Method, Program
from orchestrator.program.values import TensorValue
from orchestrator.selection.call import MethodFacts, call_arguments

if TYPE_CHECKING:
    from orchestrator.selection.resolution import Resolution

    Sizes = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SizedKernel:
    """What the sizes of a kernel's scratch arguments are computed from.

    Args:
        schema: Of the operator.
        library: Kernel library that it is from.
        sizes: (argument, expression for its size in bytes).
    """

    schema: OpSchema
    library: str
    sizes: Sizes


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class ScratchNeed:
    """Scratch memory of one argument of one call.

    Args:
        method: Name of the method.
        instruction: Index in the program.
        operator: Text of the operator's name.
        library: Kernel library whose kernel serves the call.
        argument: Name in the op schema.
        value: Index of the tensor that the call passes for it.
        reserved_bytes: Size in the program.
        needed_bytes: Size that the kernel needs on this target.
        is_private: The tensor is planned memory that nothing else in the method
            touches, so its size and place may change.
    """

    method: str
    instruction: int
    operator: str
    library: str
    argument: str
    value: int
    reserved_bytes: int
    needed_bytes: int
    is_private: bool

    @property
    def size_bytes(self) -> int:
        """Size in the product under the policy `plan`."""
        return self.needed_bytes if self.is_private else self.reserved_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownSize:
    """A scratch argument of a call for which its expression has no result."""

    instruction: int
    argument: str
    expression: str
    reason: str


def method_scratch(
    method: Method, kernels: Mapping[int, SizedKernel], isa: str
) -> Iterator[ScratchNeed | UnknownSize]:
    """Scratch arguments of the calls of a method, in order of instructions.

    An optional argument that is None needs nothing. Tensors of dynamic sizes count
    with their upper bounds.

    Args:
        method: The method; its calls fit the schemas of their kernels.
        kernels: By instruction; other instructions are skipped.
        isa: Of the target.
    """
    sized = {number: kernel for number, kernel in kernels.items() if kernel.sizes}
    if not sized:
        return  # the facts of a large method are not free
    facts = MethodFacts.of(method)
    for number, call in enumerate(method.instructions):
        kernel = sized.get(number)
        if kernel is None or not isinstance(call, KernelCall):
            continue
        schema, expressions = kernel.schema, dict(kernel.sizes)
        arguments = call_arguments(method, call, schema, facts)
        for position, argument in scratch_arguments(schema):
            index = call.args[position]
            tensor = method.values[index]
            expression = expressions.get(argument.name)
            if expression is None or not isinstance(tensor, TensorValue):
                continue
            try:
                needed_bytes = scratch_bytes(expression, schema, arguments, isa)
            except ExpressionError as error:
                yield UnknownSize(
                    instruction=number,
                    argument=argument.name,
                    expression=expression,
                    reason=str(error),
                )
                continue
            yield ScratchNeed(
                method=method.name,
                instruction=number,
                operator=str(schema.name),
                library=kernel.library,
                argument=argument.name,
                value=index,
                reserved_bytes=tensor.size_bytes,
                needed_bytes=needed_bytes,
                # Only then may the plan make the tensor smaller or larger: another use
                # would read it with its own size.
                is_private=_holds_scratch_only(tensor) and facts.uses[index] == 1,
            )


def _holds_scratch_only(tensor: TensorValue) -> bool:
    """Whether a tensor that is used once has no content to keep."""
    is_static = not tensor.is_dynamic and tensor.data_buffer_index == 0
    return tensor.is_planned and is_static


def product_scratch(
    programs: Mapping[str, Program],
    resolution: Resolution,
    isa: str,
    *,
    sizes: Callable[[Kernel], Sizes] = attrgetter("scratch"),
) -> dict[str, tuple[ScratchNeed, ...]]:
    """Scratch memory of all calls that have a kernel, by model.

    Args:
        programs: By model name.
        resolution: Kernels of the calls.
        isa: Of the target.
        sizes: Expressions of a kernel; by default its own.

    Raises:
        KernelError: Every call whose size is unknown (`no-scratch-size`).
    """
    by_method: dict[tuple[str, str], dict[int, Kernel]] = {}
    for operator in resolution.operators:
        for binding in operator.bindings:
            for origin in binding.origins:
                key = (origin.source, origin.method)
                by_method.setdefault(key, {})[origin.instruction] = binding.kernel
    found: dict[str, tuple[ScratchNeed, ...]] = {}
    problems: list[Diagnostic] = []
    for model, program in programs.items():
        needs: list[ScratchNeed] = []
        for method in program.methods:
            kernels = by_method.get((model, method.name), {})
            sized = {
                number: SizedKernel(kernel.schema, kernel.library, sizes(kernel))
                for number, kernel in kernels.items()
            }
            for need in method_scratch(method, sized, isa):
                if isinstance(need, ScratchNeed):
                    needs.append(need)
                else:
                    kernel = kernels[need.instruction]
                    problems.append(_unknown_size(method.name, kernel, need))
        found[model] = tuple(needs)
    if problems:
        raise KernelError(problems)
    return found


def _unknown_size(method: str, kernel: Kernel, unknown: UnknownSize) -> Diagnostic:
    return Diagnostic.of(
        "no-scratch-size",
        f"`scratch` of {unknown.argument} has no size for a call: {unknown.reason}",
        where=entry_of(kernel),
        call=f"method {method}, instruction {unknown.instruction}, {kernel.operator}",
        found=unknown.expression,
        hint="correct the expression, or export the model again",
    )


def policy_problems(
    needs: Iterable[ScratchNeed],
    policy: ScratchPolicy,
    *,
    model: str,
    isa: str,
    where: SourceSpan | None,
) -> Iterator[Diagnostic]:
    """Scratch tensors that the policy of a profile does not allow.

    Args:
        needs: Of the program.
        policy: `plan` resizes private tensors, `verify` resizes nothing, and `keep`
            compares nothing.
        model: Its name.
        isa: Of the target.
        where: The profile line that names the model.

    Yields:
        `scratch-mismatch` under `verify`: the program has more or less than is needed.
        `scratch-too-small` under `plan`: it has too little in a tensor that must not
        change.
    """
    for need in needs:
        differs = need.reserved_bytes != need.needed_bytes
        if policy is ScratchPolicy.VERIFY and differs:
            code = "scratch-mismatch"
            hint = 'write policy = "plan" in [scratch], or export the model for this core'
        elif policy is ScratchPolicy.PLAN and need.size_bytes < need.needed_bytes:
            code = "scratch-too-small"
            hint = "export the model again: something else uses this scratch tensor"
        else:
            continue
        yield Diagnostic.of(
            code,
            f'model "{model}" has {need.reserved_bytes} bytes of scratch'
            f" memory where {need.operator} needs {need.needed_bytes}",
            where=where,
            method=need.method,
            instruction=f"{need.instruction}, argument {need.argument}",
            found=f"{need.reserved_bytes} bytes (value {need.value})",
            expected=f"{need.needed_bytes} bytes with {isa}",
            hint=hint,
        )
