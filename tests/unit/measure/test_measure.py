"""Accounts of real linked programs, made by tests/data/measure/make_data.py."""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import CompileError, Diagnostic
from orchestrator.targets.cores import Board, Region
from tests.unit.measure.measure_cases import BOARDS, CASES, DATA, HOSTS, Kind, case, report

if TYPE_CHECKING:
    from orchestrator.measure.size import SizeReport

SHF_WRITE, SHF_ALLOC, SHT_NOBITS, PT_LOAD = 1, 2, 8, 1


class Section(NamedTuple):
    address: int
    load: int
    size: int
    has_contents: bool
    writable: bool


def elf_sections(elf: bytes) -> list[Section]:
    """Allocated sections, read without the code under test."""
    is_64 = elf[4] == 2
    header = "<16xHHIQQQIHHHHHH" if is_64 else "<16xHHIIIIIHHHHHH"
    program = "<IIQQQQQQ" if is_64 else "<IIIIIIII"
    section = "<IIQQQQIIQQ" if is_64 else "<IIIIIIIIII"
    fields = struct.unpack_from(header, elf)
    phoff, shoff, phnum, shnum = fields[4], fields[5], fields[9], fields[11]
    segments = []
    for i in range(phnum):
        p = struct.unpack_from(program, elf, phoff + i * struct.calcsize(program))
        vaddr, paddr, filesz = p[3:6] if is_64 else p[2:5]
        if p[0] == PT_LOAD:
            segments.append((vaddr, paddr, filesz))
    found = []
    for i in range(shnum):
        s = struct.unpack_from(section, elf, shoff + i * struct.calcsize(section))
        kind, flags, address, size = s[1], s[2], s[3], s[5]
        if not flags & SHF_ALLOC or not size:
            continue
        load = next((p + address - v for v, p, f in segments if 0 <= address - v < f), 0)
        has_contents = kind != SHT_NOBITS
        writable = bool(flags & SHF_WRITE)
        found.append(Section(address, load, size, has_contents, writable))
    return found


def cost(name: str, kind: Kind, part: str) -> tuple[int, int]:
    """(flash, RAM) of one contributor."""
    found = [c for c in report(name).contributors if (c.kind, c.name) == (kind, part)]
    assert len(found) == 1, part
    return found[0].flash_bytes, found[0].ram_bytes


def test_the_data_is_what_its_script_made() -> None:
    digests = (DATA / "digests.txt").read_text().splitlines()
    assert len(digests) == 3 * len(CASES)
    for line in digests:
        digest, name = line.split("  ")
        assert hashlib.sha256((DATA / name).read_bytes()).hexdigest() == digest


@pytest.mark.parametrize("name", CASES)
def test_contributors_add_up_to_the_totals(name: str) -> None:
    found, totals = report(name), report(name).totals
    keys = [(c.kind, c.name) for c in found.contributors]
    assert len(set(keys)) == len(keys)
    assert sum(c.flash_bytes for c in found.contributors) == totals.flash_bytes
    assert sum(c.ram_bytes for c in found.contributors) == totals.ram_bytes
    parts = totals.arena_bytes + totals.state_bytes + totals.data_bytes
    assert parts + totals.stack_bytes == totals.ram_bytes
    assert totals.flash_bytes_without_models == totals.flash_bytes - 1344 - 4060
    assert all(c.flash_bytes or c.ram_bytes for c in found.contributors)


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_s_totals_are_those_of_its_linker(name: str) -> None:
    used = case(name).facts["used_bytes"]
    found = report(name)
    assert {r.name: r.used_bytes for r in found.regions} == used
    flash = sum(used[r.name] for r in found.regions if r.kind == "flash")
    ram = sum(used[r.name] for r in found.regions if r.kind == "ram")
    assert (found.totals.flash_bytes, found.totals.ram_bytes) == (flash, ram)


@pytest.mark.parametrize("name", HOSTS)
def test_a_host_s_totals_are_its_sections_and_little_padding(name: str) -> None:
    sections = elf_sections(case(name).elf)
    flash = sum(s.size for s in sections if s.has_contents)
    ram = sum(s.size for s in sections if s.writable)
    totals = report(name).totals
    assert 0 <= totals.flash_bytes - flash < 16 * len(sections)
    assert 0 <= totals.ram_bytes - ram < 32
    assert report(name).regions == ()


