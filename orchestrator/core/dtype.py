"""Element types of tensors: the one table of their codes, names and sizes."""

from __future__ import annotations

from enum import IntEnum

from orchestrator.errors import did_you_mean


class ScalarType(IntEnum):
    """Element type of a tensor; values are the codes of the `.pte` format.

    Source: ExecuTorch `schema/scalar_type.fbs` (ET12).
    """

    # Codes from 12 on have no kernel here, but a reader has to name them: a message
    # that says "dtype 22" helps nobody.
    Byte = 0
    Char = 1
    Short = 2
    Int = 3
    Long = 4
    Half = 5
    Float = 6
    Double = 7
    ComplexHalf = 8
    ComplexFloat = 9
    ComplexDouble = 10
    Bool = 11
    QInt8 = 12
    QUInt8 = 13
    QInt32 = 14
    BFloat16 = 15
    QUInt4x2 = 16
    QUInt2x4 = 17
    Bits1x8 = 18
    Bits2x4 = 19
    Bits4x2 = 20
    Bits8 = 21
    Bits16 = 22
    Float8_e5m2 = 23
    Float8_e4m3fn = 24
    Float8_e5m2fnuz = 25
    Float8_e4m3fnuz = 26
    UInt16 = 27
    UInt32 = 28
    UInt64 = 29

    @property
    def item_bytes(self) -> int:
        """Size of one element in bytes."""
        return _ITEM_BYTES[self]

    @property
    def alignment(self) -> int:
        """What addresses of tensors are a multiple of, in bytes."""
        # A complex double is two doubles, and no core here has an access of more than 8
        # bytes that must be aligned.
        return min(self.item_bytes, 8)


_S = ScalarType
_ITEM_BYTES = dict.fromkeys(ScalarType, 1) | {
    **dict.fromkeys((_S.Short, _S.Half, _S.BFloat16, _S.Bits16, _S.UInt16), 2),
    **dict.fromkeys((_S.Int, _S.Float, _S.QInt32, _S.ComplexHalf, _S.UInt32), 4),
    **dict.fromkeys((_S.Long, _S.Double, _S.ComplexFloat, _S.UInt64), 8),
    _S.ComplexDouble: 16,
}

# The groups are those of PyTorch's dispatch macros (AT_DISPATCH_INTEGRAL_TYPES and its
# kin): unsigned integers of more than 8 bits are in none of them.
INTEGRAL = frozenset({_S.Byte, _S.Char, _S.Short, _S.Int, _S.Long})
FLOATING = frozenset({_S.Half, _S.BFloat16, _S.Float, _S.Double})
REAL = INTEGRAL | FLOATING
COMPLEX = frozenset({_S.ComplexHalf, _S.ComplexFloat, _S.ComplexDouble})
ALL = REAL | COMPLEX | {_S.Bool, _S.UInt16, _S.UInt32, _S.UInt64}
"""Dtypes of tensors at run time: those of runtime/include/orch/scalar_type.h."""

DTYPE_GROUPS = {"integral": INTEGRAL, "floating": FLOATING, "real": REAL, "complex": COMPLEX}
"""Names that stand for several dtypes in `functions.yaml`."""


def parse_dtypes(names: list[str]) -> frozenset[ScalarType]:
    """The dtypes of a list of dtype and group names.

    Raises:
        ValueError: A name is unknown; the message says which.
    """
    found: set[ScalarType] = set()
    for name in names:
        if name in DTYPE_GROUPS:
            found |= DTYPE_GROUPS[name]
        elif name in ScalarType.__members__:
            found.add(ScalarType[name])
        else:
            known = [*DTYPE_GROUPS, *ScalarType.__members__]
            hint = did_you_mean(name, known)
            raise ValueError(f'unknown dtype "{name}"' + (f", {hint}" if hint else ""))
    return frozenset(found)


def dtype_names(dtypes: frozenset[ScalarType]) -> str:
    """`Float, Int` in order of the codes, for messages; `none` if empty."""
    return ", ".join(d.name for d in sorted(dtypes)) or "none"
