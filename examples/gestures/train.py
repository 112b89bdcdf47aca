"""Train the network; write `weights.npz`, and `gestures.csv` to test with."""

import numpy as np
import torch
from network import WEIGHTS, Gestures
from samples import CLASSES, gestures
from torch import nn


def main() -> None:
    """Write both files, and print how many of the test's windows are right."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    network = Gestures()
    windows, labels = map(torch.from_numpy, gestures(2000, seed=0))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.005)
    # Smoothed labels keep scores small, so that int8 has fine steps for them.
    loss = nn.CrossEntropyLoss(label_smoothing=0.02)
    for _ in range(20):
        for batch in torch.randperm(len(windows)).split(50):
            optimizer.zero_grad()
            loss(network(windows[batch]), labels[batch]).backward()
            optimizer.step()
    network.eval()
    np.savez(WEIGHTS, **{name: w.numpy() for name, w in network.state_dict().items()})

    windows, labels = gestures(200, seed=1)
    right = network(torch.from_numpy(windows)).argmax(1).numpy() == labels
    print(f"{right.sum()} of {len(right)} right")
    names = [*(f"{axis}{i}" for axis in "xyz" for i in range(64)), "label"]
    rows = np.column_stack([windows.reshape(200, -1), np.array(CLASSES)[labels]])
    file = WEIGHTS.with_name("gestures.csv")
    np.savetxt(file, [names, *rows], fmt="%s", delimiter=",")


if __name__ == "__main__":
    main()
