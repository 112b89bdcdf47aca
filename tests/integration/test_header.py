"""The public header compiles: any standard of C and C++, any name, any core."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.core.border import Border, Quantization
from orchestrator.core.dtype import ScalarType
from orchestrator.emit.generate.api_header import api_header
from orchestrator.emit.generate.api_source import api_source
from orchestrator.emit.generate.names import cpp_namespace
from orchestrator.emit.generate.product import Product
from orchestrator.emit.generate.target_check import target_check
from orchestrator.measure.size import MethodStack, SizeMethod, StackPart
from orchestrator.measure.stack import with_stacks
from orchestrator.profile.choices import CheckImage
from orchestrator.program.reader import read_program
from orchestrator.program.values import TensorValue
from orchestrator.shell.toolchain import zig_program
from orchestrator.targets.cores import CPUS, Target, resolve_target
from tests.targets import FURTHER
from tests.tools import need_tool, need_toolchain
from tests.unit.products import memory_of, program_of, target_of

if TYPE_CHECKING:
    from orchestrator.program.program import Program

ROOT = Path(__file__).parents[2]
MEMORY = ROOT / "tests/data/memory"
HEAD = "Generated."
HOST = target_of("host", "gnu")
STRICT = (
    *("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wundef"),
    "-Wredundant-decls",
)
C_STANDARDS = ("c99", "c11", "c17", "c2x", "gnu11")
CPP_STANDARDS = ("c++11", "c++14", "c++17", "c++20", "c++2b", "gnu++17")


def _programs(*cases: str) -> dict[str, Program]:
    return {case: program_of(case) for case in cases}


def _in_memory(case: str) -> dict[str, Program]:
    return {case: read_program((MEMORY / case / "model.pte").read_bytes(), file=case)}


def _header(
    profile: str,
    programs: dict[str, Program],
    *,
    linked: bool = False,
    traced: bool = False,
    checked: bool = False,
) -> str:
    return api_header(
        Product(
            profile,
            HEAD,
            programs,
            memory_of(programs, HOST),
            linked=dict.fromkeys(programs, ()) if linked else {},
            traced=traced,
            integrity=CheckImage.START if checked else CheckImage.NEVER,
            target=HOST,
            steps={(name, "forward"): 1000 for name in programs},
            versions={"VERSION": "1.4.0", "ORCHESTRATOR_VERSION": "0.1.0.dev1"},
        )
    ).text


def _at_ends(case: str) -> dict[str, Program]:
    """A program whose input and output are quantized for the caller."""
    program = program_of(case)
    (method,) = program.methods
    scale = Quantization(scale=0.5, zero_point=-3, low=-128, high=127)
    values = list(method.values)
    for index in (*method.inputs, *method.outputs):
        tensor = values[index]
        assert isinstance(tensor, TensorValue)
        values[index] = replace(tensor, dtype=ScalarType.Char)
    borders = tuple(
        Border(
            is_input=is_input, index=0, quantization=scale, is_unsigned=is_input, is_kept=is_input
        )
        for is_input in (True, False)
    )
    changed = replace(method, values=tuple(values), borders=borders)
    return {case: replace(program, methods=(changed,))}


def _headers() -> dict[str, str]:
    """A product for everything that makes a difference in its header."""
    found = {
        "loaded": _header("loaded", _programs("mlp", "multi_method")),
        "prelinked": _header("prelinked", _programs("counter", "mlp"), linked=True),
        "traced": _header("traced", _programs("multi_method"), traced=True),
        "checked": _header("checked", _programs("mlp", "kv_cache"), checked=True),
        "lists": _header("lists", _programs("list_arguments", "optional_arguments")),
        "scalars": _header("scalars", _programs("scalar_sizes", "item_scalar")),
        "dynamic": _header("dynamic", _programs("dynamic_batch", "half_mlp")),
        "caller": _header("caller", _in_memory("given_returned")),
        "rows": _header("rows", _in_memory("given_rows")),
        "shared": _header("shared", _in_memory("shared_cache")),
        "quantized": _header("quantized", _at_ends("mlp")),
        "empty": _header("empty", {}, checked=True),
    }
    entry = StackPart(name="loaded_mlp_forward", stack_bytes=64)
    stack = MethodStack(load_bytes=1, run_bytes=1, entries=(entry,), unknown=("a /* b */",))
    measured = SizeMethod(
        model="mlp",
        method="forward",
        arena_bytes=(1,),
        state_bytes=1,
        temporary_bytes=0,
        input_bytes=(1,),
        output_bytes=(1,),
        stack=stack,
    )
    found["loaded"] = with_stacks(found["loaded"], "loaded", [measured], compiler="c")
    return found


def _compiler(name: str, language: str) -> list[str]:
    if name == "zig":
        need_toolchain("host", "zig")
        return [str(zig_program()), "clang"]
    if name == "gcc":
        return [need_tool("g++" if language == "c++" else "gcc")]
    return (
        [need_tool("clang++", "clang++-14")]
        if language == "c++"
        else [need_tool("clang", "clang-14")]
    )


def _compile(folder: Path, command: list[str], *sources: Path) -> None:
    include = ["-I", str(folder), "-I", str(ROOT / "runtime/include")]
    done = subprocess.run(
        [*command, "-Werror", "-fsyntax-only", *include, *map(str, sources)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.stderr:
        pytest.fail(done.stderr[:4000])
    assert done.returncode == 0


@pytest.mark.toolchain
@pytest.mark.parametrize("compiler", ["gcc", "clang", "zig"])
def test_headers_are_of_every_standard(tmp_path: Path, compiler: str) -> None:
    headers = _headers()
    for name, text in headers.items():
        (tmp_path / f"{name}.h").write_text(text)
    names = [*headers, "orch/random", "orch/quantize", "orch/sizes"]
    lines = "".join(f'#include "{name}.h"\n' for name in names) * 2
    user = (
        "\norch_status use(void);\norch_status use(void) {\n"
        "  const uint8_t pixel = quantized_mlp_forward_input0_quantize(1.5f);\n"
        "  const float real = quantized_mlp_forward_output0_dequantize(3);\n"
        "  const orch_status status = loaded_mlp_forward_run();\n"
        "  switch (status) {\n    case ORCH_OK:\n      return ORCH_IMAGE_DAMAGED;\n"
        "    default:\n      break;\n  }\n"
        "  if (pixel == 0 || real > 3.0f) return ORCH_OK;\n"
        "  return orch_status_text(status)[0] == 'O' ? ORCH_OK : status;\n}\n"
    )
    sources = {"c": tmp_path / "use.c", "c++": tmp_path / "use.cpp"}
    for source in sources.values():
        source.write_text(lines + user)
    for language, standards in (("c", C_STANDARDS), ("c++", CPP_STANDARDS)):
        command = _compiler(compiler, language)
        for standard in standards:
            flags = [*STRICT, f"-std={standard}"]
            _compile(tmp_path, [*command, *flags], sources[language])


@pytest.mark.toolchain
@pytest.mark.parametrize(
    ("language", "standard"), [("c", "c99"), ("c", "c2x"), ("c++", "c++11"), ("c++", "c++20")]
)
def test_compilers_of_other_makers_take_the_header(
    tmp_path: Path, language: str, standard: str
) -> None:
    """Flags of Arm Compiler 6; then as if the compiler had no extension of GNU's."""
    for name, text in _headers().items():
        (tmp_path / f"{name}.h").write_text(text)
    source = tmp_path / f"use.{language}"
    source.write_text(
        "".join(f'#include "{name}.h"\n' for name in _headers())
        + "\norch_status use(uint32_t* bytes);\norch_status use(uint32_t* bytes) {\n"
        "  *bytes = loaded_mlp_forward_sizes.arenas_bytes +\n"
        "           loaded_mlp_forward_sizes.stack_bytes;\n"
        "  return loaded_mlp_forward_run();\n}\n"
    )
    command = _compiler("clang", language)
    strict = [*STRICT, f"-std={standard}", "-x", language, "-ffreestanding"]
    arm = ["--target=arm-arm-none-eabi", "-mcpu=cortex-m4", "-fshort-enums"]
    arm += ["-fshort-wchar", "-fno-exceptions", "-DORCH_ANY_TARGET"]
    _compile(tmp_path, [*command, *strict, *arm], source)
    other = ["-U__GNUC__", "-U__clang__", "-Wno-builtin-macro-redefined"]
    other += ["-pedantic-errors", "-Wgcc-compat", "-D__attribute__(x)=not_iso"]
    _compile(tmp_path, [*command, *strict, *other], source)


