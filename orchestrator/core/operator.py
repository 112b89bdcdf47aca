"""Operator names and op schemas."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from enum import StrEnum
from functools import lru_cache
from typing import Final, Self

from orchestrator.errors import nearest


@dataclass(frozen=True, slots=True, order=True)
class OperatorName:
    """`aten::add.out`: namespace, base name and overload ("" if it has none)."""

    namespace: str
    base: str
    overload: str = ""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `namespace::base.overload`; without a namespace it is `aten`.

        Raises:
            ValueError: `text` is not an operator name.
        """
        match = _NAME.fullmatch(text)
        if match is None:
            raise ValueError(f'"{text}" is not an operator name like aten::add.out')
        return cls(match[1] or "aten", match[2], match[3] or "")

    @property
    def identifier(self) -> str:
        """Name as a C identifier: `aten__softmax_out`."""
        parts = (self.namespace, self.base, self.overload)
        return "_".join(p for p in parts if p)

    def __str__(self) -> str:
        overload = f".{self.overload}" if self.overload else ""
        return f"{self.namespace}::{self.base}{overload}"


_NAME = re.compile(r"(?:([A-Za-z_]\w*)::)?([A-Za-z_]\w*)(?:\.([A-Za-z_]\w*))?")


def nearest_operator(name: OperatorName, known: Iterable[OperatorName]) -> OperatorName | None:
    """Another overload of an operator, or one with nearly the same base name."""
    by_text = {str(o): o for o in sorted(known, key=str) if o != name}
    near = [
        text for text, o in by_text.items() if (o.namespace, o.base) == (name.namespace, name.base)
    ]
    if not near:
        # By base name: namespace and overload make all names alike.
        # "aten::" and ".out" are most of the letters of a short name: by the whole
        # name, aten::mm.out is near to everything.
        bases = {o.base for o in by_text.values()}
        # PyTorch's conv2d is a convolution in programs.
        base = nearest(name.base, bases) or nearest(_DIMS.sub("", name.base), bases)
        near = [text for text, o in by_text.items() if o.base == base]
    # Cutoff 0: all that is left is overloads of one base, of which the nearest is asked
    # for, however far it is.
    found = get_close_matches(str(name), near, 1, 0.0)
    return by_text[found[0]] if found else None


def out_variant(name: OperatorName, known: Iterable[OperatorName]) -> OperatorName | None:
    """The form with an out argument of an operator that has none; else None."""
    if _OUT.search(name.overload):
        return None
    near = nearest_operator(name, (o for o in known if _OUT.search(o.overload)))
    is_form = near and (near.namespace, near.base) == (name.namespace, name.base)
    return near if is_form else None


# By the overload alone, as operator lists name operators without a schema. These are
# the spellings of PyTorch's native_functions.yaml besides `out`: sort.values,
# max_pool2d_with_indices_backward.grad_input, max.dim_max, min.dim_min.
_OUT = re.compile(r"out|values|grad_input|_max$|_min$")
"""Overloads with out arguments: aten::max.dim_max has two."""
_DIMS = re.compile(r"[1-3]d$")


class ArgKind(StrEnum):
    """What an argument is; the value is its letter in a kernel signature.

    `Scalar` takes Int, Double or Bool.
    """

    # The letters are in the kernel table of a device and in locks: a change is a new
    # kind of lock. runtime/src/find_kernel.cpp asserts that it has the same ones.
    TENSOR = "T"
    TENSOR_LIST = "L"
    INT = "I"
    FLOAT = "D"
    BOOL = "B"
    SCALAR = "S"
    STRING = "C"
    INT_LIST = "J"
    FLOAT_LIST = "E"
    BOOL_LIST = "A"


NONE = "N"
"""Letter of a call argument that is None."""

