"""Stage compile: every step with its flags, nothing of the machine in any of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import pytest

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey
from orchestrator.core.operator import OperatorName, parse_schema
from orchestrator.emit import compile as stage
from orchestrator.emit.compile import (
    CompilePlan,
    compile_commands,
    has_floats,
    plan_compile,
    toolchain_text,
)
from orchestrator.selection.resolution import Resolution, TableEntry
from orchestrator.shell import sources
from orchestrator.targets.cores import CPUS, TOOLCHAIN_FILE
from tests.unit.golden import check_golden
from tests.unit.products import GNU, ZIG, resolution_of, target_of

if TYPE_CHECKING:
    from orchestrator.targets.cores import Toolchain

RUNTIME = (
    "src/error.cpp",
    "src/executor.cpp",
    "app/runner.cpp",
    "platform/cortex_m/startup.cpp",
    "freestanding/mem.cpp",
)
TOOLCHAINS = {"gnu": GNU, "zig": ZIG}
TARGETS = [
    (cpu.name, toolchain, optimize)
    for cpu in CPUS.values()
    for toolchain in cpu.toolchains
    for optimize in ("size", "speed", "debug")
]
each_target = pytest.mark.parametrize(("cpu", "toolchain", "optimize"), TARGETS)


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The host is the same everywhere."""
    monkeypatch.setattr("platform.machine", lambda: "x86_64")


def _plan(
    cpu: str,
    toolchain: str,
    optimize: str = "size",
    *,
    programs: Toolchain | None = None,
    models: tuple[str, ...] = ("models/add.pte",),
) -> CompilePlan:
    return plan_compile(
        profile="test",
        target=target_of(cpu, toolchain, optimize),
        toolchain=programs or TOOLCHAINS[toolchain],
        resolution=resolution_of("add_mul"),
        runtime_sources=RUNTIME,
        models=models,
    )


@pytest.mark.parametrize(
    ("cpu", "toolchain"), [("host", "zig"), ("cortex-m4", "gnu")], ids=["host", "m4"]
)
def test_the_whole_build_is_as_held(
    request: pytest.FixtureRequest, cpu: str, toolchain: str
) -> None:
    text = _plan(cpu, toolchain).ninja
    check_golden(request, f"build-{cpu}-{toolchain}.ninja", text)


@each_target
def test_no_path_of_the_machine_is_in_flags(cpu: str, toolchain: str, optimize: str) -> None:
    plan = _plan(cpu, toolchain, optimize)
    words = [w for unit in plan.units for w in (unit.source, unit.object, *unit.flags)]
    words += [*plan.flags, *plan.link_flags, plan.library, *plan.sources]
    allowed = "-ffile-prefix-map=/proc/self/cwd=."
    assert [w for w in words if re.search(r"(^|=|-I)/", w) and w != allowed] == []
    root = str(sources.native_root())
    # Not as a part of a relative path: a checkout may lie in /src.
    assert not re.search(rf"(?<![\w.]){re.escape(root)}/", plan.ninja)


@each_target
def test_each_source_is_compiled_once_into_an_object_named_after_it(
    cpu: str, toolchain: str, optimize: str
) -> None:
    plan = _plan(cpu, toolchain, optimize)
    kernels = {
        f"kernels/{library}/{source}"
        for library, files in resolution_of("add_mul").sources
        for source in files
    }
    assert kernels
    expected = {f"src/{s}": f"obj/{s}.o" for s in kernels}
    expected |= {f"src/runtime/{s}": f"obj/runtime/{s}.o" for s in RUNTIME}
    generated = ("gen/src/api.cpp", "gen/src/registered_kernels.cpp", "gen/src/models.S")
    expected |= {s: f"obj/{s}.o" for s in generated}
    assert {u.source: u.object for u in plan.units} == expected
    assert len(plan.units) == len(expected)
    ours = {s.removeprefix("src/") for s in expected if s.startswith("src/")}
    assert set(plan.sources) == ours
    assert plan.library == "libtest.a"


def _statements(ninja: str) -> dict[str, tuple[str, list[str], list[str]]]:
    """By outputs: rule, explicit and implicit inputs."""
    found = {}
    for line in ninja.splitlines():
        if match := re.fullmatch(r"build (.+?): (\w+) ?(.*)", line):
            explicit, _, implicit = match[3].partition("| ")
            found[match[1]] = (match[2], explicit.split(), implicit.split())
    return found


