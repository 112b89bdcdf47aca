"""Which operators need a piece of code: relocations, and what follows from them."""

from __future__ import annotations

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.core.kernel import Kernel
from orchestrator.core.operator import parse_schema
from orchestrator.errors import CompileError
from orchestrator.measure.link_map import MapPiece, MapSection
from orchestrator.measure.owner import Owners
from orchestrator.measure.size import SizeOperator
from orchestrator.measure.users import Reference, read_object, size_operators, users_of
from orchestrator.memory.plan import MemoryPlan
from orchestrator.method.linked import LinkedCall, LinkedMethod
from orchestrator.selection.op_info import Origin
from orchestrator.selection.resolution import Binding, Resolution, ResolvedOperator
from tests.unit.measure.objects import FUNC, GLOBAL, LOCAL, NOTYPE, SECTION, WEAK, ObjectSpec

SPEC = ObjectSpec(
    sections=[".text.f", ".rodata.t", ".text.g"],
    symbols=[
        ("", LOCAL, SECTION, ".rodata.t"),
        ("inner", LOCAL, FUNC, ".text.g"),
        ("_Zf", GLOBAL, FUNC, ".text.f"),
        ("_Zg", WEAK, FUNC, ".text.g"),
        ("_Zelse", GLOBAL, NOTYPE, ""),
    ],
    references=[(0, 0), (0, 4), (2, 1), (0, 3)],
)


@pytest.mark.parametrize("is_64", [False, True])
@pytest.mark.parametrize("with_addends", [False, True])
def test_an_object_s_references(*, is_64: bool, with_addends: bool) -> None:
    found = read_object(SPEC.make(is_64=is_64, with_addends=with_addends), path="x.o")
    assert found.defined == {"_Zf": ".text.f", "_Zg": ".text.g"}
    assert found.references == {
        ".text.f": {
            Reference(".rodata.t", ""),
            Reference("", "_Zelse"),
            Reference(".text.g", "_Zg"),
        },
        ".text.g": {Reference(".text.g", "")},
    }


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello, this is no object",
        b"\x7fELF\x01\x02" + bytes(60),  # big-endian
        b"\x7fELF\x09\x01" + bytes(60),
        SPEC.make()[:-1],
    ],
)
def test_what_is_no_object_is_refused(data: bytes) -> None:
    with pytest.raises(CompileError) as error:
        read_object(data, path="obj/kernels/portable/op_add.cpp.o")
    (problem,) = error.value.diagnostics
    assert problem.code == "object-unreadable"
    assert problem.message == "obj/kernels/portable/op_add.cpp.o cannot be read"
    assert problem.notes[0][1].startswith(f"{len(data)} bytes, ")


@given(data=st.data(), is_64=st.booleans())
def test_damaged_objects_are_refused_or_read(data: st.DataObject, *, is_64: bool) -> None:
    damaged = bytearray(SPEC.make(is_64=is_64))
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        damaged[place] = data.draw(st.integers(0, 255))
    with suppress(CompileError):
        read_object(bytes(damaged), path="x.o")


ADD, MUL, NEG = "aten::add.out", "aten::mul.out", "aten::neg.out"
OPERATORS = tuple(
    SizeOperator(name=f"aten::{n}.out", functions=(f"k::{n}_out",), models=(), keys=())
    for n in ("add", "mul", "neg")
)


def kernel(name: str, *helpers: str, copies: tuple[str, ...] = ()) -> ObjectSpec:
    """A kernel that calls helpers, and its copies of inline functions."""
    sections = [f".text._ZN1k{len(name) + 4}{name}_outE", *(f".text.{c}" for c in copies)]
    return ObjectSpec(
        sections=sections,
        symbols=[
            (f"{sections[0].removeprefix('.text.')}RKi", GLOBAL, FUNC, sections[0]),
            *((h, WEAK, FUNC, f".text.{h}" if h in copies else "") for h in helpers),
        ],
        references=[(0, i + 1) for i in range(len(helpers))],
    )


def library(*names: str, calls: tuple[tuple[str, str], ...] = ()) -> ObjectSpec:
    """An object with functions, and who of them calls whom."""
    outside = [end for _, end in calls if end not in names]
    symbols = [*names, *outside]
    return ObjectSpec(
        sections=[f".text.{n}" for n in names],
        symbols=[(n, GLOBAL, FUNC, f".text.{n}" if n in names else "") for n in symbols],
        references=[(names.index(a), symbols.index(b)) for a, b in calls],
    )


