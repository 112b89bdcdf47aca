"""`orchestrator.toml`: what members inherit, and every problem with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.build import load
from orchestrator.build.project import load_product
from orchestrator.cli.render import render_diagnostics
from orchestrator.errors import OrchestratorError
from orchestrator.shell.stamp import Looked
from orchestrator.workspace.listing import read_listing
from orchestrator.workspace.load import read_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.profile.tables import Profile

HEAD = 'schema = 1\n[workspace]\nprofiles = ["p/*.toml"]\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p").mkdir()
    return tmp_path


def _write(folder: Path, workspace: str = HEAD, /, **profiles: str) -> None:
    (folder / "orchestrator.toml").write_text(workspace)
    for name, text in profiles.items():
        (folder / "p" / f"{name}.toml").write_text(
            text or f'schema = 1\nname = "{name}"\noperators.all = true\n'
        )


def _products(folder: Path) -> dict[str, Profile]:
    file = folder / "orchestrator.toml"
    workspace = read_workspace(file.relative_to(folder))
    found = read_listing(workspace.file, Looked()).products
    return {p.name: load_product(workspace, p) for p in found}


def _problems(folder: Path) -> str:
    with pytest.raises(OrchestratorError) as caught:
        _products(folder)
    return render_diagnostics(caught.value.diagnostics)


def test_members_inherit_as_from_a_base(folder: Path) -> None:
    _write(
        folder,
        HEAD
        + '[defaults.target]\ncpu = "cortex-m4"\noptimize = "speed"\n'
        + '[defaults.operators]\ninclude = ["add.out"]\n[budgets]\nram = "64 KiB"\n',
        a='schema = 1\nname = "a"\n',
        b='schema = 1\nname = "b"\ntarget.cpu = "host"\nbudget.flash = "1 KiB"\n'
        'operators.include = ["mul.out"]\n',
    )
    a, b = _products(folder).values()
    assert (a.target.cpu, a.target.optimize) == ("cortex-m4", "speed")
    assert (b.target.cpu, b.target.optimize) == ("host", "speed")
    assert [str(o) for o in b.operators.include] == ["aten::mul.out"]
    assert (b.budget.flash_bytes, b.budget.ram_bytes) == (1024, 65536)
    assert str(a.span("target", "cpu")) == "orchestrator.toml:5"
    assert str(a.span("budget", "ram")) == "orchestrator.toml:10"
    assert str(b.span("target", "cpu")) == "p/b.toml:3"
    # Locks have what is inherited, not a digest of the file.
    keys = [key for key, _ in a.inherited]
    assert dict(a.inherited)["budget.ram"] == '"64 KiB"'
    assert [key for key in keys if key.startswith("target")] == [*("target.cpu", "target.optimize")]
    assert a.inherited == b.inherited


def test_a_base_of_the_profile_comes_before_the_workspace(folder: Path) -> None:
    _write(
        folder,
        HEAD + '[defaults.target]\ncpu = "cortex-m4"\noptimize = "speed"\n',
        a='schema = 1\nname = "a"\nextends = "base.toml"\n',
        base='schema = 1\ntarget.cpu = "cortex-m7"\noperators.all = true\n',
    )
    # The base has no name, so it is no product.
    (a,) = _products(folder).values()
    assert (a.target.cpu, a.target.optimize) == ("cortex-m7", "speed")


def test_paths_are_relative_to_the_file_that_has_them(folder: Path) -> None:
    (folder / "lists").mkdir()
    (folder / "lists" / "ops.yaml").write_text("")
    _write(
        folder,
        HEAD + '[defaults]\noperators.include_yaml = ["lists/ops.yaml"]\n',
        a='schema = 1\nname = "a"\ntarget.cpu = "host"\n',
    )
    (a,) = _products(folder).values()
    assert [str(f.path) for f in a.operators.include_yaml] == ["lists/ops.yaml"]


def test_a_profile_that_is_named_inherits_as_well(folder: Path) -> None:
    _write(folder, HEAD + '[defaults.target]\ncpu = "cortex-m4"\n', a="")
    (whole,) = _products(folder).values()
    alone = load(folder / "p" / "a.toml")
    assert alone.target == whole.target
    assert alone.inherited == whole.inherited
    assert load(folder / "p" / "a.toml").build_root.name == ""


def test_a_profile_outside_of_the_patterns_does_not(folder: Path) -> None:
    _write(folder, HEAD + '[defaults.target]\ncpu = "cortex-m4"\n', a="")
    other = folder / "other.toml"
    other.write_text('schema = 1\nname = "o"\ntarget.cpu = "host"\noperators.all=true\n')
    profile = load(other)
    assert profile.inherited == ()
    # But a workspace that takes it in later is noticed.
    assert profile.looked_for[0][0] == str(folder / "orchestrator.toml")


def test_nothing_is_inherited_without_defaults(folder: Path) -> None:
    _write(folder, a='schema=1\nname="a"\ntarget.cpu="host"\noperators.all=true\n')
    (a,) = _products(folder).values()
    assert a.inherited == ()


def test_the_matrix_gives_named_products(folder: Path) -> None:
    _write(
        folder,
        HEAD
        + '[matrix]\ncpus = ["cortex-m4", "host"]\ntoolchains = ["zig", "gnu"]\n'
        + 'optimize = ["speed"]\n',
        a="",
    )
    found = _products(folder)
    assert list(found) == [*("a-cortex-m4-gnu", "a-cortex-m4-zig", "a-host-gnu", "a-host-zig")]
    one = found["a-host-gnu"]
    assert (one.name, one.target.cpu) == ("a-host-gnu", "host")
    assert (one.target.toolchain, one.target.optimize) == ("gnu", "speed")
    assert str(one.span("target", "toolchain")) == "orchestrator.toml:6"
    assert str(one.lock_file) == "p/a-host-gnu.lock"
    assert load(folder.__class__("a-host-gnu")) == one  # by its name


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("", ["a-cortex-m4", "a-host"]),
        ('target.cpu = "cortex-m7"\n', ["a"]),
        ("matrix.enable = false\ntarget.cpu = 'host'\n", ["a"]),
        ('matrix.cpus = ["host"]\n', ["a"]),
        ('matrix.cpus = ["host", "cortex-m4"]\n', ["a-cortex-m4", "a-host"]),
    ],
)
def test_a_profile_narrows_the_matrix(folder: Path, text: str, names: list[str]) -> None:
    _write(
        folder,
        HEAD + '[matrix]\ncpus = ["cortex-m4", "host"]\n',
        a=f'schema = 1\nname = "a"\n{text}operators.all = true\n',
    )
    found = _products(folder)
    assert list(found) == names
    locks = {str(p.lock_file) for p in found.values()}
    assert locks == {f"p/{name}.lock" for name in names}


def test_several_products_of_a_profile_are_named_by_name(folder: Path) -> None:
    _write(folder, HEAD + '[matrix]\ncpus = ["cortex-m4", "host"]\n', a="")
    with pytest.raises(OrchestratorError) as caught:
        load(folder / "p" / "a.toml")
    assert [d.code for d in caught.value.diagnostics] == ["several-products"]
    assert caught.value.diagnostics[0].notes == (("found", "a-cortex-m4, a-host"),)


def test_a_profile_that_cannot_be_read_stops_no_other(folder: Path) -> None:
    _write(folder, a="name =", b="")
    found = read_listing((folder / "orchestrator.toml"), Looked()).products
    assert [p.name for p in found] == ["a", "b"]


PROBLEMS = {
    "misspelt": (
        'schema = 1\n[workspace]\nprofile = ["p/*.toml"]\n',
        """\