@each_target
def test_every_step_depends_on_the_toolchain(cpu: str, toolchain: str, optimize: str) -> None:
    statements = _statements(_plan(cpu, toolchain, optimize).ninja)
    assert len(statements) > 8
    for _, _, implicit in statements.values():
        assert "toolchain.txt" in implicit


def test_another_toolchain_is_another_text() -> None:
    others = [
        replace(GNU, version="gcc 12.2.1"),
        replace(GNU, programs=(*GNU.programs[:1], ("compiler", "d" * 64))),
        replace(GNU, programs=GNU.programs[1:]),
    ]
    texts = {toolchain_text(t) for t in (GNU, *others)}
    assert len(texts) == 4
    elsewhere = replace(GNU, compiler=("/elsewhere/g++",), builtins="/elsewhere/rt.o")
    assert toolchain_text(elsewhere) == toolchain_text(GNU)


@each_target
def test_library_and_firmware_hold_what_belongs_to_them(
    cpu: str, toolchain: str, optimize: str
) -> None:
    plan = _plan(cpu, toolchain, optimize)
    statements = _statements(plan.ninja)
    _, members, _ = statements["libtest.a"]
    _, linked, implicit = statements["firmware.elf | firmware.map"]
    outside = {u.object for u in plan.units} - set(members)
    assert outside == {
        "obj/runtime/app/runner.cpp.o",
        "obj/runtime/platform/cortex_m/startup.cpp.o",
        "obj/runtime/freestanding/mem.cpp.o",
    }
    builtins = {"obj/compiler_rt.o"} if toolchain == "zig" else set()
    assert set(linked) == outside | {"libtest.a"} | builtins
    is_for_board = CPUS[cpu].default_board is not None
    script = {"gen/firmware.ld"} if is_for_board else set()
    assert set(implicit) == script | {"toolchain.txt"}


def test_models_are_inputs_of_their_assembly() -> None:
    statements = _statements(_plan("host", "zig", models=("models/a.pte", "models/b.pte")).ninja)
    rule, _, implicit = statements["obj/gen/src/models.S.o"]
    assert rule == "as"
    assert set(implicit) == {"models/a.pte", "models/b.pte", "toolchain.txt"}


@each_target
def test_flags_keep_the_promises_about_code(cpu: str, toolchain: str, optimize: str) -> None:
    plan = _plan(cpu, toolchain, optimize)
    promised = {
        "-std=c++17",
        "-fno-exceptions",
        "-fno-rtti",
        "-fno-threadsafe-statics",
        "-ffp-contract=off",
        "-fstack-usage",
        "-Wall",
        "-Wextra",
        "-Wconversion",
    }
    level = {"size": "-Os", "speed": "-O2", "debug": "-Og"}[optimize]
    machine_flags = set(CPUS[cpu].isas[CPUS[cpu].default_isa].machine_flags)
    for unit in plan.units:
        beside = re.search(r"runtime/(app|platform)/", unit.source) is not None
        small = beside and (optimize, toolchain) == ("size", "zig")
        found = [f for f in unit.flags if re.fullmatch(r"-O\w+", f)]
        assert found == ["-Oz" if small else level]
        assert ("-mno-outline" in unit.flags) == small
        assert "-gdwarf-4" in unit.flags
        assert machine_flags <= set(unit.flags)
        assert any(f.startswith("--target=") for f in unit.flags) == (toolchain == "zig")
        if not unit.source.endswith(".S"):
            assert promised <= set(unit.flags)
    assert promised <= set(plan.flags)


@each_target
def test_our_own_headers_stand_in_for_a_c_library_only_where_there_is_none(
    cpu: str, toolchain: str, optimize: str
) -> None:
    freestanding = CPUS[cpu].default_board is not None or toolchain == "zig"
    for unit in _plan(cpu, toolchain, optimize).units:
        if unit.source.endswith(".cpp"):
            found = "-Isrc/runtime/freestanding" in unit.flags
            assert found == freestanding, unit.source
        is_memory = unit.source == "src/runtime/freestanding/mem.cpp"
        assert ("-fno-builtin" in unit.flags) == is_memory
        # Headers of a platform are for that platform only.
        folders = {f for f in unit.flags if f.startswith("-Isrc/runtime/platform")}
        own = {f"-I{PurePosixPath(unit.source).parent}"}
        assert folders == (own if "/platform/" in unit.source else set())


