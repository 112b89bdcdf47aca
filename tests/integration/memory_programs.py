"""Products of the programs in tests/data/memory, loaded and prelinked."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.shell.sources import library_names
from tests.product import Product
from tests.tools import need_emulator, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pytest

DATA = Path(__file__).parents[1] / "data" / "memory"
LOADS = {"": "pte", "_p": "prelinked"}
"""What the name of a model ends in, by how it is loaded."""


def memory_product(
    folder: Path,
    cases: Iterable[str],
    *,
    cpu: str = "host",
    settings: Mapping[str, str] | None = None,
) -> Product:
    """A product `given` that has each program loaded, and prelinked as well.

    Args:
        folder: For profile, programs and outputs.
        cases: Folders of the data.
        cpu: Of the target.
        settings: By case: lines of its models.
    """
    folder.mkdir(exist_ok=True)
    text = f'schema = 1\nname = "given"\n[target]\ncpu = "{cpu}"\ntoolchain = "zig"\n'
    text += f"[kernels]\nlibraries = {json.dumps(library_names()[::-1])}\n"
    for case in cases:
        shutil.copyfile(DATA / case / "model.pte", folder / f"{case}.pte")
        for end, load in LOADS.items():
            text += f'[[models]]\nname = "{case}{end}"\npath = "{case}.pte"\n'
            text += f'load = "{load}"\n{(settings or {}).get(case, "")}'
    (folder / "given.toml").write_text(text)
    return Product(profile=folder / "given.toml", out=folder / "out")


def check_runs(
    product: Product, case: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, bytes]:
    """Outputs of a case, which are those expected, and the same however loaded."""
    found: list[dict[str, bytes]] = []
    folder.mkdir(exist_ok=True)
    for end in LOADS:
        facts = json.loads((DATA / case / "case.json").read_text())
        for call in facts["runs"]:
            call["model"] = case + end
            for value in (*call["inputs"], *call["outputs"]):
                value["file"] = str(DATA / case / value["file"])
        scenario = folder / f"{case}{end}.json"
        scenario.write_text(json.dumps(facts))
        outputs = folder / f"{case}{end}"
        capsys.readouterr()
        options = ("--scenario", str(scenario), "--output-dir", str(outputs))
        code = product.run("run", "--json", *options)
        said = capsys.readouterr()
        assert code == 0, said.err + said.out
        document = json.loads(said.out)
        assert len(document["calls"]) == len(facts["runs"]) > 0
        for done in document["calls"]:
            assert done["outputs"]
            assert all(output["comparison"]["ok"] for output in done["outputs"])
        found.append({path.name: path.read_bytes() for path in outputs.iterdir()})
    assert found[0] == found[1]
    return found[0]


def problems_of(product: Product, capsys: pytest.CaptureFixture[str]) -> list[Any]:
    """What `check` says of a product that cannot be built."""
    capsys.readouterr()
    assert product.run("check", "--json") != 0
    found = json.loads(capsys.readouterr().out)["diagnostics"]
    assert isinstance(found, list)
    return found


def check_board(
    host: Product, cases: Iterable[str], cpu: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> Product:
    """The product of these cases on a board, which gives the outputs of the host's."""
    need_toolchain(cpu, "zig")
    need_emulator(cpu)
    product = memory_product(folder, cases, cpu=cpu)
    assert product.run("build") == 0
    for case in cases:
        outputs = check_runs(product, case, folder / cpu, capsys)
        assert outputs == check_runs(host, case, folder / "host", capsys)
    return product
