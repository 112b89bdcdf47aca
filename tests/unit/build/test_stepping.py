"""Limits of steps: what `check` says of those that cannot be kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.build import BuildOptions, Project, load, open_build, table
from orchestrator.cli.main import run

MODELS = Path(__file__).parents[3] / "examples" / "models"
PROFILE = """\
schema = 1
name = "p"
[target]
cpu = "{cpu}"
[kernels]
libraries = ["cortex_m", "quantized", "portable"]
[[models]]
name = "m"
path = "{model}.pte"
load = "{load}"
[schedule]
max_step_cycles = {cycles}
{more}"""
UNKNOWN = """\
error[step-unknown]: there is no estimate of cycles for {what}
  --> {folder}/p.toml:12
   |
12 | max_step_cycles = 100000
   = found: {found}
   = known: {known}
   hint: leave max_step_cycles out
"""
CORES = (
    'load = "prelinked", on cortex-m0plus, cortex-m3, cortex-m4, cortex-m7, cortex-m33, cortex-m55'
)
OPERATORS = "int8 operators of cortex_m, quantizing and copies, if prepared"


def _check(
    folder: Path,
    *,
    model: str = "kws_dscnn_int8",
    cpu: str = "cortex-m4",
    load: str = "prelinked",
    cycles: int = 100_000,
    more: str = "",
) -> int:
    profile = folder / "p.toml"
    profile.write_text(PROFILE.format(cpu=cpu, model=model, load=load, cycles=cycles, more=more))
    (folder / f"{model}.pte").write_bytes((MODELS / f"{model}.pte").read_bytes())
    return run(["check", str(profile)])


def test_a_step_that_is_not_split_further(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The hint is what all layers can keep."""
    assert _check(tmp_path, cycles=27_000) == 4
    layers = (2, 4, 6, 8)  # depthwise ones, a row of which takes less
    found = capsys.readouterr().err
    assert found.startswith(
        f"""\
error[step-too-long]: a step of model "m", method forward, takes about 29,044 cycles
  --> {tmp_path}/p.toml:12
   |
12 | max_step_cycles = 27000
   = found: cortex_m::quantized_conv2d.out, instruction 3
   = allowed: 27,000 cycles
   = reason: the call computes a single row, or needs all of its input at once
   hint: raise max_step_cycles to 29044, which the longest step of the method takes, or more
"""
    )
    assert not any(f"instruction {layer}\n" in found for layer in layers)
    assert _check(tmp_path, cycles=29_043) == 4
    assert _check(tmp_path, cycles=29_044) == 0


def test_a_method_that_cannot_run_by_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = '[passes]\nskip = ["prepare_calls"]\n'
    assert _check(tmp_path, more=more) == 4
    assert "no estimate of cycles for steps of" in capsys.readouterr().err
    more = '[[models.tensors]]\ntensor = "input 0"\nregion = "sram"\n'
    text = PROFILE.replace("[schedule]", more + "[schedule]")
    (tmp_path / "p.toml").write_text(
        text.format(
            cpu="cortex-m4", model="kws_dscnn_int8", load="prelinked", cycles=100_000, more=""
        )
    )
    assert run(["check", str(tmp_path / "p.toml")]) == 4
    reason = "calls of the method are not split: its tensors do not lie in one arena"
    assert f"   = reason: {reason}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("keys", "what", "found", "known"),
    [
        ({"cpu": "cortex-m23"}, 'model "m"', "cortex-m23", CORES),
        ({"load": "pte"}, 'model "m"', "loaded", CORES),
        (
            {"model": "add_mul"},
            'steps of model "m", method forward',
            "aten::add.out, aten::mm.out",
            OPERATORS,
        ),
    ],
)
def test_steps_without_an_estimate(
    *,
    keys: dict[str, str],
    what: str,
    found: str,
    known: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    model, cpu = keys.get("model", "kws_dscnn_int8"), keys.get("cpu", "cortex-m4")
    assert _check(tmp_path, model=model, cpu=cpu, load=keys.get("load", "prelinked"))
    text = UNKNOWN.format(what=what, folder=tmp_path, found=found, known=known)
    assert capsys.readouterr().err == text


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({}, "#define P_M_FORWARD_STEP_MOST_CYCLES "),
        (
            {"model": "add_mul"},
            """\
/* P_M_FORWARD_STEP_MOST_CYCLES is not defined, as these operators have
 * no estimate of cycles:
 * aten::add.out,
 * aten::mm.out. */
""",
        ),
        ({"model": "add_mul", "load": "pte"}, ""),
        ({"cpu": "cortex-m23"}, ""),
    ],
)
def test_the_header_says_what_is_known_of_steps(
    keys: dict[str, str], says: str, tmp_path: Path
) -> None:
    model = keys.get("model", "kws_dscnn_int8")
    (tmp_path / "m.pte").write_bytes((MODELS / f"{model}.pte").read_bytes())
    cpu, load_as = keys.get("cpu", "cortex-m4"), keys.get("load", "prelinked")
    text = PROFILE.format(cpu=cpu, model="m", load=load_as, cycles=1, more="")
    profile = tmp_path / "p.toml"
    profile.write_text(text.partition("[schedule]")[0])
    build = open_build(Project(load(profile), BuildOptions(out=tmp_path)))
    (header,) = (f.text for f in build[table.GENERATE] if f.path == "gen/include/p.h")
    assert says in header
    assert ("STEP_MOST_CYCLES" in header) is bool(says)


def test_an_input_by_rows_has_no_steps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    io = 'load = "{load}"\nio = {{ quantized = true, input0 = {{ rows = 4 }} }}'
    text = PROFILE.replace('load = "{load}"', io)
    profile = tmp_path / "p.toml"
    (tmp_path / "m.pte").write_bytes((MODELS / "kws_dscnn_int8.pte").read_bytes())
    keys = {"cpu": "cortex-m4", "model": "m", "load": "prelinked", "more": ""}
    profile.write_text(text.format(cycles=10**9, **keys))
    assert run(["check", str(profile)]) == 4
    assert "an input that comes by rows" in capsys.readouterr().err
