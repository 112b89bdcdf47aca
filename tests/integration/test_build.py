"""Incremental builds: what changed is made again, and nothing else."""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.build import product
from orchestrator.cli.fastpath import unchanged_build
from orchestrator.program.reader import read_program
from orchestrator.provenance.sbom import DOCUMENTS, SBOM, STATEMENT
from orchestrator.shell import ninja as shell_ninja
from orchestrator.shell import sources
from orchestrator.shell.settings import OBJECTS as VARIABLE
from tests.conftest import CORPUS
from tests.integration.workspace import ROOT, Workspace, copy_native, orchestrator, write_product
from tests.tools import need_tool, need_toolchain

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.toolchain

PAGE = "report.html"


def _without(outputs: dict[str, bytes], *names: str) -> dict[str, bytes]:
    return {name: data for name, data in outputs.items() if name not in names}


LINKED = {"archive libproduct.a", "link firmware.elf"}


@pytest.fixture
def no_ninja(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting ninja is a failure."""

    def refuse(*_: Any, **__: Any) -> str:
        pytest.fail("ninja was started")

    monkeypatch.setattr(shell_ninja, "run_ninja", refuse)


def _is_fast(w: Workspace) -> bool:
    return unchanged_build([str(w.profile), "--out", str(w.out)])


# Nothing to do


@pytest.mark.usefixtures("no_ninja")
def test_a_build_with_nothing_to_do_says_so_and_starts_no_ninja(w: Workspace) -> None:
    before = w.outputs()
    done = w.build()
    assert done.stages == {}
    assert "product: up to date, " in done.err
    assert done.out == ""
    assert w.outputs() == before


def test_the_fast_path_says_the_same(w: Workspace) -> None:
    w.build()
    before = w.state()
    w.capsys.readouterr()
    assert _is_fast(w)
    said = w.capsys.readouterr()
    assert said.err == f"{w.profile}: up to date, outputs in {w.out}\n"
    assert w.state() == before


def test_the_program_takes_the_fast_path(tmp_path: Path) -> None:
    """As users start it: from another folder, by a relative name, with --out."""
    write_product(tmp_path / "w")
    (tmp_path / "sub").mkdir()
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    arguments = ("build", "../w/product.toml", "--out", "../o")
    first = orchestrator(*arguments, cwd=tmp_path / "sub", env=env)
    assert first.returncode == 0, first.stderr
    again = orchestrator(*arguments, cwd=tmp_path / "sub", env=env)
    assert (again.returncode, again.stdout) == (0, "")
    assert again.stderr == "../w/product.toml: up to date, outputs in ../o\n"


@pytest.mark.usefixtures("no_ninja")
@pytest.mark.parametrize(
    "name", ["product.toml", "model.pte", "native/kernels/portable/op_relu.cpp"]
)
def test_a_touched_file_compiles_nothing(w: Workspace, name: str) -> None:
    w.build()
    os.utime(w.folder / name)
    assert not _is_fast(w)
    done = w.build()
    assert done.stages == {}
    assert _is_fast(w)


def test_a_touched_file_is_not_compiled_with_another_one_either(w: Workspace) -> None:
    os.utime(w.native / "kernels/portable/op_relu.cpp")
    w.edit("native/kernels/portable/op_addmm.cpp", "// more\n")
    assert w.build().compiled == {"src/kernels/portable/op_addmm.cpp"}


# Sources


def _sources(w: Workspace) -> Iterator[str]:
    for path in sorted(w.native.rglob("*.cpp")):
        yield path.relative_to(w.native).as_posix()


def _users(w: Workspace, header: str) -> set[str]:
    """Sources of the product that include a header, found by reading them."""

    def includes(name: str, seen: set[str]) -> set[str]:
        text = (w.native / name).read_text()
        for quoted in re.findall(r'#include ["<](.+?)[">]', text):
            for base in ("runtime/include", "runtime/src", "kernels", Path(name).parent):
                found = (w.native / base / quoted).resolve()
                if found.is_file():
                    other = found.relative_to(w.native.resolve()).as_posix()
                    if other not in seen:
                        seen.add(other)
                        includes(other, seen)
        return seen

    linked = {
        p.relative_to(w.out / ".work/obj").as_posix().removesuffix(".o")
        for p in (w.out / ".work/obj").rglob("*.cpp.o")
    }
    return {
        f"src/{name}" for name in _sources(w) if name in linked and header in includes(name, set())
    }


def test_an_edited_kernel_is_compiled_and_linked(w: Workspace) -> None:
    before = w.outputs()
    w.edit("native/kernels/portable/op_relu.cpp", "// more\n")
    done = w.build()
    assert done.steps == {"compile src/kernels/portable/op_relu.cpp", *LINKED}
    assert set(done.stages) == {"compile", "measure", "lock"}
    assert done.stages["compile"] == "source kernels/portable/op_relu.cpp changed"
    # A comment is no code.
    assert _without(w.outputs(), *DOCUMENTS) == _without(before, *DOCUMENTS)
    assert w.build().steps == set()


def test_changed_code_reaches_the_outputs(w: Workspace) -> None:
    before = w.outputs()
    w.edit(
        "native/kernels/portable/op_relu.cpp",
        '\nextern "C" __attribute__((used, retain)) const char kMark[] = "a mark";\n',
    )
    w.build()
    after = w.outputs()
    changed = {name for name in before if before[name] != after[name]}
    assert "libproduct.a" in changed
    assert b"a mark" in after["libproduct.a"]


@pytest.mark.parametrize(
    "header", ["kernels/util/pool.h", "kernels/util/matmul.h", "runtime/src/float_format.h"]
)
def test_an_edited_header_compiles_its_users(w: Workspace, header: str) -> None:
    users = _users(w, header)
    assert 0 < len(users) < 8
    w.edit(f"native/{header}", "// more\n")
    assert w.build().compiled == users


def test_an_edit_with_an_old_date_is_seen(w: Workspace) -> None:
    path = w.edit("native/kernels/portable/op_relu.cpp", "// more\n")
    os.utime(path, (0, 0))
    assert w.build().compiled == {"src/kernels/portable/op_relu.cpp"}


def test_an_old_file_in_place_of_a_new_one_is_seen(w: Workspace) -> None:
    """As when another version is unpacked over this one."""
    w.edit("native/kernels/portable/op_relu.cpp", "// more\n")
    changed = w.build()
    assert changed.compiled
    shutil.copy2(ROOT / "kernels/portable/op_relu.cpp", w.native / "kernels/portable/op_relu.cpp")
    assert w.build().compiled == {"src/kernels/portable/op_relu.cpp"}


def test_a_header_that_is_gone_is_not_found_any_more(w: Workspace) -> None:
    (w.native / "kernels/util/extra.h").write_text("#pragma once\n")
    kernel = w.native / "kernels/portable/op_relu.cpp"
    text = kernel.read_text()
    kernel.write_text('#include "util/extra.h"\n' + text)
    w.build()
    (w.native / "kernels/util/extra.h").unlink()
    done = w.run("build")
    assert done.code == 9
    assert "extra.h" in done.err
    kernel.write_text(text)
    assert w.build().compiled == {"src/kernels/portable/op_relu.cpp"}


def test_a_failed_build_leaves_no_trace_once_the_edit_is_undone(w: Workspace) -> None:
    w.build()
    before = w.state()
    path = w.native / "kernels/portable/op_relu.cpp"
    text = path.read_text()
    path.write_text(text + "not C++\n")
    assert w.run("build").code == 9
    assert w.state() == before
    path.write_text(text)
    w.build()
    assert w.state() == before


# Models and profile


def test_another_model_compiles_what_depends_on_it(w: Workspace) -> None:
    headers = w.out / "gen/selected/portable/orch_selected"
    before = {p.stem: p.read_bytes() for p in headers.iterdir()}
    shutil.copyfile(CORPUS / "ic_resnet8_fp32" / "model.pte", w.model)
    done = w.build()
    after = {p.stem: p.read_bytes() for p in headers.iterdir()}
    kept = {name for name in after if after[name] == before.get(name)}
    assert {"op_convolution", "op_relu"} <= kept
    assert {"op_add"} <= set(after) - set(before)
    assert done.compiled == {
        "gen/src/api.cpp",
        "gen/src/models.S",
        "gen/src/registered_kernels.cpp",
        *(f"src/kernels/portable/{name}.cpp" for name in set(after) - kept),
    }
    assert list(done.stages)[:2] == ["extract model", "aggregate"]
    assert done.stages["extract model"] == "model model changed"


def test_other_weights_compile_no_code(w: Workspace) -> None:
    data = bytearray(w.model.read_bytes())
    program = read_program(bytes(data), file="model.pte")
    at = program.segment_offset(0) + 64
    data[at : at + 4] = b"\0\0\0\0" if data[at : at + 4] != b"\0\0\0\0" else b"\0\0\0?"
    w.model.write_bytes(data)
    done = w.build()
    assert done.steps == {"assemble gen/src/models.S", *LINKED}
    built = (w.out / "models" / "model.pte").read_bytes()
    assert built in w.outputs()["firmware.elf"]
    assert bytes(data[at : at + 48]) in built


def test_a_budget_compiles_nothing(w: Workspace) -> None:
    before = w.outputs()
    w.edit("product.toml", '[budget]\nflash = "4 MiB"\n')
    done = w.build()
    assert done.steps == set()
    assert done.stages == {"lock": "profile [budget] changed"}
    after = w.outputs()
    assert before.pop(PAGE) != after.pop(PAGE), "it shows the budget"
    assert before.pop(STATEMENT) != after.pop(STATEMENT), "it names the profile"
    assert after == before


@pytest.mark.usefixtures("no_ninja")
def test_a_comment_in_the_profile_compiles_nothing(w: Workspace) -> None:
    before, lock = w.outputs(), w.lock.read_text()
    w.edit("product.toml", "# for the record\n")
    done = w.build()
    assert done.stages == {}
    assert f"lock {w.lock} written" in done.err
    assert _without(w.outputs(), STATEMENT) == _without(before, STATEMENT)
    changed = set(lock.splitlines()) ^ set(w.lock.read_text().splitlines())
    assert {line.partition(" = ")[0] for line in changed} == {
        '"file product.toml"',
        f'"{STATEMENT}"',
    }


def test_another_order_of_models_is_another_product(w: Workspace) -> None:
    """Digests are the same; the method table is not."""
    second = '[[models]]\nname = "other"\npath = "model.pte"\n'
    w.edit("product.toml", second)
    w.build()
    before = w.outputs()["product.json"]
    text = w.profile.read_text()
    swapped = text.replace('"other"', '"x"').replace('"model"\np', '"other"\np')
    w.profile.write_text(swapped.replace('"x"', '"model"'))
    done = w.build()
    assert done.stages["replan"] == "profile [models] changed, stage prelink changed"
    assert w.outputs()["product.json"] != before


def test_another_optimisation_compiles_everything(w: Workspace) -> None:
    everything = w.run("clean").code == 0 and w.build().compiled
    text = w.profile.read_text()
    w.profile.write_text(text.replace("[target]", '[target]\noptimize = "speed"'))
    done = w.build()
    assert done.compiled == everything
    assert "profile [target] changed" in done.stages["compile"]


def test_adding_an_operator_compiles_only_it(w: Workspace) -> None:
    profile, table = w.profile.read_text(), "gen/src/registered_kernels.cpp"
    w.edit("product.toml", '[operators]\ninclude = ["aten::tanh.out"]\n')
    done = w.build()
    assert done.compiled == {table, "src/kernels/portable/op_tanh.cpp"}
    w.profile.write_text(profile)
    assert w.build().compiled == {table}
    # Nothing of it is left to be included by mistake.
    assert not list((w.out / ".work/gen").rglob("op_tanh.h"))
    assert b"op_tanh" not in w.outputs()["libproduct.a"]


@pytest.mark.usefixtures("no_ninja")
def test_a_moved_build_folder_is_taken_as_it_is(w: Workspace) -> None:
    w.build()
    before = w.outputs()
    moved = Workspace(folder=w.folder.rename(w.folder.parent / "x"), capsys=w.capsys)
    copy_native(w.native)
    assert not _is_fast(moved)
    assert moved.build().stages == {}
    assert moved.outputs() == before
    commands = (moved.out / "compile_commands.json").read_text()
    assert f'"{moved.out}/.work"' in commands
    assert f'"{w.out}/.work"' not in commands


# Outputs


def _unlink(path: Path) -> None:
    path.unlink()


def _delete(path: Path) -> None:
    path.resolve().unlink()


def _append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x")


def _flip(path: Path) -> None:
    """Change a byte, with size and time as before."""
    data, state = bytearray(path.read_bytes()), path.stat()
    data[-1] ^= 1
    path.resolve().unlink()
    path.resolve(strict=False).write_bytes(data)
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


@pytest.mark.usefixtures("no_ninja")
@pytest.mark.parametrize("name", ["firmware.elf", "report.json", "include", "current"])
def test_a_deleted_link_comes_back(w: Workspace, name: str) -> None:
    w.build()
    (w.out / name).unlink()
    before = w.outputs()
    assert not _is_fast(w)
    if name != "current":
        w.build()
        assert w.outputs() == before
        assert (w.out / name).exists()
        assert _is_fast(w)


@pytest.mark.parametrize("damage", [_delete, _append, _flip])
@pytest.mark.parametrize("name", ["firmware.elf", "libproduct.a", "report.json"])
def test_a_damaged_output_comes_back(
    w: Workspace, name: str, damage: Callable[[Path], None]
) -> None:
    w.build()
    before = w.state()
    damage(w.out / name)
    assert not _is_fast(w)
    assert w.build().compiled == set()
    assert w.state() == before
    assert _is_fast(w)


def test_a_lost_set_of_outputs_comes_back(w: Workspace) -> None:
    w.build()
    before = w.state()
    (w.out / "current").unlink()
    shutil.rmtree(w.out / ".out")
    assert not _is_fast(w)
    assert w.build().compiled == set()
    assert w.state() == before


@pytest.mark.usefixtures("no_ninja")
def test_a_lost_lock_comes_back(w: Workspace) -> None:
    w.build()
    before = w.state()
    w.lock.unlink()
    assert not _is_fast(w)
    assert f"lock {w.lock} written" in w.build().err
    assert w.state() == before


@pytest.mark.parametrize(
    "name", [".work", ".work/obj", ".work/stages.json", ".work/results", ".work/src"]
)
def test_lost_work_is_done_again(w: Workspace, name: str) -> None:
    w.build()
    before = w.state()
    path = w.out / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    w.edit("product.toml", '[budget]\nram = "4 MiB"\n')
    w.build()
    after, _ = w.state()
    assert after.keys() == before[0].keys()
    # The page shows the budget, the statement names the profile.
    others = (PAGE, STATEMENT)
    assert _without(after, *others) == _without(before[0], *others)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"compile": 7}', '{"outputs": []}', "\0", '{"memory": {}}']
)
@pytest.mark.parametrize("name", ["stages.json", "stamp.json"])
def test_damaged_notes_are_no_obstacle(w: Workspace, name: str, text: str) -> None:
    w.build()
    before = w.state()
    (w.out / ".work" / name).write_text(text)
    assert w.build().compiled == set()
    assert w.state() == before
    assert _is_fast(w)


def test_damaged_results_are_computed_again(w: Workspace) -> None:
    w.build()
    before = w.state()
    for path in (w.out / ".work/results").iterdir():
        path.write_bytes(b"damaged")
    assert w.build().compiled == set()
    assert w.state() == before


def test_notes_that_cannot_be_written_fail_no_build(
    w: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outputs and lock are those of this build by then."""

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    w.edit("native/kernels/portable/op_relu.cpp", "// more\n")
    with monkeypatch.context() as patched:
        patched.setattr(product, "remember", full)
        assert w.build().steps
    after = w.state()
    assert not _is_fast(w)
    assert w.build().compiled == set()
    assert w.state() == after
    assert _is_fast(w)


def test_a_link_where_copies_belong_is_refused(w: Workspace) -> None:
    """What it leads to is left alone."""
    shutil.rmtree(w.out / ".work/src")
    (w.out / ".work/src").symlink_to(w.native)
    (w.native / "mine.txt").write_text("keep me")
    w.edit("native/kernels/portable/op_relu.cpp", "// more\n")
    done = w.run("build")
    assert done.code == 2
    assert f"{w.out}/.work/src is a link to {w.native}" in done.err
    assert (w.native / "mine.txt").read_text() == "keep me"
    (w.out / ".work/src").unlink()
    w.build()


# Programs


def test_another_path_is_noticed(w: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    w.build()
    monkeypatch.setenv("PATH", f"/nowhere:{os.environ['PATH']}")
    assert not _is_fast(w)
    assert w.build().stages == {}
    assert _is_fast(w)


def _wrapper(folder: Path, name: str, note: str = "") -> Path:
    """A program that does what the one of the system does."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f'#!/bin/sh\n{note}\nexec "{need_tool(name)}" "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def gnu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Workspace:
    """A finished build with a compiler of our own, first on the PATH."""
    need_toolchain("host", "gnu")
    monkeypatch.setenv(VARIABLE, "off")
    _wrapper(tmp_path / "bin", "g++")
    (tmp_path / "before").mkdir()
    path = f"{tmp_path / 'before'}:{tmp_path / 'bin'}:{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    write_product(tmp_path / "w", case="add_mul", toolchain="gnu")
    w = Workspace(folder=tmp_path / "w", capsys=capsys)
    w.build()
    assert _is_fast(w)
    return w


def test_a_changed_compiler_compiles_everything(gnu: Workspace) -> None:
    before = gnu.outputs()
    everything = {p.stem for p in (gnu.out / ".work/obj").rglob("*.o")}
    path = gnu.folder.parent / "bin" / "g++"
    path.write_text(path.read_text() + "# newer\n")
    assert not _is_fast(gnu)
    done = gnu.build()
    assert done.stages["compile"] == "toolchain changed"
    assert {Path(s).name for s in done.compiled} == everything
    # The documents name the compiler by its digest.
    assert _without(gnu.outputs(), SBOM, STATEMENT) == _without(before, SBOM, STATEMENT)
    assert gnu.build().steps == set()


def test_a_compiler_that_is_found_earlier_is_noticed(
    gnu: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])
    _wrapper(gnu.folder.parent / "before", "g++", "# another")
    assert not _is_fast(gnu)
    assert gnu.build().stages["compile"] == "toolchain changed"


@pytest.fixture
def own_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One more file of the program itself."""
    path = tmp_path / "stage.py"
    path.write_text("one = 1\n")
    files = (*sources.package_files(), path)
    monkeypatch.setattr(sources, "package_files", lambda: files)
    return path


def test_edits_of_the_program_run_every_stage(w: Workspace, own_file: Path) -> None:
    w.build()
    assert _is_fast(w)
    own_file.write_text("one = 2\n")
    assert not _is_fast(w)
    done = w.build()
    assert set(done.stages) == {
        *("extract model", "aggregate", "resolve", "prelink", "replan", "memory"),
        *("generate", "compile", "measure", "lock"),
    }
    assert done.stages["extract model"] == "orchestrator changed"
    assert done.steps == set()  # it generated what it had generated before


def test_another_copy_of_the_program_is_not_this_one(w: Workspace) -> None:
    """Its stamp is not believed: what it would build may be something else."""
    w.build()
    stamp = w.out / ".work/stamp.json"
    stamp.write_text(stamp.read_text().replace("orchestrator/shell/stamp.py", "x"))
    assert not _is_fast(w)


# Several at once, and time


def test_several_profiles_are_built_in_order(w: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(w.folder)
    other = w.folder / "second.toml"
    other.write_text(w.profile.read_text().replace('"product"', '"second"'))
    from orchestrator.cli.main import run  # noqa: PLC0415

    assert run(["build", "product.toml", "second.toml"]) == 0
    assert Path("build/product/firmware.elf").exists()
    assert Path("build/second/libsecond.a").exists()
    assert unchanged_build(["product.toml", "second.toml"])
    assert unchanged_build(["second.toml"])
