"""Profiles that are right, bases, files that cannot be read, and fuzz."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import pytest
import tomli
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, ProfileError, SourceSpan
from orchestrator.planner.policy import RuntimeCheck
from orchestrator.profile import target
from orchestrator.profile.choices import CheckImage, DtypeSelect, Load, Optimize, Overlap, Via
from orchestrator.profile.kernels import DtypeRequest, OperatorsTable
from orchestrator.profile.load import load_profile
from orchestrator.profile.lowering import NO_VELA, Activations, Quantize, Vela
from orchestrator.profile.paths import NamedFile, PythonCallable
from orchestrator.targets.boards import NO_PINS, Pins, TensorKind, TensorPin
from orchestrator.targets.cores import CPUS, resolve_target
from tests.pages import PROFILE_EXAMPLE

if TYPE_CHECKING:
    from collections.abc import Callable

    from orchestrator.profile.tables import Profile

ROOT = Path(__file__).parents[3]
MAIN = Path("profiles/doorbell.toml")
SMALL = """\
schema = 1
name = "small"
target.cpu = "host"
models = [{ path = "../m/add_mul.pte" }]
"""


def load(text: str, **others: str) -> Profile:
    """Load a profile whose model files all exist; others are files of its folder."""
    files = {MAIN: text} | {MAIN.parent / f"{n}.toml": t for n, t in others.items()}

    def text_of(path: Path) -> str:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory")
        return files[path]

    return load_profile(
        MAIN,
        text_of=text_of,
        is_file=lambda path: path.suffix in (".pte", ".py", ".yaml", ".ini"),
        known_libraries=("cortex_m", "portable", "quantized"),
    )


def problems_of(text: str, **others: str) -> tuple[Diagnostic, ...]:
    """What is wrong with a profile; empty if nothing is."""
    try:
        load(text, **others)
    except ProfileError as error:
        return error.diagnostics
    return ()


def _named(written: str) -> NamedFile:
    return NamedFile(path=MAIN.parent / written, written=written)


ADD, MUL = (OperatorName("aten", name, "out") for name in ("add", "mul"))


def test_every_key() -> None:
    """Values as the rest of the program takes them, table by table."""
    profile = load(PROFILE_EXAMPLE)
    assert (profile.file, profile.files, profile.folder) == (MAIN, (MAIN,), Path("profiles"))
    assert profile.name == "doorbell"
    assert profile.description == "Person detection, Cortex-M55"
    assert dict(profile.target) == {
        "cpu": "cortex-m55",
        "isa": "mve",
        "board": "mps3-an547",
        "toolchain": "zig",
        "optimize": Optimize.SIZE,
        "flash_wait_states": 0,
        "data_wait_states": 0,
        "unaligned": True,
        "float_abi": "hard",
        "nonsecure_entries": True,
        "via": Via.SEMIHOSTING,
        "images": (),
    }
    (model,) = profile.models
    assert (model.name, model.key, model.source) == ("person", "path", None)
    assert model.path == Path("profiles/../models/person.pte")
    assert model.written == "../models/person.pte"
    assert model.load is Load.PTE
    assert dict(profile.operators) == {
        "include": (ADD,),
        "include_yaml": (_named("../ops/extra.yaml"),),
        "every": False,
        "overlap": Overlap.ALLOW,
        "allow_missing": ("XnnpackBackend",),
    }
    assert profile.dtypes.select is DtypeSelect.MODELS
    assert profile.dtypes.operators == (
        DtypeRequest(operator=ADD, dtypes=(ScalarType.Int, ScalarType.Float)),
        DtypeRequest(operator=MUL, keys=(KernelKey.parse("v1/6;0,1|6;0,1|6;0,1"),)),
    )
    assert profile.kernels.libraries == ("my_ops", "portable")
    assert profile.kernels.operators == ((ADD, ("portable",)),)
    (library,) = profile.kernels.custom
    assert dict(library) == {
        "name": "my_ops",
        "functions": _named("../my_ops/functions.yaml"),
        "sources": (_named("../my_ops/*.cpp"),),
        "include": (_named("../my_ops/include"),),
        "defines": ("MY_OPS_TABLES=2",),
        "exports": (),
    }
    (delegate,) = profile.delegates
    assert dict(delegate) == {
        "backend": "MyBackend",
        "namespace": "my_backend",
        "sources": (_named("../my_backend/*.cpp"),),
        "include": (),
        "defines": (),
        "exports": (),
        "state_bytes": 12,
        "named_data": False,
    }
    assert profile.scratch.runtime_check is RuntimeCheck.ALWAYS
    assert profile.registry.max_kernels == 64
    assert profile.trace.enable
    assert profile.integrity.check is CheckImage.START
    assert profile.budget.flash_bytes == 2 * 1024 * 1024
    assert profile.budget.ram_bytes == 64 * 1024


def test_models_that_are_given_as_python() -> None:
    text = PYTHON_MODEL.replace("host", "cortex-m55") + (
        '[[models]]\nsource = "../net.py:build"\nlowering = "ethos-u55-64"\n'
        'quantize = {activations = "int16"}\nreads = ["a/*.bin"]\n'
        'regions = {2 = "sram", 1 = "dtcm"}\nregion = "sram"\n'
        'vela = {config = "v.ini", flags = ["--optimise=Size"]}\n'
        'tensors = [{tensor = "input 1", region = "dtcm"}]\n'
    )
    (model,) = load(text).models
    assert (model.name, model.key) == ("net", "source")
    assert model.source == PythonCallable(
        path=MAIN.parent / "../net.py", written="../net.py", function="build"
    )
    assert (model.path, model.written) == (model.source.path, "../net.py")
    assert model.quantize == Quantize(activations=Activations.INT16)
    assert model.vela == Vela(config="profiles/v.ini", flags=("--optimise=Size",))
    assert model.reads == (_named("a/*.bin"),)
    assert model.pins == Pins(
        every="sram",
        by_id=((1, "dtcm"), (2, "sram")),
        tensors=(TensorPin(kind=TensorKind.INPUT, index=1, method=None, region="dtcm"),),
    )


def test_defaults_on_host() -> None:
    profile = load(SMALL)
    choice = profile.target
    assert (choice.cpu, choice.isa, choice.board) == ("host", "scalar", None)
    assert choice.toolchain is None
    (model,) = profile.models
    assert (model.name, model.quantize, model.vela) == ("add_mul", None, NO_VELA)
    assert model.pins == NO_PINS
    # Every other table is as if it were empty.
    empty = {f"{name} = {{}}" for name in ("dtypes", "memory", "passes", "scratch")}
    empty |= {f"{name} = {{}}" for name in ("registry", "trace", "integrity", "budget")}
    full = load(SMALL + "\n".join(sorted(empty)) + "\n")
    assert full.model_copy(update={"spans": profile.spans}) == profile


def test_a_default_that_is_written_makes_no_difference() -> None:
    text = SMALL.replace('"host"', '"cortex-m4"')
    written = 'target.isa = "dsp"\ntarget.board = "mps2-an386"\n'
    written += 'target.toolchain = "zig"\n'
    names = text.replace(".pte", '.pte", name = "add_mul')
    assert load(text + written).target == load(text).target
    assert load(names).models == load(text).models


@pytest.mark.parametrize("cpu", [c for c in CPUS if c != "host"])
def test_defaults_on_boards(cpu: str) -> None:
    choice = load(SMALL.replace("host", cpu)).target
    assert choice.isa == CPUS[cpu].default_isa
    assert choice.board == CPUS[cpu].default_board
    assert choice.toolchain == "zig"


def test_choices_are_kept() -> None:
    text = SMALL.replace(
        'target.cpu = "host"',
        'target = {cpu = "cortex-m55", isa = "dsp", toolchain = "gnu", '
        'optimize = "debug"}\nkernels.libraries = ["quantized", "portable"]\n'
        'dtypes.select = "all"\noperators.all = true',
    )
    profile = load(text)
    assert (profile.target.isa, profile.target.toolchain) == ("dsp", "gnu")
    assert profile.target.optimize is Optimize.DEBUG
    assert profile.kernels.libraries == ("quantized", "portable")
    assert profile.dtypes.select is DtypeSelect.ALL
    assert profile.operators.every


def test_operators_alone_are_a_product() -> None:
    text = SMALL.replace("models = [{ path", 'operators.include = ["add.out"]\n#')
    profile = load(text)
    assert profile.models == ()
    assert profile.operators.include == (OperatorName("aten", "add", "out"),)


def test_one_operator_in_two_spellings() -> None:
    text = SMALL + (
        "[dtypes.operators]\n"
        '"add.out" = ["Int", "v1/6;0", "Int"]\n"aten::add.out" = ["Float", "v1/3;0"]\n'
    )
    assert load(text).dtypes.operators == (
        DtypeRequest(
            operator=OperatorName("aten", "add", "out"),
            dtypes=(ScalarType.Int, ScalarType.Float),
            keys=(KernelKey.parse("v1/3;0"), KernelKey.parse("v1/6;0")),
        ),
    )


@pytest.mark.parametrize(
    ("text", "size_bytes"), [("1 B", 1), ("96 KiB", 98304), ("96KiB", 98304), ("2 MiB", 2097152)]
)
def test_sizes(text: str, size_bytes: int) -> None:
    profile = load(SMALL + f'budget.ram = "{text}"\n')
    assert profile.budget.ram_bytes == size_bytes


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ('"64 kb"', 'write "64 KiB"; 1 KiB is 1024 B'),
        ('"2M"', 'write "2 MiB"; 1 KiB is 1024 B'),
        ('"2048"', 'write "2 KiB"; 1 KiB is 1024 B'),
        ('"1.5 MiB"', 'write "1536 KiB"; 1 KiB is 1024 B'),
        ('"1.3 KiB"', "1 KiB is 1024 B"),
        ('"0 KiB"', "1 KiB is 1024 B"),
        ('"-1 KiB"', "1 KiB is 1024 B"),
        ('"1  KiB"', 'write "1 KiB"; 1 KiB is 1024 B'),
        ('"٣ KiB"', "1 KiB is 1024 B"),
        ('"1 KiB\\n"', 'write "1 KiB"; 1 KiB is 1024 B'),
        (f'"{"9" * 5000} KiB"', "1 KiB is 1024 B"),
        ("1000", 'write "1000 B"; 1 KiB is 1024 B'),
        ("-5", "1 KiB is 1024 B"),
        ("true", "1 KiB is 1024 B"),
        ("[]", "1 KiB is 1024 B"),
        ("0x" + "f" * 5000, "1 KiB is 1024 B"),
    ],
)
def test_bad_sizes(value: str, hint: str) -> None:
    (problem,) = problems_of(SMALL + f"budget.ram = {value}\n")
    assert problem.code == "bad-size"
    assert problem.hint == hint
    assert problem.where == SourceSpan(
        file="profiles/doorbell.toml", line=5, text=f"budget.ram = {value}"
    )


@pytest.mark.parametrize("name", ["", "Doorbell", "door_bell", "-a", "1a", "ä", "a" * 41, "a\\n"])
def test_bad_names(name: str) -> None:
    (problem,) = problems_of(SMALL.replace("small", name))
    assert (problem.code, problem.where and problem.where.line) == ("bad-value", 2)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("string", "C libraries and compilers have a header string.h"),
        ("m", "toolchains have a library libm.a"),
        ("orch", "functions and headers of the runtime begin with orch"),
        ("orch-status", "functions and headers of the runtime begin with orch"),
    ],
)
def test_names_of_others(name: str, why: str) -> None:
    """A program could include or link the wrong one."""
    (problem,) = problems_of(SMALL.replace("small", name))
    assert problem.code == "bad-value"
    assert problem.message == f'name cannot be "{name}": {why}'
    assert problem.hint == f'choose another name, such as "my-{name}"'
    assert problem.notes == ()


def test_nothing_is_computed_again_with_whole_tensors() -> None:
    (problem,) = problems_of(f'{SMALL}\n[memory]\nrecompute = "skips"\n')
    assert problem.code == "bad-value"
    assert problem.message == "memory.recompute requires memory.fuse"
    assert problem.where is not None
    assert problem.where.text == 'recompute = "skips"'
    assert problem.notes == (
        ("found", 'recompute = "skips", fuse = "off"'),
        ("expected", 'fuse = "auto" or "smallest"'),
    )
    assert problem.hint == "set fuse, or remove recompute"


@pytest.mark.parametrize("path", ["", "/", "C:/m/a.pte", "m\\\\a.pte", "a\\u0000"])
def test_bad_paths(path: str) -> None:
    (problem,) = problems_of(SMALL.replace("../m/add_mul.pte", path))
    assert (problem.code, problem.where and problem.where.line) == ("bad-value", 4)


def test_a_pattern_walks_a_tree_once() -> None:
    delegate = '[[delegates]]\nbackend = "B"\nnamespace = "b"\nsources = ["{}"]\n'
    assert all(
        "cannot be" not in p.message for p in problems_of(SMALL + delegate.format("../a/**/*.cpp"))
    )
    (problem,) = problems_of(SMALL + delegate.format("**/a/**/*.cpp"))
    assert problem.message == 'delegates[0].sources[0] cannot be "**/a/**/*.cpp"'
    assert problem.notes == (("expected", "at most one `**`"),)


def test_libraries_of_a_wrong_type_are_said_once() -> None:
    found = problems_of(SMALL + 'kernels.libraries = [1, "portabel", [], "portable"]\n')
    assert [(p.code, p.hint) for p in found] == [
        ("wrong-type", 'write "1", in quotes'),
        ("wrong-type", 'write it like libraries = ["portable"]'),
        ("unknown-library", 'did you mean "portable"?'),
    ]


@pytest.mark.parametrize(
    ("cpu", "written", "found"),
    [
        ("cortex-m4", None, True),
        ("cortex-m4", "true", True),
        ("cortex-m4", "false", False),
        ("cortex-m0plus", None, False),
        ("cortex-m0plus", "false", False),
        ("cortex-m23", "false", False),
    ],
)
def test_unaligned_accesses(cpu: str, written: str | None, *, found: bool) -> None:
    key = f"target.unaligned = {written}\n" if written else ""
    choice = load(SMALL.replace('"host"', f'"{cpu}"') + key).target
    target = resolve_target(
        cpu=choice.cpu,
        isa=choice.isa,
        board=None,
        toolchain="zig",
        optimize="size",
        unaligned=choice.unaligned,
    )
    assert target.unaligned is found
    needs_flag = written == "false" and CPUS[cpu].has_unaligned
    assert ("-mno-unaligned-access" in target.isa.machine_flags) is needs_flag


@pytest.mark.parametrize(
    ("cpu", "written", "found"),
    [
        ("cortex-m0plus", "true", "the core loads words from aligned addresses only"),
        ("host", "true", "the key is for Cortex-M"),
        ("host", "false", "the key is for Cortex-M"),
    ],
)
def test_unaligned_accesses_where_there_is_no_choice(cpu: str, written: str, found: str) -> None:
    text = SMALL.replace('"host"', f'"{cpu}"') + f"target.unaligned = {written}\n"
    (problem,) = problems_of(text)
    assert problem.code == "unaligned-mismatch"
    assert problem.message == f"target.unaligned cannot be chosen with {cpu}"
    assert problem.notes == (("found", found),)
    assert problem.hint == "leave it out"
    assert str(problem.where) == "profiles/doorbell.toml:5"


@pytest.mark.parametrize(
    ("cpu", "written", "expected"),
    [
        ("cortex-m0plus", "hard", "soft"),
        ("cortex-m4", "soft", "hard, softfp"),
        ("cortex-m55", "softfp", "hard"),
        ("rv32imac", "softfp", "soft"),
    ],
)
def test_a_float_abi_that_the_cpu_does_not_have(cpu: str, written: str, expected: str) -> None:
    text = SMALL.replace('"host"', f'"{cpu}"') + f'target.float_abi = "{written}"\n'
    (problem,) = problems_of(text)
    assert problem.code == "float-abi-mismatch"
    assert problem.message == f'target.float_abi cannot be "{written}" with {cpu}'
    assert problem.notes == (("expected", expected),)
    assert problem.hint == "leave it out for the default of the cpu"
    assert str(problem.where) == "profiles/doorbell.toml:5"
    for float_abi in expected.split(", "):
        assert load(text.replace(written, float_abi)).target.float_abi == float_abi


PYTHON_MODEL = 'schema = 1\nname = "small"\ntarget.cpu = "host"\n'


def _models(*lowerings: str) -> str:
    return PYTHON_MODEL + "".join(
        f'[[models]]\nname = "m{i}"\nsource = "net.py:build"\nquantize = {{}}\n{line}\n'
        for i, line in enumerate(lowerings)
    )


@pytest.mark.parametrize(
    ("lowerings", "libraries"),
    [
        (["", 'lowering = "cortex-m"'], ("cortex_m", "quantized", "portable")),
        (['lowering = "cortex-m"', ""], ("cortex_m", "quantized", "portable")),
        ([""], ("quantized", "portable")),
        (['lowering = "xnnpack"'], ("quantized", "portable")),
        (['lowering = "ethos-u55-64"'], ("quantized", "portable")),
    ],
)
def test_a_lowering_brings_its_libraries(lowerings: list[str], libraries: tuple[str, ...]) -> None:
    assert load(_models(*lowerings)).kernels.libraries == libraries
    assert load(SMALL).kernels.libraries == ("portable",)


def test_the_first_profile_of_the_docs_needs_nothing_else() -> None:
    text = (ROOT / "docs" / "export.md").read_text(encoding="utf-8")
    model = text.split("```toml\n", 1)[1].split("```", 1)[0]
    profile = load(PYTHON_MODEL + model)
    assert [m.name for m in profile.models] == ["keywords"]
    assert profile.kernels.libraries == ("cortex_m", "quantized", "portable")


@pytest.mark.parametrize(
    ("lowering", "listed", "line"),
    [
        ("cortex-m", '"portable"', '"cortex_m", "quantized", "portable"'),
        ("cortex-m", '"quantized"', '"cortex_m", "portable", "quantized"'),
        ("portable", '"portable"', '"quantized", "portable"'),
        ("ethos-u55-64", '"portable"', '"quantized", "portable"'),
    ],
)
def test_a_library_that_a_lowering_needs_is_left_out(lowering: str, listed: str, line: str) -> None:
    text = _models(f'lowering = "{lowering}"') + f"[kernels]\nlibraries = [{listed}]\n"
    (problem,) = problems_of(text)
    assert problem.code == "missing-library"
    assert str(problem.where) == "profiles/doorbell.toml:10"
    assert problem.notes == (("required by", "profiles/doorbell.toml:4"),)
    assert problem.hint == f"write libraries = [{line}], or leave it out"
    # Somebody's own library may have the same operators, and others may not be called.
    load(text + '[[kernels.custom]]\nname = "mine"\nfunctions = "a/functions.yaml"\n')
    load(text.replace("quantize = {}", ""))


def test_toolchain_that_cannot_build_for_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    only_gnu = dataclasses.replace(CPUS["host"], toolchains=("gnu",))
    monkeypatch.setattr(target, "CPUS", MappingProxyType({"host": only_gnu}))
    (problem,) = problems_of(SMALL + 'target.toolchain = "zig"\n')
    assert problem.code == "toolchain-mismatch"
    assert problem.message == 'the toolchain "zig" cannot build for host'
    assert str(problem.where) == "profiles/doorbell.toml:5"


def test_spans() -> None:
    profile = load(SMALL)
    where = SourceSpan(file="profiles/doorbell.toml", line=3, text=SMALL.split("\n")[2])
    assert profile.span("target", "cpu") == where
    assert profile.span("target", "isa") == where  # a default: its table
    assert str(profile.span("models", 0, "path")) == "profiles/doorbell.toml:4"
    assert profile.span("budget", "ram") == SourceSpan(file="profiles/doorbell.toml")
    assert profile.span() == SourceSpan(file="profiles/doorbell.toml")


def test_profile_pickles() -> None:
    profile = load(PROFILE_EXAMPLE)
    assert pickle.loads(pickle.dumps(profile)) == profile  # noqa: S301  # our own bytes


def test_byte_order_mark_is_no_error() -> None:
    assert load("\ufeff" + SMALL) == load(SMALL)


BASE = """\
schema = 1
name = "base"
description = "of the base"
[target]
cpu = "cortex-m55"
isa = "dsp"
[[models]]
path = "one.pte"
[[models]]
path = "two.pte"
[budget]
flash = "1 MiB"
ram = "1 KiB"
"""


def test_base() -> None:
    text = """\
