"""A thousand products: 92 model sets for ten cores, uniform or varied."""

from __future__ import annotations

import shutil
from itertools import combinations, islice
from typing import TYPE_CHECKING

from benchmarks.product import CORPUS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CORES = (
    *("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m23"),
    *("cortex-m33", "cortex-m35p", "cortex-m55", "cortex-m85", "rv32imac"),
)
MODELS = (
    *("add_mul", "mlp", "linear_softmax", "small_cnn", "mul_add_broadcast"),
    *("views", "op_zoo_unary", "optional_arguments", "remainder_signs"),
    *("embedding_argmax", "list_arguments", "half_mlp", "bool_logic"),
    "kws_dscnn_fp32",
)
SETS = 92


def model_sets() -> Iterator[tuple[str, ...]]:
    """Models of each product: one or two."""
    every = (names for size in (1, 2) for names in combinations(MODELS, size))
    return islice(every, SETS)


def write_fleet(folder: Path, *, varied: bool) -> int:
    """Write the workspace; returns how many products it has.

    Args:
        folder: New or empty.
        varied: Compilers, optimization, loading and hooks differ from product to
            product; otherwise optimization only.
    """
    (folder / "products").mkdir(parents=True)
    (folder / "models").mkdir()
    for name in MODELS:
        shutil.copyfile(CORPUS / name / "model.pte", folder / "models" / f"{name}.pte")
    cores = ", ".join(f'"{core}"' for core in CORES)
    (folder / "orchestrator.toml").write_text(
        'schema = 1\n[workspace]\nprofiles = ["products/*.toml"]\n'
        + ("" if varied else f"[matrix]\ncpus = [{cores}]\n")
    )
    for index, names in enumerate(model_sets()):
        if not varied:
            _write(folder, f"p{index:02}", names, _target(index))
            continue
        for place, core in enumerate(CORES):
            # Products of one core are as varied as those of all.
            mixed = index + index * len(CORES) + place
            text = f'cpu = "{core}"\n{_target(mixed)}'
            text += f'toolchain = "{"gnu" if mixed % 10 in {1, 4, 7} else "zig"}"\n'
            text += "[trace]\nenable = true\n" if mixed % 7 == 0 else ""
            load = "prelinked" if mixed % 2 else "pte"
            _write(folder, f"v{index:02}{place}", names, text, load=load)
    return SETS * len(CORES)


def _target(number: int) -> str:
    return f'optimize = "{"speed" if number % 3 == 0 else "size"}"\n'


def _write(
    folder: Path, name: str, models: tuple[str, ...], target: str, *, load: str = "pte"
) -> None:
    text = f'schema = 1\nname = "{name}"\n[target]\n{target}'
    for model in models:
        text += f'[[models]]\nname = "{model}"\npath = "../models/{model}.pte"\n'
        text += f'load = "{load}"\n'
    (folder / "products" / f"{name}.toml").write_text(text)
