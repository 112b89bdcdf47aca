"""Gestures, as an accelerometer on the wrist would record them; made with numpy."""

import numpy as np

CLASSES = ("circle", "shake", "still", "tap")


def gestures(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Windows [count, 3, 64] of x, y and z in g at 50 Hz, and their classes."""
    random = np.random.default_rng(seed)
    time = np.arange(64) / 50

    def draw(low: float, high: float) -> np.ndarray:
        return random.uniform(low, high, (count, 1))

    labels = random.integers(len(CLASSES), size=count)
    phase, strength = draw(0, 2 * np.pi), draw(0.2, 1)
    turn = 2 * np.pi * draw(0.8, 1.6) * time + phase
    # What each class moves; a still hand moves nothing.
    kinds = np.zeros((len(CLASSES), 3, count, 64))
    kinds[0, :2] = np.cos(turn), np.sin(turn)
    kinds[1, 0] = 1.5 * np.sin(2 * np.pi * draw(3, 7) * time + phase)
    since = time - draw(0.1, 1)
    kinds[3, 2] = 3 * np.exp(-since.clip(0) / 0.06) * np.cos(60 * since) * (since >= 0)
    motion = strength[:, None] * kinds[labels, :, np.arange(count)]
    # The motion and gravity have any direction.
    turns, _ = np.linalg.qr(random.normal(size=(count, 3, 3)))
    down = random.normal(size=(count, 3, 1))
    gravity = down / np.linalg.norm(down, axis=1, keepdims=True)
    noise = random.normal(0, 0.08, motion.shape)
    values = np.clip(turns @ motion + gravity + noise, -4, 4)
    return np.round(values, 2).astype(np.float32), labels
