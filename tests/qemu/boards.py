"""Products for boards, and emulators in the place of boards."""

from __future__ import annotations

import socket
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from orchestrator.targets.boards import BOARDS
from tests.product import Product, make_product
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path


def built_for(
    board: str, folder: Path, case: str = "add_mul", *, toolchain: str = "zig", via: str
) -> Product:
    """A product of a case for a board, which is built."""
    cpu = BOARDS[board].cpu
    need_toolchain(cpu, toolchain)
    need_emulator(cpu)
    libraries = '[kernels]\nlibraries = ["cortex_m", "quantized", "portable"]\n'
    product = make_product(folder, case, cpu=cpu, toolchain=toolchain, extra=libraries)
    text = product.profile.read_text()
    product.profile.write_text(
        text.replace("[target]\n", f'[target]\nboard = "{board}"\nvia = "{via}"\n')
    )
    assert product.run("build") == 0
    return product


@contextmanager
def gdb_server(command: Callable[[int], Sequence[str]]) -> Iterator[str]:
    """A GDB server at a port of this machine, as `--on` names it.

    Args:
        command: Starts it at a port.
    """
    with socket.socket() as any_port:
        any_port.bind(("127.0.0.1", 0))
        port: int = any_port.getsockname()[1]
    with subprocess.Popen(command(port)) as emulator:
        try:
            end = time.monotonic() + 60
            while time.monotonic() < end:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.02)
            yield f"gdb:127.0.0.1:{port}"
        finally:
            emulator.kill()
