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

if TYPE_CHECKING:
    from orchestrator.measure.steps import Span

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
    """Of BL and B.W, encoding T4: S:I1:I2:imm10:imm11, I = NOT(J EOR S)."""
    sign = word >> 26 & 1
    i1, i2 = 1 ^ sign ^ word >> 13 & 1, 1 ^ sign ^ word >> 11 & 1
    bits = sign << 23 | i1 << 22 | i2 << 21 | (word >> 16 & 0x3FF) << 11 | word & 0x7FF
    return _signed(bits, 24) * 2 + 4


def _branch_20(word: int) -> int:
    """Of B<c>.W, encoding T3: S:J2:J1:imm6:imm11."""
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
    if bits >> 10 == 0:
        times = (1, 0x00010001, 0x01000100, 0x01010101)[bits >> 8]
        return (bits & 0xFF) * times if bits & 0xFF or times == 1 else None
    value, turn = 0x80 | bits & 0x7F, bits >> 7
    return (value >> turn | value << 32 - turn) & 0xFFFFFFFF


def _added(word: int) -> int | None:
    """An addition makes the stack smaller, unless its constant is a negative number."""
    value = _modified_immediate(word)
    return None if value is None or value >> 31 else 0


def _signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> width - 1 else bits


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
