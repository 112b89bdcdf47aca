"""Train the network on scikit-learn's digits; write `digits.npz` and `weights.npz`.

Needs PyTorch and scikit-learn, and takes a few seconds.
"""

import numpy as np
import torch
from network import FOLDER, TRAINING, Digits, images
from sklearn.datasets import load_digits
from torch import nn

EPOCHS = 30
BATCH = 32


def main() -> None:
    """Write both files and print the accuracy."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(mode=True)
    digits = load_digits()
    np.savez_compressed(
        FOLDER / "digits.npz",
        inputs=digits.images.astype(np.uint8)[:, None],
        labels=digits.target.astype(np.uint8),
    )
    inputs, labels = images(), torch.from_numpy(digits.target)
    network = Digits()
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    steps = EPOCHS * -(-TRAINING // BATCH)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=steps)
    for _ in range(EPOCHS):
        for batch in torch.randperm(TRAINING).split(BATCH):
            loss = nn.functional.cross_entropy(network(inputs[batch]), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    network.eval()
    with torch.no_grad():
        right = network(inputs).argmax(1) == labels
    for name, part in (("training", right[:TRAINING]), ("test", right[TRAINING:])):
        print(f"{name}: {int(part.sum())} of {len(part)}")  # noqa: T201
    state = {name: value.numpy() for name, value in network.state_dict().items()}
    np.savez_compressed(FOLDER / "weights.npz", **state)


if __name__ == "__main__":
    main()