@pytest.mark.parametrize("name", CASES)
def test_every_section_is_listed(name: str) -> None:
    listed = {(s.address, s.size_bytes) for s in report(name).sections}
    assert listed == {(s.address, s.size) for s in elf_sections(case(name).elf)}
    addresses = [s.address for s in report(name).sections]
    assert addresses == sorted(addresses)


@pytest.mark.parametrize("name", CASES)
def test_padding_and_other_hide_nothing(name: str) -> None:
    """Alignment of 2 and 4 on Arm, of up to 16 per function on x86-64."""
    found = report(name)
    padding = [c for c in found.contributors if c.kind is Kind.PADDING]
    assert [c.name for c in padding] == ["alignment"]
    assert padding[0].flash_bytes < (64 if name in BOARDS else 160)
    assert padding[0].ram_bytes < (16 if name in BOARDS else 96)
    assert [c for c in found.contributors if c.kind is Kind.OTHER] == []


@pytest.mark.parametrize("name", CASES)
def test_models_arenas_and_states_are_those_of_the_plan(name: str) -> None:
    assert cost(name, Kind.MODEL, "sum") == (1344, 0)
    assert cost(name, Kind.MODEL, "nets") == (4060, 0)
    pointer = case(name).target.cpu.pointer_bytes
    loaded_bytes = 9 * pointer  # four spans, and a word padded to a pointer
    for model in case(name).memory.models:
        for method in model.methods:
            part = f"{method.model}.{method.method}"
            state = cost(name, Kind.METHOD_STATE, part)
            assert state == (0, method.state_bytes + loaded_bytes)
            for arena in method.arenas:
                part_arena = f"{part} arena {arena.memory_id}"
                assert cost(name, Kind.ARENA, part_arena) == (0, arena.size_bytes)
    assert report(name).totals.arena_bytes == case(name).memory.arena_bytes


@pytest.mark.parametrize("name", CASES)
def test_every_kernel_and_runtime_source_counts_on_its_own(name: str) -> None:
    found = report(name).contributors
    kernels = {c.name for c in found if c.kind is Kind.KERNEL}
    operators = ("add", "addmm", "mm", "permute_copy", "relu", "tanh")
    assert kernels == {f"portable/op_{o}" for o in operators}
    runtime = {c.name for c in found if c.kind is Kind.RUNTIME}
    sources = {"executor", "load_method", "math", "model", "program", "tensor"}
    assert runtime == sources, "nothing else is linked: --gc-sections"


@pytest.mark.parametrize("name", CASES)
def test_small_parts_have_their_own_kinds(name: str) -> None:
    kinds = {c.kind: c for c in report(name).contributors}
    assert kinds[Kind.APPLICATION].name == "runner"
    assert kinds[Kind.API].name == "api"
    entry_bytes = 5 * case(name).target.cpu.pointer_bytes
    assert kinds[Kind.KERNEL_TABLE].flash_bytes >= 6 * entry_bytes
    assert kinds[Kind.KERNEL_TABLE].ram_bytes == 0
    assert (Kind.STACK in kinds) == (name in BOARDS)


def test_toolchain_files_are_named_without_the_machine_s_paths() -> None:
    libraries = {
        name: {c.name for c in report(name).contributors if c.kind is Kind.TOOLCHAIN}
        for name in CASES
    }
    assert libraries["m4-gnu"] == {"libgcc"}
    assert libraries["m4-zig"] == libraries["host-zig"] == {"compiler_rt"}
    assert libraries["host-gnu"] == {"start-up files"}
    objects = {s.object for name in CASES for s in report(name).symbols}
    assert "libgcc.a(_arm_addsubsf3.o)" in objects
    assert not [o for o in objects if o.startswith(("/", "obj/")) or ".." in o]


def test_strings_that_lld_merges_are_nobody_s() -> None:
    flash, ram = cost("m4-zig", Kind.CONSTANTS, "merged strings")
    assert flash > 0
    assert ram == 0
    # GNU ld says whose they are.
    assert not [c for c in report("m4-gnu").contributors if c.kind is Kind.CONSTANTS]


