"""What commands write to stdout, and their JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.cli.main import run
from orchestrator.targets import cores as targets
from tests.integration.workspace import CASE, SCENARIO, Build, Workspace

if TYPE_CHECKING:
    from pathlib import Path


def _shape(value: object) -> object:
    """Keys at all depths; lists are that of their first item."""
    if isinstance(value, dict):
        return {key: _shape(item) for key, item in value.items()}
    if isinstance(value, list) and value:
        return [_shape(value[0])]
    return None


def _keys(*names: str, **nested: object) -> dict[str, object]:
    return dict.fromkeys(names) | nested


COUNTS = _keys("calls", "values", "constant_bytes")
PASSES = _keys(
    *("model", "method"),
    passes=[_keys("name", "skipped", "changed", notes=None, before=COUNTS, after=COUNTS)],
)
VALUE = _keys("kind", "dtype", "sizes", "dim_order", "dynamic")
ARENA = _keys(
    *("model", "method", "memory_id", "size_bytes", "lower_bound_bytes"),
    *("gap_percent", "file_bytes"),
)
DOCUMENTS: dict[str, object] = {
    "build": {
        "builds": [
            _keys(
                *("profile", "folder", "lock", "lock_changed", "flash_bytes"),
                *("flash_bytes_without_models", "ram_bytes", "missing"),
                dtype_comparison=None,
                missing=None,
                stages=[_keys("stage", "ran", "reason")],
                outputs=_keys(
                    *("firmware.elf", "include/orch/sizes.h", "include/orch/status.h"),
                    "include/product.h",
                    *("libproduct.a", "models/model.pte", "provenance.intoto.json"),
                    *("report.json", "sbom.cdx.json"),
                ),
            )
        ]
    },
    "plan": _keys(
        *("profile", "cpu", "isa", "board", "toolchain", "optimize"),
        *("missing", "arena_bytes", "state_bytes"),
        prelink=[PASSES],
        arenas=[ARENA],
        models=[None],
        kernels=[_keys("operator", "function", "library", dtypes=[None])],
        stages=[_keys("stage", "runs", "reason")],
    ),
    "check": _keys(
        *("profile", "ok", "fits", "missing", "kernels", "arena_bytes", "state_bytes"),
        arenas=[ARENA],
    ),
    "size": _keys(
        *("schema", "profile", "regions"),
        target=_keys("cpu", "isa", "board", "toolchain", "optimize"),
        totals=_keys(
            *("flash_bytes", "model_bytes", "ram_bytes", "arena_bytes", "state_bytes"),
            *("data_bytes", "stack_bytes", "flash_bytes_without_models"),
        ),
        sections=[
            _keys(
                *("name", "address", "size_bytes", "region", "load_region"), *("in_flash", "in_ram")
            )
        ],
        contributors=[_keys("kind", "name", "flash_bytes", "ram_bytes")],
        parts=[
            _keys(*("section", "kind", "contributor", "operators"), *("flash_bytes", "ram_bytes"))
        ],
        operators=[_keys("name", "keys", functions=[None], models=[None])],
        dtype_comparison=None,
        missing=None,
        prelink=[PASSES],
        methods=[
            _keys(
                *("model", "method", "state_bytes", "temporary_bytes", "stack"),
                arena_bytes=[None],
                input_bytes=[None],
                output_bytes=[None],
            )
        ],
        symbols=[
            _keys(
                *("name", "symbol", "aliases", "is_function", "address", "size_bytes"),
                *("section", "object", "kind", "contributor"),
            )
        ],
        stack=None,
    ),
    "run": _keys(
        "ok",
        tolerance=_keys("atol", "rtol"),
        calls=[
            _keys(
                *("model", "method", "fresh", "error", "instruction"),
                *("state_bytes", "state_used_bytes", "failure"),
                outputs=[
                    _keys(
                        *("kind", "dtype"),
                        sizes=[None],
                        comparison=_keys(
                            *("ok", "problem", "elements", "failed"),
                            *("max_abs_error", "max_rel_error"),
                            worst=_keys("got", "expected", index=[None]),
                        ),
                    )
                ],
            )
        ],
    ),
    "lock": _keys("lock", "changed"),
    "verify": _keys("profile", "same", compared=[None]),
    "clean": _keys("folder", "removed", "left"),
}


@pytest.mark.toolchain
@pytest.mark.parametrize("command", DOCUMENTS)
def test_json_has_these_keys(w: Workspace, command: str) -> None:
    more = SCENARIO if command == "run" else ()
    done = w.run(command, "--json", *more)
    assert done.code == 0, done.err
    assert _shape(json.loads(done.out)) == DOCUMENTS[command]


def _document(*arguments: str, capsys: pytest.CaptureFixture[str]) -> Any:
    assert run(arguments) == 0
    return json.loads(capsys.readouterr().out)


def test_json_of_inspect(capsys: pytest.CaptureFixture[str]) -> None:
    model = str(CASE / "model.pte")
    document = _document("inspect", model, "--json", capsys=capsys)
    assert set(document) == set(
        _keys(
            *("file", "size_bytes", "sha256", "schema_version", "extended_header"),
            *("segments", "named_data", "methods", "complete", "problems"),
        )
    )
    assert document["complete"] is True
    assert document["problems"] == []
    (method,) = document["methods"]
    assert _shape(method["inputs"]) == [
        {**VALUE, "sizes": [None], "dim_order": [None], "caller": None}
    ]
    assert set(method) == set(
        _keys(
            *("name", "inputs", "outputs", "values", "instructions", "operators"),
            *("delegates", "arenas", "planned", "external"),
            *("constant_bytes", "mutable_state_bytes"),
        )
    )
    names = {operator["name"] for operator in method["operators"]}
    assert "aten::convolution.out" in names


def test_json_of_commands_without_profile(capsys: pytest.CaptureFixture[str]) -> None:
    found = _document("targets", "--json", capsys=capsys)
    assert set(found) == set(targets.CPUS)
    for cpu in found.values():
        assert set(cpu) == set(_keys("isas", "default_isa", "float_abi", "toolchains", "boards"))
    found = _document("doctor", "--json", capsys=capsys)
    assert {frozenset(item) for item in found} == {frozenset({"for", "found", "install"})}
    found = _document("plumbing", "schema", "--json", capsys=capsys)
    assert found["title"] == "Orchestrator profile"


@pytest.mark.toolchain
@pytest.mark.parametrize("command", [*DOCUMENTS, "inspect"])
def test_data_is_on_stdout_and_talk_on_stderr(w: Workspace, command: str) -> None:
    if command == "inspect":
        w.capsys.readouterr()
        assert run(["inspect", str(w.model)]) == 0
        said = w.capsys.readouterr()
        done = Build(code=0, out=said.out, err=said.err)
    else:
        done = w.run(command, *(SCENARIO if command == "run" else ()))
    assert done.code == 0
    # What a build makes are files; all it prints is progress.
    assert bool(done.out) == (command != "build")
    assert not done.out.startswith("{")
    assert "error[" not in done.err


PROFILE_COMMANDS = ("build", "plan", "check", "run", "size", "lock", "verify", "clean")


@pytest.mark.parametrize("command", PROFILE_COMMANDS)
def test_json_of_errors_is_the_same_everywhere(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "a.toml"
    profile.write_text('schema = 1\nname = "a"\n[target]\ncpu = "host"\nisaa = "x"\n')
    code = run([command, str(profile), "--json"])
    said = capsys.readouterr()
    document = json.loads(said.out)
    assert code == document["exit_code"] == 3
    assert set(document) == {"exit_code", "diagnostics"}
    codes = [d["code"] for d in document["diagnostics"]]
    assert codes == ["nothing-selected", "unknown-key"]
    assert document["diagnostics"][1] == {
        "code": "unknown-key",
        "message": 'unknown key "isaa" in [target]',
        "where": {"file": str(profile), "line": 5, "text": 'isaa = "x"'},
        "notes": document["diagnostics"][1]["notes"],
        "hint": 'did you mean "isa"?',
    }
    for diagnostic in document["diagnostics"]:
        for note in diagnostic["notes"]:
            assert set(note) == {"label", "text"}
    assert said.err.count("error[") == 2
