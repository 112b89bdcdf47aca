"""Thumb code, the functions of Arm files, and how deep their calls get."""

from __future__ import annotations

import pytest

from orchestrator.errors import CompileError
from orchestrator.measure.call_graph import CallGraph, Depth, read_calls
from orchestrator.measure.functions import CodeFile, Function
from orchestrator.measure.steps import Kind, Span, Step
from orchestrator.measure.thumb import steps
from tests.unit.measure.arm_objects import (
    ABSOLUTE,
    ADDRESS,
    B_W,
    BL,
    BLX_R3,
    BX_LR,
    CALL,
    EXECUTABLE,
    JUMP,
    PUSH_R4_LR,
    ArmSpec,
)

EXECUTE = "_ZN4orch7executeERKNS_11MethodImageEj"


@pytest.mark.parametrize(
    ("text", "code", "kind", "value"),
    [
        # Encodings are those of GNU as.
        ("push {r4, lr}", "10b5", Kind.GROW, 8),
        ("push {r0-r7, lr}", "ffb5", Kind.GROW, 36),
        ("sub sp, #508", "ffb0", Kind.GROW, 508),
        ("add sp, #8", "02b0", None, 0),
        ("pop {r4, pc}", "10bd", None, 0),
        ("mov sp, r4", "a546", Kind.UNKNOWN_GROW, 0),
        ("add sp, r4", "a544", Kind.UNKNOWN_GROW, 0),
        ("mov r4, sp", "6c46", None, 0),
        ("blx r3", "9847", Kind.CALL_POINTER, 0),
        ("bx r3", "1847", Kind.CALL_POINTER, 0),
        ("bx lr", "7047", Kind.RETURN, 0),
        ("b . + 4", "00e0", Kind.BRANCH, 4),
        ("b . - 2", "fde7", Kind.BRANCH, -2),
        ("bne . - 4", "fcd1", Kind.BRANCH, -4),
        ("udf #0", "00de", Kind.TRAP, 0),
        ("svc 0", "00df", Kind.TRAP, 0),
        ("bl . + 4", "00f000f8", Kind.CALL, 4),
        ("bl . - 4", "fff7fcff", Kind.CALL, -4),
        ("bl . + 0x400004", "00f000f0", Kind.CALL, 0x400004),
        ("b.w . + 4", "00f000b8", Kind.BRANCH, 4),
        ("beq.w . + 0x104", "00f08080", Kind.BRANCH, 0x104),
        ("beq.w . - 4", "3ff4fcaf", Kind.BRANCH, -4),
        ("dsb sy", "bff34f8f", Kind.TRAP, 0),
        ("push.w {r4-r8, lr}", "2de9f041", Kind.GROW, 24),
        ("str lr, [sp, #-4]!", "4df804ed", Kind.GROW, 4),
        ("strd r4, r5, [sp, #-16]!", "6de90445", Kind.GROW, 16),
        ("vpush {d8-d9}", "2ded048b", Kind.GROW, 16),
        ("vpush {s16}", "2ded018a", Kind.GROW, 4),
        ("sub.w sp, sp, #4096", "adf5805d", Kind.GROW, 4096),
        ("sub.w sp, sp, #128", "adf1800d", Kind.GROW, 128),
        ("subw sp, sp, #4095", "adf6ff7d", Kind.GROW, 4095),
        ("str r0, [sp], #-8", "4df80809", Kind.GROW, 8),
        ("strb r0, [sp, #-8]!", "0df8080d", Kind.GROW, 8),
        ("strh r0, [sp], #-12", "2df80c09", Kind.GROW, 12),
        ("ldr r0, [sp, #-8]!", "5df8080d", Kind.GROW, 8),
        ("ldr r0, [sp], #8", "5df8080b", None, 0),
        ("strd r0, r1, [sp], #-16", "6de80401", Kind.GROW, 16),
        ("ldrd r0, r1, [sp, #-16]!", "7de90401", Kind.GROW, 16),
        ("strd r0, r1, [sp], #16", "ede80401", None, 0),
        ("ldmdb sp!, {r0, r1}", "3de90300", Kind.GROW, 8),
        ("vldmdb sp!, {d0}", "3ded020b", Kind.GROW, 8),
        ("vpop {d0}", "bdec020b", None, 0),
        ("vstr fpcxtns, [sp, #-4]!", "6ded81cf", Kind.GROW, 4),
        ("vldr fpcxtns, [sp], #4", "fdec81cf", None, 0),
        ("ldr.w sp, [r0]", "d0f800d0", Kind.UNKNOWN_GROW, 0),
        ("ldr.w sp, [r0, #-4]", "50f804dc", Kind.UNKNOWN_GROW, 0),
        ("ldr.w sp, [r0, r1]", "50f801d0", Kind.UNKNOWN_GROW, 0),
        ("ldr.w sp, [pc, #8]", "dff808d0", Kind.UNKNOWN_GROW, 0),
        ("msr msp, r0", "80f30888", Kind.UNKNOWN_GROW, 0),
        ("msr psp, r0", "80f30988", Kind.UNKNOWN_GROW, 0),
        ("msr psplim, r0", "80f30b88", Kind.TRAP, 0),
        ("sub.w sp, sp, r0, lsl #2", "adeb800d", Kind.UNKNOWN_GROW, 0),
        ("add.w sp, sp, #1024", "0df5806d", Kind.GROW, 0),
        ("add.w sp, sp, #0x01000100", "0df1012d", Kind.GROW, 0),
        ("add.w sp, sp, #0x80000000", "0df1004d", Kind.UNKNOWN_GROW, 0),
        ("add.w sp, sp, #0xffffffff", "0df1ff3d", Kind.UNKNOWN_GROW, 0),
        ("addw sp, sp, #4095", "0df6ff7d", Kind.GROW, 0),
        ("subw sp, sp, #1", "adf2010d", Kind.GROW, 1),
        ("subw sp, sp, #0x804", "adf6040d", Kind.GROW, 2052),
        ("subs.w sp, sp, #1024", "bdf5806d", Kind.GROW, 1024),
        ("sub.w sp, sp, #0 repeated", "adf1001d", Kind.UNKNOWN_GROW, 0),
        ("sub.w sp, r7, #16", "a7f1100d", Kind.UNKNOWN_GROW, 0),
        ("sub.w r4, sp, #4096", "adf58054", None, 0),
        ("sub.w sp, sp, r3", "adeb030d", Kind.UNKNOWN_GROW, 0),
        ("add.w sp, sp, r3", "0deb030d", Kind.UNKNOWN_GROW, 0),
        ("mov.w sp, r3", "4fea030d", Kind.UNKNOWN_GROW, 0),
        ("ldr.w pc, [sp], #4", "5df804fb", None, 0),
        ("le lr, . - 4", "0ff005c0", None, 0),
    ],
)
def test_instructions(text: str, code: str, kind: Kind | None, value: int) -> None:
    """What `text` assembles to."""
    data = bytes.fromhex(code) + bytes.fromhex(BX_LR)
    found = [s for s in steps(data, [Span(0, len(data))]) if s.kind is not Kind.RETURN]
    assert found == ([] if kind in (None, Kind.RETURN) else [Step(0, kind, value)])
    assert text  # shown by pytest


