"""The package's layers: a module imports lower ones or its own package, nothing else.

Imports for type checkers count as well: knowing a type is depending on it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import orchestrator

PACKAGE = Path(orchestrator.__file__).parent

LAYERS = (
    # The bare package is here: it holds nothing but the version.
    {"orchestrator", "errors", "plain_table", "printable"},
    {"core", "lowering"},
    {"targets", "planner"},
    {"catalog", "profile", "program", "shell"},
    {"selection", "export", "streams", "workspace"},
    {"scratch"},
    {"method"},
    {"memory"},
    {"emit", "compat", "running"},
    {"measure", "evaluation"},
    {"explain"},
    {"report", "package", "provenance", "update"},
    {"build"},
    {"fleet"},
    {"cli"},
    {"__main__"},
)

LEVELS = {unit: level for level, units in enumerate(LAYERS) for unit in units}

PERMITTED = {
    ("cli.fastpath", "shell.stamp"),
    ("cli.fastpath", "shell.depfile"),
    ("cli.fastpath", "cli.terminal"),
    ("cli.fastpath", "printable"),
    ("cli.fastpath", "cli"),
}
"""What a module may know of a package of which it may know nothing else."""

RESTRICTED = {module for module, _ in PERMITTED}


def _module_of(path: Path) -> tuple[str, ...]:
    """Parts of a module's name below `orchestrator`; a package's are its folder's."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[:-1] if parts[-1] == "__init__" else parts


MODULES = {
    _module_of(path): path for path in sorted(PACKAGE.rglob("*.py")) if "_native" not in path.parts
}


def _imports(path: Path) -> set[tuple[str, ...]]:
    """Modules of this package that a file imports, wherever in the file."""
    found: set[tuple[str, ...]] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: relative import"
            # What is imported from a module may be a module itself.
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            top, *rest = name.split(".")
            if top != "orchestrator":
                continue
            while rest and tuple(rest) not in MODULES:
                rest.pop()
            found.add(tuple(rest))
    return found


def _unit(module: tuple[str, ...]) -> str:
    return module[0] if module else "orchestrator"


def _violations(module: tuple[str, ...], imports: set[tuple[str, ...]]) -> list[str]:
    """What a module must not import, in words."""
    unit, own, wrong = _unit(module), ".".join(module), []
    for other in sorted(imports):
        name, target = ".".join(other), _unit(other)
        if own in RESTRICTED and other:
            if (own, name) not in PERMITTED:
                wrong.append(f"{name}: {own} may not know it")
        elif unit != target and LEVELS[target] >= LEVELS[unit]:
            wrong.append(f"{name}: not in a lower layer")
    return wrong


def test_every_module_has_a_layer() -> None:
    assert {_unit(module) for module in MODULES} == set(LEVELS)


@pytest.mark.parametrize("module", MODULES, ids=lambda m: ".".join(m) or "orchestrator")
def test_imports_only_lower_layers(module: tuple[str, ...]) -> None:
    assert _violations(module, _imports(MODULES[module])) == []


def test_no_modules_import_each_other() -> None:
    """Neither directly nor through others; packages of one layer included."""
    graph = {module: _imports(path) - {module, ()} for module, path in MODULES.items()}
    TopologicalSorter(graph).prepare()  # raises CycleError with the circle


@pytest.mark.parametrize(
    ("module", "other", "wrong"),
    [
        (("core", "dtype"), ("errors",), []),
        (("core", "dtype"), ("core", "kernel"), []),
        (("errors",), ("core", "dtype"), ["core.dtype: not in a lower layer"]),
        (("program", "reader"), ("profile",), ["profile: not in a lower layer"]),
        (("selection", "extract"), ("program", "reader"), []),
        (("selection", "extract"), ("memory", "plan"), ["memory.plan: not in a lower layer"]),
        (("cli", "fastpath"), ("shell", "stamp"), []),
        (
            ("cli", "fastpath"),
            ("shell", "process"),
            ["shell.process: cli.fastpath may not know it"],
        ),
    ],
)
def test_the_rules_themselves(
    module: tuple[str, ...], other: tuple[str, ...], wrong: list[str]
) -> None:
    assert _violations(module, {other}) == wrong


def _loaded_by(statement: str) -> set[str]:
    """Top-level modules that a statement adds to a bare interpreter's."""
    code = (
        "import sys; before = set(sys.modules)\n"
        f"{statement}\n"
        "print(*{m.partition('.')[0] for m in set(sys.modules) - before})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


THIRD_PARTY = {"pydantic", "pydantic_core", "yaml", "rich", "pycxxfilt", "ninja"}
THIRD_PARTY |= {"tomli", "numpy", "flatbuffers"}


@pytest.mark.parametrize(
    "module",
    ["cli.main", "core.dtype", "core.operator", "errors", "program.reader", "selection.extract"],
)
def test_what_every_command_imports_needs_no_other_package(module: str) -> None:
    assert not _loaded_by(f"import orchestrator.{module}") & THIRD_PARTY


def test_a_build_with_nothing_to_do_imports_next_to_nothing() -> None:
    loaded = _loaded_by("import orchestrator.cli.fastpath, orchestrator.__main__")
    assert not loaded & (THIRD_PARTY | {"argparse", "dataclasses", "pathlib", "typing"})
