"""Stack estimates from the compilers' `.su` files."""

from __future__ import annotations

import pytest

from orchestrator.measure.size import SizeSymbol, StackEstimate, StackPart
from orchestrator.measure.stack import estimate_stack
from tests.unit.measure.measure_cases import BOARDS, CASES, HOSTS, Kind, case, report


def symbol(
    name: str, *aliases: str, source: str = "", function: bool = True
) -> SizeSymbol:
    return SizeSymbol(
        name=name,
        symbol=name,
        aliases=aliases,
        is_function=function,
        address=0,
        size_bytes=4,
        section=".text",
        object=source,
        kind=Kind.RUNTIME,
        contributor="",
    )


def parts(usage: dict[str, str], *symbols: SizeSymbol) -> dict[str, int]:
    found = estimate_stack(usage, symbols, reserve_bytes=0)
    assert found.stack_bytes == sum(p.stack_bytes for p in found.parts)
    return {p.name: p.stack_bytes for p in found.parts}


RUN = {
    "runtime/app/runner.cpp": "r.cpp:1:5:int orch_application()\t100\tstatic\n",
    "runtime/platform/cortex_m/startup.cpp": "s.cpp:9:1:void orch_reset()\t8\tstatic\n",
    "runtime/src/model.cpp": "m.cpp:7:7:orch::Error orch::prepare()\t80\tstatic\n",
    "runtime/src/executor.cpp": "src/e.cpp:16:11:orch::execute()\t56\tstatic\n",
    "runtime/src/load_method.cpp": "src/l.cpp:3:1:orch::load_method()\t300\tstatic\n",
    "runtime/src/program.cpp": "src/p.cpp:3:1:orch::Program::open()\t100\tstatic\n",
    "runtime/src/tensor.cpp": "src/t.cpp:7:1:orch::resize()\t32\tstatic\n",
    "runtime/freestanding/mem.cpp": "src/m.cpp:7:1:void* memcpy()\t16\tstatic\n",
    "kernels/portable/op_add.cpp": "src/a.cpp:7:1:orch::add_out()\t200\tstatic\n",
    "kernels/portable/op_mm.cpp": "src/mm.cpp:7:1:orch::mm_out()\t400\tstatic\n",
    "gen/src/api.cpp": "gen/src/api.cpp:1:1:int demo_forward()\t60\tstatic\n",
}


def test_the_worst_kernel_is_on_the_stack_with_the_executor() -> None:
    assert parts(RUN) == {
        "application and platform": 108,
        "model": 80,
        "executor": 56,
        "kernels/portable/op_mm.cpp": 400,
        "helpers": 48,
    }


def test_the_loader_counts_if_it_needs_more() -> None:
    light = {k: v for k, v in RUN.items() if "op_mm" not in k}
    assert parts(light) == {
        "application and platform": 108,
        "model": 80,
        "loader": 400,
        "helpers": 48,
    }


def test_the_api_counts_if_it_needs_more_than_the_runner() -> None:
    api = "a.cpp:1:1:int f()\t90\tstatic\na.cpp:2:1:int g()\t120\tstatic\n"
    found = parts({**RUN, "gen/src/api.cpp": api})
    assert "application and platform" not in found
    assert found["api"] == 120, "one function of the API at a time"


def test_functions_of_a_source_add_up_but_instances_of_one_place_do_not() -> None:
    text = (
        "util/dot.h:46:32:void orch::dot(T*) [with T = float]\t80\tstatic\n"
        "util/dot.h:46:32:void orch::dot(T*) [with T = double]\t96\tstatic\n"
        "util/dot.h:46:32:void orch::dot(T*) [with T = int]\t88\tstatic\n"
        "op_mm.cpp:11:_ZN4orch6mm_outE\t200\tstatic\n"
        "op_mm.cpp:11:_ZN4orch6mm_outE.part.0\t16\tstatic\n"
    )
    found = parts({"kernels/portable/op_mm.cpp": text})
    assert found["kernels/portable/op_mm.cpp"] == 96 + 200 + 16


