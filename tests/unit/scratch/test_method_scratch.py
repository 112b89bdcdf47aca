"""Scratch memory that the calls of a method need."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.catalog import read_library
from orchestrator.core.dtype import ScalarType
from orchestrator.core.operator import OperatorName
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
from orchestrator.scratch import ScratchNeed, SizedKernel, UnknownSize, method_scratch

SCHEMA = (
    "my::f.out(Tensor self, int[] size, int rows, bool wide, float scale,"
    " Tensor scratch, Tensor? row_scratch, *, Tensor(a!) out) -> Tensor(a!)"
)
SIZES = """
    scratch: self.numel * self.dtype_bytes * size[1] + (1 if wide else 0)
    row_scratch: rows if isa == 'mve' else 2 * rows"""
PLAIN = "my::g.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)"


def kernel(sizes: str = SIZES, schema: str = SCHEMA) -> SizedKernel:
    scratch = f"  scratch: {sizes}\n" if sizes else ""
    text = f"- func: {schema}\n  kernels: [{{kernel_name: k::f}}]\n{scratch}"
    found = read_library(text, library="my", file="my/functions.yaml")[0]
    return SizedKernel(found.schema, found.library, found.scratch)


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


KERNEL = kernel()
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
CALL = KernelCall(operator=0, args=(SELF, SIZE, ROWS, WIDE, SCALE, SCRATCH, ROW_SCRATCH, OUT, OUT))


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


def scratch_of(
    of: Method, isa: str = "mve", kernel: SizedKernel | None = None
) -> list[ScratchNeed | UnknownSize]:
    """Scratch arguments of the last call of a method."""
    last = len(of.instructions) - 1
    return [*method_scratch(of, {last: kernel or KERNEL}, isa)]


def private(of: Method) -> list[bool]:
    needs = [need for need in scratch_of(of) if isinstance(need, ScratchNeed)]
    return [need.is_private for need in needs]


def need(argument: str, value: int, needed_bytes: int, reserved: int) -> ScratchNeed:
    return ScratchNeed(
        method="forward",
        instruction=0,
        operator="my::f.out",
        library="my",
        argument=argument,
        value=value,
        reserved_bytes=reserved,
        needed_bytes=needed_bytes,
        is_private=True,
    )


def test_needs_of_a_call() -> None:
    assert scratch_of(method()) == [
        need("scratch", SCRATCH, 25, 20),
        need("row_scratch", ROW_SCRATCH, 5, 40),
    ]
    assert scratch_of(method(), "dsp")[1] == need("row_scratch", ROW_SCRATCH, 10, 40)


def test_calls_without_a_kernel_are_skipped() -> None:
    free = FreeCall(value=SELF)
    kernels = {0: KERNEL, 1: KERNEL}
    assert [n.instruction for n in method_scratch(method(free), kernels, "mve")] == [1, 1]
    assert [*method_scratch(method(CALL), {}, "mve")] == []


def test_scratch_that_is_none_needs_nothing() -> None:
    none = method(values={ROW_SCRATCH: NoneValue()})
    assert [need.argument for need in scratch_of(none)] == ["scratch"]


def test_a_kernel_without_scratch() -> None:
    call = KernelCall(operator=0, args=(SELF, OUT, OUT))
    plain = replace(method(), instructions=(call,))
    assert scratch_of(plain, kernel=kernel("", PLAIN)) == []


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
    assert private(shared)[0] is False


def test_jumps_touch_no_tensor() -> None:
    jump = JumpFalseCall(condition=WIDE, destination=1)
    assert private(method(jump)) == [True, True]


@pytest.mark.parametrize(
    ("changing", "name"),
    [
        (method(inputs=(SELF, WIDE)), "wide"),
        (method(MoveCall(source=ITEM, target=WIDE)), "wide"),
        (method(KernelCall(operator=0, args=(SELF, ITEM))), "size"),
        (method(inputs=(ITEM,)), "size"),
    ],
)
def test_what_the_program_computes_has_no_size(changing: Method, name: str) -> None:
    first, second = scratch_of(changing)
    assert first == UnknownSize(
        instruction=len(changing.instructions) - 1,
        argument="scratch",
        expression="self.numel * self.dtype_bytes * size[1] + (1 if wide else 0)",
        reason=f"{name} is known only when the program runs",
    )
    assert isinstance(second, ScratchNeed)
