"""Writes the folders here; run with datasets 5.2.0, pillow and soundfile.

`mixed` has a column of each kind, in two files; `flowers` has two data sets.
"""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import soundfile
from datasets import Array2D, Audio, ClassLabel, Dataset, DatasetDict, Features, Image, List, Value
from PIL import Image as Picture

HERE = Path(__file__).parent
COUNT = 5


def recording(number: int) -> bytes:
    """Eight values, a multiple of 1/16 each."""
    file = io.BytesIO()
    values = np.full(8, number / 16, np.float32)
    soundfile.write(file, values, 16_000, format="WAV", subtype="PCM_16")
    return file.getvalue()


def main() -> None:
    """Write both folders."""
    mixed = {
        "image": [
            Picture.fromarray(np.full((2, 3, 3), number, np.uint8)) for number in range(COUNT)
        ],
        "clip": [{"bytes": recording(n), "path": None} for n in range(COUNT)],
        "window": [[number / 2, 1.0, 2.0] for number in range(COUNT)],
        "grid": [[[number, 2], [3, 255]] for number in range(COUNT)],
        "age": list(range(COUNT)),
        "word": ["no"] * COUNT,
        "sign": [0, 1, 1, 0, -1],
    }
    features = Features(
        {
            "image": Image(),
            "clip": {"bytes": Value("binary"), "path": Value("string")},
            "window": List(Value("float32")),
            "grid": Array2D((2, 2), "uint8"),
            "age": Value("int64"),
            "word": Value("string"),
            "sign": ClassLabel(names=["up", "down"]),
        }
    )
    data = Dataset.from_dict(mixed, features=features)
    # Given as such, recordings would need torchcodec.
    data = data.cast(Features({**features, "clip": Audio()}))
    data.save_to_disk(str(HERE / "mixed"), num_shards=2)
    flowers = Dataset.from_dict(
        {"width": [1.5, 2.0, 0.25], "size": [3, 1, 2], "kind": ["rose", "iris", "rose"]}
    )
    both = DatasetDict({"train": flowers, "test": flowers.select([2, 1])})
    both.save_to_disk(str(HERE / "flowers"))


main()
