"""Dividing sections among their owners, on hand-made links."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from orchestrator.measure.account import Account, Extent, account
from orchestrator.measure.elf import ElfSection, ElfSymbol
from orchestrator.measure.link_map import MapPiece, MapSection
from orchestrator.measure.owner import Owner, Owners
from orchestrator.measure.size import ContributorKind as Kind
from orchestrator.measure.size import RegionUse, SizeSection
from orchestrator.memory.plan import Arena, MemoryPlan, MethodMemory, ModelMemory
from orchestrator.targets.cores import Board, Region

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MEMORY = MemoryPlan(
    models=(
        ModelMemory(
            model="kws",
            program_bytes=64,
            methods=(
                MethodMemory(
                    model="kws",
                    method="forward",
                    arenas=(Arena(memory_id=1, size_bytes=32, peak_live_bytes=32),),
                    state_bytes=16,
                    input_bytes=(),
                    output_bytes=(),
                ),
            ),
        ),
    )
)
OBJECTS = (
    "obj/gen/src/api.cpp.o",
    "obj/kernels/cortex_m/op_add.cpp.o",
    "obj/kernels/portable/op_add.cpp.o",
    "obj/kernels/portable/op_mul.cpp.o",
    "obj/runtime/src/executor.cpp.o",
)
OWNERS = Owners("my-product", OBJECTS, MEMORY)
BOARD = Board(
    name="tiny",
    cpu="cortex-m4",
    regions=(
        Region(name="rom", origin=0, size_bytes=0x1000, kind="flash"),
        Region(name="ram", origin=0x2000, size_bytes=0x1000, kind="ram"),
        Region(name="more", origin=0x8000, size_bytes=0x1000, kind="ram"),
    ),
    stack_bytes=0,
    emulator=(),
)
EXECUTOR = "obj/runtime/src/executor.cpp.o"
RUNTIME = (Kind.RUNTIME, "executor")
PADDING = (Kind.PADDING, "alignment")


def section(
    name: str, address: int, size: int, *, load: int | None = None, align: int = 4
) -> ElfSection:
    return ElfSection(
        name=name,
        address=address,
        size_bytes=size,
        align_bytes=align,
        load_address=load,
        writable=address >= 0x2000,
    )


def accounts(
    *sections: tuple[ElfSection, Sequence[MapPiece]],
    symbols: Sequence[ElfSymbol] = (),
    board: Board | None = BOARD,
) -> Account:
    maps = {s: MapSection(s.name, s.address, s.size_bytes, tuple(pieces)) for s, pieces in sections}
    return account(maps, symbols, OWNERS, board)


def costs(
    counted: Mapping[tuple[str, Kind, str, tuple[str, ...]], int],
) -> dict[tuple[Kind, str], int]:
    """By owner, whatever the section."""
    found: dict[tuple[Kind, str], int] = {}
    for (_, kind, name, _), count in counted.items():
        found[kind, name] = found.get((kind, name), 0) + count
    return found


def test_initialised_variables_cost_flash_and_ram() -> None:
    text = section(".text", 0, 6, load=0)
    data = section(".data", 0x2000, 8, load=0x8)
    found = accounts(
        (text, [MapPiece(".text", 0, 6, EXECUTOR)]),
        (data, [MapPiece(".data.a", 0x2000, 5, EXECUTOR)]),
    )
    assert costs(found.flash_bytes) == {RUNTIME: 6 + 5, PADDING: 3 + 2}
    assert costs(found.ram_bytes) == {RUNTIME: 5, PADDING: 3}
    assert found.sections[1] == SizeSection(
        name=".data",
        address=0x2000,
        size_bytes=8,
        region="ram",
        load_region="rom",
        in_flash=True,
        in_ram=True,
    )
    assert found.regions == [
        RegionUse(name="rom", kind="flash", size_bytes=0x1000, used_bytes=0x10),
        RegionUse(name="ram", kind="ram", size_bytes=0x1000, used_bytes=8),
        RegionUse(name="more", kind="ram", size_bytes=0x1000, used_bytes=0),
    ]


def test_gaps_between_sections_of_a_memory_are_padding() -> None:
    first = section(".bss", 0x2000, 3)
    second = section(".arena", 0x2010, 0x10, align=16)
    other = section(".far", 0x8000, 4)
    found = accounts(
        (first, [MapPiece(".bss.a", 0x2000, 3, EXECUTOR)]),
        (second, [MapPiece(".bss.orch_arena_kws_forward_1", 0x2010, 16, EXECUTOR)]),
        (other, [MapPiece(".bss.b", 0x8000, 4, EXECUTOR)]),
    )
    arena = (Kind.ARENA, "kws.forward arena 1")
    assert costs(found.ram_bytes) == {RUNTIME: 7, arena: 16, PADDING: 13}
    assert costs(found.flash_bytes) == {}


def test_gaps_on_a_host_count_if_they_are_alignment() -> None:
    text = section(".text", 0x100, 5, load=0x100)
    rodata = section(".rodata", 0x108, 8, load=0x108, align=8)
    data = section(".data", 0x2000, 4, load=0x2000)
    bss = section(".bss", 0x2010, 4, align=16)
    found = accounts(
        (text, [MapPiece(".text", 0x100, 5, EXECUTOR)]),
        (rodata, [MapPiece(".rodata", 0x108, 8, EXECUTOR)]),
        (data, [MapPiece(".data", 0x2000, 4, EXECUTOR)]),
        (bss, [MapPiece(".bss", 0x2010, 4, EXECUTOR)]),
        board=None,
    )
    # Between .rodata and .data is the rest of a page, which is in no file.
    assert costs(found.flash_bytes) == {RUNTIME: 5 + 8 + 4, PADDING: 3}
    assert costs(found.ram_bytes) == {RUNTIME: 4 + 4, PADDING: 12}
    assert found.regions == []


@pytest.mark.parametrize(
    ("gap", "align", "owner"),
    [
        (15, 4, PADDING),
        (16, 4, (Kind.OTHER, "unlisted in .text")),
        (31, 32, PADDING),
        (32, 32, (Kind.OTHER, "unlisted in .text")),
    ],
)
def test_more_than_alignment_is_not_padding(gap: int, align: int, owner: tuple[Kind, str]) -> None:
    text = section(".text", 0, gap + 4, load=0, align=align)
    before = accounts((text, [MapPiece(".text.f", gap, 4, EXECUTOR)]))
    after = accounts((text, [MapPiece(".text.f", 0, 4, EXECUTOR)]))
    assert costs(before.flash_bytes) == costs(after.flash_bytes) == {RUNTIME: 4, owner: gap}


def test_folded_pieces_share_their_bytes() -> None:
    text = section(".text", 0, 12, load=0)
    found = accounts(
        (
            text,
            [
                MapPiece(".text.g", 0, 8, EXECUTOR),
                MapPiece(".text.f", 0, 8, "obj/kernels/portable/op_mul.cpp.o"),
                MapPiece(".text.h", 4, 8, "obj/kernels/portable/op_mul.cpp.o"),
            ],
        )
    )
    assert costs(found.flash_bytes) == {RUNTIME: 8, (Kind.KERNEL, "portable/op_mul"): 4}


def test_state_is_cut_out_of_what_it_lies_in() -> None:
    bss = section(".bss", 0x2000, 0x40)
    state = ElfSymbol(
        name="_ZN4orch12_GLOBAL__N_1L28my_product_kws_forward_stateE",
        address=0x2008,
        size_bytes=0x10,
        is_function=False,
        is_local=True,
    )
    loaded = replace(state, name="my_product_kws_forward_loaded", address=0x2018, size_bytes=0x40)
    function = replace(state, address=0x2000, is_function=True)
    other = replace(state, name="my_product_kws_forward_states", address=0x2000)
    found = accounts(
        (bss, [MapPiece(".bss", 0x2000, 0x38, "obj/gen/src/api.cpp.o")]),
        symbols=[function, other, state, loaded],
    )
    key = (Kind.METHOD_STATE, "kws.forward")
    # A symbol that claims to be larger than its section gets what there is.
    assert costs(found.ram_bytes) == {(Kind.API, "api"): 8, key: 0x30, PADDING: 8}
    owner = Owner(Kind.METHOD_STATE, "kws.forward", "gen/src/api.cpp")
    api = Owner(Kind.API, "api", "gen/src/api.cpp")
    assert found.extents == [
        Extent(0x2000, 0x2008, api, ".bss"),
        Extent(0x2008, 0x2018, owner, ".bss"),
        Extent(0x2018, 0x2038, owner, ".bss"),
        Extent(0x2038, 0x2040, Owner(*PADDING), ".bss"),
    ]
    assert found.extent_at(0x2000) == found.extent_at(0x2007) == found.extents[0]
    assert found.extent_at(0x2037) == found.extents[2]
    assert found.extent_at(0x2038) is None, "padding"
    assert found.extent_at(0x2040) is found.extent_at(0x1FFF) is None


def test_code_of_operators_is_counted_apart() -> None:
    source = "kernels/portable/op_mul.cpp"
    users = {(source, ".text.f"): ("aten::mul.out",)}
    owners = Owners("my-product", OBJECTS, MEMORY, users)
    piece = ("libmy-product.a(op_mul.cpp.o)",)
    assert owners.of_piece(".text.f", *piece).operators == ("aten::mul.out",)
    assert owners.of_piece(".text.g", *piece).operators == ()
    text = section(".text", 0, 12, load=0)
    pieces = (MapPiece(".text.f", 0, 4, *piece), MapPiece(".text.g", 4, 8, *piece))
    maps = {text: MapSection(text.name, text.address, text.size_bytes, pieces)}
    kernel = (".text", Kind.KERNEL, "portable/op_mul")
    found = account(maps, [], owners, BOARD)
    assert [
        ((p.section, p.kind, p.contributor), p.operators, p.flash_bytes, p.ram_bytes)
        for p in found.parts()
    ] == [(kernel, ("aten::mul.out",), 4, 0), (kernel, (), 8, 0)]


@pytest.mark.parametrize(
    ("input_section", "file", "owner"),
    [
        (
            ".text",
            "libmy-product.a(op_mul.cpp.o)",
            Owner(Kind.KERNEL, "portable/op_mul", "kernels/portable/op_mul.cpp"),
        ),
        (
            ".text",
            "libmy-product.a(op_add.cpp.o)",
            Owner(Kind.KERNEL, "op_add", "kernels/op_add.cpp"),
        ),
        (
            ".text",
            "obj/kernels/cortex_m/op_add.cpp.o",
            Owner(Kind.KERNEL, "cortex_m/op_add", "kernels/cortex_m/op_add.cpp"),
        ),
        (
            ".rodata.orch_model_kws",
            "libmy-product.a(models.S.o)",
            Owner(Kind.MODEL, "kws", "gen/src/models.S"),
        ),
        (
            ".rodata.orch_model_other",
            "libmy-product.a(models.S.o)",
            Owner(Kind.OTHER, "gen/src/models.S", "gen/src/models.S"),
        ),
        (
            ".rodata._ZN4orch12kKernelTableE",
            "obj/gen/src/registered_kernels.cpp.o",
            Owner(Kind.KERNEL_TABLE, "kernel table", "gen/src/registered_kernels.cpp"),
        ),
        (
            ".text.memcpy",
            "obj/runtime/freestanding/mem.cpp.o",
            Owner(Kind.MEMORY_FUNCTIONS, "mem", "runtime/freestanding/mem.cpp"),
        ),
        (
            ".text",
            "obj/runtime/app/runner.cpp.o",
            Owner(Kind.APPLICATION, "runner", "runtime/app/runner.cpp"),
        ),
        (
            ".text",
            "/my tools/lib/gcc/libgcc.a(_divdi3.o)",
            Owner(Kind.TOOLCHAIN, "libgcc", "libgcc.a(_divdi3.o)"),
        ),
        (
            ".init",
            "/usr/lib/x86_64-linux-gnu/Scrt1.o",
            Owner(Kind.TOOLCHAIN, "start-up files", "Scrt1.o"),
        ),
        (".bss", "/lib/x86_64-linux-gnu/libc.so.6", Owner(Kind.TOOLCHAIN, "libc", "libc.so.6")),
        (".text", "obj/compiler_rt.o", Owner(Kind.TOOLCHAIN, "compiler_rt", "compiler_rt.o")),
        (".rodata.str1.1", "<internal>", Owner(Kind.CONSTANTS, "merged strings")),
        (".rodata.cst8", "<internal>", Owner(Kind.CONSTANTS, "merged numbers")),
        (".ARM.exidx", "<internal>", Owner(Kind.OTHER, "linker .ARM.exidx")),
        (".text.stub", "linker stubs", Owner(Kind.OTHER, "linker .text.stub")),
    ],
)
def test_owners(input_section: str, file: str, owner: Owner) -> None:
    assert OWNERS.of_piece(input_section, file) == owner