@each_target
def test_nothing_that_differs_between_builds_is_linked(
    cpu: str, toolchain: str, optimize: str
) -> None:
    plan = _plan(cpu, toolchain, optimize)
    assert any(f.endswith("--build-id=none") for f in plan.link_flags)
    assert any(f.endswith("--gc-sections") for f in plan.link_flags)
    is_for_board = CPUS[cpu].default_board is not None
    assert ("gen/firmware.ld" in plan.link_flags) == is_for_board
    assert "ar rcsD $out" in plan.ninja


def test_a_path_with_spaces_and_dollars_is_one_word() -> None:
    odd = replace(GNU, compiler=("/my tools/$new/g++",))
    text = _plan("host", "gnu", programs=odd).ninja
    assert "cxx = '/my tools/$$new/g++'\n" in text


def test_without_kernels_and_models_there_is_still_a_library() -> None:
    plan = plan_compile(
        profile="test",
        target=target_of("host", "gnu"),
        toolchain=GNU,
        resolution=Resolution(),
        runtime_sources=RUNTIME,
        models=(),
    )
    assert "libtest.a" in _statements(plan.ninja)


def test_the_compilation_database_names_the_files_people_edit() -> None:
    plan = _plan("host", "gnu")
    text = compile_commands(
        plan,
        compiler=GNU.compiler,
        folder="/elsewhere/build",
        sources="/elsewhere/src",
        elsewhere={},
    )
    entries = json.loads(text)
    assert [e["output"] for e in entries] == [u.object for u in plan.units]
    by_output = {e["output"]: e for e in entries}
    entry = by_output["obj/runtime/src/error.cpp.o"]
    assert entry["directory"] == "/elsewhere/build"
    assert entry["file"] == "/elsewhere/src/runtime/src/error.cpp"
    assert entry["arguments"][0] == "/usr/bin/g++"
    assert entry["arguments"][-4:] == [
        "-c",
        "/elsewhere/src/runtime/src/error.cpp",
        "-o",
        "obj/runtime/src/error.cpp.o",
    ]
    assert "-I/elsewhere/src/kernels" in entry["arguments"]
    assert "-Igen/include" in entry["arguments"]
    assert "-Isrc" not in text
    assert by_output["obj/gen/src/api.cpp.o"]["file"] == "gen/src/api.cpp"


def test_sources_and_toolchain_file_have_one_name() -> None:
    assert (stage.SOURCES, TOOLCHAIN_FILE) == ("src", "toolchain.txt")


@pytest.mark.parametrize(
    ("signature", "settles"),
    [
        (None, False),
        ("TTSt", False),
        ("TI>I", False),
        ("TJ>t", False),
        ("SS>B", True),
        ("SS>S", True),
        ("S>D", True),
    ],
)
def test_numbers_are_settled_only_where_a_kernel_returns_some(
    signature: str | None, *, settles: bool
) -> None:
    entry = TableEntry(
        operator=OperatorName("my", "op"),
        key=None,
        function="my::op",
        signature=signature or "",
        dtypes=frozenset(),
    )
    plan = plan_compile(
        profile="test",
        target=target_of("cortex-m4", "gnu"),
        toolchain=GNU,
        resolution=Resolution(table_entries=(entry,) if signature else ()),
        runtime_sources=("src/load_method.cpp", "src/model.cpp"),
        models=(),
    )
    flags = {u.source: "-DORCH_SETTLES_RESULTS=0" in u.flags for u in plan.units}
    assert flags["src/runtime/src/load_method.cpp"] is not settles
    assert not flags["src/runtime/src/model.cpp"]


@pytest.mark.parametrize("keys", [(), (None,), (None, "v1/6;0"), ("v1",)])
def test_keys_are_compared_only_where_a_kernel_is_found_by_one(
    keys: tuple[str | None, ...],
) -> None:
    entries = tuple(
        TableEntry(
            operator=OperatorName("my", f"op{number}"),
            key=None if key is None else KernelKey.parse(key),
            function="my::op",
            signature="T",
            dtypes=frozenset(),
        )
        for number, key in enumerate(keys)
    )
    plan = plan_compile(
        profile="test",
        target=target_of("cortex-m4", "gnu"),
        toolchain=GNU,
        resolution=Resolution(table_entries=entries),
        runtime_sources=("src/find_kernel.cpp", "src/model.cpp"),
        models=(),
    )
    without = {u.source for u in plan.units if "-DORCH_KERNEL_KEYS=0" in u.flags}
    found = {"src/runtime/src/find_kernel.cpp"}
    assert without == (set() if any(keys) else found)


