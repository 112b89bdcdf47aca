"""Makes relocatable ELF objects out of lists: sections, symbols, references."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

LOCAL, GLOBAL, WEAK = 0, 1, 2
NOTYPE, FUNC, SECTION = 0, 2, 3
SYMTAB, STRTAB, RELA, REL, PROGBITS = 2, 3, 4, 9, 1


@dataclass
class ObjectSpec:
    """An object to be made.

    Args:
        sections: Their names; two may be the same.
        symbols: Name, binding, type, name of the section ("" is elsewhere).
        references: From a section to a symbol, each by its place in the list.
    """

    sections: list[str]
    symbols: list[tuple[str, int, int, str]] = field(default_factory=list)
    references: list[tuple[int, int]] = field(default_factory=list)

    def make(self, *, is_64: bool = False, with_addends: bool = False) -> bytes:
        """Bytes of the object, 32 or 64 bits, little-endian."""
        header_size, entry_size = (64, 64) if is_64 else (52, 40)
        strings = _Strings()
        symbols = b"".join(
            self._symbol(strings.add(n), bind, kind, section, is_64=is_64)
            for n, bind, kind, section in [("", 0, 0, ""), *self.symbols]
        )
        count = len(self.sections)
        table, texts = count + 1, count + 2
        # name, type, contents, link, info
        found: list[tuple[str, int, bytes, int, int]] = [("", 0, b"", 0, 0)]
        found += [(name, PROGBITS, b"\0" * 4, 0, 0) for name in self.sections]
        found += [(".symtab", SYMTAB, symbols, texts, 1)]
        found += [(".strtab", STRTAB, bytes(strings.data), 0, 0)]
        for source, target in self.references:
            data = self._reference(target + 1, is_64=is_64, addend=with_addends)
            kind = RELA if with_addends else REL
            found.append((".rel", kind, data, table, source + 1))
        names = _Strings()
        offsets = [names.add(name) for name, *_ in found]
        own_name = names.add(".shstrtab")
        found.append((".shstrtab", STRTAB, bytes(names.data), 0, 0))
        offsets.append(own_name)
        body, headers = b"", b""
        for offset, (_, kind, data, link, info) in zip(offsets, found, strict=True):
            headers += struct.pack(
                "<IIQQQQIIQQ" if is_64 else "<10I",
                *(offset, kind, 0, 0, header_size + len(body), len(data)),
                *(link, info, 1, 0),
            )
            body += data
        start = header_size + len(body)
        ident = b"\x7fELF" + bytes((2 if is_64 else 1, 1, 1)) + bytes(9)
        rest = (1, 40, 1, 0, 0, start, 0, header_size, 0, 0, entry_size)
        return (
            ident
            + struct.pack(
                "<HHIQQQIHHHHHH" if is_64 else "<HHIIIIIHHHHHH", *rest, len(found), len(found) - 1
            )
            + body
            + headers
        )

    def _symbol(self, name: int, bind: int, kind: int, section: str, *, is_64: bool) -> bytes:
        index = self.sections.index(section) + 1 if section else 0
        info = bind << 4 | kind
        if is_64:
            return struct.pack("<IBBHQQ", name, info, 0, index, 0, 0)
        return struct.pack("<IIIBBH", name, 0, 0, info, 0, index)

    @staticmethod
    def _reference(symbol: int, *, is_64: bool, addend: bool) -> bytes:
        values = (0, symbol << 32 | 1) if is_64 else (0, symbol << 8 | 1)
        more, sign = ((-4,), "q" if is_64 else "i") if addend else ((), "")
        return struct.pack(("<QQ" if is_64 else "<II") + sign, *values, *more)


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray(b"\0")

    def add(self, text: str) -> int:
        if not text:
            return 0
        self.data += text.encode() + b"\0"
        return len(self.data) - len(text) - 1
