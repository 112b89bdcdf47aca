"""Makes ELF files for Arm out of code, data, symbols and relocations."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

CALL, JUMP, ADDRESS = 10, 30, 2
"""R_ARM_THM_CALL, R_ARM_THM_JUMP24, R_ARM_ABS32."""
OBJECT, EXECUTABLE = 1, 2
ABSOLUTE = 0xFFF1

BL = "00f000f8"
"""To itself + 4, if no relocation says otherwise."""
B_W = "00f000b8"
BLX_R3 = "9847"
BX_LR = "7047"
PUSH_R4_LR = "10b5"


@dataclass
class ArmSpec:
    """A file to be made.

    Args:
        sections: Their bytes in hexadecimal: code if a symbol says so.
        symbols: Name, section (from 1; 0 is elsewhere), offset, is it a function, is it
            local, visibility.
        sizes: Of functions, in bytes; 0 says nothing.
        relocations: Section, offset, type, number of the symbol.
    """

    sections: list[str]
    symbols: list[tuple[str, int, int, bool, bool]] = field(default_factory=list)
    relocations: list[tuple[int, int, int, int]] = field(default_factory=list)
    kind: int = OBJECT
    machine: int = 40
    hidden: frozenset[str] = frozenset()
    sizes: dict[str, int] = field(default_factory=dict)

    def function(self, name: str, code: str, *, local: bool = False) -> int:
        """Add a function in a section of its own; gives its symbol."""
        self.sections.append(code)
        section = len(self.sections)
        self.symbols.append(("$t", section, 0, False, True))
        self.symbols.append((name, section, 0, True, local))
        return len(self.symbols)

    def outside(self, name: str) -> int:
        """Add a symbol of another file."""
        self.symbols.append((name, 0, 0, False, False))
        return len(self.symbols)

    def make(self) -> bytes:
        """Its bytes."""
        texts, table = b"\0", bytes(16)
        for name, section, offset, is_function, is_local in self.symbols:
            info = (0 if is_local else 16) + (2 if is_function else 0)
            other = 2 if name in self.hidden else 0
            value = offset + is_function
            size = self.sizes.get(name, 0)
            table += struct.pack("<IIIBBH", len(texts), value, size, info, other, section)
            texts += name.encode() + b"\0"
        count = len(self.sections)
        found = [(0, b"", 0, 0)]
        found += [(1, bytes.fromhex(text), 0, 0) for text in self.sections]
        found += [(2, table, count + 2, 1), (3, texts, 0, 0)]
        for index in sorted({r[0] for r in self.relocations}):
            data = b"".join(
                struct.pack("<II", offset, symbol << 8 | kind)
                for section, offset, kind, symbol in self.relocations
                if section == index
            )
            found.append((9, data, count + 1, index))
        body, headers = b"", b""
        for kind, data, link, info in found:
            headers += struct.pack(
                "<10I", 0, kind, 0, 0, 52 + len(body), len(data), link, info, 1, 0
            )
            body += data
        head = b"\x7fELF\x01\x01\x01" + bytes(9)
        head += struct.pack(
            "<HHIIIIIHHHHHH",
            self.kind,
            self.machine,
            1,
            0,
            0,
            52 + len(body),
            0,
            52,
            0,
            0,
            40,
            len(found),
            0,
        )
        return head + body + headers