@pytest.mark.parametrize("name", CASES)
def test_symbols_lie_in_what_they_count_for(name: str) -> None:
    found = report(name)
    flash = {(c.kind, c.name): c.flash_bytes + c.ram_bytes for c in found.contributors}
    seen: dict[tuple[Kind, str], int] = {}
    for symbol in found.symbols:
        key = (symbol.kind, symbol.contributor)
        seen[key] = seen.get(key, 0) + symbol.size_bytes
        assert symbol.symbol not in symbol.aliases
    # Assembly has entry points inside of functions: libgcc's symbols overlap.
    for key, size in seen.items():
        assert size <= flash[key] or key[0] is Kind.TOOLCHAIN
    sizes = [s.size_bytes for s in found.symbols]
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("name", CASES)
def test_a_symbol_knows_its_source(name: str) -> None:
    symbols = {s.name: s for s in report(name).symbols}
    execute = symbols["orch::execute"]
    assert execute.object == "runtime/src/executor.cpp"
    assert (execute.kind, execute.contributor) == (Kind.RUNTIME, "executor")
    assert execute.is_function
    assert execute.address % 2 == 0 or name in HOSTS, "without the Thumb bit"
    table = symbols["orch::kKernelTable"]
    assert table.kind is Kind.KERNEL_TABLE
    assert table.size_bytes == 6 * 5 * case(name).target.cpu.pointer_bytes
    constructors = symbols["orch::Strides::Strides"]
    assert len(constructors.aliases) == 1, "both constructors are one function"


def test_parts_are_known_by_the_profile_s_name() -> None:
    """Its archive holds our objects, its state blocks are named after it."""
    other = case("m4-gnu").measure(profile="other")
    kinds = {c.kind for c in other.contributors}
    assert not kinds & {Kind.KERNEL, Kind.RUNTIME, Kind.METHOD_STATE}
    libraries = {c.name for c in other.contributors if c.kind is Kind.TOOLCHAIN}
    assert libraries == {"libdemo", "libgcc"}
    assert other.totals.flash_bytes == report("m4-gnu").totals.flash_bytes


def test_a_stripped_firmware_has_sizes_but_no_symbols() -> None:
    elf = bytearray(case("m4-gnu").elf)
    shoff, shnum = struct.unpack_from("<32xI12xH", elf)
    kinds = [shoff + 40 * i + 4 for i in range(shnum)]
    (symtab,) = (at for at in kinds if struct.unpack_from("<I", elf, at) == (2,))
    struct.pack_into("<I", elf, symtab, 1)  # any contents
    found = case("m4-gnu").measure(elf=bytes(elf))
    assert found.symbols == ()
    totals = report("m4-gnu").totals
    assert found.totals.flash_bytes == totals.flash_bytes
    assert found.totals.arena_bytes == totals.arena_bytes
    # Without symbols, states are variables of the API.
    assert found.totals.data_bytes == totals.data_bytes + totals.state_bytes


def test_symbols_outside_of_all_sections_are_left_out() -> None:
    (execute,) = (s for s in report("m4-gnu").symbols if s.name == "orch::execute")
    entry = struct.pack("<II", execute.address | 1, execute.size_bytes)
    assert case("m4-gnu").elf.count(entry) == 1
    elf = case("m4-gnu").elf.replace(entry, b"\x01\0\0\x70" + entry[4:])
    found = case("m4-gnu").measure(elf=elf)
    left_out = set(report("m4-gnu").symbols) - set(found.symbols)
    assert left_out == {execute}
    assert found.contributors == report("m4-gnu").contributors


def test_kernels_of_one_name_in_two_libraries_are_not_told_apart() -> None:
    stacks = case("m4-gnu").stack_usage
    twin = {**stacks, "obj/kernels/cortex_m/op_add.cpp.o": ""}
    found = case("m4-gnu").measure(stack_usage=twin)
    kernels = {c.name: c.flash_bytes for c in found.contributors}
    before = cost("m4-gnu", Kind.KERNEL, "portable/op_add")
    assert kernels["op_add"] == before[0]
    assert "portable/op_add" not in kernels


def diagnostics(name: str, **changes: object) -> tuple[Diagnostic, ...]:
    with pytest.raises(CompileError) as error:
        case(name).measure(**changes)
    return error.value.diagnostics


HINT = "delete the build folder and build again"
REPORT_IT = "; if that does not help, report it with firmware.map"


def test_an_elf_that_is_none() -> None:
    assert diagnostics("m4-gnu", elf=b"MZ") == (
        Diagnostic(
            code="elf-unreadable",
            message="the linked firmware cannot be read",
            notes=(
                ("found", "2 bytes, another kind of file"),
                ("expected", "a little-endian ELF executable"),
            ),
            hint=HINT,
        ),
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [("", "an empty file"), ("\nArchive member\n", '"Archive member" in the first line')],
)
def test_a_map_that_is_none(text: str, found: str) -> None:
    assert diagnostics("m4-gnu", map_text=text) == (
        Diagnostic(
            code="map-unreadable",
            message="cannot read the linker's map",
            notes=(("found", found), ("expected", "a map of GNU ld or lld")),
            hint=HINT + REPORT_IT,
        ),
    )