@pytest.mark.toolchain
@pytest.mark.parametrize("standard", ["c99", "c++11", "c++17"])
def test_a_status_may_not_be_ignored(tmp_path: Path, standard: str) -> None:
    (tmp_path / "loaded.h").write_text(_headers()["loaded"])
    language = standard.rstrip("0179")
    source = tmp_path / f"use.{language}"
    source.write_text(
        '#include "loaded.h"\nvoid use(void);\nvoid use(void) { loaded_mlp_forward_run(); }\n'
    )
    with pytest.raises(pytest.fail.Exception, match="ignoring return value"):
        _compile(tmp_path, [*_compiler("clang", language), f"-std={standard}"], source)


@pytest.mark.toolchain
@pytest.mark.parametrize("language", ["c", "c++"])
def test_a_status_is_a_byte(tmp_path: Path, language: str) -> None:
    """Whatever size the flags of a compiler give its enums."""
    source = tmp_path / f"use.{'c' if language == 'c' else 'cpp'}"
    source.write_text(
        '#include "orch/status.h"\nextern const char size[sizeof(orch_status) == 1 ? 1 : -1];\n'
    )
    command = _compiler("gcc", language)
    for flag in ("-fshort-enums", "-fno-short-enums"):
        _compile(tmp_path, [*command, flag], source)


