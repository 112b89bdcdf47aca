"""Worst stack use as computed, against the stack as it is used on every board.

The firmware with all programs of the corpus is linked once more with
`stack_painter.cpp` in front of loading, running and the functions of the API. Nothing
may use more than the build computed, and what it computed may not be far above.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from orchestrator.emit.generate.ports import C_TYPES, accessor_ends, api_methods, c_scalar
from orchestrator.program.reader import read_program
from orchestrator.program.values import StringValue, TensorValue
from orchestrator.running.product import read_product
from orchestrator.running.protocol import encode_request
from orchestrator.running.scenario import read_scenario
from orchestrator.shell.ninja import ninja_program
from orchestrator.shell.toolchain import find_emulator
from orchestrator.targets.cores import BOARDS
from tests.conftest import CORPUS, model_bytes
from tests.integration.test_corpus import INT8, RUNNABLE, corpus_product
from tests.qemu.test_cases import CASES
from tests.targets import EVERY_PAIR
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.emit.generate.ports import ApiMethod, Port
    from orchestrator.running.product import Product as RunProduct
    from tests.product import Product

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

HERE: Final = Path(__file__).parent
WORST_RATIO: Final = 1.35
_WRAPPED: Final = {
    "EXECUTE": "orch::execute",
    "LOAD_LINKED": "orch::load_linked",
    "APPLICATION": "orch_application",
}


def _entry_source(header: str, methods: list[ApiMethod], end: int) -> tuple[str, list[str]]:
    """Calls of every function of the API with memory before `end`, and their names."""
    calls: list[tuple[str, str]] = []
    method_index = {method.base: i for i, method in enumerate(methods)}
    for method in methods:
        ports = method.ports
        every = [a for port in ports for a in _arguments(port)]
        # To run needs what is not written through a pointer.
        changing = [
            argument
            for port in ports
            if port.is_input
            for argument in _arguments(port)[isinstance(port.value, TensorValue) :]
        ]
        sets = "".join(
            f"static_cast<void>({method.base}_set_{p.name}({_arguments(p)[0]})), "
            for p in ports
            if p.is_given
        )
        for name, arguments in (
            (method.base, every),
            (f"{method.base}_run", changing),
            (f"{method.base}_run_at", [*changing, "out<uint32_t>()"]),
            (f"{method.base}_step", ["UINT32_MAX", *changing]),
        ):
            before = sets if name != method.base else ""
            call = f"{name}({', '.join(arguments)})"
            calls.append((name, f"{before}result.status = {call}"))
        prepare = f"{method.base}_prepare"
        calls.append((prepare, f"result.status = {prepare}()"))
        for port in ports:
            if port.is_given:
                name = f"{method.base}_set_{port.name}"
                calls.append((name, f"result.status = {name}({_arguments(port)[0]})"))
                continue
            for ending in accessor_ends(port):
                name = f"{method.base}_{port.name}{ending}"
                if isinstance(port.value, TensorValue):
                    calls.append((name, f"if (!{name}()) result.status = ORCH_NOT_FOUND"))
                else:
                    argument = "0" if ending == "_item" else ""
                    calls.append((name, f"static_cast<void>({name}({argument}))"))
        place = f"orch::kModelMethods[{method_index[method.base]}]->program"
        load = f"{method.base}_load"
        calls.append((load, f"result.status = {load}({place}.data(), {place}.size())"))
    functions = ",\n".join(
        "  [] {\n    stack::Result result = {ORCH_OK, 0};\n"
        "    result.depth = stack::depth_of([&]() __attribute__((always_inline)) {\n"
        f"      {call};\n    }});\n    return result;\n  }}"
        for _, call in calls
    )
    largest = max(
        port.value.size_bytes
        for method in methods
        for port in method.ports
        if isinstance(port.value, TensorValue)
    )
    largest = -(-largest // 16) * 16
    begin = end - 2 * largest
    source = f"""\
#include "stack_painter.h"
#include "orch/model.h"
#include "{header}"

namespace orch {{
extern const Span<const ModelMethod* const> kModelMethods;
}}

