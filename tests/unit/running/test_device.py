"""Devices as `--on` names them, and how programs of probes are started."""

from __future__ import annotations

from argparse import ArgumentTypeError
from dataclasses import replace

import pytest

from orchestrator.build.on_device import need_reach, open_serial, ready_device
from orchestrator.cli.values import device
from orchestrator.errors import OrchestratorError
from orchestrator.running.device import Device, Reach, device_of
from orchestrator.running.product import Product
from orchestrator.targets.boards import BOARDS

PRODUCT = Product(profile="p", board="netduinoplus2", emulator=(), firmware="f", methods=())
BOARD = replace(
    BOARDS["netduinoplus2"],
    probes=(("pyocd", ("stm32f405rg",)), ("openocd", ("interface/stlink.cfg", "target/a.cfg"))),
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("uart:/dev/ttyACM0", Device(Reach.UART, "/dev/ttyACM0")),
        ("gdb:localhost:3333", Device(Reach.GDB, "localhost:3333")),
        ("gdb:[::1]:3333", Device(Reach.GDB, "[::1]:3333")),
        ("probe", Device(Reach.PROBE, "")),
        ("uf2:/media/RPI-RP2", Device(Reach.UF2, "/media/RPI-RP2")),
        ("probe:openocd", Device(Reach.PROBE, "openocd")),
    ],
)
def test_a_device_in_words(text: str, found: Device) -> None:
    assert device_of(text) == found
    assert str(found) == text


NONE = """
uart uart: uf2 uf2: gdb gdb:host gdb::1 gdb:h:0 gdb:h:65536 gdb:h:x gdb:h:² probe:gdb
jtag /dev/ttyACM0
"""


@pytest.mark.parametrize("text", ["", *NONE.split()])
def test_what_names_no_device(text: str) -> None:
    with pytest.raises(ArgumentTypeError, match="is not uart:PORT, gdb:HOST:PORT, uf2:DIR, probe"):
        device(text)


def test_addresses_of_a_server() -> None:
    assert device_of("gdb:localhost:3333").server == ("localhost", 3333)
    assert device_of("gdb:[::1]:3333").server == ("::1", 3333)


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("pyocd", "pyocd gdbserver --no-wait --target stm32f405rg --port 99"),
        (
            "openocd",
            "openocd -c|gdb_port 99; tcl_port disabled; telnet_port disabled"
            "|-f interface/stlink.cfg -f target/a.cfg",
        ),
    ],
)
def test_programs_of_probes(name: str, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.build.on_device.program_beside", str)
    before, _, rest = command.partition("|")
    middle, _, after = rest.partition("|")
    words = (*before.split(), *([middle] if middle else []), *after.split())
    assert ready_device(Device(Reach.PROBE, name), BOARD, PRODUCT).command(99) == words


def test_the_first_program_that_is_installed_serves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "orchestrator.build.on_device.program_beside",
        lambda name: name if name == "openocd" else None,
    )
    assert ready_device(Device(Reach.PROBE, ""), BOARD, PRODUCT).place == "openocd"


@pytest.mark.parametrize("place", ["", "jlink", "pyocd"])
def test_no_program_is_here(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.build.on_device.program_beside", lambda _: None)
    with pytest.raises(OrchestratorError) as raised:
        ready_device(Device(Reach.PROBE, place), BOARD, PRODUCT)
    assert raised.value.diagnostics[0].code == "no-probe"


@pytest.mark.parametrize(
    ("reach", "via"), [("uart", "semihosting"), ("gdb", "uart"), ("uf2", "uart")]
)
def test_a_device_is_reached_as_the_firmware_speaks(reach: str, via: str) -> None:
    with pytest.raises(OrchestratorError) as raised:
        need_reach(Device(Reach(reach), "x"), PRODUCT.model_copy(update={"via": via}))
    assert raised.value.diagnostics[0].code == "wrong-device"


def test_a_host_has_no_device() -> None:
    with pytest.raises(OrchestratorError) as raised:
        ready_device(Device(Reach.PROBE, ""), None, PRODUCT)
    assert raised.value.diagnostics[0].code == "wrong-device"


@pytest.mark.parametrize(
    ("port", "baud", "found"),
    [
        ("/dev/null", 115_200, "Inappropriate ioctl"),
        ("/nowhere/ttyACM0", 115_200, "No such file"),
        ("/dev/null", 31_250, "no serial ports of 31,250 bits per second"),
    ],
)
def test_what_is_no_serial_port(port: str, baud: int, found: str) -> None:
    with pytest.raises(OrchestratorError) as raised:
        open_serial(port, baud)
    (problem,) = raised.value.diagnostics
    assert problem.code == "probe-failed"
    assert found in dict(problem.notes)["found"]
