"""Instructions of built firmware under QEMU, counted by the plugin of `run --profile`.

Loading a method is the call of `orch::load_linked`, an inference that of
`orch::execute`, an operator the calls of its kernel. A call is counted from the first
instruction of the function to the one that returns.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.product import CORPUS, Built
from benchmarks.table import NotMeasuredError, short
from orchestrator.errors import OrchestratorError
from orchestrator.running.counting import COUNTS_FILE, CountPlan, read_counts
from orchestrator.running.inputs import output_files
from orchestrator.running.product import read_product
from orchestrator.running.protocol import DeviceError, decode_response, encode_request
from orchestrator.running.scenario import read_scenario
from orchestrator.shell.qemu_plugin import counting_plugin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_LOAD = "orch::load_linked"
_RUN = "orch::execute"
_TIMEOUT_S = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """What one run of a firmware took.

    Args:
        load: Instructions to load the method; 0 if it is prelinked.
        inference: Instructions of one inference; the median, if there are several.
        by_function: Instructions per inference of the kernels asked for.
        digest: Of all outputs, byte for byte.
    """

    load: int
    inference: int
    by_function: Mapping[str, int]
    digest: str


def plugin_file() -> Path:
    """The plugin, compiled if it was not yet."""
    try:
        return counting_plugin()
    except OrchestratorError as error:
        raise NotMeasuredError(short(error.diagnostics[0].message)) from None


def run(built: Built, *, plugin: Path | None = None, kernels: Sequence[str] = ()) -> Counts:
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
    names = [_LOAD] if _has(built, _LOAD) else []
    first = len(names)
    names += kernels
    firmware = str((built.folder / product.firmware).resolve())
    command = [firmware, "request", "response"]
    if product.emulator:
        command = [*_emulator(product.emulator), "-kernel", firmware]
        if plugin is not None:
            command += ["-plugin", f"{plugin},{_plan(built, names).arguments}"]
    _carry_out(command, folder)
    results = decode_response((folder / "response").read_bytes(), calls)
    if any(result.error is not DeviceError.Ok for result in results):
        raise NotMeasuredError("a call failed in the runtime")
    digest = hashlib.sha256()
    for name, data in output_files(results):
        digest.update(name.encode() + data)
    if "-plugin" not in command:
        return Counts(load=0, inference=0, by_function={}, digest=digest.hexdigest())
    counts = read_counts((folder / COUNTS_FILE).read_text())
    if len(counts.runs) != len(calls):
        raise NotMeasuredError("the plugin did not see every call")
    return Counts(
        load=counts.calls_of(0)[0] if first else 0,
        inference=int(median(counts.runs)),
        by_function={
            name: sum(counts.calls_of(index)) // len(calls)
            for index, name in enumerate(kernels, start=first)
        },
        digest=digest.hexdigest(),
    )


def _carry_out(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S
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


def _has(built: Built, function: str) -> bool:
    return any(s["name"] == function for s in built.report["symbols"])


def _plan(built: Built, names: list[str]) -> CountPlan:
    """The executor, and functions by name, where the firmware has them."""
    functions = {
        s["name"]: (s["address"], s["size_bytes"])
        for s in built.report["symbols"]
        if s["is_function"]
    }
    missing = [name for name in (_RUN, *names) if name not in functions]
    if missing:
        raise NotMeasuredError(f"{', '.join(missing)} is not in the firmware")
    return CountPlan(
        executor=functions[_RUN], tables=(), functions=tuple(functions[name][0] for name in names)
    )
