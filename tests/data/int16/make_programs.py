"""Writes the programs of nets.py, their inputs and outputs, and a scenario."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Final

from orchestrator.cli.main import run
from orchestrator.program.program import KernelCall
from orchestrator.program.reader import read_program
from orchestrator.program.values import DoubleValue

HERE: Final = Path(__file__).parent
NETS: Final = ("convnet", "moves", "steps")


def profile_of(folder: Path, name: str, activations: str = "int16") -> Path:
    """A profile of a network, in a folder of its own."""
    shutil.copyfile(HERE / "nets.py", folder / "nets.py")
    profile = folder / f"{name}-{activations}.toml"
    profile.write_text(
        f'schema = 1\nname = "{name}-{activations}"\n[target]\ncpu = "cortex-m4"\n'
        f'[[models]]\nname = "{name}"\nsource = "nets.py:{name}"\n'
        'lowering = "cortex-m"\n'
        f'[models.quantize]\nactivations = "{activations}"\n'
    )
    return profile


def step_of(file: Path) -> float:
    """The scale of the output of a program, which its last call dequantizes."""
    (method,) = read_program(file.read_bytes(), file=file.name).methods
    (call,) = method.instructions[-1:]
    assert isinstance(call, KernelCall)
    scale = method.values[call.args[1]]
    assert isinstance(scale, DoubleValue)
    return scale.value


def main() -> None:
    """Export, and copy here."""
    runs = []
    for name in NETS:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            profile = profile_of(folder, name)
            if run(["export", str(profile), "--out", str(folder / "out")]) != 0:
                raise SystemExit(1)
            made = folder / "out" / "exported" / name
            shutil.copyfile(made / "model.pte", HERE / f"{name}.pte")
            for kind in ("in0", "out0"):
                shutil.copyfile(made / f"{kind}.npy", HERE / f"{name}.{kind}.npy")
        runs.append(
            {
                "model": name,
                "method": "forward",
                "inputs": [{"kind": "tensor", "file": f"{name}.in0.npy"}],
                "outputs": [{"kind": "tensor", "file": f"{name}.out0.npy"}],
            }
        )
    tolerance = {"atol": 0, "rtol": 0}
    text = json.dumps({"tolerance": tolerance, "runs": runs}, indent=1)
    (HERE / "scenario.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
