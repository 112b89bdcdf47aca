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
_STEPS: Final = {"divisor": 1.0, "divisor / 16": 16.0, "divisor / 16, whole": 0.25}
"""Clocks by which a bit becomes longer, by what is in the register; 1/64 of 16 of them in the
two registers of a PL011."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Bits of a register that are written before the first byte."""

    address: int
    mask: int
    value: int


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
    written = (one["value"] for one in drivers()[data["driver"]]["settings"])
    (step,) = (_STEPS[value] for value in written if value in _STEPS)
    return float(data["clock"] / step / max(1, _divided(data, step)))


def _divided(data: Mapping[str, Any], step: float) -> int:
    clock, baud = data.get("clock", 0), data.get("baud", DEFAULT_BAUD)
    return int(clock / step / baud + 0.5)


def uart_of(data: Mapping[str, Any]) -> Uart:
    """A UART from the table of a board's file, which is known to be valid."""
    driver, base = drivers()[data["driver"]], int(data["base"])
    baud = int(driver.get("baud", data.get("baud", DEFAULT_BAUD)))
    values = {name: _divided(data, step) for name, step in _STEPS.items()}
    sixty_fourths = values["divisor / 16, whole"]
    values["divisor / 16, whole"] = sixty_fourths // 64
    values["divisor / 16, 64ths"] = sixty_fourths % 64
    own = (Setting(address=a, mask=m, value=v) for a, m, v in data.get("settings", ()))
    of_driver = (
        Setting(
            address=base + s["offset"], mask=s["mask"], value=values.get(s["value"], s["value"])
        )
        for s in driver["settings"]
    )
    return Uart(
        settings=(*own, *of_driver),
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
