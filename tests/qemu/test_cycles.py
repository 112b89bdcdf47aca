"""Kinds of instructions, and cycles estimated from them: exact for a known loop."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from orchestrator.emit.compile import CompileUnit
from orchestrator.measure.elf import ElfFile
from orchestrator.measure.thumb import events
from orchestrator.running.counting import COUNTS_FILE, EVENTS_FILE, Code, CountPlan, read_counts
from orchestrator.shell.qemu_plugin import counting_plugin
from orchestrator.shell.toolchain import zig_program
from orchestrator.targets.timing import TIMINGS, Event
from tests.qemu.bare_firmware import link_firmware, run_command
from tests.tools import need_emulator, need_tool, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = [pytest.mark.toolchain, pytest.mark.qemu]

SOURCE: Final = Path(__file__).with_name("counted_loop.cpp")
LOOP: Final = {
    # push; two loads of each of 7 passes and the literal; ldm; pop.
    Event.DATA: 2 + 2 * 7,
    Event.LOAD: 1 + 3 * 7 + 1,
    Event.STORE: 1 + 7,
    Event.MULTIPLY: 7,
    Event.BRANCH: 7,
    Event.MORE_REGISTERS: 3 + 7 + 3,
    Event.NEIGHBOUR: 7,
    Event.TAKEN: 6 + 1,
}
VECTOR_LOOP: Final = {
    Event.DATA: 3,
    Event.LOAD: 2,
    Event.STORE: 1,
    Event.LOOP_END: 5,
    Event.VECTOR_MEMORY: 2 * 5,
    Event.VECTOR_MULTIPLY: 5,
    Event.VECTOR_INTEGER: 2 * 5,
    Event.MORE_REGISTERS: 1 + 1,
    # The first load does not follow a vector; of two sums one follows the other.
    Event.OVERLAP: 3 * 5,
    Event.TAKEN: 1,
}


@pytest.mark.parametrize("crosses", [False, True])
@pytest.mark.parametrize(
    ("cpu", "expected", "cycles", "before"),
    [
        # The row of each core, by hand; last where the second instruction of the loop is,
        # from the branch over the space before it.
        ("cortex-m0plus", LOOP, 16 + 2 * 23 + 2 * 8 + 7 + 7 + 13 + 7, 2 + 10),
        ("cortex-m4", LOOP, 16 + 2 * 23 + 8 + 7 + 7 + 13 - 7 + 2 * 7, 2 + 10),
        ("cortex-m55", VECTOR_LOOP, 3 + 2 + 1 + 2 * (10 + 5 + 10) + 2 - 15 + 2, 2 + 16),
    ],
)
def test_events_of_a_loop(
    cpu: str,
    expected: Mapping[Event, int],
    cycles: int,
    *,
    before: int,
    crosses: bool,
    tmp_path: Path,
) -> None:
    """QEMU translates code anew where a page begins: that changes no count."""
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    need_tool("gcc", "cc", "clang")
    space = [f"-DBYTES_BEFORE={1024 - before}"] if crosses else []
    firmware = link_firmware(
        tmp_path,
        target=(cpu, None, "zig"),
        sources=(),
        units=lambda flags: [CompileUnit(str(SOURCE), "obj/main.o", (*flags, *space))],
    )
    file = ElfFile(firmware.elf.read_bytes())
    (function,) = (s.value for s in file.symbols if s.name == "counted")
    plan = CountPlan(
        executor=(0, 0),
        tables=(),
        functions=(function,),
        code=tuple(
            Code(address=section.address, events=events(file.contents(section)))
            for section in file.sections
            if section.is_code
        ),
    )
    (tmp_path / EVENTS_FILE).write_bytes(plan.events)
    options = ("-plugin", f"{counting_plugin()},{plan.arguments}")
    paths = "enable=on,target=native,arg=firmware,arg=request,arg=response"
    semihosting = ("-semihosting-config", paths)
    kernel = ("-kernel", str(firmware.elf))
    run_command((*firmware.emulator, *semihosting, *options, *kernel), tmp_path)
    counts = read_counts((tmp_path / COUNTS_FILE).read_text())
    found = {Event(e): n for e, n in enumerate(counts.call_events) if n}
    if crosses:  # the branch over the space
        expected = {**expected, Event.BRANCH: expected.get(Event.BRANCH, 0) + 1}
        expected[Event.TAKEN] += 1
        cycles += 1 + int(TIMINGS[cpu].cycles[Event.TAKEN])
    assert found == expected
    kinds = range(Event.MORE_REGISTERS)
    assert counts.calls_of(0) == (sum(counts.call_events[kind] for kind in kinds),)
    assert TIMINGS[cpu].estimated(counts.call_events) == cycles
    waited = TIMINGS[cpu].estimated(counts.call_events, wait_states=4)
    assert waited == cycles + 4 * expected[Event.TAKEN]


INSTRUCTIONS: Final[Mapping[Event, tuple[str, ...]]] = {
    Event.DATA: (
        *("movs r0, #1", "adds r0, r1, r2", "cmp r0, r1", "add sp, #8", "lsls r0, r1"),
        *("adr r0, #8", "rev r0, r1", "uxtb r0, r1", "it eq", "moveq r0, r1", "nop"),
        *("add.w r0, r1, r2, lsl #3", "movw r0, #1234", "movt r0, #1234", "clz r0, r1"),
        *("sxtb16 r0, r1", "sxtab16 r0, r1, r2", "pkhbt r0, r1, r2", "ssat r0, #8, r1"),
        *("ubfx r0, r1, #3, #4", "qadd r0, r1, r2", "mrs r0, primask", "dsb", "svc #0"),
        *("udf #0", "csel r0, r1, r2, eq", "asrl r0, r1, #3", "dls lr, r0"),
    ),
    Event.LOAD: (
        *("ldr r0, [r1]", "ldrb r0, [r1, #3]", "ldrh r0, [r1, r2]", "ldr r0, [sp, #4]"),
        *("ldrsb r0, [r1, r2]", "ldr.w r0, [r1], #4", "ldrsh.w r0, [r1, #300]"),
        *("ldr.w r0, [pc, #8]", "ldrd r0, r1, [r2]", "pop {r0, r1, pc}", "pop.w {r8}"),
        *("ldm r0!, {r1, r2}", "ldm.w r0, {r1, r9}", "ldrex r0, [r1]", "lda r0, [r1]"),
        *("vldr s0, [r0]", "vldr d0, [r0]", "vldm r0!, {s0-s3}", "vpop {d8-d9}"),
    ),
    Event.STORE: (
        *("str r0, [r1]", "strb r0, [r1, #3]", "strh r0, [r1, r2]", "str r0, [sp, #4]"),
        *("strb r0, [r1, r2]", "str r0, [r1, r2]", "str.w r0, [r1, #-4]!"),
        *("strd r0, r1, [r2]", "push {r0, lr}", "push.w {r8, r9}", "stm r0!, {r1, r2}"),
        *("strex r0, r1, [r2]", "stl r0, [r1]", "vstr s0, [r0]", "vstr d0, [r0]"),
        *("vpush {d8-d9}", "vstm r0, {s0-s3}", "stmdb r0!, {r1, r9}"),
    ),
    Event.MULTIPLY: (
        *("muls r0, r1, r0", "mul r0, r1, r9", "smulbb r0, r1, r2", "smuad r0, r1, r2"),
        *("smmul r0, r1, r2", "smmulr r0, r1, r2", "usad8 r0, r1, r2"),
    ),
    Event.MULTIPLY_ADD: (
        *("mla r0, r1, r2, r3", "mls r0, r1, r2, r3", "smlad r0, r1, r2, r3"),
        *("smlabb r0, r1, r2, r3", "smmla r0, r1, r2, r3", "smlawb r0, r1, r2, r3"),
    ),
    Event.LONG_MULTIPLY: ("smull r0, r1, r2, r3", "umull r0, r1, r2, r3"),
    Event.LONG_MULTIPLY_ADD: (
        *("smlal r0, r1, r2, r3", "umlal r0, r1, r2, r3", "umaal r0, r1, r2, r3"),
        *("smlald r0, r1, r2, r3", "smlalbb r0, r1, r2, r3"),
    ),
    Event.DIVIDE: ("sdiv r0, r1, r2", "udiv r0, r1, r2"),
    Event.BRANCH: (
        *("b .", "beq .", "b.w .", "beq.w .", "bl .", "blx r0", "bx lr"),
        "tbb [pc, r0]",
        *("cbz r0, AFTER", "cbnz r0, AFTER", "tbh [pc, r0, lsl #1]"),
        *("wls lr, r0, AFTER", "wlstp.8 lr, r0, AFTER"),
    ),
    Event.LOOP_END: ("le lr, BEFORE", "letp lr, BEFORE", "le BEFORE"),
    Event.FLOAT: (
        *("vadd.f32 s0, s1, s2", "vmul.f32 s0, s1, s2", "vmov s0, r0", "vmov r0, s0"),
        *("vcvt.f32.s32 s0, s1", "vcmp.f32 s0, s1", "vmrs apsr_nzcv, fpscr"),
        "vabs.f32 s0, s1",
        *("vmov.f32 s0, #1.0", "vmov d0, r0, r1", "vmov r0, r1, d0", "vneg.f32 s0, s1"),
        *("vselgt.f32 s0, s1, s2", "vmaxnm.f32 s0, s1, s2", "vrintn.f32 s0, s1"),
        *("vadd.f16 s0, s1, s2", "vcvtb.f32.f16 s0, s1", "vmov.f64 d0, d1"),
        *("vcvt.f64.f32 d0, s0", "vmov r0, r1, q0[2], q0[0]", "vnmul.f32 s0, s1, s2"),
    ),
    Event.FLOAT_MULTIPLY_ADD: (
        *("vmla.f32 s0, s1, s2", "vmls.f32 s0, s1, s2", "vfma.f32 s0, s1, s2"),
        *("vfms.f32 s0, s1, s2", "vfnma.f32 s0, s1, s2", "vfma.f16 s0, s1, s2"),
    ),
    Event.FLOAT_DIVIDE: (
        *("vdiv.f32 s0, s1, s2", "vsqrt.f32 s0, s1", "vdiv.f16 s0, s1, s2"),
    ),
    Event.DOUBLE: (
        *("vadd.f64 d0, d1, d2", "vmul.f64 d0, d1, d2", "vdiv.f64 d0, d1, d2"),
        *("vfma.f64 d0, d1, d2", "vsqrt.f64 d0, d1", "vsub.f64 d0, d1, d2"),
    ),
    Event.VECTOR_MEMORY: (
        *("vldrb.u8 q0, [r0]", "vldrw.u32 q0, [r0], #16", "vldrb.s16 q0, [r0]"),
        *("vstrw.32 q0, [r0, #16]!", "vstrb.32 q0, [r0]", "vld20.8 {q0, q1}, [r0]"),
        *("vld43.8 {q0, q1, q2, q3}, [r0]!", "vst21.16 {q0, q1}, [r0]"),
    ),
    Event.VECTOR_GATHER: (
        *("vldrb.u8 q0, [r0, q1]", "vldrh.u16 q0, [r0, q1, uxtw #1]"),
        *("vldrw.u32 q0, [r0, q1]", "vldrw.u32 q0, [q1, #4]", "vstrw.32 q0, [q1]"),
        *("vstrb.8 q0, [r0, q1]", "vldrw.u32 q0, [q1, #4]!", "vldrb.s32 q0, [r0, q1]"),
    ),
    Event.VECTOR_INTEGER: (
        *("vadd.i32 q0, q1, q2", "vsub.i8 q0, q1, q2", "vadd.i32 q0, q1, r0"),
        *("vand q0, q1, q2", "veor q0, q1, q2", "vmov.i32 q0, #5", "vdup.32 q0, r0"),
        *("vmax.s32 q0, q1, q2", "vmin.u8 q0, q1, q2", "vshl.i32 q0, q1, #3"),
        *("vrshl.s32 q0, q1, q2", "vshr.s32 q0, q1, #3", "vaddv.s32 r0, q0"),
        *("vaddva.s8 r0, q1", "vaddlv.s32 r0, r1, q0", "vmaxv.s8 r0, q0"),
        *("vminv.s32 r0, q0", "vcmp.s32 eq, q0, q1", "vpst", "vaddt.i32 q0, q1, q2"),
        *("vmovlb.s8 q0, q1", "vmovnb.i32 q0, q1", "vqmovnb.s32 q0, q1"),
        *("vrshl.s32 q0, r0", "vpsel q0, q1, q2", "vhadd.s8 q0, q1, q2", "vmvn q0, q1"),
        *("vclz.i32 q0, q1", "vrev32.8 q0, q1", "viwdup.u8 q0, r0, r1, #1"),
    ),
    Event.VECTOR_MULTIPLY: (
        *("vmul.i32 q0, q1, q2", "vmul.i32 q0, q1, r0", "vmla.i32 q0, q1, r0"),
        *("vmladav.s8 r0, q0, q1", "vmladava.s16 r0, q0, q1"),
        "vmlaldav.s32 r0, r1, q0, q1",
        *("vqrdmulh.s32 q0, q1, q2", "vqdmulh.s16 q0, q1, r0", "vmulh.s32 q0, q1, q2"),
        *("vmullb.s8 q0, q1, q2", "vadd.f32 q0, q1, q2", "vmul.f32 q0, q1, q2"),
        *("vfma.f32 q0, q1, q2", "vfma.f32 q0, q1, r0", "vadd.f32 q0, q1, r0"),
        *("vcvt.f32.s32 q0, q1", "vcvta.s32.f32 q0, q1", "vrintn.f32 q0, q1"),
        *("vmaxnm.f32 q0, q1, q2", "vmul.f16 q0, q1, r0", "vcvt.s32.f32 q0, q1, #7"),
        *("vrmlaldavh.s32 r0, r1, q0, q1", "vsub.f32 q0, q1, q2"),
    ),
}  # fmt: skip
MORE: Final = {
    "ldrd r0, r1, [r2]": 1,
    "strd r0, r1, [r2]": 1,
    "pop {r0, r1, pc}": 2,
    "ldm r0!, {r1, r2}": 1,
    "ldm.w r0, {r1, r9}": 1,
    "push {r0, lr}": 1,
    "push.w {r8, r9}": 1,
    "stm r0!, {r1, r2}": 1,
    "stmdb r0!, {r1, r9}": 1,
    "vldr d0, [r0]": 1,
    "vstr d0, [r0]": 1,
    "vldm r0!, {s0-s3}": 3,
    "vstm r0, {s0-s3}": 3,
    "vpush {d8-d9}": 3,
    "vpop {d8-d9}": 3,
    "tbb [pc, r0]": 1,
    "tbh [pc, r0, lsl #1]": 1,
    # Pairs of items beside the first two: of 16 bytes, of 8 halfwords.
    "vldrb.u8 q0, [r0, q1]": 6,
    "vldrh.u16 q0, [r0, q1, uxtw #1]": 2,
    "vstrb.8 q0, [r0, q1]": 6,
}


def test_kinds_of_instructions(tmp_path: Path) -> None:
    """As an assembler encodes them, one after the other."""
    zig = zig_program()
    if zig is None:
        need_tool("zig of the package ziglang")
    lines = [(event, line) for event, all_ in INSTRUCTIONS.items() for line in all_]
    # A label at each: the assembler may choose between encodings.
    text = "".join(
        f"at{i}: {line}\n".replace("AFTER", f"at{i + 2}").replace("BEFORE", f"at{i - 2}")
        for i, (_, line) in enumerate(lines)
    )
    source, built = tmp_path / "all.s", tmp_path / "all.o"
    source.write_text(f".syntax unified\n.thumb\n{text}")
    target = ("-target", "thumb-freestanding-eabihf", "-mcpu=cortex_m55+mve_fp+fp_armv8d16")
    command = (str(zig), "cc", *target, "-c", str(source), "-o", str(built))
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    file = ElfFile(built.read_bytes())
    code = next(file.contents(s) for s in file.sections if s.name == ".text")
    at = {s.name: s.value & ~1 for s in file.symbols if s.name.startswith("at")}
    found = events(code)
    assert len(found) == len(code)
    wrong = {
        line: (Event(found[at[f"at{i}"]]), found[at[f"at{i}"] + 1] & 0x3F)
        for i, (event, line) in enumerate(lines)
        if (found[at[f"at{i}"]], found[at[f"at{i}"] + 1] & 0x3F) != (event, MORE.get(line, 0))
    }
    assert wrong == {}


def test_every_kind_has_instructions() -> None:
    assert set(INSTRUCTIONS) == set(Event) - {
        *(Event.MORE_REGISTERS, Event.NEIGHBOUR, Event.OVERLAP, Event.TAKEN)
    }
