"""The scenario of a new product: inputs, and outputs that a runtime computes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from orchestrator.build import Build, inputs
from orchestrator.build.exporting import Exported
from orchestrator.build.reference import reference_outputs
from orchestrator.core.dtype import ScalarType
from orchestrator.program.values import ValueKind
from orchestrator.running.compare import Tolerance
from orchestrator.running.new_scenario import NewCall, random_input, scenario_files
from orchestrator.running.npy import read_npy
from orchestrator.running.product import Port, input_ports, output_ports
from orchestrator.running.values import NPY_DTYPES, RunValue, fixed_value, sizes_fit
from orchestrator.shell.process import Processes
from orchestrator.shell.reporter import Reporter

# Float kernels of another library sum in another order. Chosen by hand.
_FLOAT = Tolerance(atol=1e-4, rtol=1e-3)
# Absolute error of float outputs of a quantized model. Chosen by hand.
_QUANTIZED = 0.05
_INT8 = frozenset({ScalarType.Char, ScalarType.Byte})


@dataclass(frozen=True, slots=True, kw_only=True)
class MadeScenario:
    """Files of a scenario by path relative to its folder; none if there is none.

    Args:
        files: By path.
        has_outputs: Whether outputs of every call are expected.
        note: What is missing, and why; "" if nothing is.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    has_outputs: bool = False
    note: str = ""


def new_scenario(name: str, build: Build, processes: Processes, reporter: Reporter) -> MadeScenario:
    """One call of every method, with the outputs of PyTorch or ExecuTorch.

    Args:
        name: Of the scenario.
        build: Of the product; its models can be read.
        processes: Runs ExecuTorch.
        reporter: Gets the progress.
    """
    # `PCG64` by name: `default_rng` may become another generator, and a scenario with
    # it.
    random = np.random.Generator(np.random.PCG64(0))
    programs, exported = build[inputs.PROGRAMS], build[inputs.EXPORTED]
    profile = build[inputs.PROFILE]
    ports = {
        (model, method.name): (input_ports(method), output_ports(method))
        for model, program in programs.items()
        for method in program.methods
    }
    calls = []
    for (model, method), (given, got) in ports.items():
        # The export has kept the example inputs and PyTorch's outputs: no ExecuTorch
        # has to run.
        if model in exported and (known := _of_export(exported[model], given, got)):
            calls.append(replace(known, model=model, method=method))
            continue
        values = [random_input(port, random) for port in given]
        found = tuple(value for value in values if value is not None)
        if len(found) < len(values):
            what = f'model "{model}", method "{method}"'
            return MadeScenario(note=f"no scenario: no file holds an input of {what}")
        calls.append(NewCall(model=model, method=method, inputs=found))
    open_calls = [call for call in calls if call.outputs is None]
    note = ""
    if open_calls:
        reporter.working("running the models in ExecuTorch")
        names = {call.model for call in open_calls}
        reference = reference_outputs(
            open_calls,
            programs={
                m: bytes(data) for m, data in build[inputs.MODEL_BYTES].items() if m in names
            },
            inputs={key: given for key, (given, _) in ports.items()},
            processes=processes,
        )
        if reference.outputs is None:
            note = f"no expected outputs: {reference.problem}"
        else:
            answers = iter(reference.outputs)
            calls = [
                replace(call, outputs=next(answers)) if call.outputs is None else call
                for call in calls
            ]
    quantized = any(m.quantize is not None for m in profile.models)
    dtypes = {port.dtype for _, got in ports.values() for port in got}
    tolerance = replace(_FLOAT, atol=_QUANTIZED) if quantized else _FLOAT
    if dtypes & _INT8:
        tolerance = replace(tolerance, atol=1.0)  # one step of a quantized output
    what = "random inputs" if open_calls else "the example inputs of the models"
    source = "ExecuTorch" if open_calls else "PyTorch"
    ending = "" if note else f", with the outputs of {source}"
    files = scenario_files(
        name, calls, tolerance, f"One call of each method of {name}: {what}{ending}"
    )
    return MadeScenario(files=files, has_outputs=not note, note=note)


def _of_export(
    exported: Exported, given: tuple[Port, ...], got: tuple[Port, ...]
) -> NewCall | None:
    """Example inputs of an exported model and PyTorch's outputs, if they fit it."""
    folder = Path(exported.entry.folder)
    both = []
    for kind, ports in (("in", given), ("out", got)):
        values = [
            _array(folder / f"{kind}{number}.npy", port, exported.facts.arrays)
            for number, port in enumerate(ports)
        ]
        found = tuple(value for value in values if value is not None)
        if len(found) < len(values):
            return None
        both.append(found)
    return NewCall(model="", method="", inputs=both[0], outputs=both[1])


def _array(path: Path, port: Port, known: tuple[str, ...]) -> RunValue | None:
    if port.is_fixed:
        return fixed_value(port)
    if port.kind is not ValueKind.TENSOR or path.name not in known:
        return None
    array = read_npy(path.read_bytes(), file=str(path))
    dtype = None if port.dtype is None else NPY_DTYPES.get(port.dtype)
    return array if array.dtype == dtype and sizes_fit(array.shape, port) else None
