"""What RISC-V code does to the stack and whom it calls: read from its instructions.

Only instructions that change the stack pointer or leave a function count; all others
are stepped over by their length, which is in their first two bits.

Source: RISC-V Instruction Set Manual, volume I: RV32I, RV64I and the extension "C".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from orchestrator.measure.steps import Kind, Step

if TYPE_CHECKING:
    from orchestrator.measure.steps import Span

# x1, x2 and x5: the manual's table of hints for the stack of return addresses has x1
# and x5 as links.
_LINK, _SP, _OTHER_LINK = 1, 2, 5
"""Registers: of return addresses, the stack pointer, of other return addresses."""
# RISC-V calling convention: 16 bytes at each call. ANDI of the stack pointer with -32
# thus takes 16 bytes at most, not 32.
_ALIGNED: Final = 16
"""Alignment of every stack, by the calling convention."""
# Opcodes, bits 6:0.
_AUIPC, _ADDI, _ADD, _JALR, _JAL = 0x17, 0x13, 0x33, 0x67, 0x6F
_ADDI_SP, _AND_SP = 0, 7
"""`funct3` of ADDI and ANDI."""


def steps_32(code: bytes, spans: Sequence[Span]) -> Iterator[Step]:
    """The instructions of RV32 code that matter for the stack.

    Args:
        code: Little-endian bytes.
        spans: Where instructions are.
    """
    return _steps(code, spans, is_32=True)


def steps_64(code: bytes, spans: Sequence[Span]) -> Iterator[Step]:
    """The steps of RV64 code, as `steps_32` gives those of RV32."""
    return _steps(code, spans, is_32=False)


def _steps(code: bytes, spans: Sequence[Span], *, is_32: bool) -> Iterator[Step]:
    for span in spans:
        at = span.begin
        while at + 2 <= span.end:
            word = int.from_bytes(code[at : at + 2], "little")
            if word & 3 != 3:  # noqa: PLR2004  # of 16 bits
                yield from _compressed(at, word, is_32=is_32)
                at += 2
                continue
            word = int.from_bytes(code[at : at + 4], "little")
            if word & 0x7F == _AUIPC:
                # With a jump by its result it is a call, or a jump, to far away.
                # `call` and `tail` of assemblers are such a pair, and one relocation at
                # the first of both fills both in.
                jump = int.from_bytes(code[at + 4 : at + 8], "little")
                base = _bits(word, 7, 5)
                if jump & 0x7F == _JALR and _bits(jump, 15, 5) == base:
                    target = _signed(word & 0xFFFFF000, 32) + _immediate(jump)
                    yield Step(at, _jump(_bits(jump, 7, 5)), target)
                    at += 8
                    continue
            yield from _plain(at, word)
            at += 4


def _plain(at: int, word: int) -> Iterator[Step]:
    """The steps of an instruction of 32 bits."""
    opcode, to, source = word & 0x7F, _bits(word, 7, 5), _bits(word, 15, 5)
    if opcode == _JAL:
        yield Step(at, _jump(to), _jal_target(word))
    elif opcode == _JALR:
        yield Step(at, _jump_pointer(to, source))
    elif to != _SP or opcode not in (_ADDI, _ADD):
        return
    elif opcode == _ADDI and source == _SP:
        yield from _changed_by(at, _bits(word, 12, 3), _immediate(word))
    else:
        # A frame of more than 2,047 bytes is made of LUI and ADD, which is not read:
        # the `.su` file has it, and without one the function is listed as not bounded.
        yield Step(at, Kind.UNKNOWN_GROW)


def _changed_by(at: int, operation: int, value: int) -> Iterator[Step]:
    """The step of an ADDI or ANDI of the stack pointer with itself."""
    if operation == _ADDI_SP and value < 0:
        yield Step(at, Kind.GROW, -value)
    elif operation == _AND_SP and value < -_ALIGNED:
        yield Step(at, Kind.GROW, -value - _ALIGNED)


def _compressed(at: int, word: int, *, is_32: bool) -> Iterator[Step]:
    """The steps of an instruction of 16 bits."""
    quadrant, operation = word & 3, word >> 13
    register, other = _bits(word, 7, 5), _bits(word, 2, 5)
    match quadrant, operation:
        case 1, 0 if register == _SP:  # c.addi
            yield from _changed_by(at, _ADDI_SP, _signed(_small(word), 6))
        case 1, 1 if is_32:  # c.jal; RV64 has c.addiw there
            yield Step(at, Kind.CALL, _compressed_target(word))
        case 1, 3 if register == _SP:  # c.addi16sp: 9, 4, 6, 8:7, 5
            bits = _bits(word, 12, 1) << 9 | _bits(word, 6, 1) << 4
            bits |= _bits(word, 5, 1) << 6 | _bits(word, 3, 2) << 7
            bits |= _bits(word, 2, 1) << 5
            yield from _changed_by(at, _ADDI_SP, _signed(bits, 10))
        case 1, 5:  # c.j
            yield Step(at, Kind.BRANCH, _compressed_target(word))
        case 2, 4 if other == 0 and register != 0:  # c.jr and c.jalr
            yield Step(at, _jump_pointer(_bits(word, 12, 1), register))
        case 2, 4 if register == _SP:  # c.mv and c.add
            yield Step(at, Kind.UNKNOWN_GROW)


def _jump(link: int) -> Kind:
    return Kind.CALL if link in (_LINK, _OTHER_LINK) else Kind.BRANCH


def _jump_pointer(link: int, register: int) -> Kind:
    if link:
        return Kind.CALL_POINTER
    returns = register in (_LINK, _OTHER_LINK)
    return Kind.RETURN if returns else Kind.JUMP_POINTER


def _jal_target(word: int) -> int:
    """Bits 20, 10:1, 11, 19:12."""
    bits = _bits(word, 31, 1) << 20 | _bits(word, 21, 10) << 1
    bits |= _bits(word, 20, 1) << 11 | _bits(word, 12, 8) << 12
    return _signed(bits, 21)


def _compressed_target(word: int) -> int:
    """Bits 11, 4, 9:8, 10, 6, 7, 3:1, 5."""
    bits = _bits(word, 12, 1) << 11 | _bits(word, 11, 1) << 4
    bits |= _bits(word, 9, 2) << 8 | _bits(word, 8, 1) << 10
    bits |= _bits(word, 7, 1) << 6 | _bits(word, 6, 1) << 7
    bits |= _bits(word, 3, 3) << 1 | _bits(word, 2, 1) << 5
    return _signed(bits, 12)


def _small(word: int) -> int:
    return _bits(word, 12, 1) << 5 | _bits(word, 2, 5)


def _immediate(word: int) -> int:
    return _signed(word >> 20, 12)


def _bits(word: int, first: int, count: int) -> int:
    return word >> first & (1 << count) - 1


def _signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> width - 1 else bits
