"""Unused calls: which are removed, and which must stay."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from orchestrator.catalog import read_library
from orchestrator.method.linked import LinkedCall
from orchestrator.method.passes import PASSES, run_passes
from orchestrator.method.passes.unused import STAY
from orchestrator.program.program import JumpFalseCall, MoveCall
from orchestrator.program.values import IntValue, TensorListValue
from tests.unit.method.machine import behaves_alike
from tests.unit.method.methods import Builder
from tests.unit.method.recorded_calls import KERNELS

if TYPE_CHECKING:
    from orchestrator.method.linked import LinkedMethod

DROP = "drop_unused_calls"
MUL = "orch::portable::mul_out"
CONTENT = bytes(range(40, 52))
LIBRARIES = ("cortex_m", "portable", "quantized")


def both(b: Builder, one: int, other: int, out: int, function: str = MUL) -> None:
    """A call that cannot fail."""
    b.call("aten::mul.out", one, other, out, function=function)


def dropped(method: LinkedMethod, *, same: bool = True) -> int:
    """How many calls the pass leaves out; the method computes what it did."""
    after = run_passes(method, [DROP])
    if same:
        behaves_alike(method, after, CONTENT)
    return len(method.instructions) - len(after.instructions)


def test_a_chain_that_nobody_reads_is_left_out() -> None:
    b = Builder()
    x, y, z, w, out = (b.tensor((8,), at) for at in (0, 8, 16, 24, 32))
    both(b, x, x, y)
    both(b, y, x, z)
    both(b, z, y, w)
    both(b, x, x, out)
    assert dropped(b.method((x,), (out,))) == 3
    assert dropped(b.method((x,), (out, y))) == 2
    assert dropped(b.method((x,), (out, w))) == 0


def test_an_output_that_is_written_again_was_not_read() -> None:
    b = Builder()
    x, out = b.tensor((8,), 0), b.tensor((8,), 16)
    both(b, x, x, out)
    both(b, x, x, out)
    assert dropped(b.method((x,), (out,))) == 1


@pytest.mark.parametrize("read", [(), (0,), (1,), (0, 1)])
def test_all_outputs_have_to_be_unused(read: tuple[int, ...]) -> None:
    """Such as values and indices of a pooling."""
    b = Builder()
    x, one, other, out = (b.tensor((8,), at) for at in (0, 8, 16, 24))
    b.call(
        "aten::max_pool2d_with_indices.out",
        *(x, one, other),
        outs=(one, other),
        function="orch::portable::max_pool2d_with_indices_out",
    )
    for index in read:
        both(b, (one, other)[index], x, out)
    both(b, x, x, out) if not read else None
    method = b.method((x,), (out,))
    after = run_passes(method, [DROP])
    kept = [i.operator.base for i in after.instructions if isinstance(i, LinkedCall)]
    assert ("max_pool2d_with_indices" in kept) is bool(read)


@pytest.mark.parametrize("function", ["mine::mul_out", "aten_mul_out", *sorted(STAY)])
def test_what_may_fail_or_do_more_stays(function: str) -> None:
    b = Builder()
    x, y, out = (b.tensor((8,), at) for at in (0, 8, 16))
    both(b, x, x, y, function=function)
    both(b, x, x, out)
    assert dropped(b.method((x,), (out,))) == 0


def test_calls_around_jumps_and_moves_and_lists() -> None:
    """What only one way reads is read."""
    b = Builder()
    x, y, z, out = (b.tensor((4,), at) for at in (0, 8, 16, 24))
    wide = b.tensor((8,), 32)
    both(b, x, x, y)
    b.code.append(JumpFalseCall(condition=x, destination=3))
    both(b, y, x, z)
    pair = b.value(TensorListValue((x, y)))
    dim = b.value(IntValue(0))
    b.call("aten::cat.out", pair, dim, wide, function="orch::portable::cat_out")
    both(b, x, x, out)
    assert dropped(b.method((x,), (out, wide))) == 1
    assert dropped(b.method((x,), (out, z))) == 1
    assert dropped(b.method((x,), (out,))) == 3
    # Where a call writes to what a move has made another tensor, nothing is known.
    b.code.append(MoveCall(source=out, target=z))
    assert dropped(b.method((x,), (out, z))) == 0


def test_state_stays() -> None:
    """The next run reads what this one has written."""
    b = Builder()
    x, out = b.tensor((8,), 0), b.tensor((8,), 8)
    state = b.tensor((8,), 16, state=True)
    both(b, x, state, out)
    both(b, x, x, state)
    assert dropped(b.method((x,), (out,))) == 0


def test_what_a_run_reads_before_it_is_written_stays() -> None:
    b = Builder()
    x, y, out = (b.tensor((8,), at) for at in (0, 8, 16))
    both(b, x, y, out)
    both(b, x, x, y)
    assert dropped(b.method((x,), (out,))) == 0


@pytest.mark.parametrize("dynamic", [(), (0,), (1,), (0, 1)])
def test_a_call_on_sizes_of_the_run_stays(dynamic: tuple[int, ...]) -> None:
    """The kernel may refuse them: the run then fails."""
    b = Builder()
    x, y = (b.tensor((8,), 8 * n, dynamic=n in dynamic) for n in range(2))
    z, out = b.tensor((8,), 16), b.tensor((8,), 24)
    both(b, x, x, y)
    both(b, z, z, out)
    assert dropped(b.method((x, z), (out,)), same=False) == int(not dynamic)


def test_a_call_on_numbers_of_the_run_stays() -> None:
    b = Builder()
    x, y, out = (b.tensor((8,), at) for at in (0, 8, 16))
    number = b.value(IntValue(2))
    function = "orch::portable::bitwise_and_Scalar_out"
    b.call("aten::bitwise_and.Scalar_out", x, number, y, function=function)
    both(b, x, x, out)
    assert dropped(b.method((x,), (out,)), same=False) == 1
    assert dropped(b.method((x, number), (out,)), same=False) == 0


def test_kernels_that_stay_are_those_that_fail_for_items_or_draw() -> None:
    """A kernel that looks at items before it is sure has to be named."""
    looks = re.compile(
        r"ORCH_(CHECK|TRY)_DATA\((?!check_scratch|condition\.memory)|return embed"
        r"|orch_random_next|uniform<|normal\("
    )
    found = set()
    for library in LIBRARIES:
        file = KERNELS / library / "functions.yaml"
        text = file.read_text(encoding="utf-8")
        for kernel in read_library(text, library=library, file=str(file)):
            sources = [(file.parent / s).read_text("utf-8") for s in kernel.sources]
            is_out = any(a.is_out for a in kernel.schema.arguments)
            own = kernel.function.rpartition("::")[2]
            bodies = [s.partition(f"Error {own}(")[2].partition("\n}\n")[0] for s in sources]
            if not is_out or any(looks.search(body) for body in bodies):
                found.add(kernel.function)
    assert found == STAY


def test_a_method_without_calls_that_could_be_unused_is_skipped() -> None:
    b = Builder()
    x, out = b.tensor((8,), 0), b.tensor((8,), 8)
    b.call("aten::relu.out", x, out)
    assert not PASSES[DROP].concerns(b.method((x,), (out,)))
    both(b, x, x, out)
    assert PASSES[DROP].concerns(b.method((x,), (out,)))
