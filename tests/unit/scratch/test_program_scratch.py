"""Scratch memory that the calls of a method need."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.catalog import read_library
from orchestrator.catalog.scratch_arguments import ScratchRequest
from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, KernelError, SourceSpan
from orchestrator.program.program import (
    DelegateCall,
    FreeCall,
    Instruction,
    JumpFalseCall,
    KernelCall,
    Method,
    MoveCall,
)
from orchestrator.program.values import (
    Allocation,
    BoolValue,
    DoubleValue,
    Dynamism,
    IntListValue,
    IntValue,
    NoneValue,
    TensorListValue,
    TensorValue,
    Value,
)
from orchestrator.scratch.program_scratch import scratch_requests
from orchestrator.selection.call_facts import MethodFacts

if TYPE_CHECKING:
    from orchestrator.core.kernel import Kernel

SCHEMA = (
    "my::f.out(Tensor self, int[] size, int rows, bool wide, float scale,"
    " Tensor scratch, Tensor? row_scratch, *, Tensor(a!) out) -> Tensor(a!)"
)
SIZES = """
    scratch: self.numel * self.dtype_bytes * size[1] + (1 if wide else 0)
    row_scratch: rows if isa == 'mve' else 2 * rows"""
PLAIN = "my::g.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"


def kernel(sizes: str = SIZES, schema: str = SCHEMA) -> Kernel:
    scratch = f"  scratch: {sizes}\n" if sizes else ""
    text = f"- func: {schema}\n  kernels: [{{kernel_name: k::f}}]\n{scratch}"
    return read_library(text, library="my", file="my/functions.yaml")[0]


def tensor(size: int, **how: object) -> TensorValue:
    value = TensorValue(
        dtype=ScalarType.Short,
        sizes=(size,),
        dim_order=(0,),
        dynamism=Dynamism.STATIC,
        data_buffer_index=0,
        allocation=Allocation(memory_id=1, offset_bytes=0),
        extra=None,
        requires_grad=False,
    )
    return replace(value, **how)  # type: ignore[arg-type]  # names of its fields


SELF, SIZE, ROWS, WIDE, SCALE, SCRATCH, ROW_SCRATCH, OUT, ITEM, NONE, LIST = range(11)
VALUES: tuple[Value, ...] = (
    tensor(3),
    IntListValue((ITEM, ITEM)),
    IntValue(5),
    BoolValue(value=True),
    DoubleValue(0.5),
    tensor(10),
    tensor(20),
    tensor(3),
    IntValue(4),
    NoneValue(),
    TensorListValue((SCRATCH, SELF)),
)
CALL = KernelCall(
    operator=0, args=(SELF, SIZE, ROWS, WIDE, SCALE, SCRATCH, ROW_SCRATCH, OUT, OUT)
)


def method(
    *more: Instruction,
    values: dict[int, Value] | None = None,
    inputs: tuple[int, ...] = (SELF,),
    outputs: tuple[int, ...] = (OUT,),
) -> Method:
    return Method(
        name="forward",
        values=tuple((values or {}).get(n, v) for n, v in enumerate(VALUES)),
        inputs=inputs,
        outputs=outputs,
        instructions=(*more, CALL),
        operators=(OperatorName("my", "f", "out"),),
        delegates=(),
        arena_bytes=(0, 64),
    )


def request(
    argument: str, value: int, size_bytes: int, reserved: int
) -> ScratchRequest:
    return ScratchRequest(
        argument=argument,
        value=value,
        size_bytes=size_bytes,
        reserved_bytes=reserved,
        is_private=True,
    )


def test_requests_of_a_call() -> None:
    assert scratch_requests(method(), CALL, kernel(), "mve") == (
        request("scratch", SCRATCH, 25, 20),
        request("row_scratch", ROW_SCRATCH, 5, 40),
    )
    assert scratch_requests(method(), CALL, kernel(), "dsp")[1].size_bytes == 10


def test_facts_of_the_method_may_be_given() -> None:
    facts = MethodFacts.of(method())
    given = scratch_requests(method(), CALL, kernel(), "mve", facts=facts)
    assert given == scratch_requests(method(), CALL, kernel(), "mve")


def test_scratch_that_is_none_needs_nothing() -> None:
    none = method(values={ROW_SCRATCH: NoneValue()})
    requests = scratch_requests(none, CALL, kernel(), "mve")
    assert [r.argument for r in requests] == ["scratch"]


def test_a_kernel_without_scratch() -> None:
    call = KernelCall(operator=0, args=(SELF, OUT, OUT))
    assert scratch_requests(method(), call, kernel("", PLAIN), "mve") == ()


@pytest.mark.parametrize(
    "shared",
    [
        method(CALL),
        method(inputs=(SELF, SCRATCH)),
        method(outputs=(OUT, SCRATCH)),
        method(KernelCall(operator=0, args=(LIST,))),
        method(outputs=(LIST,)),
        method(DelegateCall(delegate=0, args=(SCRATCH,))),
        method(MoveCall(source=SCRATCH, target=SELF)),
        method(MoveCall(source=SELF, target=SCRATCH)),
        method(FreeCall(value=SCRATCH)),
        method(values={SCRATCH: tensor(10, allocation=None)}),
        method(values={SCRATCH: tensor(10, data_buffer_index=1)}),
        method(values={SCRATCH: tensor(10, allocation=None, data_buffer_index=1)}),
        method(values={SCRATCH: tensor(10, dynamism=Dynamism.BOUNDED)}),
    ],
)
def test_what_is_touched_elsewhere_is_not_private(shared: Method) -> None:
    (first, _) = scratch_requests(shared, CALL, kernel(), "mve")
    assert not first.is_private
    assert first.size_bytes == 25


def test_jumps_touch_no_tensor() -> None:
    jump = JumpFalseCall(condition=WIDE, destination=1)
    (first, second) = scratch_requests(method(jump), CALL, kernel(), "mve")
    assert first.is_private
    assert second.is_private


@pytest.mark.parametrize(
    ("changing", "name"),
    [
        (method(inputs=(SELF, WIDE)), "wide"),
        (method(MoveCall(source=ITEM, target=WIDE)), "wide"),
        (method(KernelCall(operator=0, args=(SELF, ITEM))), "size"),
        (method(inputs=(ITEM,)), "size"),
    ],
)
def test_what_the_program_computes_is_not_known(changing: Method, name: str) -> None:
    with pytest.raises(KernelError) as caught:
        scratch_requests(changing, CALL, kernel(), "mve")
    number = len(changing.instructions) - 1
    assert caught.value.diagnostics == (
        Diagnostic(
            code="no-scratch-size",
            message="`scratch` of scratch has no size for a call:"
            f" {name} is known only when the program runs",
            where=SourceSpan(file="my/functions.yaml", line=1),
            notes=(
                ("call", f"method forward, instruction {number}, my::f.out"),
                (
                    "found",
                    "self.numel * self.dtype_bytes * size[1] + (1 if wide else 0)",
                ),
            ),
            hint="correct the expression, or export the model again",
        ),
    )


def test_a_call_that_is_not_of_the_method_has_no_number() -> None:
    with pytest.raises(KernelError) as caught:
        scratch_requests(method(inputs=(WIDE,)), replace(CALL), kernel(), "mve")
    assert caught.value.diagnostics[0].notes[0] == ("call", "method forward, my::f.out")


def test_a_kernel_that_does_not_say_how_much() -> None:
    with pytest.raises(KernelError) as caught:
        scratch_requests(method(), CALL, kernel(""), "mve")
    assert caught.value.diagnostics == (
        Diagnostic(
            code="missing-scratch-size",
            message="nothing says how much scratch memory my::f.out needs",
            where=SourceSpan(file="my/functions.yaml", line=1),
            notes=(("found", f"scratch, row_scratch in {SCHEMA}"),),
            hint="add `scratch` to this entry, docs/scratch.md tells how",
        ),
    )
