"""Products whose calls the build has proved: checks of data stay, others go."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np
import pytest

from tests.conftest import CORPUS
from tests.integration.test_corpus import corpus_product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from pathlib import Path

    from tests.product import Product

PROVED = "-DORCH_PROVED_CALLS=1"

pytestmark = pytest.mark.toolchain


def _built(folder: Path, *cases: str, load: str = "prelinked", extra: str = "") -> Product:
    need_toolchain("host", "zig")
    product = corpus_product(folder, "product", cases, load=load, extra=extra)
    assert product.run("build") == 0
    return product


def _is_proved(product: Product) -> bool:
    """Whether kernels, and nothing else, are compiled without checks of arguments."""
    commands = json.loads((product.out / "compile_commands.json").read_text())
    with_flag = {c["file"] for c in commands if PROVED in str(c)}
    kernels = {c["file"] for c in commands if "/kernels/" in c["file"]}
    assert kernels
    assert with_flag in (set(), kernels)
    return bool(with_flag)


@pytest.mark.parametrize(
    ("cases", "load", "proved"),
    [
        (("mlp", "small_cnn"), "prelinked", True),
        (("mlp", "small_cnn"), "pte", False),
        (("mlp", "embedding_argmax"), "prelinked", False),  # indices are an input
        (("dynamic_batch",), "prelinked", False),
        (("cond_branch",), "prelinked", False),
    ],
)
def test_checks_go_if_every_call_is_proved(
    tmp_path: Path, cases: tuple[str, ...], load: str, *, proved: bool
) -> None:
    assert _is_proved(_built(tmp_path, *cases, load=load)) == proved


def test_an_index_out_of_range_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    product = _built(tmp_path, "embedding_argmax")
    np.save(tmp_path / "tokens.npy", np.full((2, 7), 50, np.int64))
    given = {
        "kind": "tensor",
        "file": "tokens.npy",
        "dtype": "int64",
        "shape": [2, 7],
        "dim_order": [0, 1],
    }
    (case,) = json.loads((CORPUS / "embedding_argmax" / "case.json").read_text())["runs"][:1]
    folder = CORPUS / "embedding_argmax"
    outputs = [o | {"file": str(folder / o["file"])} for o in case["outputs"]]
    run = case | {"inputs": [given], "outputs": outputs}
    scenario = {"tolerance": {"atol": 0, "rtol": 0}, "runs": [run]}
    (tmp_path / "scenario.json").write_text(json.dumps(scenario))
    capsys.readouterr()
    code = product.run("run", "--scenario", str(tmp_path / "scenario.json"))
    assert code != 0
    assert "InvalidArgument" in "".join(capsys.readouterr())
