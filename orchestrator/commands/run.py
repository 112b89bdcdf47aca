"""`orchestrator run`: the built firmware on given inputs."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.errors import (
    Diagnostic,
    ExitCode,
    MismatchError,
    SourceSpan,
    UsageError,
)
from orchestrator.pipeline import WORK, BuildOptions, Pipeline, load
from orchestrator.running.compare import Tolerance, compare_calls
from orchestrator.running.inputs import command_line_call
from orchestrator.running.outputs import output_files
from orchestrator.running.product import Product, read_product
from orchestrator.running.protocol import decode_response, encode_request
from orchestrator.running.report import failures, render_table, report_data
from orchestrator.running.scenario import read_scenario
from orchestrator.shell import process
from orchestrator.shell.files import write_atomic
from orchestrator.shell.stamp import STAMP_NAME, is_current
from orchestrator.shell.toolchain import find_emulator

if TYPE_CHECKING:
    from argparse import Namespace

    from orchestrator.console import Console
    from orchestrator.running.values import Call

_DEFAULT = Tolerance(atol=1e-5, rtol=1e-5)
# Relative and short: the firmware reads its command line into a small buffer.
_REQUEST, _RESPONSE = "request.bin", "response.bin"


def run(args: Namespace, console: Console) -> ExitCode:
    """Run calls in order, write their outputs, and compare what is expected."""
    folder = Pipeline(load(args.profile), BuildOptions(out=args.out)).folder
    product = read_product(_text(folder / "product.json", args.profile))
    if is_current(str(folder / WORK / STAMP_NAME), profile=str(args.profile)) is None:
        console.talk(
            f"{args.profile}: something changed since the last build;"
            " this runs the firmware that was built then"
        )
    calls, tolerance = _calls(args, product)
    results = decode_response(_carry_out(args, folder, product, calls), calls)
    limit = tolerance or _DEFAULT
    outputs = compare_calls(calls, results, limit)
    if args.output_dir is not None:
        for name, data in output_files(results):
            write_atomic(args.output_dir / name, data)
    console.document(report_data(calls, results, outputs, tolerance))
    console.data(render_table(calls, outputs, tolerance))
    problems = failures(calls, results, outputs, tolerance)
    if problems and console.json:
        # The document tells everything; a second one would not be JSON any more.
        console.problems(problems)
        return ExitCode.MISMATCH
    if problems:
        raise MismatchError(problems)
    return ExitCode.OK


def _calls(
    args: Namespace, product: Product
) -> tuple[tuple[Call, ...], Tolerance | None]:
    """Calls of the command line, and their tolerance if something is expected."""
    if args.scenario is None:
        call = command_line_call(
            product,
            model=args.model,
            method=args.method,
            inputs=args.input,
            expected=args.expect or None,
            read_bytes=_read_bytes,
        )
        atol = _DEFAULT.atol if args.atol is None else args.atol
        rtol = _DEFAULT.rtol if args.rtol is None else args.rtol
        return (call,), Tolerance(atol=atol, rtol=rtol) if args.expect else None
    if args.input or args.expect or args.model:
        raise UsageError(
            Diagnostic(
                code="usage",
                message="--scenario names models, inputs and outputs itself",
                hint="leave out --model, --input and --expect",
            )
        )
    try:
        text = args.scenario.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            Diagnostic(
                code="bad-scenario",
                message="the scenario cannot be read",
                where=SourceSpan(file=str(args.scenario)),
                notes=(("found", getattr(error, "strerror", None) or str(error)),),
                hint="name a JSON file with runs and tolerance",
            )
        ) from error
    scenario = read_scenario(
        text, file=str(args.scenario), product=product, read_bytes=_read_bytes
    )
    return scenario.calls, scenario.tolerance


def _read_bytes(path: str) -> bytes:
    return Path(path).read_bytes()


def _text(path: Path, profile: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(
            Diagnostic(
                code="not-built",
                message=f"{profile} is not built",
                notes=(("expected", str(path)),),
                hint=f"run `orchestrator build {profile}` first",
            )
        ) from error


def _carry_out(
    args: Namespace, folder: Path, product: Product, calls: tuple[Call, ...]
) -> bytes:
    """The response of the firmware to a request with these calls."""
    firmware = (folder / product.firmware).resolve()
    with tempfile.TemporaryDirectory(prefix="orchestrator-run-") as name:
        work = Path(name)
        (work / _REQUEST).write_bytes(encode_request(calls))
        if product.emulator:
            command = (
                *find_emulator(product.emulator),
                "-semihosting-config",
                f"enable=on,target=native,arg=firmware,arg={_REQUEST},arg={_RESPONSE}",
                "-kernel",
                str(firmware),
            )
        else:
            command = (str(firmware), _REQUEST, _RESPONSE)
        done = process.run(command, cwd=work, env=os.environ, timeout_s=args.timeout)
        if done.status != 0:
            raise _failed(done, command)
        try:
            return (work / _RESPONSE).read_bytes()
        except OSError:
            return b""


_MEANINGS = {
    process.TIMED_OUT: "it did not end within the time limit",
    process.NOT_STARTED: "it could not be started",
    3: "it refused the request",
    4: "it could not write its response",
    99: "a hardware fault",
}


def _failed(done: process.Finished, command: tuple[str, ...]) -> MismatchError:
    meaning = _MEANINGS.get(done.status, f"exit status {done.status}")
    notes = [("found", meaning), ("command", " ".join(command))]
    if done.stderr.strip():
        notes.append(("output", done.stderr.strip()[-2000:]))
    return MismatchError(
        Diagnostic(
            code="firmware-failed",
            message="the firmware did not finish",
            notes=tuple(notes),
            hint="build the profile again; a longer --timeout may help slow models",
        )
    )
