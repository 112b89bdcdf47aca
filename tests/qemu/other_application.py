"""Firmware of a built product with an application of a test's own."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from orchestrator.shell.ninja import ninja_program

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path


def with_application(
    out: Path, source: Path, macros: Mapping[str, str], *, folders: Iterable[Path] = ()
) -> Path:
    """The firmware with a source in the place of the application of `run`.

    Args:
        out: Build folder of the product.
        source: Defines `orch_application`, and sees what is in ninja's folder.
        macros: For it; values as a shell takes them.
        folders: More folders of headers.
    """
    work, name = out / ".work", source.stem
    lines = (work / "build.ninja").read_text().splitlines()
    link = next(i for i, x in enumerate(lines) if x.startswith("build firmware.elf"))
    runner = next(
        i for i, x in enumerate(lines) if x.startswith("build obj/runtime/app/runner")
    )
    made = lines[runner].split()[1].rstrip(":")
    flags = "".join(f" -D{key}={text}" for key, text in macros.items())
    flags += "".join(f" -I{folder}" for folder in folders)
    rule = lines[link].replace("firmware.elf | firmware.map", f"{name}.elf")
    text = [
        "include build.ninja",
        f"build obj/{name}.o: cxx {source}",
        f"{lines[runner + 1]} -I.{flags}",
        rule.replace(made, f"obj/{name}.o"),
        lines[link + 1].replace("firmware.map", f"{name}.map"),
        *lines[link + 2 :][:1],
    ]
    (work / f"{name}.ninja").write_text("\n".join(text) + "\n")
    done = subprocess.run(
        [str(ninja_program()), "--quiet", "-f", f"{name}.ninja", f"{name}.elf"],
        cwd=work,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return work / f"{name}.elf"
