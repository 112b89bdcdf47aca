"""Linker maps in the form of GNU ld and lld."""

from __future__ import annotations

import pytest

from orchestrator.errors import CompileError
from orchestrator.measure.link_map import MapPiece, MapSection, parse_gnu, parse_lld, read_map

GNU = """\
Archive member included to satisfy reference by file (symbol)

libdemo.a(executor.cpp.o)     obj/runtime/app/runner.cpp.o (orch::execute)

Discarded input sections

 .text          0x00000000        0x0 obj/runtime/app/runner.cpp.o
 .text._ZN4orch6unused
                0x00000000       0x20 obj/runtime/app/runner.cpp.o

Memory Configuration

Name             Origin             Length             Attributes
flash            0x00000000         0x00400000         xr
*default*        0x00000000         0xffffffff

Linker script and memory map

LOAD obj/runtime/app/runner.cpp.o
LOAD libdemo.a
START GROUP
LOAD /usr/lib/libc.so
END GROUP
                [!provide]                        PROVIDE (__start = 0x0)

.text           0x00000040      0x130
 *(.text .text.*)
 .text.main     0x00000040       0x1c obj/runtime/app/runner.cpp.o
                0x00000040                main
 *fill*         0x0000005c        0x4
 .text._ZN4orch7executeERKNS_11MethodImageEm
                0x00000060       0xc4 libdemo.a(executor.cpp.o)
                0x00000060                orch::execute(orch::MethodImage const&)
 .text          0x00000124       0x4c /usr/lib/gcc/libgcc.a(_arm_addsubsf3.o)

.glue_7         0x00000170        0x0
 .glue_7        0x00000170        0x0 linker stubs

.orch_model_a_long_name
                0x00000170      0x540
 *(.rodata.orch_model_a_long_name)
 .rodata.orch_model_a_long_name
                0x00000170      0x540 libdemo.a(models.S.o)

.rodata         0x000006b0       0x74
 .rodata.str1.1
                0x000006b0       0x74 libdemo.a(registered_kernels.cpp.o)
                                 0x77 (size before relaxing)

.ARM.exidx
 *(.ARM.exidx .ARM.exidx.*)

.stack          0x20000000     0x1000
                0x20000000                        orch_stack_base = .
                0x20001000                        . = (. + 0x1000)
 *fill*         0x20000000     0x1000

.data           0x20001000        0x8 load address 0x00000724
                0x20001000                        orch_data_begin = .
 .data.counter  0x20001000        0x8 obj/runtime/app/runner.cpp.o

.a_long_output_section_in_ram
                0x20001008       0x10 load address 0x0000072c
 COMMON         0x20001008       0x10 obj/a folder/runner.cpp.o
OUTPUT(firmware.elf elf32-littlearm)

Cross Reference Table

 .text          0x00000040       0x1c obj/not/a/section.o
"""

LLD = """\
     VMA      LMA     Size Align Out     In      Symbol
       0        0       40     4 .vectors
       0        0       40     4         obj/startup.cpp.o:(.vectors)
       0        0       40     1                 (anonymous namespace)::kVectors
      40       40      124     8 .text
      40       40       1c     2         libdemo.a(executor.cpp.o):(.text._Z7executev)
      40       40        0     1                 $t
      41       41       1c     1                 orch::execute(int, char const*)
      60       60      104     2         obj/compiler_rt.o:(.text..Lcompiler_rt.strlen)
      61       61      104     1                 strlen
     164      164       20     4 .rodata
     164      164       20     1         <internal>:(.rodata.str1.1)
     184      184        0     1         . = ALIGN(4)
20000000 20000000     1000     1 .stack
20000000 20000000        0     1         orch_stack_base = .
20000000 20000000     1000     1         . += 4096
20001000      184        8     4 .data
20001000      184        8     4         obj/a folder/b.o:(.data)
20001008      18c        0     1 orch_data_load = LOADADDR(.data)
20001008 20001008        4     4         obj/b.o:(COMMON)
       0        0      cd0     4 .symtab
       0        0      cd0     4         <internal>:(.symtab)
"""


def test_gnu() -> None:
    runner = "obj/runtime/app/runner.cpp.o"
    execute = ".text._ZN4orch7executeERKNS_11MethodImageEm"
    sections = [s for s in parse_gnu(GNU) if s.size_bytes]
    assert sections == [
        MapSection(
            ".text",
            0x40,
            0x130,
            (
                MapPiece(".text.main", 0x40, 0x1C, runner),
                MapPiece(execute, 0x60, 0xC4, "libdemo.a(executor.cpp.o)"),
                MapPiece(".text", 0x124, 0x4C, "/usr/lib/gcc/libgcc.a(_arm_addsubsf3.o)"),
            ),
        ),
        MapSection(
            ".orch_model_a_long_name",
            0x170,
            0x540,
            (MapPiece(".rodata.orch_model_a_long_name", 0x170, 0x540, "libdemo.a(models.S.o)"),),
        ),
        MapSection(
            ".rodata",
            0x6B0,
            0x74,
            (MapPiece(".rodata.str1.1", 0x6B0, 0x74, "libdemo.a(registered_kernels.cpp.o)"),),
        ),
        MapSection(".stack", 0x20000000, 0x1000, ()),
        MapSection(".data", 0x20001000, 8, (MapPiece(".data.counter", 0x20001000, 8, runner),)),
        MapSection(
            ".a_long_output_section_in_ram",
            0x20001008,
            0x10,
            (MapPiece("COMMON", 0x20001008, 0x10, "obj/a folder/runner.cpp.o"),),
        ),
    ]


def test_lld() -> None:
    assert parse_lld(LLD) == (
        MapSection(".vectors", 0, 0x40, (MapPiece(".vectors", 0, 0x40, "obj/startup.cpp.o"),)),
        MapSection(
            ".text",
            0x40,
            0x124,
            (
                MapPiece(".text._Z7executev", 0x40, 0x1C, "libdemo.a(executor.cpp.o)"),
                MapPiece(".text..Lcompiler_rt.strlen", 0x60, 0x104, "obj/compiler_rt.o"),
            ),
        ),
        MapSection(
            ".rodata", 0x164, 0x20, (MapPiece(".rodata.str1.1", 0x164, 0x20, "<internal>"),)
        ),
        MapSection(".stack", 0x20000000, 0x1000, ()),
        MapSection(
            ".data",
            0x20001000,
            8,
            (
                MapPiece(".data", 0x20001000, 8, "obj/a folder/b.o"),
                MapPiece("COMMON", 0x20001008, 4, "obj/b.o"),
            ),
        ),
        MapSection(".symtab", 0, 0xCD0, (MapPiece(".symtab", 0, 0xCD0, "<internal>"),)),
    )


def test_a_heading_alone_is_an_empty_map() -> None:
    assert parse_gnu("Linker script and memory map\n") == ()
    assert parse_lld(LLD.splitlines()[0]) == ()


def test_input_sections_without_output_section_are_ignored() -> None:
    text = "Linker script and memory map\n .text 0x0 0x8 a.o\n"
    assert parse_gnu(text) == ()
    lines = LLD.splitlines()
    assert parse_lld("\n".join((lines[0], lines[2], lines[3]))) == ()


@pytest.mark.parametrize("text", ["", "a Linker script and memory map\n"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(CompileError) as caught:
        read_map(text, ())
    assert caught.value.diagnostics[0].code == "map-unreadable"


@pytest.mark.parametrize("text", [GNU, LLD])
def test_the_linker_is_recognized(text: str) -> None:
    assert read_map(text, ()) == {}