def _integers(signature: str = "TTt", dtype: ScalarType = ScalarType.Char) -> Resolution:
    """A kernel for integers alone, but for what is said here."""
    entry = TableEntry(
        operator=OperatorName("my", "op"),
        key=None,
        function="my::op",
        signature=signature,
        dtypes=frozenset({ScalarType.Char, dtype}),
    )
    return Resolution(table_entries=(entry,))


@pytest.mark.parametrize(
    ("resolution", "floats"),
    [
        (Resolution(), False),
        (_integers(), False),
        (_integers(dtype=ScalarType.Half), True),
        (_integers(dtype=ScalarType.ComplexFloat), True),
        (_integers("TITDt"), True),
        (_integers("TE?t"), True),
    ],
)
def test_loaded_programs_have_the_floats_of_the_kernel_table(
    resolution: Resolution, *, floats: bool
) -> None:
    assert has_floats({"model"}, {}, resolution) is floats


@pytest.mark.parametrize(
    ("cpu", "has_modes"),
    [
        *(("cortex-m4", True), ("cortex-m55", True), ("rv32imafc", True), ("rv64gc", True)),
        *(("cortex-m0plus", False), ("cortex-m3", False), ("rv32imac", False)),
        *(("host", False), ("armv7a", False)),
    ],
)
@pytest.mark.parametrize("floats", [False, True])
def test_the_mode_of_an_fpu_is_checked_for_floats_on_bare_metal(
    cpu: str, *, has_modes: bool, floats: bool
) -> None:
    plan = plan_compile(
        profile="test",
        target=target_of(cpu, "gnu"),
        toolchain=GNU,
        resolution=Resolution(),
        runtime_sources=("src/executor.cpp", "src/model.cpp"),
        models=(),
        floats=floats,
    )
    checking = {u.source for u in plan.units if "-DORCH_CHECKS_FLOATS=1" in u.flags}
    assert checking == ({"src/runtime/src/model.cpp"} if has_modes and floats else set())


@pytest.mark.parametrize("checked", [False, True])
def test_the_runner_asks_for_checksums_only_where_there_are_some(*, checked: bool) -> None:
    plan = plan_compile(
        profile="test",
        target=target_of("cortex-m4", "gnu"),
        toolchain=GNU,
        resolution=Resolution(),
        runtime_sources=("src/integrity.cpp", "app/runner.cpp"),
        models=(),
        checked=checked,
    )
    asking = {u.source for u in plan.units if "-DORCH_CHECKS_IMAGE=1" in u.flags}
    assert asking == ({"src/runtime/app/runner.cpp"} if checked else set())


@pytest.mark.parametrize("traced", [False, True])
def test_hooks_are_compiled_in_only_where_they_are_wanted(*, traced: bool) -> None:
    sources = ("src/executor.cpp", "src/model.cpp", "app/runner.cpp")
    plan = plan_compile(
        profile="test",
        target=target_of("cortex-m4", "gnu"),
        toolchain=GNU,
        resolution=Resolution(),
        runtime_sources=sources,
        models=(),
        traced=traced,
    )
    with_hooks = {u.source for u in plan.units if "-DORCH_TRACE=1" in u.flags}
    expected = {f"src/runtime/{s}" for s in (sources[0], sources[2])}
    assert with_hooks == (expected if traced else set())
    # What the lock calls the flags of the product is the same.
    assert "-DORCH_TRACE=1" not in plan.flags


def test_only_kernels_with_scratch_memory_compare_it() -> None:
    resolution = resolution_of("add_mul")
    relu, *others = resolution.operators
    schema = parse_schema("aten::f(Tensor self, Tensor scratch) -> Tensor")
    mine = replace(relu.bindings[0].kernel, library="mine")
    changed = replace(relu, schema=schema, bindings=(replace(relu.bindings[0], kernel=mine),))

    def flags(*, checks: bool) -> dict[str, set[str]]:
        plan = plan_compile(
            profile="test",
            target=target_of("cortex-m4", "gnu"),
            toolchain=GNU,
            resolution=replace(
                resolution,
                operators=(changed, *others),
                sources=(("mine", ("a.cpp",)), ("portable", ("op_add.cpp",))),
            ),
            runtime_sources=RUNTIME,
            models=("models/add.pte",),
            scratch_checks=checks,
        )
        return {
            unit.source: {f for f in unit.flags if "SCRATCH" in f}
            for unit in plan.units
            if any("SCRATCH" in f for f in unit.flags)
        }

    assert flags(checks=False) == {}
    assert flags(checks=True) == {"src/kernels/mine/a.cpp": {"-DORCH_CHECKS_SCRATCH=1"}}
