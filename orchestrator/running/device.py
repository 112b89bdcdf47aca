"""A device on the desk, as `--on` names it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

SERVERS: Final = {
    "pyocd": ("pyocd", "gdbserver", "--no-wait", "--target", "{part}", "--port", "{port}"),
    "openocd": ("openocd", "-c", "gdb_port {port}; tcl_port disabled; telnet_port disabled"),
    "jlink": (
        *("JLinkGDBServerCLExe", "-nogui", "-silent", "-if", "SWD"),
        *("-device", "{part}", "-port", "{port}"),
    ),
}
"""Programs of debug probes that serve GDB, by the key of a board file that has its part."""


class Reach(Enum):
    """How a device is reached."""

    UART = "uart"
    GDB = "gdb"
    PROBE = "probe"
    UF2 = "uf2"


@dataclass(frozen=True, slots=True)
class Device:
    """A device.

    Args:
        reach: How it is reached.
        place: A serial port; HOST:PORT of a GDB server; the program of a probe, or ""; the folder
            of a UF2 drive.
        baud: Bits per second of a serial port.
        part: The board for a probe's program, as that names it.
    """

    reach: Reach
    place: str
    baud: int = 0
    part: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.reach.value}:{self.place}" if self.place else self.reach.value

    def command(self, port: int) -> tuple[str, ...]:
        """What serves GDB for a probe, at a port of this machine."""
        words = SERVERS[self.place]
        files = tuple(word for part in self.part for word in ("-f", part))
        more = files if self.place == "openocd" else ()
        return (*(word.format(port=port, part="".join(self.part)) for word in words), *more)

    @property
    def server(self) -> tuple[str, int]:
        """Host and port of a GDB server."""
        host, _, port = self.place.rpartition(":")
        return host.strip("[]"), int(port)


def device_of(text: str) -> Device:
    """A device in words.

    Args:
        text: `uart:/dev/ttyACM0`, `gdb:HOST:PORT`, `probe`, `probe:openocd` or `uf2:DIR`.

    Raises:
        ValueError: It is none.
    """
    kind, _, place = text.partition(":")
    reach = Reach(kind)
    if reach in {Reach.UART, Reach.UF2} and not place:
        raise ValueError("a serial port or a folder is missing")
    if reach is Reach.GDB:
        host, _, port = place.rpartition(":")
        if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 1 << 16:
            raise ValueError("no HOST:PORT")
    if reach is Reach.PROBE and place not in ("", *SERVERS):
        raise ValueError("no program for probes")
    return Device(reach, place)
