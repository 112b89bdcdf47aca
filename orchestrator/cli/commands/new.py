"""`orchestrator new`: a whole example firmware in a new folder."""

from __future__ import annotations

import math
from argparse import Namespace
from pathlib import Path

import numpy as np

from orchestrator.cli.commands.new_files import (
    GITIGNORE,
    TEMPLATES,
    NewTarget,
    choose_target,
    template_text,
    write_files,
)
from orchestrator.cli.console import Console
from orchestrator.errors import ExitCode, SourceSpan, UsageError
from orchestrator.profile.reference import schema_text
from orchestrator.profile.starter import (
    SCHEMA_FILE,
    NewModel,
    NewProfile,
    product_name,
    profile_text,
)
from orchestrator.running.compare import Tolerance
from orchestrator.running.new_scenario import NewCall, scenario_files
from orchestrator.running.npy import Array
from orchestrator.targets.cores import BOARDS, CPUS

_MODEL = "sine"
_TOLERANCE = Tolerance(atol=0.01, rtol=0.0)
"""How well the network has learned the sine."""


def run(args: Namespace, console: Console) -> ExitCode:
    """Write profile, model, sources, Makefile and scenario."""
    folder: Path = args.folder
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise _taken(folder, "a file")
    if folder.is_dir() and (names := sorted(p.name for p in folder.iterdir())):
        raise _taken(folder, ", ".join(names[:3]) + ", ..." * (len(names) > 3))  # noqa: PLR2004
    target = choose_target(args, console.shell().toolchains, asks=False)
    name = product_name(folder.absolute().name)
    done = write_files(
        folder,
        create=_files(name, target),
        keep={SCHEMA_FILE: schema_text(), ".gitignore": f"{GITIGNORE}*.elf\n"},
    )
    runs_here = not target.board or bool(BOARDS[target.board].emulator)
    commands = [f"cd {folder}", "make run" if runs_here else "make"]
    if not runs_here:
        commands.append(f"orchestrator flash {name}.toml --on probe")
    commands.append(f"orchestrator test {name}.toml{'' if runs_here else ' --on probe'}")
    commands.append(f"orchestrator size {name}.toml")
    lines = [f"wrote {path}" for path in done.created]
    lines += ["", "next:", *(f"  {line}" for line in commands)]
    return console.result(
        {"folder": str(folder), "written": [str(path) for path in done.created], "next": commands},
        "\n".join(lines),
    )


def _taken(folder: Path, found: str) -> UsageError:
    return UsageError.of(
        "file-exists",
        f"{folder} is not an empty folder",
        where=SourceSpan(file=str(folder)),
        found=found,
        hint="name a new folder; `orchestrator init` adds a profile to an old one",
    )


def _files(name: str, target: NewTarget) -> dict[str, str | bytes]:
    profile = NewProfile(
        name=name,
        cpu=target.cpu,
        board=target.board,
        toolchain=target.toolchain,
        load="pte",
        models=(NewModel(name=_MODEL, path=f"{_MODEL}.pte"),),
    )
    platform = "board" if target.board else "host"
    names = ("main.c", f"{platform}.c", "text.h", "Makefile", "README.md", "sine.py")
    words = _words(name, target, platform)
    files: dict[str, str | bytes] = {f"{name}.toml": profile_text(profile)}
    files |= {file: template_text(file, words) for file in names}
    files[f"{_MODEL}.pte"] = (TEMPLATES / f"{_MODEL}.pte").read_bytes()
    made = scenario_files(
        name,
        [_call(angle) for angle in (0.0, 1.0, math.pi / 2, 4.0)],
        _TOLERANCE,
        "Four angles, and what the sine is there",
    )
    return files | {f"scenarios/{path}": data for path, data in made.items()}


def _words(name: str, target: NewTarget, platform: str) -> dict[str, str]:
    """What stands in the templates between `@` signs."""
    cpu = CPUS[target.cpu]
    flags, link = "-Os -Wall -Wextra", "-no-pie" if not target.board else ""
    where, run = "in the terminal", f"./{name}.elf"
    compiler = "cc" if target.toolchain == "gnu" else "$(PYTHON) -m ziglang cc"
    what = "prints to the terminal"
    if target.board:
        link = "-T $(PRODUCT)/gen/firmware.ld -Wl,--gc-sections"
        if target.toolchain == "gnu":
            machine = " ".join(cpu.isas[cpu.default_isa].machine_flags)
            compiler = f"{cpu.gnu_prefix}gcc"
            # No C library: the product has its own start-up and memory functions
            # (decision 0003).
            link = f"-nostdlib {link} -lgcc"
        else:
            triple, core = cpu.isas[cpu.default_isa].zig_target
            # Clang takes this core with an FPU for one without DSP instructions.
            lacks = cpu.default_isa == "dsp" and cpu.clang_triple.startswith("thumbv8m")
            machine = f"-target {triple} -mcpu={core}{'+dsp' * lacks}"
            link += " -Wl,-e,orch_reset"
            # zig cc turns it on for code that is not optimized.
            flags += " -fno-sanitize=undefined"
        flags = f"{machine} {flags} -ffreestanding -ffunction-sections"
        what = "start-up and text for the board, by semihosting"
        emulator = BOARDS[target.board].emulator
        where = f"in QEMU's {target.board}" if emulator else f"on {target.board}"
        run = (
            " ".join((*emulator, "-semihosting -kernel", f"{name}.elf"))
            if emulator
            else f'echo "no emulator has {target.board}: load {name}.elf onto it"'
        )
    return {
        "NAME": name,
        "C_NAME": name.replace("-", "_"),
        "PLATFORM": platform,
        "PLATFORM_IS": what,
        "CC": compiler,
        "CFLAGS": flags,
        "LDFLAGS": link,
        "RUN": run,
        "WHERE": where,
    }


def _call(angle: float) -> NewCall:
    given, wanted = (Array.of(np.array([[value]], "<f4")) for value in (angle, math.sin(angle)))
    return NewCall(model=_MODEL, method="forward", inputs=(given,), outputs=(wanted,))