@pytest.mark.parametrize(
    ("code", "value"),
    [
        # GNU as, sub.w sp, sp, #value
        ("adf1010d", 0x00000001),
        ("adf1800d", 0x00000080),
        ("adf1ff0d", 0x000000FF),
        ("adf1011d", 0x00010001),
        ("adf1201d", 0x00200020),
        ("adf1ff1d", 0x00FF00FF),
        ("adf1012d", 0x01000100),
        ("adf1202d", 0x20002000),
        ("adf1ff2d", 0xFF00FF00),
        ("adf1013d", 0x01010101),
        ("adf1203d", 0x20202020),
        ("adf1ff3d", 0xFFFFFFFF),
        ("adf1004d", 0x80000000),
        ("adf17f4d", 0xFF000000),
        ("adf10f4d", 0x8F000000),
        ("adf1ff7d", 0x01FE0000),
        ("adf52b0d", 0x00AB0000),
        ("adf57f3d", 0x0003FC00),
        ("adf5ff5d", 0x00001FE0),
        ("adf5846d", 0x00000420),
        ("adf57f7d", 0x000003FC),
        ("adf5ff7d", 0x000001FE),
        ("adf5817d", 0x00000102),
        ("adf5807d", 0x00000100),
    ],
)
def test_a_modified_immediate_is_a_byte_repeated_or_turned(code: str, value: int) -> None:
    data = bytes.fromhex(code)
    assert list(steps(data, [Span(0, len(data))])) == [Step(0, Kind.GROW, value)]


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("08bc1847", Kind.RETURN),  # pop {r3}; bx r3
        ("08bc02b01847", Kind.RETURN),  # pop {r3}; add sp, #8; bx r3
        ("08bc2047", Kind.CALL_POINTER),  # pop {r3}; bx r4
        ("08bc00bf1847", Kind.CALL_POINTER),  # pop {r3}; nop; bx r3
        ("0cbc1847", Kind.CALL_POINTER),  # pop {r2, r3}; bx r3
        ("02b01847", Kind.CALL_POINTER),  # add sp, #8; bx r3
        ("08bc9847", Kind.CALL_POINTER),  # pop {r3}; blx r3
    ],
)
def test_a_popped_address_is_returned_to(code: str, kind: Kind) -> None:
    """Armv6-M cannot pop into lr; nor is every `bx` after a `pop` a return."""
    data = bytes.fromhex(code)
    found = list(steps(data, [Span(0, len(data))]))
    assert [s.kind for s in found] == [kind]
    assert found[0].offset == len(data) - 2


