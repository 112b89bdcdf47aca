"""No stage's result outlives what it was made of: every key of a profile in turn."""

from __future__ import annotations

import copy
import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
import tomli_w

from orchestrator.build import Build, BuildOptions, Project, inputs, load, open_build, prove, table
from orchestrator.build.product import remember
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT
from tests.tools import need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from orchestrator.targets.cores import Toolchain

pytestmark = pytest.mark.toolchain

_CUSTOM = """
- func: aten::sigmoid.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  kernels:
    - arg_meta: null
      kernel_name: {}::sigmoid_out
  sources: [op_sigmoid.cpp]
"""
BASE: dict[str, Any] = {
    "schema": 1,
    "name": "product",
    "target": {"cpu": "cortex-m55", "toolchain": "zig"},
    "models": [
        {"name": "kws", "path": "kws.pte"},
        {"name": "net", "path": "net.pte", "load": "prelinked"},
        {"name": "outside", "path": "outside.pte", "data": ["outside.ptd"]},
        {"name": "delegated", "path": "delegated.pte"},
        {"name": "digits", "path": "digits.pte"},
    ],
    "operators": {"include": ["aten::sigmoid.out"]},
    "kernels": {
        "libraries": ["cortex_m", "quantized", "portable"],
        "custom": [{"name": "mine", "functions": "mine/functions.yaml"}],
    },
    "delegates": [
        {
            "backend": "Elementwise",
            "namespace": "elementwise",
            "sources": ["elementwise.cpp"],
            "state": "12 B",
        }
    ],
}
"""A bit of everything, so that most keys change something."""

Edit: TypeAlias = "Callable[[dict[str, Any]], None]"


def _set(*keys: str | int, to: object) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        place: Any = document
        for key in keys[:-1]:
            place = place[key] if isinstance(key, int) else place.setdefault(key, {})
        place[keys[-1]] = to

    return edit


def _all(*edits: Edit) -> Edit:
    def edit(document: dict[str, Any]) -> None:
        for one in edits:
            one(document)

    return edit


def _regions(*regions: dict[str, object]) -> Edit:
    return _set("memory", "regions", to=list(regions))


_ITCM = {"name": "itcm", "size": "512 KiB", "origin": 0, "kind": "flash"}
_DTCM = {"name": "dtcm", "size": "512 KiB", "origin": 0x20000000}
_MINE = ("kernels", "custom", 0)


