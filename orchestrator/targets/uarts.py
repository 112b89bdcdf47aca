"""UARTs as data: uart_drivers.toml has their registers, a board the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

_FILE: Final = Path(__file__).with_name("uart_drivers.toml")
DEFAULT_BAUD: Final = 115_200
"""Bits per second, where a board's file says nothing."""
_PARTS: Final = {
    "divisor": (1, 1),
    "divisor - 1": (1, 1),
    "divisor * 256": (256, 1),
    "divisor / 8": (1, 8),
    "divisor / 16": (1, 16),
    # Two registers hold sixty-fourths of 16 clocks: the whole ones, and what is left.
    "divisor / 16, whole": (4, 1),
    "divisor / 16, 64ths": (4, 1),
}
"""By name in uart_drivers.toml: a register counts parts of a bit's clocks, so many in so many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Bits of a register that are written first; or, if it `waits`, that are waited for."""

    address: int
    mask: int
    value: int
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """One direction of a UART.

    Args:
        status: Address of the register that says whether it is ready.
        mask: Bits of that.
        ready: What they are then.
        data: Address of the register with the byte.
        is_event: Whether the status has to be cleared.
    """

    status: int
    mask: int
    ready: int
    data: int
    is_event: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Uart:
    """A UART that the runner speaks to the host over.

    Args:
        settings: In order: clocks and pins of the board, then what the driver needs.
        receive: What comes.
        send: What goes.
        baud: Bits per second.
    """

    settings: tuple[Setting, ...]
    receive: Port
    send: Port
    baud: int


@cache
def drivers() -> Mapping[str, Any]:
    """What uart_drivers.toml says, by name of the driver."""
    import tomli  # noqa: PLC0415  # only commands that need one

    return tomli.loads(_FILE.read_text(encoding="utf-8"))


def needs_clock(driver: str) -> bool:
    """Whether the baud rate of a driver is divided from a clock."""
    return any(isinstance(one["value"], str) for one in drivers()[driver]["settings"])


def reached_baud(data: Mapping[str, Any]) -> float:
    """Bits per second that a driver with a clock gives, as registers hold whole numbers."""
    clock, baud = data["clock"], data.get("baud", DEFAULT_BAUD)
    written = (one["value"] for one in drivers()[data["driver"]]["settings"])
    times, by = next(_PARTS[value] for value in written if value in _PARTS)
    return float(clock * times / by / max(1, _rounded(clock * times, baud * by)))


def _rounded(numerator: int, denominator: int) -> int:
    return (numerator + denominator // 2) // denominator


def settings_of(data: Mapping[str, Any]) -> tuple[Setting, ...]:
    """What a table of a board's file writes to registers, in order."""
    return tuple(
        Setting(address=address, mask=mask, value=value, waits=bool(wait))
        for address, mask, value, *wait in data.get("settings", ())
    )


def _values(clock: int, baud: int) -> Mapping[str, int]:
    """By name in uart_drivers.toml: what divides a clock."""
    found = {name: _rounded(clock * t, baud * by) for name, (t, by) in _PARTS.items()}
    sixty_fourths = found["divisor / 16, whole"]
    return found | {
        "divisor - 1": found["divisor - 1"] - 1,
        "divisor / 16, whole": sixty_fourths // 64,
        "divisor / 16, 64ths": sixty_fourths % 64,
    }


def uart_of(data: Mapping[str, Any]) -> Uart:
    """A UART from the table of a board's file, which is known to be valid."""
    driver, base = drivers()[data["driver"]], int(data["base"])
    baud = int(driver.get("baud", data.get("baud", DEFAULT_BAUD)))
    values = _values(int(data.get("clock", 0)), baud)
    of_driver = (
        Setting(
            address=base + s["offset"], mask=s["mask"], value=values.get(s["value"], s["value"])
        )
        for s in driver["settings"]
    )
    return Uart(
        settings=(*settings_of(data), *of_driver),
        receive=_port(driver["receive"], base),
        send=_port(driver["send"], base),
        baud=baud,
    )


def _port(data: Mapping[str, Any], base: int) -> Port:
    return Port(
        status=base + data["status"],
        mask=data["mask"],
        ready=data["ready"],
        data=base + data["data"],
        is_event=data.get("event", False),
    )