# Names

_C_HEADERS = """
assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal
stdarg stdbool stddef stdint stdio stdlib string time wchar wctype tgmath uchar threads
unistd fcntl sys/types sys/stat sys/time sys/wait sys/socket sys/select sys/mman netdb
sys/uio sys/ioctl sys/times sys/utsname sys/un arpa/inet netinet/in pthread semaphore
sched dlfcn poll strings termios dirent pwd grp syslog regex glob fnmatch ftw search
spawn iconv langinfo monetary aio ucontext utime wordexp libgen error err net/if
sys/resource sys/statvfs sys/sysmacros
"""
_PROBE = "".join(
    f"#if __has_include(<{name}.h>)\n#include <{name}.h>\n#endif\n" for name in _C_HEADERS.split()
)
"""All that a program may include before it includes the header of a product."""
_MODEL = re.compile("[a-z][a-z0-9_]{0,39}")
_WORD = re.compile(r"\b[a-z][a-z0-9_]{0,39}\b")


def _texts() -> str:
    """Everything generated, and the runtime's headers, without comments."""
    programs = _programs("multi_method", "counter", "list_arguments")
    memory = memory_of(programs, HOST)
    runtime = (ROOT / "runtime").rglob("*.h")
    texts = [
        *_headers().values(),
        api_source(Product("p", HEAD, programs, memory)).text,
        *(path.read_text() for path in runtime),
    ]
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", "\n".join(texts), flags=re.DOTALL)


