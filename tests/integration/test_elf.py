"""What is in the firmware: no heap, no start-up code of ours, tables in flash."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from orchestrator.targets.cores import BOARDS, CPUS, Board
from tests.conftest import CORPUS
from tests.product import Product, make_product
from tests.targets import BUILD_ONLY, chosen_pairs, with_toolchains
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.toolchain

SHF_WRITE, SHF_ALLOC = 1, 2
TARGETS = [*with_toolchains("host"), *chosen_pairs(*BUILD_ONLY)]
HEAP = re.compile(
    r"_?_?(malloc|calloc|realloc|free|memalign|aligned_alloc|posix_memalign|sbrk)(_r)?"
    r"|_Zn[wa].*|_Zd[la].*"  # operator new and delete, with their arrays
)


@dataclass(frozen=True)
class Firmware:
    """A finished build of the keyword-spotting model."""

    cpu: str
    toolchain: str
    product: Product

    @property
    def is_libc_linked(self) -> bool:
        """Then the ELF also holds what is not ours."""
        return self.cpu == "host" and self.toolchain == "gnu"

    @property
    def board(self) -> Board | None:
        """Its memory map; None on hosts."""
        name = CPUS[self.cpu].default_board
        return BOARDS[name] if name else None

    def elf(self) -> ELFFile:
        """The linked firmware."""
        return _elf(self.product.out / "firmware.elf")

    def objects(self) -> Iterator[tuple[str, ELFFile]]:
        """Everything that was compiled for it, by path."""
        work = self.product.out / ".work/obj"
        for path in sorted(work.rglob("*.o")):
            yield path.relative_to(work).as_posix(), _elf(path)


@cache
def _elf(path: Path) -> ELFFile:
    return ELFFile(BytesIO(path.read_bytes()))


@pytest.fixture(scope="module", params=TARGETS, ids="-".join)
def firmware(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Firmware:
    cpu, toolchain = request.param
    need_toolchain(cpu, toolchain)
    folder = tmp_path_factory.mktemp("elf")
    product = make_product(folder, "kws_dscnn_fp32", cpu=cpu, toolchain=toolchain)
    assert product.run("build") == 0
    return Firmware(cpu, toolchain, product)


def _symbols(elf: ELFFile) -> list[Any]:
    table = elf.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    return [s for s in table.iter_symbols() if s.name]


def _size_of(elf: ELFFile, name: str) -> int:
    section = elf.get_section_by_name(name)
    return int(section["sh_size"]) if section else 0


def test_nothing_asks_for_heap(firmware: Firmware) -> None:
    count = 0
    for path, elf in firmware.objects():
        names = {s.name for s in _symbols(elf)}
        assert {n for n in names if HEAP.fullmatch(n)} == set(), path
        count += 1
    assert count > 15
    if not firmware.is_libc_linked:
        names = {s.name for s in _symbols(firmware.elf())}
        assert {n for n in names if HEAP.fullmatch(n)} == set()


def test_the_pattern_knows_the_names_of_the_heap() -> None:
    names = "malloc free _malloc_r _sbrk __libc_malloc _Znwm _ZdlPvm _Znaj realloc"
    found = [bool(HEAP.fullmatch(n)) for n in names.split()]
    assert found == [n != "__libc_malloc" for n in names.split()]


def test_nothing_of_ours_runs_before_the_application(firmware: Firmware) -> None:
    for path, elf in firmware.objects():
        for section in elf.iter_sections():
            assert not re.match(
                r"\.(rel[a]?\.)?(init_array|ctors|preinit_array|fini_array|dtors)", section.name
            ), f"{path}: {section.name}"
        names = {s.name for s in _symbols(elf)}
        assert not {n for n in names if n.startswith("_GLOBAL__sub_I")}, path
        assert "__cxa_atexit" not in names, path
    if not firmware.is_libc_linked:
        elf = firmware.elf()
        for name in (".init_array", ".ctors", ".preinit_array", ".fini_array"):
            assert _size_of(elf, name) == 0


def test_loaded_models_beside_others_by_rows_have_no_constructors(tmp_path: Path) -> None:
    """The linker refuses them."""
    need_toolchain("cortex-m4", "gnu")
    rows, loaded = (CORPUS / n / "model.pte" for n in ("kws_dscnn_int8_m4", "add_mul"))
    (tmp_path / "p.toml").write_text(
        'schema = 1\nname = "p"\n[target]\ncpu = "cortex-m4"\ntoolchain = "gnu"\n'
        '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
        f'[memory]\nfuse = "smallest"\n[[models]]\nname = "rows"\npath = "{rows}"\n'
        f'load = "prelinked"\n[[models]]\nname = "loaded"\npath = "{loaded}"\n'
    )
    product = Product(profile=tmp_path / "p.toml", out=tmp_path / "out")
    assert product.run("build") == 0


def test_no_exceptions_and_no_type_information(firmware: Firmware) -> None:
    for path, elf in firmware.objects():
        names = {s.name for s in _symbols(elf)}
        assert not {n for n in names if n.startswith(("_ZTI", "_ZTS", "_ZTV"))}, path
        assert not {n for n in names if "__cxa_" in n or "__gxx_personality" in n}, path
        assert not {n for n in names if "guard_acquire" in n}, path


def _table(firmware: Firmware) -> tuple[Any, Any]:
    """Symbol of the kernel table, and the section it lies in."""
    elf = firmware.elf()
    (symbol,) = (s for s in _symbols(elf) if s.name == "_ZN4orch12kKernelTableE")
    address = symbol["st_value"]
    (section,) = (
        s
        for s in elf.iter_sections()
        if s["sh_flags"] & SHF_ALLOC
        and s["sh_addr"] <= address < s["sh_addr"] + max(s["sh_size"], 1)
        and s["sh_size"]
    )
    return symbol, section


def _entries(firmware: Firmware) -> int:
    """Entries of the table, as the resolution has them."""
    document = json.loads((firmware.product.out / "resolution.json").read_text())
    return len(document["table"])


def test_the_kernel_table_is_constant_and_as_long_as_what_is_linked(firmware: Firmware) -> None:
    symbol, section = _table(firmware)
    entries = _entries(firmware)
    assert entries == 4  # permuting weights is done by the build
    pointer_bytes = CPUS[firmware.cpu].pointer_bytes
    # Name, signature, key, function, and the set of dtypes, padded to a pointer.
    entry_bytes = 4 * pointer_bytes + max(4, pointer_bytes)
    assert symbol["st_size"] == entries * entry_bytes
    assert section["sh_type"] == "SHT_PROGBITS"
    assert not section["sh_flags"] & SHF_WRITE
    if firmware.cpu != "host":
        assert section.name == ".rodata"


def test_the_kernel_table_takes_no_ram(firmware: Firmware) -> None:
    """Neither itself nor through a copy: its object has nothing that is written."""
    objects = dict(firmware.objects())
    elf = objects["gen/src/registered_kernels.cpp.o"]
    for section in elf.iter_sections():
        if section["sh_flags"] & SHF_WRITE and section["sh_flags"] & SHF_ALLOC:
            assert section["sh_size"] == 0, section.name
    report = firmware.product.report()
    tables = [c for c in report["contributors"] if c["kind"] == "kernel_table"]  # type: ignore[attr-defined]
    assert sum(c["ram_bytes"] for c in tables) == 0
    assert sum(c["flash_bytes"] for c in tables) > 0


def test_kernels_keep_no_state(firmware: Firmware) -> None:
    for path, elf in firmware.objects():
        # The generator of random numbers is linked only with kernels that draw some.
        if path.startswith(("kernels/", "runtime/src/")) and "random" not in path:
            for section in elf.iter_sections():
                if section["sh_flags"] & SHF_WRITE and section["sh_flags"] & SHF_ALLOC:
                    assert section["sh_size"] == 0, f"{path}: {section.name}"


def test_the_model_lies_in_flash_byte_for_byte(firmware: Firmware) -> None:
    elf = firmware.elf()
    model = (firmware.product.out / "models" / "model.pte").read_bytes()
    (symbol,) = (s for s in _symbols(elf) if s.name == "orch_model_model")
    for segment in elf.iter_segments("PT_LOAD"):
        offset = symbol["st_value"] - segment["p_vaddr"]
        if 0 <= offset < segment["p_memsz"]:
            assert segment.data()[offset : offset + len(model)] == model
            assert not segment["p_flags"] & 2  # not writable
            return
    pytest.fail("the model is in no segment")


def test_sizes_of_the_report_are_those_of_the_elf(firmware: Firmware) -> None:
    """Flash is what is loaded, RAM what is written or only reserved."""
    flash = ram = 0
    for section in firmware.elf().iter_sections():
        if not section["sh_flags"] & SHF_ALLOC:
            continue
        size = section["sh_size"]
        is_loaded = section["sh_type"] != "SHT_NOBITS"
        is_written = bool(section["sh_flags"] & SHF_WRITE)
        if section["sh_flags"] & 0x400 and not is_loaded:
            continue  # thread-local, reserved by nobody
        flash += size if is_loaded else 0
        ram += size if is_written or not is_loaded else 0
    totals: Any = firmware.product.report()["totals"]
    # The gaps that alignment leaves between sections count as well.
    assert 0 <= totals["flash_bytes"] - flash < 64
    assert 0 <= totals["ram_bytes"] - ram < 64


def test_sections_of_the_report_are_those_of_the_elf(firmware: Firmware) -> None:
    elf = firmware.elf()
    report: Any = firmware.product.report()
    expected = {
        (s.name, s["sh_addr"], s["sh_size"])
        for s in elf.iter_sections()
        if s["sh_flags"] & SHF_ALLOC and s["sh_size"]
    }
    found = {(s["name"], s["address"], s["size_bytes"]) for s in report["sections"]}
    assert found == expected


def test_every_section_lies_in_a_memory_of_the_board(firmware: Firmware) -> None:
    if firmware.board is None:  # a host has no memory map
        assert firmware.product.report()["regions"] == []
        return
    regions = firmware.board.regions
    for section in firmware.elf().iter_sections():
        if section["sh_flags"] & SHF_ALLOC and section["sh_size"]:
            first = section["sh_addr"]
            last = first + section["sh_size"] - 1
            assert any(r.origin <= first and last < r.origin + r.size_bytes for r in regions), (
                section.name
            )


def test_no_two_sections_overlap(firmware: Firmware) -> None:
    spans = sorted(
        (s["sh_addr"], s["sh_addr"] + s["sh_size"], s.name)
        for s in firmware.elf().iter_sections()
        if s["sh_flags"] & SHF_ALLOC and s["sh_size"] and not s["sh_flags"] & 0x400
    )
    for (_, end, one), (begin, _, two) in pairwise(spans):
        assert end <= begin, f"{one} and {two}"


def test_the_stack_is_as_the_board_says(firmware: Firmware) -> None:
    if firmware.board is None:  # a host gets it from its system
        assert _size_of(firmware.elf(), ".stack") == 0
        return
    assert _size_of(firmware.elf(), ".stack") == firmware.board.stack_bytes
    vectors = firmware.elf().get_section_by_name(".vectors")
    assert vectors
    top = int.from_bytes(vectors.data()[:4], "little")
    (symbol,) = (s for s in _symbols(firmware.elf()) if s.name == "orch_stack_top")
    assert top == symbol["st_value"]
    assert top % 8 == 0


def test_the_library_holds_no_application(firmware: Firmware) -> None:
    """It can be linked into other firmware: no start-up code, no main."""
    library = next(firmware.product.out.glob("lib*.a")).read_bytes()
    members = set(re.findall(rb"\n?([\w.]+\.o)/", library))
    assert b"executor.cpp.o" in members
    assert b"api.cpp.o" in members
    assert not members & {b"runner.cpp.o", b"startup.cpp.o", b"mem.cpp.o"}


def test_hosts_and_boards_run_the_same_table(firmware: Firmware) -> None:
    text = (firmware.product.out / "gen/src/registered_kernels.cpp").read_text()
    assert len(re.findall(r'^    \{"', text, re.MULTILINE)) == _entries(firmware)