def users(
    objects: dict[str, ObjectSpec], dropped: tuple[tuple[str, str], ...] = ()
) -> dict[tuple[str, str], tuple[str, ...]]:
    """Users of the sections of a firmware; `dropped` are not linked."""
    pieces, address = [], 0
    for path, spec in objects.items():
        for section in spec.sections:
            if (path, section) not in dropped:
                pieces.append(MapPiece(section, address, 4, f"obj/{path}.o"))
                address += 4
    pieces.append(MapPiece(".rodata.str1.1", address, 4, "<internal>"))
    owners = Owners("demo", (f"obj/{path}.o" for path in objects), MemoryPlan(models=()))
    return users_of(
        [MapSection(".text", 0, address + 4, tuple(pieces))],
        {f"obj/{path}.o": spec.make() for path, spec in objects.items()},
        OPERATORS,
        owners,
    )


TABLE = {
    "gen/src/registered_kernels.cpp": library(
        "kTable", calls=tuple(("kTable", f"_ZN1k7{n}_outERKi") for n in ("add", "mul", "neg"))
    )
}
APPLICATION = {"runtime/app/main.cpp": library("main", calls=(("main", "execute"),))}
EXECUTOR = {"runtime/src/executor.cpp": library("execute", calls=(("execute", "kTable"),))}
ADD_NODE = ("kernels/portable/op_add.cpp", ".text._ZN1k7add_outE")
MUL_NODE = ("kernels/portable/op_mul.cpp", ".text._ZN1k7mul_outE")
BASE = {**TABLE, **APPLICATION, **EXECUTOR}


def test_a_kernel_is_its_operator_s_although_the_table_names_it() -> None:
    found = users({**BASE, "kernels/portable/op_add.cpp": kernel("add")})
    assert found == {ADD_NODE: (ADD,)}


def test_a_kernel_is_its_operator_s_although_a_prelinked_method_names_it() -> None:
    api = library("code", calls=(("code", "_ZN1k7add_outERKi"),))
    kernels = {"kernels/portable/op_add.cpp": kernel("add", "exp")}
    math = {"runtime/src/math.cpp": library("exp")}
    found = users({**APPLICATION, "gen/src/api.cpp": api, **kernels, **math})
    assert found == {ADD_NODE: (ADD,), ("runtime/src/math.cpp", ".text.exp"): (ADD,)}


def test_what_a_kernel_alone_brings_is_its_operator_s() -> None:
    math = library("exp", "log", "round", calls=(("exp", "round"),))
    found = users(
        {
            **BASE,
            "kernels/portable/op_add.cpp": kernel("add", "exp"),
            "kernels/portable/op_mul.cpp": kernel("mul", "log", "exp"),
            "runtime/src/math.cpp": math,
        }
    )
    source = "runtime/src/math.cpp"
    assert found == {
        ADD_NODE: (ADD,),
        MUL_NODE: (MUL,),
        (source, ".text.exp"): (ADD, MUL),
        (source, ".text.round"): (ADD, MUL),
        (source, ".text.log"): (MUL,),
    }


def test_what_every_product_has_is_no_operator_s() -> None:
    resize = library("resize")
    executor = library("execute", calls=(("execute", "resize"),))
    found = users(
        {
            **TABLE,
            **APPLICATION,
            "runtime/src/executor.cpp": executor,
            "runtime/src/tensor.cpp": resize,
            "kernels/portable/op_add.cpp": kernel("add", "resize"),
        }
    )
    assert found == {ADD_NODE: (ADD,)}


def test_platform_and_support_functions_are_nobody_s() -> None:
    found = users(
        {
            **BASE,
            "kernels/portable/op_add.cpp": kernel("add", "memcpy"),
            "runtime/freestanding/mem.cpp": library("memcpy"),
        }
    )
    assert found == {ADD_NODE: (ADD,)}


def test_an_inline_function_is_shared_although_one_copy_is_linked() -> None:
    """The linker keeps the copy of the first object, and drops the others."""
    inline = "loop"
    found = users(
        {
            **BASE,
            "kernels/portable/op_add.cpp": kernel("add", inline, copies=(inline,)),
            "kernels/portable/op_mul.cpp": kernel("mul", inline, copies=(inline,)),
        },
        dropped=(("kernels/portable/op_mul.cpp", f".text.{inline}"),),
    )
    assert found[ADD_NODE[0], f".text.{inline}"] == (ADD, MUL)
    assert found[ADD_NODE] == (ADD,)


def test_constants_that_linkers_merge_are_shared_by_all_who_have_some() -> None:
    """A map lists a constant for the first object, whoever else has an equal one."""

    def with_constant(name: str) -> ObjectSpec:
        spec = kernel(name)
        spec.sections.append(".rodata.cst4")
        spec.symbols.append(("", LOCAL, SECTION, ".rodata.cst4"))
        spec.references.append((0, 1))
        return spec

    found = users(
        {
            **BASE,
            "kernels/portable/op_add.cpp": with_constant("add"),
            "kernels/portable/op_mul.cpp": with_constant("mul"),
        }
    )
    assert found == {
        ADD_NODE: (ADD,),
        MUL_NODE: (MUL,),
        (ADD_NODE[0], ".rodata.cst4"): (ADD, MUL),
        (MUL_NODE[0], ".rodata.cst4"): (ADD, MUL),
    }