def _macros(gcc: str, folder: Path) -> set[str]:
    """Macros of the machine's headers whose names a model could have."""
    probe = folder / "probe.cpp"
    probe.write_text(_PROBE)
    done = subprocess.run(
        [gcc, "-std=gnu++17", "-dM", "-E", str(probe)], capture_output=True, text=True, check=True
    )
    names = re.findall(r"^#define (\w+)", done.stdout, re.MULTILINE)
    return {name for name in names if _MODEL.fullmatch(name)}


def _renamed(program: Program, name: str) -> Program:
    (method,) = program.methods
    return replace(program, methods=(replace(method, name=name),))


@pytest.mark.toolchain
def test_models_and_methods_may_have_any_name(tmp_path: Path) -> None:
    """Keywords, macros, and whatever generated files and the runtime name."""
    gcc = need_tool("g++")
    names = _macros(gcc, tmp_path) | set(_WORD.findall(_texts()))
    names |= {"status", "load", "reset", "run", "init", "arena", "state", "float_"}
    names |= {"gen", "include", "current", "models", "lib", "check", "orch_status"}
    methods = {n: n for n in names} | {
        f"m{i}": n for i, n in enumerate(["NULL", "_X", "__x", "__LINE__", "P", "EOF", "_1", "_"])
    }
    program = program_of("add_mul")
    programs = {n: _renamed(program, method) for n, method in methods.items()}
    assert len(programs) > 500
    header = api_header(Product("p", HEAD, programs, memory_of(programs, HOST))).text
    (tmp_path / "p.h").write_text(header)
    (tmp_path / "use.cpp").write_text(f'{_PROBE}#include "p.h"\n')
    (tmp_path / "use.c").write_text(f'{_PROBE}#include "p.h"\n')
    _compile(tmp_path, [gcc, "-std=gnu++17"], tmp_path / "use.cpp")
    _compile(tmp_path, [need_tool("gcc"), "-std=gnu11"], tmp_path / "use.c")


@pytest.mark.toolchain
def test_a_product_may_have_any_name(tmp_path: Path) -> None:
    """Its namespace stands beside what headers declare."""
    gcc = need_tool("g++")
    probe = tmp_path / "probe.cpp"
    probe.write_text(_PROBE)
    done = subprocess.run(
        [gcc, "-std=gnu++17", "-E", "-P", str(probe)], capture_output=True, text=True, check=True
    )
    names = set(_WORD.findall(done.stdout)) | _macros(gcc, tmp_path)
    names |= set(_WORD.findall(_texts())) | {"main", "error", "status", "time"}
    assert len(names) > 3000
    # Names that begin with `orch-` are refused.
    spaces = {cpp_namespace(n) for n in names if not re.match("orch(_|$)", n)}
    probe.write_text(
        _PROBE
        + '#include "orch/status.h"\n#include "orch/model.h"\n'
        + "".join(f"namespace {n} {{ inline int f() {{ return 0; }} }}\n" for n in spaces)
    )
    _compile(tmp_path, [gcc, "-std=gnu++17"], probe)


@pytest.mark.toolchain
@pytest.mark.parametrize("name", ["status", "method", "error", "main", "size-t", "gen"])
def test_the_source_of_a_product_of_any_name(tmp_path: Path, name: str) -> None:
    programs = {
        model: _renamed(program_of("add_mul"), model)
        for model in ("status", "method", "orch_status", "execute", "forward")
    }
    memory = memory_of(programs, HOST)
    header = api_header(Product(name, HEAD, programs, memory, integrity=CheckImage.START))
    (tmp_path / f"{name}.h").write_text(header.text)
    source = tmp_path / "api.cpp"
    source.write_text(api_source(Product(name, HEAD, programs, memory)).text)
    _compile(tmp_path, [need_tool("g++"), "-std=c++17", *STRICT], source)