LINES = (
    "m.cpp:1:1:orch::Error orch::{anonymous}::scale(Tensor&) [with T = f]\t1\tstatic\n"
    "m.cpp:2:1:orch::Error orch::unused(const Tensor&)\t2\tstatic\n"
    "m.cpp:3:1:T orch::List::operator[](int) const [with T = float]\t4\tstatic\n"
    "m.cpp:4:1:decltype (a()) orch::deduced()\t8\tstatic\n"
    "m.cpp:5:1:orch::add_out(const Args&)::<lambda(auto:1)>\t16\tstatic\n"
    "m.cpp:6:_ZN4orch6clangsEv\t32\tstatic\n"
    "m.cpp:7:_ZN4orch4goneEv\t64\tstatic\n"
    "m.cpp:152:1:cpp)\t128\tstatic\n"
    "m.cpp:8:orch_reset\t256\tstatic\n"
    "m.cpp:9:orch_fault\t512\tstatic\n"
)


def test_only_linked_functions_count() -> None:
    """What is not sure to be missing counts."""
    linked = parts(
        {"runtime/src/model.cpp": LINES},
        symbol("_ZN4orch12_GLOBAL__N_15scaleIfEENS_5ErrorERKNS_6TensorE"),
        symbol("_ZZN4orch7add_outERKNS_4ArgsEENKUlT_E_clIfEEDaS4_"),
        symbol("_ZN4orch6clangsEv.llvm", "_ZN4orch6clangsEv", "orch_reset"),
        symbol("orch_fault", function=False),
    )
    assert linked["model"] == 1 + 4 + 8 + 16 + 32 + 128 + 256


def test_all_functions_count_in_a_stripped_firmware() -> None:
    assert parts({"runtime/src/model.cpp": LINES})["model"] == 1023


def test_unbounded_frames_and_unknown_functions_are_named() -> None:
    text = (
        "op.cpp:1:1:void fancy(int)\t16\tdynamic\n"
        "op.cpp:2:1:void aligned(int)\t32\tdynamic,bounded\n"
        "not a line of frames\n"
        "op.cpp:3:1:void broken(int)\tmany\tstatic\n"
    )
    usage = {"kernels/my/op.cpp": text}
    symbols = [
        symbol("fancy", source="kernels/my/op.cpp"),
        symbol("aligned", source="kernels/my/op.cpp"),
        symbol("memcpy", source="libc.a(memcpy.o)"),
        symbol("__aeabi_l2f", source="libgcc.a(_arm_addsubsf3.o)"),
        symbol("kTable", source="libc.a(table.o)", function=False),
    ]
    assert estimate_stack(usage, symbols, reserve_bytes=4096) == StackEstimate(
        stack_bytes=48,
        reserve_bytes=4096,
        parts=(
            StackPart(name="application and platform", stack_bytes=0),
            StackPart(name="model", stack_bytes=0),
            StackPart(name="executor", stack_bytes=0),
            StackPart(name="kernels/my/op.cpp", stack_bytes=48),
            StackPart(name="helpers", stack_bytes=0),
        ),
        dynamic=("kernels/my/op.cpp: void fancy(int)",),
        unknown=("__aeabi_l2f", "memcpy"),
    )


@pytest.mark.parametrize("name", BOARDS)
def test_the_estimate_bounds_what_qemu_saw(name: str) -> None:
    stack = report(name).stack
    deepest = case(name).facts["deepest_stack_bytes"]
    assert 700 < deepest < stack.stack_bytes < 3 * deepest
    assert stack.stack_bytes < stack.reserve_bytes == 4096


@pytest.mark.parametrize("name", CASES)
def test_real_frames_are_all_known(name: str) -> None:
    stack = report(name).stack
    assert all(p.stack_bytes for p in stack.parts)
    assert stack.dynamic == ()
    ours = [s for s in stack.unknown if s.startswith("orch")]
    assert ours == []
    assert (stack.reserve_bytes == 0) == (name in HOSTS)
