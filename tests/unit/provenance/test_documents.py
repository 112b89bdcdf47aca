"""SBOM and provenance of builds without a compiler: schema, content, other readers."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from orchestrator.build import build_product
from orchestrator.build.checking import check_lock, identify
from orchestrator.errors import LockError
from orchestrator.profile.lowering_tables import CardTable
from orchestrator.provenance.sbom import (
    SBOM,
    STATEMENT,
    SbomModel,
    SbomProduct,
    document_bytes,
    sbom,
    statement,
    tree_digest,
)
from tests.unit.build.fake_project import PROFILE, project_in, write_project
from tests.unit.build.fakes import FakeShell

if TYPE_CHECKING:
    from pathlib import Path

CARD = """
[models.card]
license = "cc-by-4.0 and mit"
authors = ["Audio team"]
datasets = ["Speech Commands v2"]
intended_use = "Twelve words"
limitations = "Children"
"""

READ = """
import json, sys
from lib4sbom.parser import SBOMParser
reader = SBOMParser()
reader.parse_file(sys.argv[1])
print(json.dumps([reader.get_packages(), reader.get_relationships()]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_project(tmp_path, more=CARD)
    profile = tmp_path / "demo.toml"
    text = profile.read_text().replace('name = "demo"', 'name = "demo"\nversion = "1.4.0"')
    profile.write_text(text)
    return tmp_path


def _built(folder: Path, name: str) -> dict[str, Any]:
    build_product(project_in(folder), FakeShell().shell)
    document: dict[str, Any] = json.loads((folder / "out" / name).read_text())
    return document


def _valid(document: dict[str, Any]) -> None:
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document))
    assert problem is None, problem


def test_the_sbom_of_a_build(folder: Path) -> None:
    bom = _built(folder, SBOM)
    _valid(bom)
    firmware = bom["metadata"]["component"]
    assert (firmware["type"], firmware["version"]) == ("firmware", "1.4.0")
    elf = (folder / "out/firmware.elf").read_bytes()
    assert firmware["hashes"][0]["content"] == hashlib.sha256(elf).hexdigest()
    model, ours, *_ = bom["components"]
    assert model["type"] == "machine-learning-model"
    net = (folder / "net.pte").read_bytes()
    assert model["hashes"][0]["content"] == hashlib.sha256(net).hexdigest()
    assert model["licenses"] == [{"expression": "CC-BY-4.0 AND MIT"}]
    assert model["authors"] == [{"name": "Audio team"}]
    card = model["modelCard"]
    assert card["modelParameters"]["datasets"][0]["name"] == "Speech Commands v2"
    assert card["considerations"] == {
        "useCases": ["Twelve words"],
        "technicalLimitations": ["Children"],
    }
    assert card["modelParameters"]["inputs"][0]["format"].startswith("forward 0: Float")
    names = [file["name"] for file in ours["components"]]
    # The linker's map of the fakes shows these of the many that were read.
    assert "runtime/app/runner.cpp" in names
    assert not any(name.endswith((".h", ".yaml")) for name in names)
    report = json.loads((folder / "out/report.json").read_text())
    linked = {c["name"] for c in report["contributors"] if c["kind"] == "kernel"}
    kernels = {n.removeprefix("kernels/")[:-4] for n in names if n[:7] == "kernels"}
    assert kernels <= linked
    (formulation,) = bom["formulation"]
    zig, *_ = formulation["components"]
    assert (zig["name"], zig["components"][0]["hashes"][0]["content"]) == ("zig", "a" * 64)