def test_data_between_instructions_is_no_code() -> None:
    data = bytes.fromhex("10b5" + "ffb0" + "10b5")
    assert [s.offset for s in steps(data, [Span(0, 2), Span(4, 6)])] == [0, 4]


def functions(spec: ArmSpec) -> dict[str, Function]:
    return {f.names[0]: f for f in CodeFile(spec.make(), "obj/a.o").functions()}


def test_relocations_tell_calls_tails_and_addresses() -> None:
    spec = ArmSpec([])
    symbol = spec.outside("other")
    away = spec.outside("away")
    taken = spec.outside("taken")
    spec.function("f", PUSH_R4_LR + BL + B_W + BLX_R3 + "00000000")
    section = len(spec.sections)
    spec.relocations = [
        (section, 2, CALL, symbol),
        (section, 6, JUMP, away),
        (section, 12, ADDRESS, taken),
    ]
    (found,) = functions(spec).values()
    assert (found.names, found.frame_bytes) == (("f",), 8)
    assert (found.calls, found.tails, found.takes) == ({"other"}, {"away"}, {"taken"})
    assert found.calls_pointer
    assert not found.is_data


def test_calls_within_a_section_need_no_relocation() -> None:
    # The first function calls itself, then goes to the second.
    spec = ArmSpec(["fff7feff" + "00f000b8" + BX_LR])
    spec.symbols = [
        ("$t", 1, 0, False, True),
        ("first", 1, 0, True, False),
        ("second", 1, 8, True, False),
    ]
    found = functions(spec)["first"]
    assert (found.calls, found.tails) == ({"first"}, {"second"})


def test_a_part_of_a_function_that_it_calls_is_no_recursion() -> None:
    # The part pushes two registers more: all count.
    spec = ArmSpec([])
    spec.function("f", PUSH_R4_LR + BL + PUSH_R4_LR + BX_LR)
    found = functions(spec)["f"]
    assert (found.calls, found.frame_bytes) == (set(), 16)


def test_what_fills_gaps_between_functions_is_no_code() -> None:
    # d4d4 would be a branch back into the first function.
    spec = ArmSpec([BX_LR + "d4d4" + BX_LR + "d4d4" + BX_LR])
    spec.symbols = [
        ("$t", 1, 0, False, True),
        ("first", 1, 0, True, False),
        ("second", 1, 4, True, False),
        ("third", 1, 8, True, False),
    ]
    assert functions(spec)["second"].tails == {"first"}
    spec.sizes = {"second": 2}
    assert functions(spec)["second"].tails == set()


def test_local_names_carry_their_file() -> None:
    spec = ArmSpec([])
    local = spec.function("f", BX_LR, local=True)
    spec.function("g", BL)
    spec.relocations = [(2, 0, CALL, local)]
    found = functions(spec)
    assert found["g"].calls == {"obj/a.o:1.0:f"}
    spec.hidden = frozenset({"f"})
    assert functions(spec)["g"].calls == {"f"}


