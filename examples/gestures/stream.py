"""Write a recording that comes in hops of 8 samples, and what each window of it gives.

    python examples/gestures/stream.py

writes the folder `stream` for the product `gestures-stream`. The expected scores are
those that `gestures-host`, which takes whole windows, gives for the last 64 samples.
"""

import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from samples import CLASSES, gestures

FOLDER = Path(__file__).with_name("stream")
WINDOW, HOP = 64, 8


def recording() -> np.ndarray:
    """A circle, and then shaking: [1, 3, 96]."""
    windows, labels = gestures(20, seed=5)
    circle, shake = (windows[labels == CLASSES.index(c)] for c in ("circle", "shake"))
    return np.concatenate([circle[:1], shake[:1, :, :32]], axis=2)


def scores(window: np.ndarray) -> np.ndarray:
    """What the product for whole windows gives, [1, 4]."""
    profile = FOLDER.with_name("gestures-host.toml")
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/in0.npy", window)
        command = ["orchestrator", "run", profile, "--input", f"{folder}/in0.npy"]
        subprocess.run([*command, "--output-dir", folder], check=True)
        return np.load(f"{folder}/out0.npy")


def main() -> None:
    """Write the arrays, and the scenario with the calls in order."""
    FOLDER.mkdir(exist_ok=True)
    samples = recording()
    runs = []
    for call, end in enumerate(range(HOP, samples.shape[2] + 1, HOP)):
        run = {"method": "forward", "inputs": [{"kind": "tensor"}]}
        run["inputs"][0]["file"] = f"in{call}.npy"
        np.save(FOLDER / f"in{call}.npy", samples[:, :, end - HOP : end])
        if end >= WINDOW:
            run["outputs"] = [{"kind": "tensor", "file": f"out{call}.npy"}]
            expected = scores(samples[:, :, end - WINDOW : end])
            np.save(FOLDER / f"out{call}.npy", expected)
        runs.append(run)
    case = {"tolerance": {"atol": 0.0, "rtol": 0.0}, "runs": runs}
    (FOLDER / "case.json").write_text(json.dumps(case, indent=1) + "\n")


if __name__ == "__main__":
    main()
