"""Macros for Bazel and Buck2: their rules make what `orchestrator build` makes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import starlark

from orchestrator.cli.main import run
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT
from tests.tools import need_toolchain, optional_tool

pytestmark = pytest.mark.toolchain

MACROS = ROOT / "bazel"
PROFILE = """\
schema = 1
name = "add-mul"
[target]
cpu = "host"
toolchain = "zig"
[[models]]
path = "../models/model.pte"
"""
CALLS = """\
orchestrator_profile(
    name = "net",
    profile = "add-mul.toml",
    models = ["//models:model.pte"],
    product = "add-mul",
    tool = "//tools:orchestrator",
)
orchestrator_selected_ops(
    name = "ops",
    models = ["//models:model.pte"],
    ops_dict = {"aten::abs.out": ["Float", "Int"]},
    tool = "//tools:orchestrator",
)
"""
TOOL_RULE = """\
sh_binary(
    name = "orchestrator",
    srcs = ["orchestrator.sh"],
    visibility = ["//visibility:public"],
)
"""
TOOL = f"""\
#!/bin/sh
exec {sys.executable} -m orchestrator "$@"
"""
"""Stands in for a program that the workspace builds."""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A profile and its model, in packages of their own."""
    need_toolchain("host", "zig")
    for folder in ("profiles", "models", "tools"):
        (tmp_path / folder).mkdir()
    (tmp_path / "profiles" / "add-mul.toml").write_text(PROFILE)
    shutil.copy(CORPUS / "add_mul" / "model.pte", tmp_path / "models")
    tool = tmp_path / "tools" / "orchestrator.sh"
    tool.write_text(TOOL)
    tool.chmod(0o755)
    return tmp_path


def _built(workspace: Path) -> Path:
    """What the command makes of the profile."""
    out = workspace / "built"
    profile = workspace / "profiles" / "add-mul.toml"
    assert run(["build", "-q", str(profile), "--out", str(out), "--no-lock"]) == 0
    return out


def _buck_rules(calls: str) -> dict[str, dict[str, Any]]:
    """Arguments of the rules that Buck2 gets, by their names."""
    made: dict[str, dict[str, Any]] = {}
    module = starlark.Module()
    kinds = ("genrule", "cxx_library", "prebuilt_cxx_library")
    for kind in kinds:

        def rule(kind: str = kind, **arguments: Any) -> None:
            made[arguments["name"]] = {"kind": kind, **arguments}

        module.add_callable(kind, rule)
    module.add_callable("package_name", lambda: "profiles")
    native = ", ".join(f"{name} = {name}" for name in (*kinds, "package_name"))
    text = (MACROS / "defs.bzl").read_text(encoding="utf-8")
    structs = starlark.Globals.extended_by([starlark.LibraryExtension.StructType])
    program = f"native = struct({native})\n{text}\n{calls}"
    starlark.eval(module, starlark.parse("defs.bzl", program), structs)
    return made


def _run_buck(rule: dict[str, Any], workspace: Path) -> Path:
    """Run the command of a rule as Buck2 does, on the files that it declares."""
    name = str(rule["name"])
    source, out = workspace / f"{name}.src", workspace / name
    out.mkdir()
    for path, label in rule["srcs"].items():
        assert path == (label[2:].replace(":", "/") if ":" in label else path)
        (source / path).parent.mkdir(parents=True, exist_ok=True)
        (source / path).symlink_to(workspace / path)
    command = rule["cmd"].replace(
        "$(exe //tools:orchestrator)", str(workspace / "tools" / "orchestrator.sh")
    )
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        env={**os.environ, "SRCDIR": str(source), "OUT": str(out)},
        cwd=workspace,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for (path,) in rule["outs"].values():
        assert (out / path).is_file()
    return out


def test_buck2_gets_rules_with_these_commands(workspace: Path) -> None:
    """Its own interpreter of Starlark, with stand-ins for its rules."""
    rules = _buck_rules(CALLS)
    assert set(rules) == {"net", "net_build", "ops", "ops_build"}
    made, built = _run_buck(rules["net_build"], workspace), _built(workspace)
    for path in ("libadd-mul.a", "include/add-mul.h", "include/orch/status.h"):
        assert (made / path).read_bytes() == (built / path).read_bytes()
    assert rules["net"]["static_lib"] == ":net_build[libadd-mul.a]"
    lists = _run_buck(rules["ops_build"], workspace)
    assert "aten::abs.out" in (lists / "selected_operators.yaml").read_text()


def test_bazel(workspace: Path) -> None:
    """In its sandbox, with Debian's Bazel and its rules."""
    bazel = optional_tool("bazel")
    shared = Path("/usr/share/bazel")
    if not (shared / "rules" / "java").is_dir():
        pytest.skip("needs bazel-rules-java, bazel-rules-proto, bazel-skylib")
    load = '"orchestrator_profile", "orchestrator_selected_ops"'
    files = {
        "WORKSPACE": "",
        "models/BUILD": 'exports_files(["model.pte"])\n',
        "tools/BUILD": TOOL_RULE,
        "profiles/BUILD": f'load("@orchestrator//:defs.bzl", {load})\n{CALLS}',
        "profiles/app.c": '#include "add-mul.h"\nint main(void) { return 0; }\n',
        "profiles/slots.c": '#include "selected_max_kernel_num.h"\n',
    }
    files["profiles/BUILD"] += (
        'cc_binary(name = "app", srcs = ["app.c"], deps = [":net"])\n'
        'cc_library(name = "slots", srcs = ["slots.c"], deps = [":ops"])\n'
    )
    # rules_cc that fit this old Bazel: its own rules, under their names of today.
    names = "cc_library cc_binary cc_test cc_import cc_toolchain cc_toolchain_suite"
    files |= {"rules_cc/WORKSPACE": "", "rules_cc/cc/BUILD": ""}
    files["rules_cc/cc/defs.bzl"] = "".join(
        f"def {name}(**arguments):\n    native.{name}(**arguments)\n\n" for name in names.split()
    )
    shutil.copytree(MACROS, workspace / "orchestrator")
    files["orchestrator/WORKSPACE"] = ""
    for path, text in files.items():
        (workspace / path).parent.mkdir(parents=True, exist_ok=True)
        (workspace / path).write_text(text)
    repositories = {
        "orchestrator": workspace / "orchestrator",
        "rules_cc": workspace / "rules_cc",
        "rules_java": shared / "rules" / "java",
        "rules_proto": shared / "rules" / "proto",
        "bazel_skylib": shared / "tools" / "skylib",
        "platforms": shared / "platforms",
    }
    start = (bazel, f"--output_user_root={workspace / 'bazel'}", "--batch", "build")
    options = [f"--override_repository={n}={p}" for n, p in repositories.items()]
    done = subprocess.run(
        [*start, *options, "//profiles:app", "//profiles:slots"],
        cwd=workspace,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = workspace / "bazel-bin" / "profiles"
    assert subprocess.run([made / "app"], check=False).returncode == 0
    library = "net_build/libadd-mul.a"
    assert (made / library).read_bytes() == (_built(workspace) / "libadd-mul.a").read_bytes()


def test_format() -> None:
    """As buildifier writes it, and without what it warns of."""
    buildifier = optional_tool("buildifier")
    files = sorted(map(str, MACROS.iterdir()))
    command = [buildifier, "--mode=check", "--lint=warn", *files]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_nothing_selected_is_an_error() -> None:
    with pytest.raises(starlark.StarlarkError, match="ops: nothing is selected"):
        _buck_rules('orchestrator_selected_ops(name = "ops")')