CHANGES: dict[str, Edit] = {
    "name": _set("name", to="other"),
    "target.cpu": _set("target", "cpu", to="cortex-m4"),
    "target.isa": _set("target", "isa", to="scalar"),
    "target.board": _set("target", "board", to="mps3-an547"),
    "target.optimize": _set("target", "optimize", to="debug"),
    "target.toolchain": _set("target", "toolchain", to="gnu"),
    "target.unaligned": _set("target", "unaligned", to=False),
    "target.nonsecure_entries": _set("target", "nonsecure_entries", to=True),
    "models.max_instructions": _set("models", 0, "max_instructions", to=7),
    "models.instances": _set("models", 0, "instances", to=2),
    "models.name": _set("models", 0, "name", to="words"),
    "models.path": _set("models", 1, "path", to="kws.pte"),
    "models.load": _set("models", 0, "load", to="prelinked"),
    "models.data": _set("models", 2, "data", to=["changed.ptd"]),
    "models.update": _set("models", 0, "update", to=True),
    "models.region": _set("models", 0, "region", to="sram"),
    "models.regions": _set("models", 0, "regions", to={"1": "sram"}),
    "models.io.quantized": _set("models", 0, "io", to={"quantized": True}),
    "models.weights.bits": _all(
        _set("models", 0, "load", to="prelinked"), _set("models", 0, "weights", to={"bits": 4})
    ),
    "models.weights.group": _all(
        _set("models", 0, "load", to="prelinked"),
        _set("models", 0, "weights", to={"bits": 4, "group": 32}),
    ),
    "models.tensors": _set("models", 0, "tensors", to=[{"tensor": "input 0", "region": "sram"}]),
    "operators.include": _set("operators", "include", to=["aten::tanh.out"]),
    "operators.include_yaml": _set("operators", "include_yaml", to=["more.yaml"]),
    # All kernels with all dtypes: more than the first flash has.
    "operators.all": _all(
        _set("operators", "all", to=True), _set("memory", "code", to="code_sram")
    ),
    "operators.overlap": _set("operators", "overlap", to="allow"),
    "operators.allow_missing": _set("operators", "allow_missing", to=["aten::mm.out"]),
    "dtypes.select": _set("dtypes", "select", to="all"),
    "dtypes.operators": _set("dtypes", "operators", to={"aten::sigmoid.out": ["Half"]}),
    "dtypes.compare": _set("dtypes", "compare", to=True),
    "kernels.libraries": _set(
        "kernels", "libraries", to=["portable", "cortex_m", "quantized", "mine"]
    ),
    "kernels.operators": _set("kernels", "operators", to={"aten::sigmoid.out": ["portable"]}),
    "kernels.custom.name": _set(*_MINE, "name", to="ours"),
    "kernels.custom.functions": _set(*_MINE, "functions", to="yours/functions.yaml"),
    "kernels.custom.sources": _set(*_MINE, "sources", to=["mine/more.cpp"]),
    "kernels.custom.include": _set(*_MINE, "include", to=["yours"]),
    "kernels.custom.defines": _set(*_MINE, "defines", to=["A=1"]),
    "kernels.custom.exports": _set(*_MINE, "exports", to=["start"]),
    "delegates.exports": _set("delegates", 0, "exports", to=["start"]),
    "delegates.backend": _all(
        _set("delegates", 0, "backend", to="Other"),
        _set("operators", "allow_missing", to=["Elementwise"]),
    ),
    "delegates.namespace": _set("delegates", 0, "namespace", to="other"),
    "delegates.sources": _set("delegates", 0, "sources", to=["mine/more.cpp"]),
    "delegates.include": _set("delegates", 0, "include", to=["mine"]),
    "delegates.defines": _set("delegates", 0, "defines", to=["A=1"]),
    "delegates.state": _set("delegates", 0, "state", to="16 B"),
    "passes.skip": _set("passes", "skip", to=["in_place", "fold_constants"]),
    "passes.fold_batch_norm": _set("passes", "fold_batch_norm", to=True),
    "scratch.policy": _set("scratch", "policy", to="keep"),
    "scratch.runtime_check": _set("scratch", "runtime_check", to="always"),
    "memory.planner": _set("memory", "planner", to="keep"),
    "memory.alignment": _set("memory", "alignment", to=64),
    "memory.sections.weights": _set("memory", "sections", "weights", to=".qspi"),
    "memory.sections.code": _set("memory", "sections", "code", to=".itcm"),
    "memory.sections.arenas": _set("memory", "sections", "arenas", to=".bss.dtcm"),
    "memory.code": _set("memory", "code", to="dtcm"),
    "memory.concurrency": _set("memory", "concurrency", to="sequential"),
    "memory.regions.name": _regions({"name": "sram", "size": "1 MiB"}),
    "memory.regions.size": _regions({"name": "dtcm", "size": "128 KiB"}),
    "memory.regions.origin": _regions(_ITCM, {**_DTCM, "origin": 0x20010000}),
    "memory.regions.kind": _regions(_ITCM, {**_DTCM, "kind": "ram"}),
    "registry.max_kernels": _set("registry", "max_kernels", to=100),
    "trace.enable": _set("trace", "enable", to=True),
    "integrity.check": _set("integrity", "check", to="load"),
    "budget.flash": _set("budget", "flash", to="4 MiB"),
    "budget.ram": _set("budget", "ram", to="4 MiB"),
}

ELSEWHERE = {
    # They say how to read the rest.
    "schema": "one value",
    "extends": "tests/unit/profile/test_load.py",
    # Never in outputs.
    "description": "for people",
    # In the SBOM alone: tests/unit/provenance/test_documents.py.
    "version": "and in products that take updates",
    **dict.fromkeys(
        (
            f"models.card.{key}"
            for key in ("license", "authors", "datasets", "intended_use", "limitations")
        ),
        "SBOM",
    ),
    **dict.fromkeys(
        ("target.flash_wait_states", "target.data_wait_states"),
        "for estimates: tests/unit/running/test_costs.py",
    ),
    "target.float_abi": "the core here has one: tests/qemu/test_targets.py",
    "target.images": "made of what was linked: tests/qemu/test_images.py",
    "target.via": "the board here has no UART: tests/qemu/test_uart.py",
    "memory.weights": "needs two flash memories: tests/qemu/test_targets.py",
    **dict.fromkeys(
        (f"matrix.{key}" for key in ("enable", "cpus", "toolchains", "optimize")),
        "of workspaces: tests/unit/workspace",
    ),
    "delegates.named_data": "needs some: tests/integration/test_named_data.py",
    "models.shared_state": "several methods: tests/integration/test_kept_state.py",
    # What `test` runs, no part of a product.
    "test.runs": "tests/integration/test_judging.py",
    "test.seed": "likewise",
    "memory.fuse": "int8 images: tests/qemu/test_rows.py",
    "memory.max_slowdown": "int8 images: tests/qemu/test_rows.py",
    "memory.recompute": "likewise, and needs fuse: tests/qemu/test_rows.py",
    "schedule.max_step_cycles": "int8 calls: tests/qemu/test_bounded_steps.py",
    # Of models given as Python, whose program counts: tests/integration/test_export.py.
    "models.source": "export",
    "models.lowering": "export",
    "models.reads": "export",
    "models.quantize.activations": "export",
    "models.quantize.weights": "export",
    "models.quantize.dynamic": "export",
    "models.vela.system_config": "export",
    "models.vela.memory_mode": "export",
    "models.vela.config": "export",
    "models.vela.flags": "export",
}

MEASURED = {"budget.flash", "budget.ram", "dtypes.compare"}
"""Keys that only what measures, or reads that, looks at."""
WITHOUT_EFFECT = {
    "target.board",  # the default
    "operators.overlap",  # likewise
}