def test_data_leads_to_what_it_names() -> None:
    spec = ArmSpec([])
    callee = spec.function("callee", BX_LR)
    spec.sections.append("00000000")
    spec.symbols.append(("table", 3 - 1, 0, False, False))
    spec.symbols.append(("", 1, 0, False, True))  # a label in the section of callee
    spec.symbols.append(("number", ABSOLUTE, 0, False, False))
    label = len(spec.symbols) - 1
    spec.relocations = [(2, 0, ADDRESS, callee), (2, 2, ADDRESS, label)]
    user = spec.function("user", BX_LR + "0000")
    table = next(i for i, s in enumerate(spec.symbols, 1) if s[0] == "table")
    number = next(i for i, s in enumerate(spec.symbols, 1) if s[0] == "number")
    spec.relocations += [(3, 0, ADDRESS, table), (3, 2, ADDRESS, number)]
    found = functions(spec)
    assert user
    assert found["user"].takes == {"obj/a.o#2"}
    assert found["obj/a.o#2"].is_data
    assert found["obj/a.o#2"].names == ("obj/a.o#2", "table")
    assert found["obj/a.o#2"].takes == {"callee"}


def graph(
    *specs: ArmSpec, usage: dict[str, str] | None = None, firmware: ArmSpec | None = None
) -> CallGraph:
    objects = {f"obj/{i}.o": spec.make() for i, spec in enumerate(specs)}
    linked = firmware or ArmSpec([], kind=EXECUTABLE)
    return CallGraph(objects, usage or {}, linked.make())


def chain(*frames: tuple[str, str, int]) -> ArmSpec:
    """Functions that call, or go to, the next one: (name, how, words of frame)."""
    spec = ArmSpec([])
    symbols = {name: spec.outside(name) for name, _, _ in frames}
    for place, (name, how, words) in enumerate(frames):
        code = f"{0x80 | words:02x}b0" + (B_W if how == "tail" else BL)
        spec.function(name, code)
        if place + 1 < len(frames):
            kind = JUMP if how == "tail" else CALL
            section = len(spec.sections)
            spec.relocations.append((section, 2, kind, symbols[frames[place + 1][0]]))
    return spec


def test_frames_add_up_along_calls_but_not_over_tail_calls() -> None:
    found = graph(chain(("a", "call", 2), ("b", "tail", 8), ("c", "call", 4)))
    depth = found.depth("a")
    assert depth.stack_bytes == 8 + 32
    # What goes to another function leaves its frame first.
    found = graph(chain(("a", "call", 2), ("b", "tail", 4), ("c", "call", 8)))
    assert found.depth("a") == Depth(
        stack_bytes=8 + 32, path=(("a", 8), ("b", 0), ("c", 32)), unknown=frozenset()
    )


def test_recursion_is_named_and_counted_once() -> None:
    spec = chain(("a", "call", 2), ("b", "call", 4), ("a", "call", 2))
    spec.sections.pop()
    del spec.symbols[-2:]
    depth = graph(spec).depth("a")
    assert (depth.stack_bytes, depth.unknown) == (24, frozenset({"a"}))


def test_what_nobody_defines_is_named() -> None:
    spec = ArmSpec([])
    symbol = spec.outside("nowhere")
    spec.function("a", PUSH_R4_LR + BL)
    spec.relocations = [(1, 2, CALL, symbol)]
    depth = graph(spec).depth("a")
    assert (depth.stack_bytes, depth.unknown) == (8, frozenset({"nowhere"}))


def test_a_frame_that_code_does_not_tell_is_named_unless_the_compiler_does() -> None:
    spec = ArmSpec([])
    spec.function("a", "a546" + BX_LR)
    assert graph(spec).depth("a").unknown == {"a"}
    usage = {"obj/0.o": "a.cpp:1:a\t48\tstatic\n"}
    depth = graph(spec, usage=usage).depth("a")
    assert (depth.stack_bytes, depth.unknown) == (48, frozenset())
    usage = {"obj/0.o": "a.cpp:1:a\t48\tdynamic\n"}
    assert graph(spec, usage=usage).depth("a").unknown == {"a"}
    usage = {"obj/0.o": "a.cpp:1:a\t64\tdynamic,bounded\nno line of a table\n"}
    assert graph(spec, usage=usage).depth("a").stack_bytes == 64


def test_declarations_of_gcc_come_in_the_order_of_the_code() -> None:
    spec = ArmSpec([])
    spec.function("_Z1av", BX_LR)
    spec.function("_Z1av.cold", BX_LR)
    spec.function("_Z1bv", BX_LR)
    text = "a.cpp:1:5:void a()\t16\tstatic\na.cpp:9:5:void b()\t24\tstatic\n"
    found = graph(spec, usage={"obj/0.o": text})
    assert [found.depth(n).stack_bytes for n in ("_Z1av", "_Z1av.cold", "_Z1bv")] == [16, 16, 24]
    # Lines that do not fit the functions say nothing about them.
    found = graph(spec, usage={"obj/0.o": text + "a.cpp:12:5:void c()\t8\tstatic\n"})
    assert found.depth("_Z1bv").stack_bytes == 0


