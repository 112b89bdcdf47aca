"""The process that exports one model: REQUEST.json FOLDER.

Writes into the folder `model.pte`, inputs and outputs of PyTorch as `.npy`, and
`result.json` last: what was read, which distributions took part, or what went wrong.
"""

from __future__ import annotations

import json
import platform
import random
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import asdict, replace
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.export.failure import ExportError
from orchestrator.export.installed import facts_of, missing_packages
from orchestrator.export.observe import Observer, Readers
from orchestrator.export.request import STEP_FILE, Request, parse_request
from orchestrator.shell.distribution import pip_install

if TYPE_CHECKING:
    from orchestrator.export.source import Model

PACKAGE = Path(__file__).parents[1]
# Random initial weights, dropout masks and samples are the same in each export:
# programs have to be the same bytes.
SEED = 0
_KINDS = {bool: "bool", int: "int", float: "double", str: "string"}
_TOLERANCE = {"atol": 1e-4, "rtol": 1e-3}
"""As that of `new-scenario` for floats."""


def main(request_file: str, folder: str) -> None:
    """Carry out the request; failures are in the result."""
    request = parse_request(Path(request_file).read_text(encoding="utf-8"))
    result: dict[str, Any]
    try:
        result = _export(request, Path(folder))
    except ExportError as error:
        traceback.print_exc()
        result = {
            "failure": {
                "code": error.code,
                "message": error.message,
                "notes": error.notes,
                "hint": error.hint,
            }
        }
    # Last of all files: the parent takes a missing result for a process that died.
    (Path(folder) / "result.json").write_text(json.dumps(result), encoding="utf-8")


def _export(request: Request, folder: Path) -> dict[str, Any]:
    missing = missing_packages(request.lowering)
    if missing:
        raise _missing(", ".join(missing))

    def step(text: str) -> None:
        (folder / STEP_FILE).write_text(text, encoding="utf-8")

    step("importing PyTorch")
    import torch  # noqa: PLC0415

    # PyTorch and ExecuTorch warn of their own internals in each export.
    warnings.filterwarnings("ignore")
    # Sums of several threads are rounded in another order; build/exporting.py sets the
    # same in the environment, for libraries.
    torch.set_num_threads(1)
    # Before the observer: what it imports to wrap it is not the user's.
    readers = Readers()
    observer = Observer(ignored=(str(PACKAGE), str(folder)))
    result = _verified(request) if request.verify else _once(request, step)
    (folder / STEP_FILE).unlink()
    observer.stop()
    (folder / "model.pte").write_bytes(result.pop("program"))
    names = _write_calls(result.pop("calls"), folder)
    return {
        **result,
        "arrays": names,
        "files": observer.files(),
        "folders": observer.folders(),
        "distributions": _distributions(without=readers.unused),
        "python": platform.python_version(),
    }


def _missing(names: str) -> ExportError:
    return ExportError(
        "missing-extra",
        "models given as Python need packages that are not installed",
        notes=(("found", f"no {names} in {sys.executable}"),),
        hint=f"{pip_install('export')}, or let"
        " ORCHESTRATOR_EXPORT_PYTHON name an interpreter that has them",
    )


