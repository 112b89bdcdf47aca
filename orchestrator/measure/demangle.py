"""Readable names of C++ symbols, as far as reports need them.

Parameters and return types are left out, template arguments are given where they are
plain types: `orch::portable::(anonymous namespace)::add_same<float>`. A name that uses
more of C++ than this stays mangled.

Source: Itanium C++ ABI, 5.1 (external names).
"""

from __future__ import annotations

import re
from typing import Final

_NUMBER: Final = re.compile(r"\d{1,6}")
_SEQUENCE: Final = re.compile(r"[0-9A-Z]*_")
_ANONYMOUS: Final = "_GLOBAL__N_"
_BUILTINS: Final = {
    "v": "void",
    "b": "bool",
    "c": "char",
    "a": "signed char",
    "h": "unsigned char",
    "s": "short",
    "t": "unsigned short",
    "i": "int",
    "j": "unsigned int",
    "l": "long",
    "m": "unsigned long",
    "x": "long long",
    "y": "unsigned long long",
    "f": "float",
    "d": "double",
}
_OPERATORS: Final = {
    "cl": "operator()",
    "ix": "operator[]",
    "eq": "operator==",
    "ne": "operator!=",
    "lt": "operator<",
    "pl": "operator+",
    "mi": "operator-",
    "ml": "operator*",
    "aS": "operator=",
}
_SPECIAL: Final = {"TV": "vtable for ", "GV": "guard variable for "}


class _Unknown(Exception):  # noqa: N818  # not an error: the name stays mangled
    """The name uses more than this reader knows."""


def demangle(symbol: str) -> str:
    """The qualified name of a symbol, or the symbol itself."""
    mangled, dot, suffix = symbol.partition(".")
    if not mangled.startswith("_Z"):
        return symbol
    try:
        return _Reader(mangled[2:]).entity() + dot + suffix
    except (_Unknown, IndexError, RecursionError):
        return symbol


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0

    def entity(self) -> str:
        """`<encoding>` without what follows the name."""
        for code, prefix in _SPECIAL.items():
            if self._take(code):
                return prefix + self.entity()
        if self._take("Z"):
            return self._local()
        return self._name()

    def _local(self) -> str:
        """Something inside a function: `Z <function> E <entity> [_ <number>]`."""
        function = self.entity()
        while not self._take("E"):
            self._type()
        if self._take("s"):
            return f"{function}::(string)"
        return f"{function}::{self.entity()}"

    def _name(self) -> str:
        if self._take("N"):
            return self._nested()
        name = f"std::{self._part()}" if self._take("St") else self._part()
        return name + self._arguments() if self._peek("I") else name

    def _nested(self) -> str:
        while self._take("r") or self._take("V") or self._take("K"):
            pass
        parts: list[str] = []
        while not self._take("E"):
            if self._peek("I"):
                if not parts:
                    raise _Unknown
                parts[-1] += self._arguments()
            elif self._peek("S"):
                parts.append(self._substitution())
            elif self._take("C") or self._take("D"):
                kind = self._text[self._at - 1]
                self._at += 1  # complete, base or deleting
                tilde = "~" if kind == "D" else ""
                parts.append(tilde + parts[-1].partition("<")[0])
            else:
                parts.append(self._part())
        return "::".join(parts)

    def _part(self) -> str:
        """One component: a source name, an operator or a lambda."""
        self._take("L")  # internal linkage
        if self._take("Ul"):
            while not self._take("E"):
                self._type()
            self._match(_SEQUENCE)
            return "{lambda}"
        operator = _OPERATORS.get(self._text[self._at : self._at + 2])
        if operator is not None:
            self._at += 2
            return operator
        length = int(self._match(_NUMBER))
        name = self._text[self._at : self._at + length]
        if len(name) < length or not name:
            raise _Unknown
        self._at += length
        return "(anonymous namespace)" if name.startswith(_ANONYMOUS) else name

    def _arguments(self) -> str:
        """Template arguments; those that are no plain type become an ellipsis."""
        self._at += 1
        arguments = []
        while not self._take("E"):
            arguments.append(self._argument())
        return f"<{', '.join(arguments)}>" if arguments else "<>"

    def _argument(self) -> str:
        if self._take("J"):
            pack = []
            while not self._take("E"):
                pack.append(self._argument())
            return ", ".join(pack)
        if self._take("L"):
            return self._literal()
        return self._type()

    def _literal(self) -> str:
        kind = self._type()
        end = self._text.find("E", self._at)
        if end < 0:
            raise _Unknown
        value, self._at = self._text[self._at : end], end + 1
        if kind == "bool":
            return "false" if value == "0" else "true"
        return value.replace("n", "-")

    def _type(self) -> str:
        for code, mark in (("P", "*"), ("R", "&"), ("O", "&&")):
            if self._take(code):
                return self._type() + mark
        if self._take("K"):
            return f"{self._type()} const"
        code = self._text[self._at]
        if code in _BUILTINS:
            self._at += 1
            return _BUILTINS[code]
        if self._peek("St") or code == "N" or code.isdigit():
            return self._name()
        if code == "S":
            name = self._substitution()
            return name + self._arguments() if self._peek("I") else name
        return self._parameter()

    def _parameter(self) -> str:
        """A parameter of the template around, or a type inside a function."""
        if self._take("T"):
            self._match(_SEQUENCE)
            return "…"
        if self._take("Z"):
            return self._local()
        raise _Unknown

    def _substitution(self) -> str:
        """What stood before; which one it was is not worth a table."""
        self._at += 1
        self._match(_SEQUENCE)
        return "…"

    def _peek(self, code: str) -> bool:
        return self._text.startswith(code, self._at)

    def _take(self, code: str) -> bool:
        if not self._peek(code):
            if self._at >= len(self._text):
                raise _Unknown
            return False
        self._at += len(code)
        return True

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self._at)
        if not found:
            raise _Unknown
        self._at = found.end()
        return found[0]