@pytest.mark.toolchain
def test_models_that_share_state_may_have_any_name(tmp_path: Path) -> None:
    """Each has a function that makes its methods ready, as the runtime has some."""
    (program,) = _in_memory("shared_cache").values()
    programs = dict.fromkeys(("prelinked", "together", "model"), program)
    memory = memory_of(programs, HOST)
    (tmp_path / "p.h").write_text(api_header(Product("p", HEAD, programs, memory)).text)
    source = tmp_path / "api.cpp"
    source.write_text(api_source(Product("p", HEAD, programs, memory)).text)
    _compile(tmp_path, [need_tool("g++"), "-std=c++17", *STRICT], source)


# Cores

_FEATURES = (
    "__ARM_ARCH_ISA_THUMB",
    "__ARM_FEATURE_DSP",
    "__ARM_FEATURE_MVE",
    "__ARM_FP",
    "__ARM_ARCH",
)


def _boards() -> list[Target]:
    return [
        resolve_target(cpu=cpu.name, isa=isa, board=None, toolchain="zig", optimize="size")
        for cpu in CPUS.values()
        if cpu.is_arm
        for isa in cpu.isas
    ]


def _facts(command: list[str]) -> dict[str, int]:
    done = subprocess.run(
        [*command, "-dM", "-E", "-x", "c", "/dev/null"], capture_output=True, text=True, check=True
    )
    found = dict(re.findall(r"^#define (\w+) (\S+)$", done.stdout, re.MULTILINE))
    facts = {name: int(found.get(name, "0"), 0) for name in _FEATURES}
    return {**facts, "hard": int("__ARM_PCS_VFP" in found)}


def _runs(library: dict[str, int], program: dict[str, int]) -> bool:
    """Whether a program of some features has all that a library was compiled with."""
    bits = ("__ARM_FEATURE_MVE", "__ARM_FP")
    more = all(program[n] >= library[n] for n in _FEATURES if n not in bits)
    # Half precision, 2, is in no kernel.
    wide = all(library[n] & ~2 & ~program[n] == 0 for n in bits[1:])
    vectors = library[bits[0]] & ~program[bits[0]] == 0
    return more and wide and vectors and program["hard"] == library["hard"]


