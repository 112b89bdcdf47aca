"""`orchestrator compat`: whether built firmware can run new programs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, StrictStr, ValidationError

from orchestrator.build import lockfile
from orchestrator.build.project import project_at
from orchestrator.cli.commands.named_files import read_bytes
from orchestrator.cli.console import Console
from orchestrator.cli.render import diagnostic_to_json
from orchestrator.compat.check import check_compat
from orchestrator.compat.firmware import Firmware, read_firmware
from orchestrator.core.lazy_bytes import Bytes
from orchestrator.errors import Diagnostic, ExitCode, ModelError, UsageError, did_you_mean
from orchestrator.memory.product import method_state_bytes
from orchestrator.program.reader import read_program
from orchestrator.running.invalid import sentence_of
from orchestrator.selection.extract import extract
from orchestrator.shell.files import read_text_file, reason_of

# Firmware in the field, and programs that are to replace its models.

# In the folder of a build; a lock has the same facts in its table `firmware`. Decision
# 0015.
FACTS = "firmware.json"


class _FirmwareFile(BaseModel):
    model_config = ConfigDict(frozen=True)

    firmware: dict[StrictStr, StrictStr]


def replacement_problems(
    firmware: Firmware, data: Bytes, model: str, *, file: str
) -> tuple[Diagnostic, ...]:
    """Why a program cannot take the place of a model; nothing if it can."""
    try:
        program = read_program(data, file=file)
    except ModelError as error:
        return error.diagnostics  # the device rejects it too
    states = {
        method.name: method_state_bytes(
            method, pointer_bytes=firmware.pointer_bytes, delegates=dict(firmware.delegates)
        )
        for method in program.methods
    }
    return check_compat(
        firmware, program, extract(program, model=model), states, model=model, file=file
    )


def firmware_in(path: Path) -> Firmware:
    """The firmware that a lock or build folder describes; of a product, its lock."""
    project = project_at(path)
    path = path if project is None else project.lock_file
    file = path / FACTS if path.is_dir() else path
    try:
        text = read_text_file(file)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError.of(
            "no-firmware",
            f"{file} cannot be read",
            found=getattr(error, "strerror", None) or reason_of(error),
            hint="name the lock or the build folder of a built product",
        ) from error
    if path.is_dir():
        try:
            facts = _FirmwareFile.model_validate_json(text).firmware
        except ValidationError as error:
            found = sentence_of(error.errors()[0])
            raise _damaged(str(file), found) from error
    else:
        facts = dict(lockfile.parse_lock(text, file=str(file)).firmware)
    return firmware_of_facts(facts, file=str(file))


def firmware_of_facts(facts: Mapping[str, str], *, file: str) -> Firmware:
    """The firmware of the facts in a file. Raises UsageError."""
    try:
        return read_firmware(facts)
    except ValueError as error:
        raise _damaged(file, str(error)) from error


def _damaged(file: str, found: str) -> UsageError:
    return UsageError.of(
        "no-firmware",
        f"{file} does not describe a firmware",
        found=found,
        hint="build the product again with this version of Orchestrator",
    )


def model_to_replace(firmware: Firmware, name: str | None) -> str:
    """The model to replace."""
    models = list(dict.fromkeys(method.model for method in firmware.methods))
    if name is None and len(models) == 1:
        return models[0]
    if name is not None and name in models:
        return name
    raise UsageError.of(
        "unknown-model" if name else "model-needed",
        f'the firmware has no model "{name}"'
        if name
        else "the firmware does not have exactly one model",
        found=", ".join(models) or "no models",
        hint=(did_you_mean(name, models) if name else "") or "name one with --model",
    )


def run(args: Namespace, console: Console) -> ExitCode:
    """Check for each program whether it can replace a model, and why not."""
    firmware = firmware_in(args.firmware)
    model = model_to_replace(firmware, args.model)
    found = [
        (path, replacement_problems(firmware, read_bytes(path), model, file=str(path)))
        for path in args.programs
    ]
    console.document(
        {
            "ok": not any(problems for _, problems in found),
            "model": model,
            "programs": [
                {
                    "file": str(path),
                    "ok": not problems,
                    "problems": [diagnostic_to_json(p) for p in problems],
                }
                for path, problems in found
            ],
        }
    )
    for path, problems in found:
        verdict = f"{len(problems)} problems" if problems else "can take its place"
        console.data(f"{path}: {verdict} (model {model})")
    console.problems([p for _, problems in found for p in problems])
    failed = any(problems for _, problems in found)
    return ExitCode.INCOMPATIBLE if failed else ExitCode.OK
