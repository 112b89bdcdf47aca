"""Tasks of the project; `nox -l` lists them, docs/testing.md explains them.

Sessions keep their environments between runs. With `nox --no-venv` they install
nothing and use the tools of the environment nox runs in.
"""

from __future__ import annotations

import os
from pathlib import Path
from shutil import which

import nox
from nox.virtualenv import PassthroughEnv

nox.needs_version = ">=2024.4.15"
nox.options.default_venv_backend = "venv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "unit"]

ROOT = Path(__file__).parent
TARGETS = (
    "host",
    "x86-64",
    "aarch64",
    "armv7a",
    "cortex-m0plus",
    "cortex-m3",
    "cortex-m4",
    "cortex-m7",
    "cortex-m23",
    "cortex-m33",
    "cortex-m35p",
    "cortex-m55",
    "cortex-m85",
    "rv32imc",
    "rv32imac",
    "rv32imafc",
    "rv64gc",
)
"""Cores of orchestrator/targets/cores.py; a test holds the two equal."""

PURE = (
    *("core", "targets", "planner", "catalog", "program", "selection", "scratch"),
    *("method", "memory", "emit", "compat", "measure"),
)
"""Topics of orchestrator/ without effects: they are covered fully."""

CLANG_FORMAT = "clang-format-14"
"""Other versions format in other ways."""

EXECUTORCH = (
    *("executorch==1.5.1", "torch==2.13.0"),
    *("tosa-tools==2026.5.0", "ethos-u-vela==5.1.0", "safetensors==0.8.0"),
)
"""What the corpus was made with; its tools are the reference."""

ZOO = (
    *("torchvision==0.28.0", "timm==1.0.31", "transformers==5.23.0"),
    "torchaudio==2.11.0",
    *("huggingface_hub==2.4.0", "safetensors==0.8.0", "tokenizers==0.23.3"),
    *("tqdm==4.70.1", "pillow==13.0.0", "regex==2026.11.15", "requests==2.34.2"),
)
"""Packages that the zoo takes models from, and what they import."""


def _install(session: nox.Session, *arguments: str) -> None:
    if not isinstance(session.virtualenv, PassthroughEnv):
        session.install(*arguments)


PARALLEL = ("-n", "auto", "--dist", "loadfile", "--no-loadscope-reorder")
"""One process per core; tests of a file share what they build, long files first."""


