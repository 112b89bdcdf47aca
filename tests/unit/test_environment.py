"""The environment is read at the edge and never written: settings travel as values."""

from __future__ import annotations

import ast
import os

import pytest

from orchestrator.shell.settings import CACHE, PUBLISHED, Settings, read_settings
from tests.unit.modules import modules

NAMES = {"environ", "environb", "getenv", "getenvb", "putenv", "unsetenv"}
NAMES |= {"get_exec_path"}
CHANGES = {"update", "setdefault", "pop", "popitem", "clear", "__setitem__"}
CHANGES |= {"__delitem__", "__ior__"}
EDGES = ("cli", "shell")
EXCEPTIONS = {"lowering/apart.py": "read by the process that exports, at its start"}


def _uses(nodes: list[ast.AST]) -> list[ast.expr]:
    """Where a module names the environment, however it imported it."""
    return [
        node
        for node in nodes
        if (isinstance(node, ast.Attribute) and node.attr in NAMES)
        or (isinstance(node, ast.Name) and node.id in NAMES)
    ]


def _writes(nodes: list[ast.AST]) -> list[int]:
    """Lines where a module writes it, or gives it to someone under another name."""
    used = {*map(id, _uses(nodes))}
    found = []
    for node in nodes:
        match node:
            case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
                is_write = id(value) in used
            case ast.Attribute(value=value, attr=name):
                is_write = id(value) in used and name in CHANGES
            case ast.AugAssign(target=value) | ast.Assign(value=value):
                is_write = id(value) in used
            case ast.Call(func=ast.Attribute(attr="putenv" | "unsetenv")):
                is_write = True
            case ast.ImportFrom(module="os", names=names):
                is_write = any(name.asname for name in names if name.name in NAMES)
            case _:
                is_write = False
        if is_write and isinstance(node, (ast.expr, ast.stmt)):
            found.append(node.lineno)
    return found


def test_the_environment_is_read_at_the_edge_only() -> None:
    for place, nodes in modules().items():
        assert _writes(nodes) == [], place
        if place.partition("/")[0] not in EDGES and place not in EXCEPTIONS:
            assert [node.lineno for node in _uses(nodes)] == [], place


@pytest.mark.parametrize(
    "text",
    [
        "os.environ['A'] = 'b'",
        "del os.environ['A']",
        "os.environ.setdefault('A', 'b')",
        "os.environ |= {}",
        "environ.update({})",
        "os.putenv('A', 'b')",
        "x = os.environ",
        "from os import environ as e",
    ],
)
def test_writes_are_found(text: str) -> None:
    assert _writes([*ast.walk(ast.parse(text))])


def test_reads_are_no_writes() -> None:
    nodes = [*ast.walk(ast.parse("x = {**os.environ, 'A': os.environ.get('B')}"))]
    assert not _writes(nodes)
    assert len(_uses(nodes)) == 2


def test_the_user_wins_over_the_workspace(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (CACHE, PUBLISHED):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/x")
    before = dict(os.environ)
    workspace = {CACHE: "/w/cache", PUBLISHED: "/w/place"}

    def settings(**more: str) -> Settings:
        with monkeypatch.context() as patch:
            for name, value in more.items():
                patch.setenv(name, value)
            return read_settings(workspace)

    assert str(read_settings().cache) == "/x/orchestrator"
    assert str(settings().cache) == "/w/cache"
    assert settings().published == "/w/place"
    assert str(settings(**{CACHE: "/u"}).cache) == "/u"
    # An empty one switches off what the workspace sets.
    assert settings(**{PUBLISHED: ""}).published == ""
    assert str(settings(**{CACHE: ""}).cache) == "/x/orchestrator"
    assert dict(os.environ) == before