namespace {{
// At the end of the last memory, which nothing else reaches: zeros from reset.
constexpr uintptr_t kInputs = {begin:#x}, kOutputs = {begin + largest:#x};
template <typename T>
const T* in() {{
  return reinterpret_cast<const T*>(kInputs);
}}
template <typename T>
T* out() {{
  return reinterpret_cast<T*>(kOutputs);
}}
/// Sizes of a dynamic input.
template <int32_t... kSizes>
constexpr int32_t sizes[] = {{kSizes...}};
int32_t output_sizes[16];

using Call = stack::Result (*)();
constexpr Call kCalls[] = {{
{functions}}};
}}  // namespace

orch::Span<const Call> stack::entries() {{ return kCalls; }}
"""
    return source, [name for name, _ in calls]


def _arguments(port: Port) -> list[str]:
    """What a port is given: zeros, the largest sizes, memory for outputs."""
    value = port.value
    if isinstance(value, TensorValue):
        side = "in" if port.is_input else "out"
        found = [f"{side}<{C_TYPES[value.dtype]}>()"]
        if value.is_dynamic:
            sizes = ", ".join(map(str, value.sizes))
            found.append(f"sizes<{sizes}>" if port.is_input else "output_sizes")
        return found
    if isinstance(value, StringValue):
        return ["out<const char*>()", "out<uint32_t>() + 8"]
    return ["1"] if port.is_input else [f"out<{c_scalar(value)}>()"]


def _link_painted(product: Product, sources: list[Path]) -> Path:
    """The firmware once more, with these sources in front of its own code."""
    work = product.out / ".work"
    report: dict[str, Any] = product.report()
    symbols = {s["name"]: s["symbol"] for s in report["symbols"]}
    lines = (product.out / "build.ninja").read_text().splitlines()
    start = next(i for i, x in enumerate(lines) if x.startswith("build firmware.elf"))
    runner = next(i for i, x in enumerate(lines) if x.startswith("build obj/runtime/app/runner"))
    flags = lines[runner + 1] + f" -I{HERE}"
    flags += "".join(f" -D{macro}='\"{symbols[name]}\"'" for macro, name in _WRAPPED.items())
    wrap = "-Wl,--wrap=" if "-Wl," in lines[start + 1] else "--wrap="
    link = lines[start + 1] + "".join(f" {wrap}{symbols[n]}" for n in _WRAPPED.values())
    objects = [f"obj/painted/{source.name}.o" for source in sources]
    text = ["include build.ninja"]
    for source, made in zip(sources, objects, strict=True):
        text += [f"build {made}: cxx {source}", flags]
    rule = lines[start].replace("firmware.elf | firmware.map", "painted.elf")
    rule = rule.replace(": link ", f": link {' '.join(objects)} ")
    text += [rule, link.replace("firmware.map", "painted.map"), *lines[start + 2 :][:1]]
    (work / "painted.ninja").write_text("\n".join(text) + "\n")
    done = subprocess.run(
        [str(ninja_program()), "--quiet", "-f", "painted.ninja", "painted.elf"],
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return work / "painted.elf"


def _request(product: Product, cases: tuple[str, ...]) -> bytes:
    """The calls of these cases."""
    calls = []
    for case in cases:
        for call in json.loads((CORPUS / case / "case.json").read_text())["runs"]:
            for value in (*call["inputs"], *call["outputs"]):
                if "file" in value:
                    value["file"] = str(CORPUS / case / value["file"])
            calls.append({**call, "model": case})
    scenario = read_scenario(
        json.dumps({"runs": calls, "tolerance": {"atol": 0, "rtol": 0}}),
        file="all.json",
        product=_known(product),
        read_bytes=lambda path: Path(path).read_bytes(),
    )
    return encode_request(scenario.calls)


def _known(product: Product) -> RunProduct:
    return read_product((product.out / "product.json").read_text())


def _measured(product: Product, elf: Path, folder: Path, cases: tuple[str, ...]) -> list[int]:
    """The words of stack.bin."""
    (folder / "request.bin").write_bytes(_request(product, cases))
    done = subprocess.run(
        [
            *find_emulator(_known(product).emulator),
            "-semihosting-config",
            "enable=on,target=native,arg=firmware,arg=request.bin,arg=response.bin",
            "-kernel",
            str(elf),
        ],
        cwd=folder,
        capture_output=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    data = (folder / "stack.bin").read_bytes()
    return [int.from_bytes(data[i : i + 4], "little") for i in range(0, len(data), 4)]


CLOSE: Final = tuple(case for case in CASES if case in RUNNABLE)[:8]
"""A product of these has no kernel, and no part of the loader, that only others use."""
_FLOATS: Final = tuple(case for case in RUNNABLE if case not in INT8)
PRODUCTS = {
    "m4-zig-all": ("cortex-m4", "zig", _FLOATS),
    "m4-zig-close": ("cortex-m4", "zig", CLOSE),
    # The memories of the board for the M55 take a third of those with floats.
    "m55-gnu-first": ("cortex-m55", "gnu", _FLOATS[::3]),
    "m55-zig-second": ("cortex-m55", "zig", _FLOATS[1::3]),
    "m55-gnu-third": ("cortex-m55", "gnu", _FLOATS[2::3]),
    "m4-zig-int8": ("cortex-m4", "zig", INT8),
    "m55-gnu-int8": ("cortex-m55", "gnu", INT8),
    "m55-gnu-close": ("cortex-m55", "gnu", CLOSE),
    # Support functions for floats, and the shortest instructions.
    "m0plus-gnu-close": ("cortex-m0plus", "gnu", CLOSE),
    "m7-zig-close": ("cortex-m7", "zig", CLOSE),
    "m33-gnu-close": ("cortex-m33", "gnu", CLOSE),
}
NIGHTLY = {"m0plus-gnu-close", "m55-gnu-third", "m55-gnu-close", "m4-zig-close"}
"""Half of the builds; others have the same cases, or the same core."""
if EVERY_PAIR:
    PRODUCTS |= {
        "m4-gnu-all": ("cortex-m4", "gnu", _FLOATS),
        "m0plus-zig-close": ("cortex-m0plus", "zig", CLOSE),
        "m3-zig-close": ("cortex-m3", "zig", CLOSE),
        "rv32imac-zig-close": ("rv32imac", "zig", CLOSE),
        "rv32imac-gnu-close": ("rv32imac", "gnu", CLOSE),
    }


@pytest.mark.parametrize(
    ("cpu", "toolchain", "cases"),
    [
        pytest.param(*product, id=name, marks=[pytest.mark.nightly] * (name in NIGHTLY))
        for name, product in PRODUCTS.items()
    ],
)
def test_the_stack_is_as_deep_as_computed(
    cpu: str,
    toolchain: str,
    cases: tuple[str, ...],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    product = corpus_product(tmp_path, "all", cases, cpu=cpu, toolchain=toolchain)
    assert product.run("build") == 0
    report: dict[str, Any] = product.report()
    programs = {c: read_program(model_bytes(c), file=c) for c in cases}
    board = BOARDS[report["target"]["board"]]
    last = board.regions[-1]
    assert report["regions"][-1]["used_bytes"] < last.size_bytes // 2
    source, entries = _entry_source(
        "all.h", api_methods("all", programs), last.origin + last.size_bytes
    )
    (tmp_path / "entries.cpp").write_text(source)
    elf = _link_painted(product, [HERE / "stack_painter.cpp", tmp_path / "entries.cpp"])
    computed: dict[str, int] = {}
    depths: dict[str, int] = {}
    for method in report["methods"]:
        stack = method["stack"]
        assert stack["unknown"] == []
        name = f"{method['model']}.{method['method']}"
        computed |= {f"{name} {k}": stack[f"{k}_bytes"] for k in ("load", "run")}
        depths |= {e["name"]: e["stack_bytes"] for e in stack["entries"]}
    computed |= {entry: depths.pop(entry) for entry in entries}
    assert not depths, "no function of the API is left out"
    words = _measured(product, elf, tmp_path, cases)
    found = dict(zip(computed, words, strict=True))
    ratios = {name: computed[name] / found[name] for name in found}
    record_property("computed_to_measured", max(ratios.values()))
    assert len(ratios) > 2 * len(cases)
    assert {n: (found[n], computed[n]) for n, r in ratios.items() if r < 1} == {}
    if cases == CLOSE:
        assert {n: r for n, r in ratios.items() if r > WORST_RATIO} == {}
