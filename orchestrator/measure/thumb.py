"""What Thumb code does to the stack and whom it calls: read from its instructions.

Only instructions that change the stack pointer or leave a function count; all others
are stepped over by their length, which is in their first halfword.

Source: Armv7-M and Armv8-M Architecture Reference Manuals, chapters "The Thumb
instruction set encoding" and "Alphabetical list of Thumb instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from orchestrator.measure.steps import Kind, Step
from orchestrator.targets.timing import Event

if TYPE_CHECKING:
    from orchestrator.measure.steps import Span

# Armv7-M manual, A5.1: 0b11101, 0b11110 and 0b11111 begin 32 bits.
_WIDE: Final = 0b11101
"""The first five bits of an instruction of 32 bits are at least this."""


def steps(code: bytes, spans: Sequence[Span]) -> Iterator[Step]:
    """The instructions of code that matter for the stack.

    Args:
        code: Little-endian bytes.
        spans: Where instructions are.
    """
    for span in spans:
        at = span.begin
        popped: int | None = None
        while at + 2 <= span.end:
            word = int.from_bytes(code[at : at + 2], "little")
            patterns, length = _NARROW, 2
            # Armv6-M has no POP into lr: compilers return by `pop {r3}; bx r3`, which
            # would count as a call through a pointer.
            if popped is not None and word == _BX | popped << 3:
                yield Step(at, Kind.RETURN)
                popped, at = None, at + length
                continue
            popped = _popped(word, popped)
            if word >> 11 >= _WIDE:
                word = word << 16 | int.from_bytes(code[at + 2 : at + 4], "little")
                patterns, length = _WIDE_PATTERNS, 4
            for pattern in patterns:
                if word & pattern.mask == pattern.bits:
                    value = pattern.value(word)
                    kind = Kind.UNKNOWN_GROW if value is None else pattern.kind
                    yield Step(at, kind, value or 0)
                    break
            at += length


_BX: Final = 0x4700
_POP: Final = 0xBC00
_ADD_SP: Final = 0xB000


def _popped(word: int, before: int | None) -> int | None:
    """The register that a `bx` after this instruction would return to, if any.

    Armv6-M cannot pop into lr: where arguments lie between the frame and the caller's,
    code returns by `pop {rm}; add sp, #n; bx rm`.
    """
    if word & 0xFF80 == _ADD_SP:
        return before
    registers = word & 0xFF
    if word & 0xFF00 == _POP and registers.bit_count() == 1:
        return registers.bit_length() - 1
    return None


class _Pattern(NamedTuple):
    """An instruction: bits that it has under a mask; a value of None is not known."""

    mask: int
    bits: int
    kind: Kind
    value: Callable[[int], int | None]


def _nothing(_: int) -> int:
    return 0


def _branch_11(word: int) -> int:
    return _signed(word & 0x7FF, 11) * 2 + 4


def _branch_8(word: int) -> int:
    return _signed(word & 0xFF, 8) * 2 + 4


def _branch_24(word: int) -> int:
    """The offset of BL and B.W, encoding T4: S:I1:I2:imm10:imm11, I = NOT(J EOR S)."""
    sign = word >> 26 & 1
    i1, i2 = 1 ^ sign ^ word >> 13 & 1, 1 ^ sign ^ word >> 11 & 1
    bits = sign << 23 | i1 << 22 | i2 << 21 | (word >> 16 & 0x3FF) << 11 | word & 0x7FF
    return _signed(bits, 24) * 2 + 4


def _branch_20(word: int) -> int:
    """The offset of B<c>.W, encoding T3: S:J2:J1:imm6:imm11."""
    high = (word >> 26 & 1) << 2 | (word >> 11 & 1) << 1 | word >> 13 & 1
    bits = high << 17 | (word >> 16 & 0x3F) << 11 | word & 0x7FF
    return _signed(bits, 20) * 2 + 4


def _immediate(word: int) -> int:
    return (word >> 26 & 1) << 11 | (word >> 12 & 7) << 8 | word & 0xFF


def _modified_immediate(word: int) -> int | None:
    """A byte, a byte repeated, or seven bits and a leading one, rotated.

    Source: `ThumbExpandImm` of the manuals; a zero repeated is unpredictable.
    """
    bits = _immediate(word)
    # All four repeated forms: three of them were once read as the byte alone, and
    # `sub.w sp, sp, #0x00200020` counted as 32 bytes.
    if bits >> 10 == 0:
        times = (1, 0x00010001, 0x01000100, 0x01010101)[bits >> 8]
        return (bits & 0xFF) * times if bits & 0xFF or times == 1 else None
    value, turn = 0x80 | bits & 0x7F, bits >> 7
    return (value >> turn | value << 32 - turn) & 0xFFFFFFFF


def _added(word: int) -> int | None:
    """An addition makes the stack smaller, unless its constant is a negative number."""
    # ADD with a constant above 0x7fffffff makes the stack larger.
    value = _modified_immediate(word)
    return None if value is None or value >> 31 else 0


def _signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> width - 1 else bits


# What sets the stack pointer in another way than these is UNKNOWN_GROW: a report then
# names the function instead of a depth that is too small.
# tests/unit/measure/test_calls.py has an encoding of GNU as for each.
_NARROW: Final[tuple[_Pattern, ...]] = (
    # push; sub sp, #n
    _Pattern(0xFE00, 0xB400, Kind.GROW, lambda w: 4 * (w & 0x1FF).bit_count()),
    _Pattern(0xFF80, 0xB080, Kind.GROW, lambda w: 4 * (w & 0x7F)),
    # add sp, rm; mov sp, rm
    _Pattern(0xFF87, 0x4485, Kind.UNKNOWN_GROW, _nothing),
    _Pattern(0xFF87, 0x4685, Kind.UNKNOWN_GROW, _nothing),
    # blx rm; bx rm, but bx lr returns
    _Pattern(0xFF80, 0x4780, Kind.CALL_POINTER, _nothing),
    _Pattern(0xFFF8, 0x4770, Kind.RETURN, _nothing),
    _Pattern(0xFF80, 0x4700, Kind.CALL_POINTER, _nothing),
    # b; udf and svc look like b<c>
    _Pattern(0xF800, 0xE000, Kind.BRANCH, _branch_11),
    _Pattern(0xFE00, 0xDE00, Kind.TRAP, _nothing),
    _Pattern(0xF000, 0xD000, Kind.BRANCH, _branch_8),
)
_WIDE_PATTERNS: Final[tuple[_Pattern, ...]] = (
    # bl; b.w; hints, barriers and special registers look like b<c>.w
    _Pattern(0xF800D000, 0xF000D000, Kind.CALL, _branch_24),
    _Pattern(0xF800D000, 0xF0009000, Kind.BRANCH, _branch_24),
    _Pattern(0xFFF0FFFE, 0xF3808808, Kind.UNKNOWN_GROW, _nothing),  # msr msp or psp
    _Pattern(0xFB80D000, 0xF3808000, Kind.TRAP, _nothing),
    _Pattern(0xF800D000, 0xF0008000, Kind.BRANCH, _branch_20),
    # ldr sp
    _Pattern(0xFF70F000, 0xF850D000, Kind.UNKNOWN_GROW, _nothing),
    # push.w, ldmdb sp!; what is like str, strd, vpush, at [sp, #-n]! or [sp], #-n;
    # vstr of a special register has seven bits in the place of eight
    _Pattern(0xFFEF0000, 0xE92D0000, Kind.GROW, lambda w: 4 * (w & 0xFFFF).bit_count()),
    _Pattern(0xFE8F0B00, 0xF80D0900, Kind.GROW, lambda w: w & 0xFF),
    _Pattern(0xFEEF0000, 0xE86D0000, Kind.GROW, lambda w: 4 * (w & 0xFF)),
    _Pattern(0xFEAF1F80, 0xEC2D0F80, Kind.GROW, lambda w: 4 * (w & 0x7F)),
    _Pattern(0xFEAF0000, 0xEC2D0000, Kind.GROW, lambda w: 4 * (w & 0xFF)),
    # sub.w, add.w, subw and addw sp, sp, #n; whatever else computes sp
    _Pattern(0xFBEF8F00, 0xF1AD0D00, Kind.GROW, _modified_immediate),
    _Pattern(0xFBEF8F00, 0xF10D0D00, Kind.GROW, _added),
    _Pattern(0xFBFF8F00, 0xF2AD0D00, Kind.GROW, _immediate),
    _Pattern(0xFBFF8F00, 0xF20D0D00, Kind.GROW, _nothing),
    _Pattern(0xF8008F00, 0xF0000D00, Kind.UNKNOWN_GROW, _nothing),
    _Pattern(0xFE000F00, 0xEA000D00, Kind.UNKNOWN_GROW, _nothing),
)
"""The first one that fits counts."""


# What kinds of instructions Thumb code has, for estimates of cycles.
#
# Source: Armv7-M and Armv8-M Architecture Reference Manuals, "The Thumb instruction set
# encoding", "Floating-point and MVE instruction encoding".

ONE_ACCESS: Final = 0x80
"""Flag: loads or stores one register."""
VECTOR: Final = 0x40
"""Flag: an MVE instruction, which overlaps with one of another kind."""
MORE: Final = 0x3F
"""Mask: registers, or pairs of items, after the first."""


def events(code: bytes) -> bytes:
    """Two bytes for each halfword of code, as an instruction that begins there.

    The first is its kind, an `Event`; the second has the flags and `MORE`. Data
    between instructions is decoded too: it is never executed.

    Args:
        code: Little-endian bytes.
    """
    halves = memoryview(code[: len(code) & ~1]).cast("H")  # as hosts are little-endian
    found = bytearray()
    for half, after in zip(halves, (*halves[1:], 0), strict=True):
        if half >> 11 >= _WIDE:
            found += _bytes_of(half << 16 | after, _WIDE_KINDS)
        else:
            found += _bytes_of(half, _NARROW_KINDS)
    return bytes(found)


def _bytes_of(word: int, kinds: tuple[_Kind, ...]) -> bytes:
    for kind in kinds:
        if word & kind.mask == kind.bits:
            more = kind.more(word)
            event, flags = kind.event, min(max(more, 0), MORE)
            if event in (Event.LOAD, Event.STORE) and not more:
                flags |= ONE_ACCESS
            if event >= Event.VECTOR_MEMORY:
                flags |= VECTOR
            return bytes((event, flags))
    return bytes((Event.DATA, 0))


def _none(_: int) -> int:
    return 0


class _Kind(NamedTuple):
    """An instruction: bits that it has under a mask."""

    mask: int
    bits: int
    event: Event
    more: Callable[[int], int] = _none


def _low_registers(word: int) -> int:
    return (word & 0x1FF).bit_count() - 1


def _registers(word: int) -> int:
    return (word & 0xFFFF).bit_count() - 1


def _one_more(_: int) -> int:
    return 1


def _words(word: int) -> int:
    """How many words VLDM and VSTM move."""
    return (word & 0xFF) - 1


def _pairs(word: int) -> int:
    """Pairs of items that a gather or scatter moves after the first two."""
    size = word >> 7 & 3
    return (16 >> size) // 2 - 2


def _pairs_of_addresses(word: int) -> int:
    """How many words a vector of addresses moves: four, or two double words."""
    return 0 if word >> 8 & 1 else -1


_NARROW_KINDS: Final = (
    _Kind(0xFFC0, 0x4340, Event.MULTIPLY),
    _Kind(0xFF00, 0x4700, Event.BRANCH),  # bx, blx
    _Kind(0xF800, 0x4800, Event.LOAD),  # of a literal
    # Register offsets: str, strh, strb, then loads.
    _Kind(0xFC00, 0x5000, Event.STORE),
    _Kind(0xFE00, 0x5400, Event.STORE),
    _Kind(0xF000, 0x5000, Event.LOAD),
    # Immediate offsets.
    _Kind(0xE800, 0x6000, Event.STORE),
    _Kind(0xE800, 0x6800, Event.LOAD),
    _Kind(0xE800, 0x8000, Event.STORE),
    _Kind(0xF800, 0x9000, Event.STORE),
    _Kind(0xF800, 0x8800, Event.LOAD),
    _Kind(0xF800, 0x9800, Event.LOAD),
    _Kind(0xFE00, 0xB400, Event.STORE, _low_registers),  # push
    _Kind(0xFE00, 0xBC00, Event.LOAD, _low_registers),  # pop
    _Kind(0xF500, 0xB100, Event.BRANCH),  # cbz, cbnz
    _Kind(0xF800, 0xC000, Event.STORE, lambda w: (w & 0xFF).bit_count() - 1),
    _Kind(0xF800, 0xC800, Event.LOAD, lambda w: (w & 0xFF).bit_count() - 1),
    _Kind(0xFE00, 0xDE00, Event.DATA),  # udf, svc
    _Kind(0xF000, 0xD000, Event.BRANCH),
    _Kind(0xF800, 0xE000, Event.BRANCH),
)

_WIDE_KINDS: Final = (
    # Several registers; clrm writes zeros.
    _Kind(0xFFFF0000, 0xE89F0000, Event.DATA),
    _Kind(0xFE500000, 0xE8000000, Event.STORE, _registers),
    _Kind(0xFE500000, 0xE8100000, Event.LOAD, _registers),
    # tbb, tbh; exclusive accesses, and those with an order; two registers.
    _Kind(0xFFF0FFE0, 0xE8D0F000, Event.BRANCH, _one_more),
    _Kind(0xFFF00000, 0xE8400000, Event.STORE),
    _Kind(0xFFF00000, 0xE8500000, Event.LOAD),
    _Kind(0xFFF00000, 0xE8C00000, Event.STORE),
    _Kind(0xFFF00000, 0xE8D00000, Event.LOAD),
    _Kind(0xFE500000, 0xE8400000, Event.STORE, _one_more),
    _Kind(0xFE500000, 0xE8500000, Event.LOAD, _one_more),
    # Loops of v8.1-M: le, letp; wls, wlstp. Then branches; what looks like b<c>.w.
    _Kind(0xFFCFF001, 0xF00FC001, Event.LOOP_END),
    _Kind(0xFF80F001, 0xF000C001, Event.BRANCH),
    _Kind(0xFF80F001, 0xF000E001, Event.DATA),  # dls, dlstp, lctp
    _Kind(0xF800D000, 0xF000D000, Event.BRANCH),
    _Kind(0xF800D000, 0xF0009000, Event.BRANCH),
    _Kind(0xFB80D000, 0xF3808000, Event.DATA),
    _Kind(0xF800D000, 0xF0008000, Event.BRANCH),
    # One register.
    _Kind(0xFF100000, 0xF8000000, Event.STORE),
    _Kind(0xFE100000, 0xF8100000, Event.LOAD),
    # Multiplications: without a sum Ra is 15.
    _Kind(0xFF80F000, 0xFB00F000, Event.MULTIPLY),
    _Kind(0xFF800000, 0xFB000000, Event.MULTIPLY_ADD),
    _Kind(0xFFD00000, 0xFB800000, Event.LONG_MULTIPLY),
    _Kind(0xFFD00000, 0xFB900000, Event.DIVIDE),
    _Kind(0xFFC00000, 0xFBC00000, Event.LONG_MULTIPLY_ADD),
    # Moves between registers: two of the core, or two lanes.
    _Kind(0xFFA01FE0, 0xEC000F00, Event.FLOAT),
    _Kind(0xFFE00E00, 0xEC400A00, Event.FLOAT),
    # MVE loads and stores: gathers by offsets, by addresses; what lies together.
    _Kind(0xEFA01E00, 0xEC800E00, Event.VECTOR_GATHER, _pairs),
    _Kind(0xFF001E00, 0xFD001E00, Event.VECTOR_GATHER, _pairs_of_addresses),
    _Kind(0xEE000E00, 0xEC000E00, Event.VECTOR_MEMORY),
    # Loads and stores of floats: one, or several.
    _Kind(0xFF300F00, 0xED000B00, Event.STORE, _one_more),
    _Kind(0xFF300F00, 0xED100B00, Event.LOAD, _one_more),
    _Kind(0xFF300E00, 0xED000A00, Event.STORE),
    _Kind(0xFF300E00, 0xED100A00, Event.LOAD),
    _Kind(0xFF300F00, 0xED000900, Event.STORE),
    _Kind(0xFF300F00, 0xED100900, Event.LOAD),
    _Kind(0xFE100E00, 0xEC000A00, Event.STORE, _words),
    _Kind(0xFE100E00, 0xEC100A00, Event.LOAD, _words),
    # vdup, and moves of one register or lane.
    _Kind(0xFFB00F5F, 0xEEA00B10, Event.VECTOR_INTEGER),
    _Kind(0xFF000C10, 0xEE000810, Event.FLOAT),
    # Arithmetic of floats.
    _Kind(0xFFBF0FD0, 0xEEB10BC0, Event.DOUBLE),  # vsqrt
    _Kind(0xFFB00F10, 0xEEB00B00, Event.FLOAT),  # moves, comparisons
    _Kind(0xFF000F10, 0xEE000B00, Event.DOUBLE),
    _Kind(0xFFA00C10, 0xEE000800, Event.FLOAT_MULTIPLY_ADD),
    _Kind(0xFFB00C10, 0xEE900800, Event.FLOAT_MULTIPLY_ADD),
    _Kind(0xFFB00C10, 0xEEA00800, Event.FLOAT_MULTIPLY_ADD),
    _Kind(0xFFB00C10, 0xEE800800, Event.FLOAT_DIVIDE),
    _Kind(0xFFBF0CD0, 0xEEB108C0, Event.FLOAT_DIVIDE),  # vsqrt
    _Kind(0xEF000C10, 0xEE000800, Event.FLOAT),
    # MVE: sums, minimum and maximum over a vector look like products of two.
    _Kind(0xEF810F10, 0xEE810F00, Event.VECTOR_INTEGER),
    _Kind(0xEFF30F10, 0xEEE20F00, Event.VECTOR_INTEGER),
    _Kind(0xEF800ED1, 0xEE800E00, Event.VECTOR_MULTIPLY),  # vmladav and longer ones
    # With a scalar, or into wider items: shifts and narrowing moves look alike.
    _Kind(0xEFB11F70, 0xEE311E60, Event.VECTOR_INTEGER),
    _Kind(0xEFB10F51, 0xEE310E01, Event.VECTOR_INTEGER),
    _Kind(0xEF800F00, 0xEE000E00, Event.VECTOR_MULTIPLY),
    _Kind(0xEFB10F50, 0xEE300F40, Event.VECTOR_MULTIPLY),  # vadd.f, vsub.f
    # With two vectors: vmul, vqdmulh, floats; conversions.
    _Kind(0xFF800F50, 0xEF000950, Event.VECTOR_MULTIPLY),
    _Kind(0xEF800F50, 0xEF000B40, Event.VECTOR_MULTIPLY),
    _Kind(0xEF800E40, 0xEF000C40, Event.VECTOR_MULTIPLY),
    _Kind(0xEF800F50, 0xEF000F50, Event.VECTOR_MULTIPLY),
    _Kind(0xFFB30E10, 0xFFB30600, Event.VECTOR_MULTIPLY),
    _Kind(0xFFB30C10, 0xFFB30000, Event.VECTOR_MULTIPLY),
    _Kind(0xFFB30E10, 0xFFB20400, Event.VECTOR_MULTIPLY),
    _Kind(0xEFA00C10, 0xEFA00C10, Event.VECTOR_MULTIPLY),
    _Kind(0xEE000000, 0xEE000000, Event.VECTOR_INTEGER),
)