@pytest.mark.toolchain
def test_a_header_takes_programs_that_can_run_its_library(tmp_path: Path) -> None:
    """Every library in a program for every core: as the predefined macros say."""
    need_toolchain("cortex-m4", "zig")
    targets = _boards()
    names = [f"{t.cpu.name}-{t.isa.name}" for t in targets]
    source = tmp_path / "all.c"
    source.write_text("\n".join(target_check(n, t) for n, t in zip(names, targets, strict=True)))
    commands = [
        [*(str(zig_program()), "clang", f"--target={t.cpu.clang_triple}"), *t.isa.machine_flags]
        for t in targets
    ]
    facts = [_facts(command) for command in commands]
    verdicts = set()
    for name, command, program in zip(names, commands, facts, strict=True):
        done = subprocess.run(
            [*command, "-Wundef", "-E", str(source), "-o", "/dev/null"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "warning" not in done.stderr
        refused = set(re.findall(r"error: \"lib(\S+)\.a is built for", done.stderr))
        expected = {n for n, f in zip(names, facts, strict=True) if not _runs(f, program)}
        assert refused == expected, name
        verdicts |= {(name, other) for other in refused}
    assert ("cortex-m4-dsp", "cortex-m55-mve") in verdicts
    assert ("cortex-m7-dsp", "cortex-m4-dsp") not in verdicts
    assert ("cortex-m33-dsp", "cortex-m4-dsp") not in verdicts


@pytest.mark.toolchain
def test_the_error_says_what_the_library_is_for(tmp_path: Path) -> None:
    """gcc's flags of the core, as the message gives them, are accepted."""
    gcc = need_tool("arm-none-eabi-gcc")
    text = target_check("kws", target_of("cortex-m55", "gnu"))
    flags = ["-mthumb", "-mcpu=cortex-m55", "-mfloat-abi=hard"]
    source = tmp_path / "use.c"
    source.write_text(f"{text}\nextern int used;\n")

    def errors(*options: str) -> str:
        done = subprocess.run(
            [gcc, *options, "-fsyntax-only", str(source)],
            capture_output=True,
            text=True,
            check=False,
        )
        found = re.findall(r"error: #error (.*)", done.stderr)
        return "".join(found)

    assert errors(*flags) == ""
    assert errors("-DORCH_ANY_TARGET", "-mcpu=cortex-m0") == ""
    built = (
        '"libkws.a is built for cortex-m55 (isa mve), but this program is compiled {};'
        f' compile with {" ".join(flags)}"'
    )
    m4 = ("-mcpu=cortex-m4", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
    assert errors(*m4) == built.format("for a core older than Armv8.1-M")
    m33 = ("-mcpu=cortex-m33", "-mfloat-abi=hard")
    assert errors(*m33) == built.format("without MVE")
    soft = ("-mcpu=cortex-m55", "-mfloat-abi=softfp")
    assert errors(*soft) == built.format("without -mfloat-abi=hard")
    big = (*flags, "-mbig-endian")
    assert errors(*big) == built.format("big-endian")


RUNS = {
    "rv32imc": {"rv32imc", "rv32imac"},
    **{c: {c} for c in ("rv32imac", "rv32imafc", "rv64gc", "aarch64", "x86-64")},
    "armv7a": {"armv7a"},
}
"""By library: in whose programs it runs."""


@pytest.mark.toolchain
def test_other_machines_have_their_own_libraries(tmp_path: Path) -> None:
    need_toolchain("rv32imac", "zig")
    assert set(RUNS) == set(FURTHER)
    source = tmp_path / "all.c"
    source.write_text("\n".join(target_check(c, target_of(c, "zig")) for c in FURTHER))
    for program in FURTHER:
        target = target_of(program, "zig")
        done = subprocess.run(
            [
                *(str(zig_program()), "clang", f"--target={target.cpu.clang_triple}"),
                *(*target.isa.machine_flags, "-Wundef", "-E", str(source)),
                *("-o", "/dev/null"),
            ],
            capture_output=True,
            text=True,
            check=False,
        )
        assert "warning" not in done.stderr
        refused = set(re.findall(r"error: \"lib(\S+)\.a is built for", done.stderr))
        assert refused == {c for c in FURTHER if program not in RUNS[c]}, program


@pytest.mark.toolchain
def test_machines_with_another_byte_order_are_refused(tmp_path: Path) -> None:
    """The header of the host's library, and every source of the runtime."""
    need_toolchain("host", "zig")
    header = tmp_path / "use.h"
    header.write_text(target_check("kws", HOST))
    runtime = ROOT / "runtime"
    command = [
        *(str(zig_program()), "clang", "--target=powerpc64-freestanding"),
        *("-std=c++17", "-fsyntax-only", f"-I{runtime / 'include'}"),
        f"-I{runtime / 'freestanding'}",
    ]
    for options, expected in (
        ((f"-include{header}",), "but this program is compiled big-endian"),
        ((), "Orchestrator runs on little-endian machines only"),
    ):
        done = subprocess.run(
            [*command, *options, str(runtime / "src" / "tensor.cpp")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert expected in done.stderr


@pytest.mark.toolchain
def test_the_header_of_a_board_is_none_for_the_host(tmp_path: Path) -> None:
    source = tmp_path / "use.c"
    source.write_text(target_check("kws", target_of("cortex-m4", "gnu")) + "\n")
    with pytest.raises(pytest.fail.Exception, match="compiled for another architecture"):
        _compile(tmp_path, [need_tool("gcc")], source)
    source.write_text(target_check("kws", HOST) + "\nextern int used;\n")
    _compile(tmp_path, [need_tool("gcc")], source)
    command = [need_tool("arm-none-eabi-gcc"), "-mcpu=cortex-m4"]
    with pytest.raises(pytest.fail.Exception, match="without 64-bit pointers"):
        _compile(tmp_path, command, source)