error[unknown-key]: unknown key "profile" in [workspace]
  --> orchestrator.toml:3
   |
 3 | profile = ["p/*.toml"]
   = expected: profiles, exclude
   hint: did you mean "profiles"?
""",
    ),
    "no file": (
        'schema = 1\n[workspace]\nprofiles = ["p/*.toml", "q/*.toml"]\n',
        """\
error[no-profiles]: no file matches "q/*.toml"
  --> orchestrator.toml:3
   |
 3 | profiles = ["p/*.toml", "q/*.toml"]
   = found: no such file below .
   hint: patterns start at the folder of orchestrator.toml; remove it if it is not \
needed any more
""",
    ),
    "nothing left": (
        HEAD + 'exclude = ["p/*"]\n',
        """\
error[no-profiles]: the workspace has no products
  --> orchestrator.toml:3
   |
 3 | profiles = ["p/*.toml"]
   = found: 0 files without a name
   hint: add a profile, or take less out with exclude
""",
    ),
    "defaults": (
        HEAD + '[defaults]\nname = "x"\ntarget.optimise = "size"\n',
        """\
error[bad-value]: defaults.name cannot be inherited
  --> orchestrator.toml:5
   |
 5 | name = "x"
   hint: each profile has its own

error[unknown-key]: unknown key "optimise" in [target]
  --> orchestrator.toml:6
   |
 6 | target.optimise = "size"
   = expected: cpu, isa, board, toolchain, unaligned, float_abi, flash_wait_states, \