name = "derived"
extends = "sub/../base.toml"
[target]
isa = "mve"
[budget]
ram = "2 KiB"
"""
    profile = load(text, **{"sub/../base": BASE})
    base_file = Path("profiles/sub/../base.toml")
    assert profile.files == (MAIN, base_file)
    assert profile.name == "derived"
    assert profile.description == ""
    assert profile.target.cpu == "cortex-m55"
    assert profile.target.isa == "mve"
    assert [m.path for m in profile.models] == [
        base_file.parent / "one.pte",
        base_file.parent / "two.pte",
    ]
    assert profile.budget.flash_bytes == 1 << 20
    assert profile.budget.ram_bytes == 2048
    assert str(profile.span("target", "cpu")) == f"{base_file}:5"
    assert str(profile.span("target", "isa")) == f"{MAIN}:4"
    assert str(profile.span("target")) == f"{MAIN}:3"
    assert str(profile.span("models", 1, "path")) == f"{base_file}:10"
    assert str(profile.span("budget", "flash")) == f"{base_file}:12"
    assert str(profile.span("budget", "ram")) == f"{MAIN}:6"
    assert str(profile.span("description")) == str(MAIN)


def test_a_former_name_of_a_table_still_works() -> None:
    former = '[prelink]\nskip = ["in_place"]\n'
    alone = load(SMALL + former)
    assert alone.passes.skip == ("in_place",)
    assert str(alone.span("passes", "skip")) == f"{MAIN}:6"
    derived = 'name = "derived"\nextends = "old.toml"\npasses.fold_batch_norm = true\n'
    merged = load(derived, old=SMALL + former).passes
    assert (merged.skip, merged.fold_batch_norm) == (("in_place",), True)
    with pytest.raises(ProfileError, match="prelink"):
        load(f"{SMALL}passes.skip = []\n{former}")


def test_arrays_of_the_base_are_replaced() -> None:
    text = 'name = "derived"\nextends = "base.toml"\nmodels = [{path = "x.pte"}]\n'
    profile = load(text, base=BASE)
    assert [str(m.path) for m in profile.models] == ["profiles/x.pte"]
    assert str(profile.span("models", 1, "path")) == f"{MAIN}:3"


def test_name_is_not_inherited() -> None:
    (problem,) = problems_of('extends = "base.toml"\n', base=BASE)
    assert problem.code == "missing-key"
    assert problem.message == 'the key "name" is missing'


def test_model_name_that_no_file_system_has() -> None:
    with pytest.raises(ProfileError) as caught:
        load_profile(
            MAIN,
            text_of=lambda _: SMALL.replace("add_mul", "a/" + "x" * 5000),
            is_file=Path.is_file,
            known_libraries=("portable",),
        )
    assert "missing-file" in {p.code for p in caught.value.diagnostics}


def unreadable(error: Exception) -> Callable[[Path], str]:
    def text_of(_: Path) -> str:
        raise error

    return text_of


@pytest.mark.parametrize(
    ("error", "code", "found", "line"),
    [
        (FileNotFoundError(2, "No such file"), "missing-file", "", 0),
        (IsADirectoryError(21, "Is a directory"), "unreadable-file", "Is a d", 0),
        (PermissionError(13, "Permission denied"), "unreadable-file", "Permis", 0),
        (OSError(), "unreadable-file", "OSError", 0),
        (
            UnicodeDecodeError("utf-8", b"a\nb\n\xff", 4, 5, "invalid start byte"),
            "not-utf8",
            "byte 0xff at 4",
            3,
        ),
    ],
)
def test_unreadable_profile(error: Exception, code: str, found: str, line: int) -> None:
    with pytest.raises(ProfileError) as caught:
        load_profile(
            MAIN, text_of=unreadable(error), is_file=lambda _: True, known_libraries=("portable",)
        )
    (problem,) = caught.value.diagnostics
    assert problem.code == code
    assert problem.where == SourceSpan(file=str(MAIN), line=line)
    assert dict(problem.notes).get("found", "").startswith(found)


@pytest.mark.parametrize(
    "value", ["[" * 100_000 + "]" * 100_000, "1" * 5000], ids=["nesting", "digits"]
)
def test_limits_of_the_parser(value: str) -> None:
    (problem,) = problems_of(SMALL + f"x = {value}\n")
    assert problem.code == "toml-syntax"
    assert problem.message == "a value is nested too deeply or has too many digits"


@pytest.mark.parametrize(
    "key", ["kernels.libraries", "kernels.operators", "models", "description", "x"]
)
@pytest.mark.parametrize(("left", "right"), [("[", "]"), ("{a=", "}")])
def test_what_the_parser_accepts_is_explained(key: str, left: str, right: str) -> None:
    deep = SMALL.partition("models")[0] + f"{key} = {left * 390}1{right * 390}\n"
    assert {p.code for p in problems_of(deep)} & {"wrong-type", "unknown-key"}


JSON_LIKE = st.recursive(
    st.none().map(lambda _: 0)
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.dates()
    | st.times()
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
    | st.sampled_from(["", "[key]", "{key}", "host", "cortex-m4", "a.pte", "1 KiB"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["[key]", "aten::add.out", "path", "name", "cpu", "x", "isa"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=5,
)
TOP_KEYS = (*tomli.loads(PROFILE_EXAMPLE), "extends", "memory", "[key]")


@given(
    changes=st.dictionaries(st.sampled_from(TOP_KEYS), JSON_LIKE, max_size=4),
    inner=st.dictionaries(
        st.tuples(
            st.sampled_from(["target", "operators", "dtypes", "kernels", "budget", "models"]),
            st.sampled_from(
                ["cpu", "isa", "board", "path", "all", "operators", "libraries", "ram"]
            ),
        ),
        JSON_LIKE,
        max_size=4,
    ),
)
def test_any_toml_loads_or_is_explained(
    changes: dict[str, object], inner: dict[tuple[str, str], object]
) -> None:
    data = tomli.loads(PROFILE_EXAMPLE)
    for (table, key), value in inner.items():
        (data[table][0] if table == "models" else data[table])[key] = value
    text = tomli_w.dumps(data | changes)
    for problem in problems_of(text):
        assert problem.where
        assert problem.message
        assert problem.notes
        assert problem.hint


def test_choices_are_cheap_to_import() -> None:
    program = (
        "import sys, orchestrator.profile.choices, orchestrator.cli.render;"
        "print(sorted({'pydantic', 'tomli', 'json'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    "text", ["operators.include = []", "operators = {}", "operators.all = false", "models = []"]
)
def test_a_profile_may_say_that_it_selects_nothing(text: str) -> None:
    profile = load(SMALL.replace('models = [{ path = "../m/add_mul.pte" }]', text))
    assert profile.models == ()
    assert profile.operators == OperatorsTable()


def test_a_profile_that_forgets_to_select_is_refused() -> None:
    text = SMALL.replace('models = [{ path = "../m/add_mul.pte" }]', "")
    assert [p.code for p in problems_of(text)] == ["nothing-selected"]


def test_operator_lists_of_a_base_are_sought_beside_it() -> None:
    text = 'schema = 1\nname = "a"\nextends = "base.toml"\ntarget.cpu = "host"\n'
    profile = load(text, base='operators.include_yaml = ["o.yaml", "./o.yaml"]\n')
    assert [f.written for f in profile.operators.include_yaml] == ["o.yaml", "./o.yaml"]
    assert {f.path for f in profile.operators.include_yaml} == {MAIN.parent / "o.yaml"}
    span = profile.span("operators", "include_yaml", 1)
    assert (span.file, span.line) == ("profiles/base.toml", 1)


@pytest.mark.parametrize(
    ("keys", "limit"),
    [
        ("", 1_000_000),
        (", max_instructions = 20", 20),
        (", max_instructions = 0", 0),
        (', load = "prelinked"', 0),
    ],
)
def test_what_is_loaded_has_a_limit_of_instructions(keys: str, limit: int) -> None:
    (model,) = load(SMALL.replace('.pte"', f'.pte"{keys}')).models
    assert model.instruction_limit == limit


@pytest.mark.parametrize("text", ["a\\nb", "a\\tb", "\\u001b[2J", "\\u202e"])
def test_a_description_is_one_line(text: str) -> None:
    (problem,) = problems_of(f'description = "{text}"\n{SMALL}')
    assert problem.where == SourceSpan(file=str(MAIN), line=1, text=f'description = "{text}"')
    assert dict(problem.notes)["expected"] == ("one line of text, without control characters")