def _once(request: Request, step: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Call the code and lower its model."""
    try:  # before the code of the model, which may take long
        from orchestrator.export import lower  # noqa: PLC0415
        from orchestrator.lowering import accelerated  # noqa: PLC0415
        from orchestrator.lowering.accelerate import unknown_versions  # noqa: PLC0415

        lower.lowering_module(request.lowering)
    except ImportError as error:
        raise _missing(error.name or str(error)) from error
    unknown = unknown_versions() if request.accelerate else []
    step("calling the model's code")
    model = lower.arranged(_model(request), request)
    start = time.process_time()
    with accelerated() if request.accelerate else nullcontext() as ledger:
        step("quantizing" if request.quantize else "capturing")
        modules, notes = lower.quantized(model, request)
        step("running it in PyTorch")
        modules, outputs = lower.with_reference(modules, model)
        step(f"lowering for {request.lowering}")
        program = lower.lowered(modules, model, request, outputs)
    return {
        "program": bytes(program.manager.buffer),
        "decomposed": dict(program.decomposed),
        "asked": dict(program.asked),
        "bounds": dict(program.bounds),
        "warnings": [
            *(("left-over", f"lowering is not accelerated: {u}") for u in unknown),
            *(("default-layout", note) for note in notes),
            *(("not-compared", why) for why in program.uncompared),
        ],
        "seconds": time.process_time() - start,
        "ledger": None if ledger is None else asdict(ledger),
        "calls": [(n, m.inputs, outputs[n]) for n, m in model.methods.items()],
    }


def _model(request: Request) -> Model:
    """The model, the same in every process."""
    import torch  # noqa: PLC0415

    from orchestrator.export.source import load_source  # noqa: PLC0415

    random.seed(SEED)
    torch.manual_seed(SEED)
    with suppress(ImportError):
        import numpy  # noqa: ICN001, PLC0415

        numpy.random.seed(SEED)  # noqa: NPY002  # what the user's code may use
    return load_source(request.file, request.function)


def _verified(request: Request) -> dict[str, Any]:
    """Both with and without acceleration; every intermediate graph must be the same."""
    from orchestrator.lowering.record import TOSA, recorded  # noqa: PLC0415

    # A recording only sees passes that are imported: afterwards all of them are.
    # Thrown away. A recording wraps classes of passes that exist when it begins.
    _once(replace(request, accelerate=False))
    with recorded() as plain:
        before = _once(replace(request, accelerate=False))
    with recorded() as fast:
        after = _once(replace(request, accelerate=True))
    found = plain.difference(fast)
    if found is not None:
        raise ExportError(
            "export-differs",
            "accelerated lowering gives a different graph",
            notes=(
                ("found", f"stage {found.stage}, after {found.step}"),
                ("without", found.one),
                ("with", found.other),
            ),
            hint="export with --no-accelerate, and report it",
        )
    if before["program"] != after["program"]:
        raise ExportError(
            "export-differs",
            "accelerated lowering gives a different program from equal graphs",
            hint="export with --no-accelerate, and report it",
        )
    flatbuffers = sum(stage.step == TOSA for stage in plain.stages)
    verified = {
        "stages": len(plain.stages) - flatbuffers,
        "tosa_flatbuffers": flatbuffers,
        "seconds_plain": before["seconds"],
    }
    return {**after, "verified": verified}


def _write_calls(calls: list[tuple[str, Any, Any]], folder: Path) -> list[str]:
    """Example calls as a scenario, tensors as `.npy` files; names of the files.

    The files are `in0.npy`, `out0.npy` and so on, after `METHOD.` if there are several.
    """
    import numpy as np  # noqa: PLC0415
    import torch  # noqa: PLC0415
    from torch.utils import _pytree  # noqa: PLC0415

    names, runs = ["scenario.json"], []
    for method, inputs, outputs in calls:
        run: dict[str, Any] = {"method": method, "inputs": [], "outputs": []}
        start = f"{method}." if len(calls) > 1 else ""
        for kind, found in (("in", inputs), ("out", outputs)):
            for number, value in enumerate(_pytree.tree_leaves(list(found))):
                entry = {"kind": "none"}
                if type(value) in _KINDS:
                    entry = {"kind": _KINDS[type(value)], "value": value}
                if isinstance(value, torch.Tensor):
                    names.append(f"{start}{kind}{number}.npy")
                    entry = {"kind": "tensor", "file": names[-1]}
                    tensor = value.detach().contiguous()
                    if tensor.dtype is torch.bfloat16:
                        tensor = tensor.view(torch.uint16)
                        entry["stored_as"] = "uint16 bit patterns"
                    np.save(folder / names[-1], tensor.numpy())
                run[f"{kind}puts"].append(entry)
        runs.append(run)
    text = json.dumps({"tolerance": _TOLERANCE, "runs": runs}, indent=1)
    (folder / names[0]).write_text(f"{text}\n", encoding="utf-8")
    return names


def _distributions(*, without: set[str]) -> dict[str, dict[str, str]]:
    """By name: version and metadata file of every distribution that was imported."""
    modules = {name.partition(".")[0] for name in sys.modules} - without
    owners = metadata.packages_distributions()
    found = {}
    for name in sorted({d for m in modules for d in owners.get(m, ())}):
        distribution = metadata.distribution(name)
        found[distribution.metadata["Name"]] = facts_of(distribution)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