def test_two_operators_of_one_source_are_told_apart() -> None:
    both = kernel("add", "fill")
    other = kernel("neg", "fill")
    spec = ObjectSpec(
        sections=[*both.sections, *other.sections, ".text.fill"],
        symbols=[both.symbols[0], other.symbols[0], ("fill", LOCAL, FUNC, ".text.fill")],
        references=[(0, 2), (1, 2)],
    )
    path = "kernels/portable/op_add.cpp"
    assert users({**BASE, path: spec}) == {
        (path, both.sections[0]): (ADD,),
        (path, other.sections[0]): (NEG,),
        (path, ".text.fill"): (ADD, NEG),
    }


def test_what_nothing_leads_to_is_nobody_s() -> None:
    """How it got in is not known: perhaps by the toolchain's own code."""
    spec = library("_ZN1k7add_outERKi", "mystery")
    path = "kernels/portable/op_add.cpp"
    assert users({**BASE, path: spec}) == {(path, ".text._ZN1k7add_outERKi"): (ADD,)}


def test_kernels_of_one_name_in_two_libraries() -> None:
    """The map names only the member of the archive; sections tell them apart."""
    add, mul = kernel("add", "loop", copies=("loop",)), kernel("mul")
    objects = {
        "obj/kernels/portable/op_add.cpp.o": add.make(),
        "obj/kernels/own/op_add.cpp.o": mul.make(),
    }
    pieces = tuple(
        MapPiece(section, 4 * place, 4, "libdemo.a(op_add.cpp.o)")
        for place, section in enumerate([*add.sections, *mul.sections])
    )
    owners = Owners("demo", objects, MemoryPlan(models=()))
    maps = [MapSection(".text", 0, 12, pieces)]
    assert users_of(maps, objects, OPERATORS, owners) == {
        ("kernels/op_add.cpp", add.sections[0]): (ADD,),
        ("kernels/op_add.cpp", ".text.loop"): (ADD,),
        ("kernels/op_add.cpp", mul.sections[0]): (MUL,),
    }


def test_operators_of_a_resolution() -> None:
    """Kernels, and who asks: models by their methods, keys of the profile without."""
    origins = (
        Origin("kws", "forward", 1),
        Origin("kws", "forward", 3),
        Origin("operators.include"),
        Origin("vww", "forward", 0),
    )
    schema = parse_schema("aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor")
    bindings = tuple(
        Binding(
            kernel=Kernel(
                operator=schema.name,
                schema=schema,
                library="portable",
                function=function,
                sources=("op_relu.cpp",),
                keys=(),
                dtypes=(),
                dtype_arguments=(),
                closure=frozenset(),
                dim_orders="any",
                entry="functions.yaml:1",
            ),
            keys=(),
            dtypes=frozenset(),
            table_dtypes=frozenset(),
            every_dtype=False,
            origins=part,
        )
        for function, part in (("k::relu", origins[2:]), ("k::fast", origins[:2]))
    )
    resolution = Resolution(
        operators=(ResolvedOperator(name=schema.name, schema=schema, bindings=bindings),)
    )
    assert size_operators(resolution) == (
        SizeOperator(
            name="aten::relu.out",
            functions=("k::fast", "k::relu"),
            models=("kws", "vww"),
            keys=("operators.include",),
        ),
    )
    call = LinkedCall(operator=schema.name, function="k::packed", args=(), accesses=(), outs=())
    method = LinkedMethod(
        model="kws",
        name="forward",
        values=(),
        instructions=(call,),
        inputs=(),
        outputs=(),
        data=(),
        origins=(0,),
    )
    (operator,) = size_operators(resolution, [method])
    assert operator.functions == ("k::fast", "k::packed", "k::relu")


def test_without_objects_nothing_is_known() -> None:
    owners = Owners("demo", (), MemoryPlan(models=()))
    piece = MapPiece(".text.f", 0, 4, "obj/kernels/portable/op_add.cpp.o")
    maps = [MapSection(".text", 0, 4, (piece,))]
    assert users_of(maps, {}, OPERATORS, owners) == {}


def test_indices_that_are_no_sections() -> None:
    """Absolute and common symbols are defined nowhere that is linked."""
    data = bytearray(ObjectSpec([".text.f"], [("abs", GLOBAL, 0, ".text.f")]).make())
    entry = bytes(struct.pack("<IIIBBH", 1, 0, 0, 0x10, 0, 1))
    place = data.index(entry)
    data[place + 14 : place + 16] = struct.pack("<H", 0xFFF1)
    assert read_object(bytes(data), path="x.o").defined == {}