def _leaves(schema: Mapping[str, Any], node: Any, path: str = "") -> Iterator[str]:
    """Keys of the JSON Schema, joined with dots."""
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    if node.get("type") == "array" and "items" in node:
        node = node["items"]
        yield from _leaves(schema, node, path)
    elif "properties" in node:
        for name, value in node["properties"].items():
            yield from _leaves(schema, value, f"{path}.{name}".removeprefix("."))
    elif any("$ref" in option for option in node.get("anyOf", ())):
        for option in node["anyOf"]:
            if "$ref" in option:
                yield from _leaves(schema, option, path)
    else:
        yield path


def test_every_key_of_the_profile_is_changed_here() -> None:
    schema = json.loads((ROOT / "schema" / "profile.schema.json").read_text())
    found = set(_leaves(schema, schema))
    found -= {leaf for leaf in found if leaf.startswith("models.tensors.")}
    assert found | {"models.tensors"} == {*CHANGES, *ELSEWHERE}


@dataclass(frozen=True, kw_only=True)
class Built:
    """Notes of a build, as far as no compiler is needed for them.

    Args:
        folder: Of the profile; `out` in it has the notes.
        toolchain: The compiler.
        results: What the stages gave.
    """

    folder: Path
    toolchain: Toolchain
    results: dict[str, object]


def _write(folder: Path, document: dict[str, Any]) -> Path:
    profile = folder / f"{document['name']}.toml"
    profile.write_text(tomli_w.dumps(document))
    return profile


def _results(build: Build) -> dict[str, object]:
    """All that compiling begins with, and what the lock says of it."""
    prove(build)
    return {
        "generated": {f.path: f.text for f in build[table.GENERATE]},
        "models": build[table.REPLAN].files,
        "ninja": build[table.COMMANDS].ninja,
        "exports": build[table.COMMANDS].exports,
        "sections": build[table.COMMANDS].sections,
        "firmware": build[table.FIRMWARE_FACTS],
        "memory": build[table.MEMORY_FACTS],
        "warnings": build[table.WARNINGS],
    }


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    need_toolchain("cortex-m55", "zig")
    folder = tmp_path_factory.mktemp("stale")
    for name, file in {
        "kws.pte": CORPUS / "kws_dscnn_int8_m55" / "model.pte",
        "net.pte": CORPUS / "mlp" / "model.pte",
        "outside.pte": CORPUS / "external_constants" / "model.pte",
        "outside.ptd": next((CORPUS / "external_constants").glob("*.ptd")),
        "digits.pte": ROOT / "examples" / "digits" / "digits_float.pte",
        "delegated.pte": ROOT / "examples" / "delegate" / "model.pte",
        "elementwise.cpp": ROOT / "examples" / "delegate" / "elementwise.cpp",
    }.items():
        shutil.copyfile(file, folder / name)
    data = bytearray((folder / "outside.ptd").read_bytes())
    data[0x210] ^= 1  # an item of a constant
    (folder / "changed.ptd").write_bytes(data)
    for name in ("mine", "yours"):
        (folder / name).mkdir()
        (folder / name / "functions.yaml").write_text(_CUSTOM.format(name))
        (folder / name / "op_sigmoid.cpp").write_text("")
    (folder / "mine" / "more.cpp").write_text("")
    (folder / "more.yaml").write_text("- op: tanh.out\n  kernels: []\n")
    project = Project(
        load(_write(folder, BASE)), BuildOptions(out=folder / "out", write_lock=False)
    )
    build = open_build(project)
    results = _results(build)
    remember(project, build, build.plan(), {})  # as a build does at its end
    return Built(folder=folder, toolchain=build[inputs.TOOLCHAIN], results=results)


@pytest.mark.parametrize("key", CHANGES)
def test_a_changed_key_leaves_nothing_stale(built: Built, tmp_path: Path, key: str) -> None:
    document = copy.deepcopy(BASE)
    CHANGES[key](document)
    if document["target"]["toolchain"] == "gnu":
        need_toolchain("cortex-m55", "gnu")
    profile = _write(built.folder, document)
    shutil.copytree(built.folder / "out", tmp_path / "warm")
    found, plans = [], []
    for out in ("warm", "fresh"):
        options = BuildOptions(out=tmp_path / out, write_lock=False)
        build = open_build(Project(load(profile), options))
        if document["target"]["toolchain"] == "zig":
            build = build.replace({inputs.TOOLCHAIN: built.toolchain})
        plans.append(build.plan())
        found.append(_results(build))
    warm, fresh = found
    assert warm == fresh
    if key in WITHOUT_EFFECT | MEASURED:
        assert fresh == built.results
    else:
        assert fresh != built.results
        assert plans[0].stage("compile").reason
    if key not in WITHOUT_EFFECT:
        # Whether a budget is kept is found from what was measured, each time.
        stage = "lock" if key.startswith("budget.") else "measure"
        assert plans[0].stage(stage).reason
