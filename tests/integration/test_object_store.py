"""Objects of other products: the same bytes, whatever state the store is in."""

from __future__ import annotations

import shutil
import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from orchestrator.cli.main import run
from orchestrator.emit.compile.object_keys import _Includes
from orchestrator.shell import compile_folder
from orchestrator.shell.ninja import ninja_program
from orchestrator.shell.object_store import ObjectStore, object_store
from orchestrator.shell.settings import LAUNCHER
from orchestrator.shell.settings import OBJECTS as VARIABLE
from tests.conftest import CORPUS
from tests.product import build_product, compiled_objects, make_product
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


pytestmark = pytest.mark.toolchain


@pytest.fixture(autouse=True)
def own_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store's folder; other tests' products do not fill it."""
    monkeypatch.setenv("ORCHESTRATOR_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(LAUNCHER, raising=False)
    monkeypatch.delenv(VARIABLE, raising=False)
    return tmp_path / "cache" / "objects"


def test_outputs_are_the_same_cold_warm_damaged_swapped_and_without(
    tmp_path: Path, own_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "off")
    expected = build_product(tmp_path / "off").outputs()
    assert not own_store.exists()
    monkeypatch.delenv(VARIABLE)
    cold = build_product(tmp_path / "cold")
    store = object_store()
    assert store is not None
    assert store.contents().entries == len(compiled_objects(cold.out)) - 3
    warm = build_product(tmp_path / "deep" / "er" / "warm")
    assert {name.split("/")[1] for name in compiled_objects(warm.out)} == {"gen"}
    for file in (own_store / "cas").glob("*/*"):
        file.write_bytes(file.read_bytes()[:-1])
    damaged = build_product(tmp_path / "damaged")
    assert compiled_objects(damaged.out) == compiled_objects(cold.out)
    entries = sorted((own_store / "ac").glob("*/*"))
    texts = [entry.read_bytes() for entry in entries]
    for entry, text in zip(entries, texts[1:] + texts[:1], strict=True):
        entry.write_bytes(text)
    swapped = build_product(tmp_path / "swapped")
    assert compiled_objects(swapped.out) == compiled_objects(cold.out)
    for product in (cold, warm, damaged, swapped):
        assert product.outputs() == expected
    assert store.damaged() == []


def test_what_came_from_the_store_is_compiled_where_it_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ninja does not know what a restored object is made of."""
    first = build_product(tmp_path / "first")
    expected = first.outputs()
    second = build_product(tmp_path / "second")
    profile = second.profile.read_text()
    second.profile.write_text(profile.replace('"gnu"', '"gnu"\noptimize = "speed"'))
    assert second.run("build") == 0
    assert second.outputs() != expected
    monkeypatch.setenv(VARIABLE, "off")
    second.profile.write_text(profile)
    assert second.run("build") == 0
    assert second.outputs() == expected


def test_frozen_builds_and_verify_compile_everything(tmp_path: Path) -> None:
    product = build_product(tmp_path / "first")
    store = object_store()
    assert store is not None
    # Valid entries, but not what the compiler makes.
    for entry in (store.folder / "ac").glob("*/*"):
        outputs = store.get(entry.name)
        assert outputs is not None
        store.put(entry.name, {**outputs, ".o": b"not an object"})
    again = make_product(tmp_path / "again", "add_mul", cpu="cortex-m4", toolchain="gnu")
    again.lock.write_bytes(product.lock.read_bytes())
    assert again.run("build", "--frozen") == 0
    assert again.run("verify") == 0


def test_keys_cover_what_compilers_read_and_have_one_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the compiler's own list of the files that it read."""
    seen: list[tuple[Mapping[str, str], dict[str, set[str]]]] = []
    closures: dict[str, set[str]] = {}
    closure = _Includes.closure

    def noted(self: _Includes, unit: object) -> set[str] | None:
        found = closure(self, unit)  # type: ignore[arg-type]
        closures[unit.object] = found or set()  # type: ignore[attr-defined]
        return found

    def nothing(_: object, keys: Mapping[str, str], __: object) -> frozenset[str]:
        seen.append((keys, dict(closures)))
        return frozenset()

    monkeypatch.setattr(_Includes, "closure", noted)
    monkeypatch.setattr(compile_folder.NinjaFolder, "_restored", nothing)
    contents: dict[str, bytes] = {}
    shared = 0
    for number, (case, toolchain) in enumerate(
        (("add_mul", "zig"), ("linear_softmax", "zig"), ("add_mul", "gnu"))
    ):
        product = build_product(tmp_path / str(number), case, toolchain=toolchain)
        keys, read = seen[-1]
        work = product.out / ".work"
        for name, found in _read_by_compiler(work).items():
            if name in keys:
                assert found <= read[name], name
                data = (work / name).read_bytes()
                shared += keys[name] in contents
                assert contents.setdefault(keys[name], data) == data, name
    assert shared > 10


def _read_by_compiler(work: Path) -> dict[str, set[str]]:
    done = subprocess.run(
        [ninja_program(), "-t", "deps"], cwd=work, capture_output=True, text=True, check=True
    )
    found: dict[str, set[str]] = {}
    name = ""
    for line in done.stdout.splitlines():
        if line.startswith("    "):
            if not line.startswith("    /"):
                found[name].add(line.strip())
        elif line:
            name = line.partition(":")[0]
            found[name] = set()
    return found


def test_products_that_build_at_once_compile_each_object_once(
    tmp_path: Path, own_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_toolchain("cortex-m4", "gnu")
    names = ("one", "two", "six")
    (tmp_path / "orchestrator.toml").write_text(
        'schema = 1\n[workspace]\nprofiles = ["*.toml"]\n'
        'exclude = ["orchestrator.toml"]\n'
        '[defaults.target]\ncpu = "cortex-m4"\ntoolchain = "gnu"\n'
    )
    shutil.copy(CORPUS / "add_mul" / "model.pte", tmp_path / "model.pte")
    for name in names:
        (tmp_path / f"{name}.toml").write_text(
            f'schema = 1\nname = "{name}"\n[[models]]\nname = "model"\npath = "model.pte"\n'
        )
    monkeypatch.chdir(tmp_path)
    assert run(["build", "-j2"]) == 0
    logs = [compiled_objects(tmp_path / "build" / name) for name in names]
    compiled = Counter(name for log in logs for name in log)
    shared = {name: n for name, n in compiled.items() if "/gen/" not in name}
    assert set(shared.values()) == {1}
    # Two processes began together, and both had something to do.
    assert sum(bool(log & shared.keys()) for log in logs) >= 2
    store = ObjectStore(own_store)
    assert store.contents().entries == len(shared)
    assert store.damaged() == []
