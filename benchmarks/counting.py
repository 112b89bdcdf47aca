"""Instructions of built firmware under QEMU, counted by the plugin icount.c.

Loading a method is the call of `orch::prepare`, an inference that of `orch::execute`,
an operator the executor's call of its kernel. A region begins with the first
instruction of the called function and ends where the call returns to, so that both
addresses are found in the ELF, whatever the compiler did inside.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.image import Image
from benchmarks.product import CORPUS, Built
from benchmarks.table import NotMeasuredError, short
from orchestrator.running.outputs import output_files
from orchestrator.running.product import read_product
from orchestrator.running.protocol import DeviceError, decode_response, encode_request
from orchestrator.running.scenario import read_scenario

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CALLER = "orch_application"
_LOAD = "orch::prepare"
_RUN = "orch::execute"
_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What one run of a firmware took.

    Args:
        load: Instructions to load the method.
        inference: Instructions of one inference; the median, if there are several.
        by_function: Instructions per inference of the kernels asked for.
        digest: Of all outputs, byte for byte.
    """

    load: int
    inference: int
    by_function: Mapping[str, int]
    digest: str


def compile_plugin(folder: Path) -> Path:
    """The plugin, built by the system's C compiler."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        raise NotMeasuredError("no gcc to compile the QEMU plugin icount.c")
    plugin = folder / "icount.so"
    source = Path(__file__).parent / "icount.c"
    done = subprocess.run(
        [compiler, "-O2", "-fPIC", "-shared", str(source), "-o", str(plugin)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise NotMeasuredError(f"icount.c does not compile: {short(done.stderr)}")
    return plugin


def run(
    built: Built, *, plugin: Path | None = None, kernels: Sequence[str] = ()
) -> Counts:
    """Run a case's calls on its firmware and count.

    Args:
        built: What to run.
        plugin: Counts if given; without it, and on hosts, only the digest is true.
        kernels: Qualified names of the kernel functions to count as well.

    Raises:
        NotMeasuredError: The emulator is missing, or the run failed.
    """
    product = read_product((built.folder / "product.json").read_text())
    case = CORPUS / built.case / "case.json"
    calls = read_scenario(
        case.read_text(),
        file=str(case),
        product=product,
        read_bytes=lambda path: Path(path).read_bytes(),
    ).calls
    folder = built.folder.parent / "run"
    folder.mkdir(exist_ok=True)
    (folder / "request").write_bytes(encode_request(calls))
    names = [_LOAD, _RUN, *kernels]
    firmware = str((built.folder / product.firmware).resolve())
    command = [firmware, "request", "response"]
    if product.emulator:
        command = [*_emulator(product.emulator), "-kernel", firmware]
        if plugin is not None:
            regions = _regions(built, names)
            command += ["-plugin", f"{plugin},{regions},out={folder / 'counts'}"]
    _carry_out(command, folder)
    results = decode_response((folder / "response").read_bytes(), calls)
    if any(result.error is not DeviceError.Ok for result in results):
        raise NotMeasuredError("a call failed in the runtime")
    digest = hashlib.sha256()
    for name, data in output_files(results):
        digest.update(name.encode() + data)
    if "-plugin" not in command:
        return Counts(load=0, inference=0, by_function={}, digest=digest.hexdigest())
    load, inference, *rest = _passages(folder / "counts", len(names))
    if len(inference) != len(calls):
        raise NotMeasuredError("the plugin did not see every call")
    return Counts(
        load=load[0],
        inference=int(median(inference)),
        by_function={
            name: sum(counts) // len(calls)
            for name, counts in zip(kernels, rest, strict=True)
        },
        digest=digest.hexdigest(),
    )


def _carry_out(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired:
        raise NotMeasuredError(f"no end after {_TIMEOUT_S} s") from None
    if done.returncode != 0:
        raise NotMeasuredError(f"status {done.returncode}: {short(done.stderr)}")


def _emulator(command: Sequence[str]) -> list[str]:
    """The emulator's command, with the files of a run as the firmware's arguments."""
    program = shutil.which(command[0])
    if program is None:
        raise NotMeasuredError(f"no {command[0]}")
    return [
        *(program, *command[1:], "-semihosting-config"),
        "enable=on,target=native,arg=firmware,arg=request,arg=response",
    ]


def _passages(file: Path, regions: int) -> list[list[int]]:
    """What the plugin counted in each passage of each region."""
    found: list[list[int]] = [[] for _ in range(regions)]
    for line in file.read_text().splitlines():
        region, count = line.split()
        if region != "total":
            found[int(region)].append(int(count))
    return found


def _regions(built: Built, names: list[str]) -> str:
    """Begin and ends of the calls of these functions, as arguments of the plugin."""
    image = Image(built)
    words = []
    for name in names:
        words.append(f"begin={image.function(name)[0]:#x}")
        if name in (_LOAD, _RUN):
            ends = image.returns_of_calls(_CALLER, name)
        else:
            ends = image.returns_of_pointer_calls(_RUN)
        words += [f"end={end:#x}" for end in ends]
    return ",".join(words)