def test_another_tool_reads_the_sbom(folder: Path) -> None:
    _built(folder, SBOM)
    # It leaves files open, which would be warnings here.
    command = [sys.executable, "-W", "ignore", "-c", READ, str(folder / "out" / SBOM)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    packages, links = json.loads(done.stdout)
    found = {(p["type"], p["name"]): p for p in packages}
    assert found["MACHINE-LEARNING-MODEL", "net"]["licenseconcluded"]
    assert found["LIBRARY", "pte-orchestrator"]["licenseconcluded"] == "Apache-2.0"
    assert ("demo", "net") in {(link["source"], link["target"]) for link in links}


def test_the_statement_of_a_build(folder: Path) -> None:
    made = _built(folder, STATEMENT)
    assert made["_type"] == "https://in-toto.io/Statement/v1"
    assert made["predicateType"] == "https://slsa.dev/provenance/v1"
    subjects = {s["name"]: s["digest"]["sha256"] for s in made["subject"]}
    assert {"firmware.elf", "libdemo.a", "include/demo.h", "models/net.pte"} <= {*subjects}
    assert not {SBOM, STATEMENT, "build.ninja", "report.html"} & {*subjects}
    for name, found in subjects.items():
        data = (folder / "out" / name).read_bytes()
        assert hashlib.sha256(data).hexdigest() == found
    definition = made["predicate"]["buildDefinition"]
    assert definition["externalParameters"] == {"name": "demo", "profile": ["demo.toml"]}
    read = {d["name"]: d for d in definition["resolvedDependencies"]}
    profile = (folder / "demo.toml").read_bytes()
    assert read["demo.toml"]["digest"]["sha256"] == hashlib.sha256(profile).hexdigest()
    assert read["toolchain zig"]["digest"] == {"sha256": "a" * 64}
    assert read["numpy"]["uri"].startswith("pkg:pypi/numpy@")
    assert "model net" in read


def test_the_lock_holds_both(folder: Path) -> None:
    _built(folder, SBOM)
    lock = folder / "demo.lock"
    assert identify(folder / "out" / SBOM, lock).kind == "SBOM"
    assert identify(folder / "out" / STATEMENT, lock).kind == "provenance"
    check_lock(project_in(folder), FakeShell().shell)
    profile = folder / "demo.toml"
    profile.write_text(profile.read_text().replace("Children", "Whispers"))
    with pytest.raises(LockError):
        check_lock(project_in(folder), FakeShell().shell)


def test_a_comment_changes_the_statement_and_compiles_nothing(folder: Path) -> None:
    before = _built(folder, SBOM), _built(folder, STATEMENT)
    profile = folder / "demo.toml"
    profile.write_text(f"# new\n{profile.read_text()}")
    fakes = FakeShell()
    build_product(project_in(folder), fakes.shell)
    assert fakes.folder.runs == []
    bom, made = (json.loads((folder / "out" / name).read_text()) for name in (SBOM, STATEMENT))
    assert bom == before[0]
    assert made != before[1]
    assert made["subject"] == before[1]["subject"]


def test_equal_builds_give_equal_documents(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "deeper"
    write_project(other, more=CARD)
    (other / "demo.toml").write_bytes((folder / "demo.toml").read_bytes())
    for name in (SBOM, STATEMENT):
        assert _built(folder, name) == _built(other, name)
    assert str(tmp_path) not in (folder / "out" / STATEMENT).read_text()


def test_a_profile_that_says_nothing_has_a_valid_sbom(tmp_path: Path) -> None:
    write_project(tmp_path)
    bom = _built(tmp_path, SBOM)
    _valid(bom)
    assert "licenses" not in bom["components"][0]
    assert "considerations" not in bom["components"][0]["modelCard"]
    assert "version" not in PROFILE


def test_models_given_as_python_and_libraries_of_the_user() -> None:
    product = SbomProduct(
        name="demo",
        version="1.0.0",
        description="",
        sha256="1" * 64,
        models=(
            SbomModel(
                name="net",
                sha256="2" * 64,
                files=(("file net.py", "3" * 64), ("file net.py", "4" * 64)),
                inputs=(),
                outputs=(),
                dtypes=("Char", "Float"),
                facts=(("lowering", "cortex-m"), ("quantize", "int8")),
                card=CardTable(),
            ),
        ),
        sources=(),
        user_sources=(
            ("kernels/mine", (("kernels/mine/op.cpp", "5" * 64),)),
            ("delegates/Npu", (("delegates/Npu/run.cpp", "6" * 64),)),
        ),
        toolchain_parts=("libgcc", "start-up files"),
        toolchain=("gnu", "12.2"),
        programs=(("c++", "7" * 64), ("ld", "8" * 64)),
        python={"pte-orchestrator": "0.1.0", "torch_x": "2"},
    )
    bom: dict[str, Any] = json.loads(document_bytes(sbom(product)))
    _valid(bom)
    model, mine, npu, libgcc, start_up = bom["components"]
    assert [f["name"] for f in model["components"]] == ["file net.py"] * 2
    properties = {p["name"]: p["value"] for p in model["properties"]}
    assert properties["orchestrator:quantize"] == "int8"
    assert properties["orchestrator:dtypes"] == "Char Float"
    assert "licenses" not in mine | npu | start_up
    assert "GCC-exception" in libgcc["licenses"][0]["expression"]
    assert bom["formulation"][0]["components"][-1]["purl"] == "pkg:pypi/torch-x@2"


def test_digests_of_exported_files_are_dependencies() -> None:
    made: Any = statement(
        profile={"name": "demo", "file ../base.toml": "0" * 64},
        models={"net": "1" * 64},
        exports={
            "net source": "net.py:build",
            "net file net.py": "2" * 64,
            "net file data": f"{'3' * 64} {'4' * 64}",
        },
        sources={"a": "5" * 64},
        target={"cpu": "host"},
        toolchain={"name": "gnu", "sha256 c++": "6" * 64},
        python={"pte-orchestrator": "0.1.0"},
        outputs={},
    )
    definition = made["predicate"]["buildDefinition"]
    assert definition["internalParameters"]["exports"] == {"net source": "net.py:build"}
    found = [
        (d["name"], d["digest"]["sha256"][:1])
        for d in definition["resolvedDependencies"]
        if "digest" in d
    ]
    assert found[:-1] == [
        ("../base.toml", "0"),
        ("model net", "1"),
        ("model net file data", "3"),
        ("model net file data", "4"),
        ("model net file net.py", "2"),
        ("toolchain c++", "6"),
    ]


def test_the_digest_of_sources_is_what_sha256sum_gives() -> None:
    files = {"b/c": "2" * 64, "a": "1" * 64}
    lines = f"{'1' * 64}  a\n{'2' * 64}  b/c\n"
    assert tree_digest(files) == hashlib.sha256(lines.encode()).hexdigest()
