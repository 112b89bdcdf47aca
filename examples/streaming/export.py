"""Write both models, three chunks of a signal, and PyTorch's outputs for the signal.

Needs torch and executorch.
"""

import json
from pathlib import Path

import numpy as np
import torch
from executorch.exir import ExecutorchBackendConfig, to_edge
from executorch.exir.passes.init_mutable_pass import InitializedMutableBufferPass
from torch import nn

CHUNK = 16
TAPS = 5


class Stream(nn.Module):
    """A convolution over a signal that arrives in chunks: it keeps the last samples."""

    past: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.filter = nn.Conv1d(1, 2, TAPS)
        self.register_buffer("past", torch.zeros(1, 1, TAPS - 1))

    def forward(self, chunk: torch.Tensor) -> torch.Tensor:
        """The outputs [1, 2, 16] for the next 16 samples."""
        samples = torch.cat([self.past, chunk], dim=2)
        self.past.copy_(samples[:, :, CHUNK:])
        return self.filter(samples)


def main() -> None:
    """Write all files beside this one."""
    folder = Path(__file__).parent
    torch.manual_seed(0)
    model = Stream().eval()
    signal = torch.randn(1, 1, 3 * CHUNK)
    with torch.no_grad():
        # The whole signal at once, after silence: what the chunks have to give.
        whole = model.filter(nn.functional.pad(signal, (TAPS - 1, 0)))
    program = to_edge(torch.export.export(model, (signal[:, :, :CHUNK],)))
    # Without this pass a program does not have the initial state.
    config = ExecutorchBackendConfig(passes=[InitializedMutableBufferPass(["past"])])
    (folder / "model.pte").write_bytes(program.to_executorch(config).buffer)
    window = torch.randn(1, 1, CHUNK + TAPS - 1)
    program = to_edge(torch.export.export(model.filter, (window,)))
    (folder / "window.pte").write_bytes(program.to_executorch().buffer)
    runs: list[dict[str, object]] = []
    for i, (chunk, output) in enumerate(
        zip(signal.split(CHUNK, 2), whole.split(CHUNK, 2), strict=True)
    ):
        np.save(folder / f"in{i}.npy", chunk.numpy())
        np.save(folder / f"out{i}.npy", output.numpy())
        runs.append(
            {
                "method": "forward",
                "inputs": [{"kind": "tensor", "file": f"in{i}.npy"}],
                "outputs": [{"kind": "tensor", "file": f"out{i}.npy"}],
            }
        )
    fresh = [{**run, "fresh": True} for run in runs]
    for name, calls in (("case", runs), ("fresh", fresh)):
        case = {"tolerance": {"atol": 1e-6, "rtol": 1e-5}, "runs": calls}
        (folder / f"{name}.json").write_text(json.dumps(case, indent=1) + "\n")


if __name__ == "__main__":
    main()