def _pytest(session: nox.Session, *arguments: str) -> None:
    _install(session, "-e", ".[zig,test]")
    session.run("python", "-m", "pytest", *PARALLEL, *arguments, *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Rules of ruff and format for Python; the format of C++ where clang-format 14 is there."""
    _install(session, "-e", ".[dev]")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    if which(CLANG_FORMAT):
        sources = sorted(
            str(path.relative_to(ROOT))
            for folder in ("runtime", "kernels")
            for path in (ROOT / folder).rglob("*")
            if path.suffix in (".cpp", ".h")
        )
        session.run(CLANG_FORMAT, "--dry-run", "--Werror", *sources, external=True)
    else:
        session.warn(f"{CLANG_FORMAT} is not installed: C++ is not checked")


@nox.session
def types(session: nox.Session) -> None:
    """Strict mypy over package, tests, benchmarks and this file."""
    _install(session, "-e", ".[test,dev]")
    session.run("mypy")


@nox.session
def site(session: nox.Session) -> None:
    """Build the documentation as a site into build/site; warnings are errors."""
    _install(session, "-e", ".[docs]")
    session.run("python", "-m", "sphinx", "-q", "-W", "--keep-going", "docs", "build/site")


@nox.session
def unit(session: nox.Session) -> None:
    """Tests of single modules, goldens and fuzzing; no compiler is needed."""
    _pytest(session, "tests", "-m", "not toolchain and not qemu and not slow")


@nox.session
def integration(session: nox.Session) -> None:
    """The command line with real compilers, and the C++ tests."""
    _pytest(session, "tests/integration", "tests/cpp", "-m", "toolchain")


def _target_session(name: str) -> None:
    def target(session: nox.Session) -> None:
        files = ("test_cases.py", "test_corpus.py", "test_int8.py", "test_targets.py")
        session.env["ORCHESTRATOR_EVERY_TARGET"] = "1"
        _pytest(session, *(f"tests/qemu/{file}" for file in files), "-k", name)

    target.__doc__ = f"Every case on {name}, with every toolchain it has."
    nox.session(name=f"target-{name}")(target)


for _name in TARGETS:
    _target_session(_name)


@nox.session
def differential(session: nox.Session) -> None:
    """Random programs, judged by the same computation without state or sharing.

    nox -s differential -- --count 20000 --seed 1000
    """
    _install(session, "-e", ".[zig,test]")
    session.run("python", "-m", "tests.differential", *session.posargs)


@nox.session
def nightly(session: nox.Session) -> None:
    """What is too long for every change: tests marked `nightly`, and random programs.

    nox -s nightly -- --seed 20261129

    Arguments are those of session `differential`.
    """
    _install(session, "-e", ".[zig,test]")
    session.run("python", "-m", "pytest", *PARALLEL, "-m", "nightly")
    arguments = session.posargs or ("--count", "2000")
    session.run("python", "-m", "tests.differential", *arguments)


@nox.session
def interop(session: nox.Session) -> None:
    """Our files in ExecuTorch's own tools, with the package of $EXECUTORCH_PYTHON.

    Without that variable the package is installed in an environment of its own, which
    brings PyTorch with it.
    """
    python = os.environ.get("EXECUTORCH_PYTHON")
    if not python:
        python = _executorch(session, "executorch", *EXECUTORCH)
    session.env["EXECUTORCH_PYTHON"] = python
    # One process: PyTorch takes much memory.
    _pytest(session, "-n", "0", "tests/interop", "-m", "executorch")


@nox.session(name="interop-newest")
def interop_newest(session: nox.Session) -> None:
    """The same with the newest ExecuTorch on PyPI, which nothing here was made with.

    What fails tells what a new release changes: docs/executorch-compatibility.md.
    """
    names = (requirement.partition("==")[0] for requirement in EXECUTORCH)
    python = _executorch(session, "executorch-newest", "--upgrade", *names)
    session.run(python, "-m", "pip", "show", "executorch", "torch", external=True)
    session.env["EXECUTORCH_PYTHON"] = python
    _pytest(session, "-n", "0", "tests/interop", "-m", "executorch")


def _executorch(session: nox.Session, name: str, *requirements: str) -> str:
    """The interpreter of an environment of its own with ExecuTorch in it."""
    folder = ROOT / ".nox" / name
    python = str(folder / "bin" / "python")
    if not Path(python).exists():
        session.run_install("python", "-m", "venv", str(folder), external=True)
    session.run_install(*(python, "-m", "pip", "install", "-q", *requirements), external=True)
    return python


@nox.session
def zoo(session: nox.Session) -> None:
    """Models of public packages: exported, checked, run and compared with PyTorch.

    nox -s zoo -- --only cnn/,timm/

    Prints a table. $EXECUTORCH_PYTHON is as for `interop`.
    """
    python = os.environ.get("EXECUTORCH_PYTHON")
    if not python:
        python = _executorch(session, "executorch", *EXECUTORCH)
    packages = str(ROOT / ".nox" / "zoo-packages")
    if not Path(packages).exists():
        # Without what they depend on: PyTorch is there.
        session.run_install(
            *(python, "-m", "pip", "install", "-q", "--no-deps", "--target", packages),
            *ZOO,
            external=True,
        )
    folder = str(ROOT / "build" / "zoo")
    session.run(
        *(python, "-m", "tests.zoo.export", "--out", folder, *session.posargs),
        env={"PYTHONPATH": os.pathsep.join([packages, str(ROOT)])},
        external=True,
    )
    _install(session, "-e", ".[zig,test]")
    session.run(
        *("python", "-m", "tests.zoo.run", "--executorch", python, folder), *session.posargs
    )


@nox.session
def opinfo(session: nox.Session) -> None:
    """Every operator with the samples of PyTorch's operator database.

    nox -s opinfo -- --sanitize

    Prints a table. $EXECUTORCH_PYTHON is as for `interop`.
    """
    python = os.environ.get("EXECUTORCH_PYTHON")
    if not python:
        python = _executorch(session, "executorch", *EXECUTORCH)
    folder = str(ROOT / "build" / "opinfo")
    session.run(
        *(python, "-m", "tests.opinfo.draw", "--out", folder),
        env={"PYTHONPATH": str(ROOT)},
        external=True,
    )
    _install(session, "-e", ".[zig,test]")
    session.run("python", "-m", "tests.opinfo.run", folder, *session.posargs)


@nox.session
def speeds(session: nox.Session) -> None:
    """Instructions of every kernel on two cores; writes docs/kernel-speeds.md."""
    _install(session, "-e", ".[zig,test]")
    session.run("python", "-m", "tests.speeds.cores", "--write", *session.posargs)


@nox.session(name="speeds-host")
def speeds_host(session: nox.Session) -> None:
    """Time of every kernel here, beside ExecuTorch's kernels; the slowest first.

    nox -s speeds-host -- --portable PROGRAM

    PROGRAM has its portable kernels (docs/testing.md). Without it, its Python runtime
    is asked; $EXECUTORCH_PYTHON is as for `interop`.
    """
    upstream: tuple[str, ...] = ()
    if "--portable" not in session.posargs:
        python = os.environ.get("EXECUTORCH_PYTHON")
        if not python:
            python = _executorch(session, "executorch", *EXECUTORCH)
        upstream = ("--executorch", python)
    _install(session, "-e", ".[zig,test]")
    session.run("python", "-m", "tests.speeds.host", *upstream, *session.posargs)


@nox.session
def fuzz(session: nox.Session) -> None:
    """Both fuzz targets, for a number of executions; see tests/fuzz/run.py.

    nox -s fuzz -- --loader 10000000 --reader 1000000 --first 2
    """
    _install(session, "-e", ".[zig,test]")
    session.run("python", "-m", "tests.fuzz.run", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Speed and size of the project itself; see benchmarks/."""
    _install(session, "-e", ".[zig,test]")
    session.run("python", "benchmarks/run.py", *session.posargs)


@nox.session
def minimums(session: nox.Session) -> None:
    """Tests without a compiler, on the lowest versions pyproject.toml allows."""
    project = nox.project.load_toml("pyproject.toml")["project"]
    lowest = [r.replace(">=", "==") for r in project["dependencies"]]
    _install(session, "-e", ".[test]", *lowest)
    session.run(
        *("python", "-m", "pytest", *PARALLEL, "tests/unit", "tests/fuzz"),
        *("-m", "not toolchain and not qemu and not slow", *session.posargs),
    )


@nox.session
def coverage(session: nox.Session) -> None:
    """Branch coverage of all tests; topics without effects must be covered fully."""
    _pytest(session, "--cov", "--cov-branch", "--cov-report=")
    covered = ",".join(f"orchestrator/{topic}/*" for topic in PURE)
    session.run("coverage", "report", "--skip-covered")
    session.run("coverage", "report", f"--include={covered}", "--fail-under=100")