def test_a_map_of_another_link_is_refused_with_all_differences() -> None:
    text = case("m4-zig").map_text
    text = re.sub(r"(?m)^( *\S+ +\S+ +)540( +16 \.orch_model_sum)$", r"\g<1>541\2", text)
    text = re.sub(r"(?m)^.* \.stack\n", "", text)
    problems = diagnostics("m4-zig", map_text=text)
    assert [(p.code, p.message, p.notes) for p in problems] == [
        (
            "map-mismatch",
            f"section .orch_model_sum at {model_address():#x} has another size in the linker's map",
            (("found", "1345 bytes"), ("expected", "1344 bytes")),
        ),
        (
            "map-mismatch",
            "section .stack at 0x20000000 of the firmware is not in the linker's map",
            (("found", "no such section"), ("expected", "4096 bytes")),
        ),
    ]


def model_address() -> int:
    sections = {s.name: s.address for s in report("m4-zig").sections}
    return sections[".orch_model_sum"]


def test_a_piece_outside_its_section_is_refused() -> None:
    text = case("m4-gnu").map_text
    moved = re.sub(r"(\.vectors +0x0+) +0x40 (\S+startup)", r"\1 0x44 \2", text)
    (problem,) = diagnostics("m4-gnu", map_text=moved)
    assert problem.message == (
        "the linker's map puts .vectors of obj/runtime/platform/cortex_m/startup.cpp.o"
        " outside its section .vectors"
    )
    assert problem.notes == (("found", "0x0 to 0x44"), ("expected", "inside 0x0 to 0x40"))


def test_a_section_outside_all_memories_is_refused() -> None:
    target = case("m4-gnu").target
    board = Board(
        name="tiny",
        cpu="cortex-m4",
        regions=(
            Region(name="flash", origin=0, size_bytes=4 << 20, kind="flash"),
            Region(name="sram", origin=0x30000000, size_bytes=4 << 20, kind="ram"),
        ),
        stack_bytes=4096,
        emulator=(),
    )
    (problem,) = diagnostics("m4-gnu", target=replace(target, board=board))
    assert problem == Diagnostic(
        code="no-region",
        message="section .stack lies in no memory of tiny",
        notes=(
            ("found", "4096 bytes at 0x20000000"),
            ("region", "flash: 4194304 bytes at 0x0"),
            ("region", "sram: 4194304 bytes at 0x30000000"),
        ),
        hint="place it with the linker script",
    )


def measured(name: str, **changes: object) -> tuple[set[str], SizeReport | None]:
    """Codes of all problems, or the report."""
    try:
        return set(), case(name).measure(**changes)
    except CompileError as error:
        return {d.code for d in error.diagnostics}, None


@given(data=st.data(), name=st.sampled_from(CASES))
def test_lines_missing_from_a_map_lose_no_byte(data: st.DataObject, name: str) -> None:
    lines = case(name).map_text.splitlines()
    gone = data.draw(st.sets(st.integers(0, len(lines) - 1), max_size=20))
    text = "\n".join(line for i, line in enumerate(lines) if i not in gone)
    codes, found = measured(name, map_text=text)
    assert codes <= {"map-mismatch", "map-unreadable"}
    if found is None:
        return
    whole = report(name)
    assert found.totals.flash_bytes == whole.totals.flash_bytes
    assert found.totals.ram_bytes == whole.totals.ram_bytes
    assert sum(c.flash_bytes for c in found.contributors) == whole.totals.flash_bytes
    padding = [c.flash_bytes for c in found.contributors if c.kind is Kind.PADDING]
    # 15 bytes at most for a line: what is larger is listed by name.
    assert sum(padding) <= 160 + 15 * len(gone)


@given(data=st.data(), name=st.sampled_from(["m4-gnu", "host-zig"]))
def test_damaged_elfs_are_refused_or_read(data: st.DataObject, name: str) -> None:
    elf = bytearray(case(name).elf)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.one_of(st.integers(0, 63), st.integers(0, len(elf) - 1)))
        elf[place] = data.draw(st.integers(0, 255))
    end = data.draw(st.one_of(st.just(len(elf)), st.integers(0, len(elf))))
    codes, found = measured(name, elf=bytes(elf[:end]))
    assert codes <= {"elf-unreadable", "map-mismatch", "no-region"}
    assert (found is None) == bool(codes)
