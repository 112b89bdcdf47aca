"""Applications: C or C++ that a test compiles with a product's library and runs."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from tests.tools import need_tool

if TYPE_CHECKING:
    from pathlib import Path

    from tests.product import Product


def run_application(product: Product, text: str, language: str, folder: Path, *flags: str) -> None:
    """Compile an application, and require that it returns 0.

    Args:
        product: Built for this machine.
        text: The source.
        language: `c`, compiled as C99; or `c++`, as C++11.
        folder: For source and program.
        flags: For the compiler.
    """
    is_c = language == "c"
    compiler = need_tool(*(("gcc", "clang") if is_c else ("g++", "clang++")))
    source = folder / ("app.c" if is_c else "app.cpp")
    source.write_text(text)
    program = folder / "app"
    (library,) = product.out.glob("lib*.a")
    command = [
        *(compiler, "-std=c99" if is_c else "-std=c++11", *flags, "-no-pie"),
        *(f"-I{product.out}/include", str(source), str(library), "-o", str(program)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