data_wait_states, via, images, nonsecure_entries, optimize
   hint: did you mean "optimize"?
""",
    ),
    "pattern": (
        'schema = 1\n[workspace]\nprofiles = ["../*.toml"]\n',
        """\
error[bad-value]: workspace.profiles[0] cannot be "../*.toml"
  --> orchestrator.toml:3
   |
 3 | profiles = ["../*.toml"]
   = expected: a pattern of files below the folder of orchestrator.toml, with / \
between folders; at most 1000 characters in 50 parts, `**` once, as a part of its own
   hint: write it as seen from there, such as "products/*.toml"
""",
    ),
    "two walks in a pattern": (
        'schema = 1\n[workspace]\nprofiles = ["**/a/**/*.toml"]\n',
        """\
error[bad-value]: workspace.profiles[0] cannot be "**/a/**/*.toml"
  --> orchestrator.toml:3
   |
 3 | profiles = ["**/a/**/*.toml"]
   = expected: a pattern of files below the folder of orchestrator.toml, with / \
between folders; at most 1000 characters in 50 parts, `**` once, as a part of its own
   hint: write it as seen from there, such as "products/*.toml"
""",
    ),
    "twice in the matrix": (
        HEAD + '[matrix]\ncpus = ["host", "host"]\n',
        """\
error[bad-value]: matrix.cpus has "host" twice
  --> orchestrator.toml:5
   |
 5 | cpus = ["host", "host"]
   hint: each value gives products of its own: leave one out
""",
    ),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_problems_have_their_line(folder: Path, case: str) -> None:
    text, expected = PROBLEMS[case]
    _write(folder, text, a="")
    assert _problems(folder) == expected


def test_two_products_of_one_name(folder: Path) -> None:
    _write(folder, a="", b='schema = 1\nname = "a"\n')
    assert (
        _problems(folder)
        == """\
error[duplicate-product]: two products have the name "a"
  --> p/b.toml:2
   |
 2 | name = "a"
   = found: the first at p/a.toml:2
   hint: build folders have the names of products: choose another
"""
    )


def test_two_products_of_one_lock(folder: Path) -> None:
    text = 'schema = 1\nname = "b"\nmatrix.enable = false\n'
    _write(folder, HEAD + '[matrix]\ncpus = ["host", "cortex-m4"]\n', a="", **{"a-host": text})
    assert _problems(folder).startswith(
        "error[duplicate-lock]: two products have the lock p/a-host.lock\n"
    )


def test_a_workspace_in_a_workspace(folder: Path) -> None:
    _write(folder, a="")
    (folder / "p" / "orchestrator.toml").write_text(HEAD)
    (folder / "orchestrator.toml").write_text(HEAD + 'exclude = ["p/orch*"]\n')
    assert _problems(folder).startswith(
        "error[nested-workspace]: p/a.toml is in another workspace\n  --> p/orchestrator.toml\n"
    )


def test_a_value_that_the_matrix_has_not(folder: Path) -> None:
    _write(
        folder,
        HEAD + '[matrix]\ncpus = ["host", "cortex-m4"]\n',
        a='schema = 1\nname = "a"\nmatrix.cpus = ["cortex-m7"]\ntarget.cpu="host"\n'
        "operators.all = true\n",
    )
    assert (
        _problems(folder)
        == """\
error[bad-value]: matrix.cpus has "cortex-m7", which the workspace's matrix has not
  --> p/a.toml:3
   |
 3 | matrix.cpus = ["cortex-m7"]
   = expected: host, cortex-m4 (orchestrator.toml:5)
   hint: did you mean "cortex-m4"?
"""
    )


def test_an_error_in_an_inherited_value_is_in_the_workspace(folder: Path) -> None:
    _write(folder, HEAD + '[defaults.target]\ncpu = "host"\nboard = "mps3-an547"\n', a="")
    assert "--> orchestrator.toml:6\n" in _problems(folder)


def test_a_link_that_leads_outside_is_named_and_not_read(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.mktemp("outside") / "secret"
    secret.write_text("password = hunter2\n")
    _write(folder, a="")
    (folder / "p" / "x.toml").symlink_to(secret)
    for action in (
        lambda: read_workspace(folder / "orchestrator.toml").members(),
        lambda: load(folder / "p" / "x.toml"),
    ):
        with pytest.raises(OrchestratorError) as caught:
            action()
        message = render_diagnostics(caught.value.diagnostics)
        assert "x.toml is a link that leads outside of the workspace" in message
        assert "hunter2" not in message