OPTIONAL_ITEMS: Final = "O"
"""Letter of a tensor list whose items may be None; in a call, of one with None."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """One argument or return of an op schema.

    Args:
        name: As in the schema; "" for an unnamed return.
        kind: What it holds.
        optional: May be None.
        items_optional: Of a list: its items may be None.
        is_out: Written by the kernel (`Tensor(a!)`).
    """

    name: str
    kind: ArgKind
    optional: bool = False
    items_optional: bool = False
    is_out: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OpSchema:
    """Typed signature of an operator."""

    name: OperatorName
    arguments: tuple[Argument, ...]
    returns: tuple[Argument, ...]
    text: str

    @property
    def signature(self) -> str:
        """Kernel signature, against which the device loader checks calls.

        One letter of `ArgKind` per argument, small if the kernel writes it, with `?`
        after it if it may be None; `O` is a tensor list whose items may be None.
        Returns that are not out arguments follow after `>`, tensors small as well. An
        instruction has these arguments, then `result`.
        """
        text = "".join(_letter(a) for a in self.arguments)
        if not any(a.is_out for a in self.arguments):
            returned = (replace(r, is_out=r.kind in _TENSORS) for r in self.returns)
            text += ">" + "".join(map(_letter, returned))
        return text

    @property
    def result(self) -> Argument | None:
        """What follows the arguments in an instruction; None if nothing does.

        Programs hold several returns, and the returns of an operator that writes a
        list, as one tensor list. The out arguments occur again in it.
        """
        if len(self.returns) == 1:
            return self.returns[0]
        writes_list = any(a.is_out and a.kind is ArgKind.TENSOR_LIST for a in self.arguments)
        if self.returns or writes_list:
            return Argument(name="", kind=ArgKind.TENSOR_LIST)
        return None

    @property
    def positional_count(self) -> int:
        """How many arguments come before the `*` of the schema."""
        inner = self.text[self.text.index("(") + 1 : self.text.rindex("->")]
        arguments = _split(inner.rstrip()[:-1])
        return arguments.index("*") if "*" in arguments else len(arguments)

    @property
    def tensor_arguments(self) -> tuple[Argument, ...]:
        """Arguments that hold tensors, in order, then the result if it does.

        These are the entries of a kernel key (a missing optional tensor has none).
        """
        both = (*self.arguments, *((self.result,) if self.result else ()))
        return tuple(a for a in both if a.kind in _TENSORS)


_TENSORS: Final = frozenset({ArgKind.TENSOR, ArgKind.TENSOR_LIST})


def _letter(argument: Argument) -> str:
    if argument.kind is ArgKind.TENSOR_LIST and argument.items_optional:
        letter = OPTIONAL_ITEMS
    else:
        letter = argument.kind.lower() if argument.is_out else str(argument.kind)
    return letter + "?" * argument.optional


# The five shipped libraries declare 347 kernels, and a program asks for its operators'
# schemas again: 1024 holds all of both.
@lru_cache(maxsize=1024)
def parse_schema(text: str) -> OpSchema:
    """Read a schema such as `aten::relu.out(Tensor self, *, Tensor(a!) out) -> ...`.

    Source: PyTorch `aten/src/ATen/native/README.md`, the "func" syntax.

    Raises:
        ValueError: The text is not a schema, or has a type that no kernel argument can
            have.
    """
    match = re.fullmatch(r"\s*([\w:.]+)\((.*)\)\s*->\s*(.+?)\s*", text, re.DOTALL)
    if match is None:
        raise ValueError(f'"{text}" is not an op schema "name(arguments) -> returns"')
    name, arguments, returns = match.groups()
    if returns.startswith("(") and returns.endswith(")"):
        returns = returns[1:-1]
    parsed = tuple(_parse_argument(a) for a in _split(arguments) if a != "*")
    names = [a.name for a in parsed]
    if "" in names or len(set(names)) != len(names):
        raise ValueError(f'"{text}" has an argument without a name of its own')
    return OpSchema(
        name=OperatorName.parse(name),
        arguments=parsed,
        returns=tuple(_parse_argument(r) for r in _split(returns)),
        text=" ".join(text.split()),
    )


_COMMA_OR_BRACKET = re.compile(r"""'[^']*'|"[^"]*"|[,()\[\]{}]""")


def _split(text: str) -> list[str]:
    """Split at commas outside brackets and quotes."""
    parts, depth, start = [], 0, 0
    for match in _COMMA_OR_BRACKET.finditer(text):
        if match[0] in "([{":
            depth += 1
        elif match[0] in ")]}":
            depth -= 1
        elif match[0] == "," and depth == 0:
            parts.append(text[start : match.start()])
            start = match.end()
    return [p.strip() for p in (*parts, text[start:]) if p.strip()]


_TYPES = {
    "Tensor": ArgKind.TENSOR,
    "int": ArgKind.INT,
    # A program holds the number; that PyTorch may trace it as a symbol matters to
    # exporters only.
    "SymInt": ArgKind.INT,
    # Enums are their codes in a program: EValue of ExecuTorch's program.fbs has no kind
    # for them.
    "ScalarType": ArgKind.INT,
    "Layout": ArgKind.INT,
    "MemoryFormat": ArgKind.INT,
    "float": ArgKind.FLOAT,
    "bool": ArgKind.BOOL,
    "Scalar": ArgKind.SCALAR,
    "str": ArgKind.STRING,
}
_LISTS = {
    ArgKind.TENSOR: ArgKind.TENSOR_LIST,
    ArgKind.INT: ArgKind.INT_LIST,
    ArgKind.FLOAT: ArgKind.FLOAT_LIST,
    ArgKind.BOOL: ArgKind.BOOL_LIST,
}
_ARGUMENT = re.compile(
    r"(\w+)(?:\((\w+)(!?)\))?(\?)?(\[\d*\])?(?:\((\w+)(!?)\))?(\?)?(?:\s+(\w+))?(?:\s*=.*)?",
    re.DOTALL,
)


# `Tensor self`, `Tensor(a!) out` and `int dim` come in nearly every schema.
@lru_cache(maxsize=1024)
def _parse_argument(text: str) -> Argument:
    match = _ARGUMENT.fullmatch(text)
    if match is None or match[1] not in _TYPES:
        raise ValueError(f'cannot read the schema argument "{text}"')
    kind = _TYPES[match[1]]
    is_list = match[5] is not None
    if is_list and kind not in _LISTS:
        raise ValueError(f'no kernel can take the list "{text}"')
    return Argument(
        name=match[9] or "",
        kind=_LISTS[kind] if is_list else kind,
        optional=bool(match[8] if is_list else match[4]),
        items_optional=is_list and bool(match[4]),
        is_out=bool(match[3] or match[7]),
    )