def test_functions_of_the_toolchain_are_those_of_the_firmware() -> None:
    ours = ArmSpec([])
    symbol = ours.outside("memcpy")
    ours.function("a", PUSH_R4_LR + BL)
    ours.relocations = [(1, 2, CALL, symbol)]
    linked = ArmSpec([PUSH_R4_LR + "82b0" + BX_LR], kind=EXECUTABLE)
    linked.symbols = [("$t", 1, 0, False, True), ("memcpy", 1, 0, True, False)]
    assert graph(ours, firmware=linked).depth("a").stack_bytes == 8 + 16


def test_of_inline_functions_every_copy_counts() -> None:
    small, large = (ArmSpec([]) for _ in range(2))
    small.function("f", PUSH_R4_LR)
    large.function("f", "82b0" + "82b0")
    for specs in ((small, large), (large, small)):
        assert graph(*specs).depth("f").stack_bytes == 16


def executor() -> ArmSpec:
    spec = ArmSpec([])
    spec.function(EXECUTE, PUSH_R4_LR + BLX_R3)
    spec.function("_ZN4orch8portable7add_outERKNS_4ArgsE", "84b0" + BX_LR)
    spec.function("_ZN4orch8portable7mul_outERKNS_4ArgsE", "88b0" + BX_LR)
    spec.function("my_c_kernel", BX_LR)
    return spec


def test_the_executor_calls_the_kernels_of_the_method() -> None:
    found = graph(executor())
    add, mul = (found.kernel(f"orch::portable::{n}_out") for n in ("add", "mul"))
    assert found.kernel("my_c_kernel") == "my_c_kernel"
    assert found.kernel("nothing") == "_Z7nothing"
    assert EXECUTE in found
    run = found.symbol("_ZN4orch7executeE")
    assert found.depth(run, {add}).stack_bytes == 8 + 16
    assert found.depth(run, {add, mul}).stack_bytes == 8 + 32


def test_the_loader_calls_what_makes_delegates_ready() -> None:
    start = "_ZN4orch12MethodLoader15start_delegatesEv"
    spec = ArmSpec([])
    spec.function(start, PUSH_R4_LR + BLX_R3)
    spec.function("_ZN4mine4initERKN4orch14DelegateHandleE", "84b0" + BX_LR)
    spec.function("_ZN4mine7executeERKN4orch14DelegateHandleE", "ffb0" + BX_LR)
    found = graph(spec)
    init = found.kernel("mine::init")
    assert found.depth(start).stack_bytes == 8
    assert found.depth(start, {found.kernel("mine::execute")}).stack_bytes == 8
    assert found.depth(start, (), {init}).stack_bytes == 8 + 16


def test_pointers_go_to_what_is_known_on_the_way() -> None:
    spec = ArmSpec([])
    row = spec.function("row", "84b0" + BX_LR)
    spec.function("stranger", "ffb0" + BX_LR)
    helper = spec.function("helper", PUSH_R4_LR + BLX_R3)
    spec.function("kernel", PUSH_R4_LR + BL + "00000000")
    spec.relocations = [(4, 2, CALL, helper), (4, 6, ADDRESS, row)]
    assert graph(spec).depth("kernel").stack_bytes == 8 + 8 + 16


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF\x02\x01" + bytes(60), ArmSpec([], machine=62).make()]
)
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(CompileError) as caught:
        read_calls({}, {}, data)
    assert caught.value.diagnostics[0].code == "object-unreadable"


@pytest.mark.parametrize("what", ["kernels", "delegates"])
def test_tables_do_not_count(what: str) -> None:
    path = f"obj/gen/src/registered_{what}.cpp.o"
    assert read_calls({path: b"unread"}, {}, ArmSpec([]).make()) is not None


def test_sections_without_functions_and_other_relocations_are_left_out() -> None:
    spec = ArmSpec([BX_LR])
    spec.symbols = [("somewhere", 1, 0, False, False)]
    assert list(CodeFile(spec.make(), "a.o").functions()) == []
