"""Firmware of a built product with an application of a test's own."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

from orchestrator.shell.ninja import ninja_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

RUNNER = "obj/runtime/app/runner.cpp.o"


def with_application(
    out: Path, source: Path, macros: Mapping[str, str], *, folders: Iterable[Path] = ()
) -> Path:
    """The firmware with a source in the place of the application of `run`.

    Args:
        out: Build folder of the product.
        source: Defines `orch_application`, and sees what is in ninja's folder.
        macros: For it.
        folders: More folders of headers.
    """
    work, name = out / ".work", source.stem
    units = json.loads((out / "compile_commands.json").read_text())
    unit = next(unit for unit in units if unit["output"] == RUNNER)
    *flags, _, _, _, _ = unit["arguments"]  # -c SOURCE -o OBJECT
    flags += [f"-D{key}={text}" for key, text in macros.items()]
    flags += [f"-I{folder}" for folder in (".", *folders)]
    _run([*flags, "-c", str(source), "-o", f"obj/{name}.o"], work)
    lines = (work / "build.ninja").read_text().splitlines()
    link = next(i for i, x in enumerate(lines) if x.startswith("build firmware.elf"))
    rule = lines[link].replace("firmware.elf | firmware.map", f"{name}.elf")
    text = [
        "include build.ninja",
        rule.replace(RUNNER, f"obj/{name}.o"),
        lines[link + 1].replace("firmware.map", f"{name}.map"),
        *lines[link + 2 :][:1],
    ]
    (work / f"{name}.ninja").write_text("\n".join(text) + "\n")
    ninja = [str(ninja_program()), "--quiet", "-f", f"{name}.ninja", f"{name}.elf"]
    _run(ninja, work)
    return work / f"{name}.elf"


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
