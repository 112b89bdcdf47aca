"""Read YAML as checked nodes; collects problems with their lines."""

from __future__ import annotations

from collections.abc import Collection

import yaml
from yaml.events import CollectionEndEvent, CollectionStartEvent
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from orchestrator.errors import Diagnostic, SourceSpan, did_you_mean

# The base loader leaves scalars as text: `no` stays "no", 0 stays "0".
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
# A list of kernels has seven levels.
_MAX_DEPTH = 64
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})


class YamlFile:
    """A YAML file being read, with the problems found so far.

    The readers below take a node and return its content, or None after recording what
    is wrong with it.

    Args:
        file: Its path, for messages.
        text: Its text.
    """

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.problems: list[Diagnostic] = []
        self._text = text
        self._lines = text.split("\n")

    def root(self) -> Node | None:
        """The document; None if the file is empty or not YAML."""
        try:
            if deep := _too_deep(self._text):
                self.problems.append(
                    Diagnostic.of(
                        "bad-yaml",
                        f"{self.file} is nested too deeply",
                        where=self.span(deep),
                        expected=f"at most {_MAX_DEPTH} levels",
                        hint="correct the file at this line",
                    )
                )
                return None
            node: Node | None = yaml.compose(self._text, Loader=_LOADER)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
            self.problems.append(
                Diagnostic(
                    code="bad-yaml",
                    message=f"{self.file} is not YAML: {problem}",
                    where=self.span(mark.line + 1 if mark else 0),
                    hint="correct the file at this line",
                )
            )
            return None
        return node

    def span(self, line: int) -> SourceSpan:
        """The place of a 1-based line, with its text."""
        lines = self._lines
        text = lines[line - 1].rstrip("\r") if 0 < line <= len(lines) else ""
        return SourceSpan(file=self.file, line=line, text=text)

    def problem(
        self,
        code: str,
        message: str,
        node: Node,
        *,
        notes: tuple[tuple[str, str], ...] = (),
        hint: str = "",
    ) -> None:
        """Record a problem of a node."""
        where = self.span(line_of(node))
        self.problems.append(
            Diagnostic(code=code, message=message, where=where, notes=notes, hint=hint)
        )

    def unknown(
        self,
        name: str,
        node: Node,
        known: Collection[str],
        message: str,
        *,
        hint: str,
        code: str = "unknown-argument",
    ) -> None:
        """Record that a name is none of those that may be there.

        Args:
            name: As it is written.
            node: Where it is.
            known: All that may be there.
            message: What is wrong.
            hint: What to do if no known name is like it.
            code: Of the problem.
        """
        notes = (("known", ", ".join(known) or "none"),)
        near = did_you_mean(name, known)
        self.problem(code, message, node, notes=notes, hint=near or hint)

    def mapping(
        self, node: Node, what: str, known: Collection[str] | None = None
    ) -> dict[str, Node] | None:
        """Keys and values of a mapping; `known` are the allowed keys."""
        if not isinstance(node, MappingNode):
            self._wrong(node, what, "a mapping")
            return None
        fields: dict[str, Node] = {}
        for key_node, value in node.value:
            key = self.scalar(key_node, f"a key of {what}")
            if key is None:
                continue
            if known is not None and key not in known:
                message = f'"{key}" is not a key of {what}'
                self.unknown(*(key, key_node, known, message), hint="remove it", code="unknown-key")
            elif key in fields:
                self.problem(
                    "duplicate-key",
                    f'"{key}" occurs twice in {what}',
                    key_node,
                    notes=(("first", f"{self.file}:{line_of(fields[key])}"),),
                    hint="keep one of them",
                )
            else:
                fields[key] = value
        return fields

    def sequence(self, node: Node, what: str) -> list[Node] | None:
        """Items of a list."""
        if not isinstance(node, SequenceNode):
            self._wrong(node, what, "a list")
            return None
        items: list[Node] = node.value
        return items

    def scalar(self, node: Node, what: str) -> str | None:
        """Text of a scalar that is not null."""
        if not isinstance(node, ScalarNode) or is_null(node):
            self._wrong(node, what, "a string")
            return None
        text: str = node.value
        return text

    def scalars(self, node: Node | None, what: str) -> list[tuple[str, Node]]:
        """Texts of a list of scalars, each with its node; none of a wrong or absent one."""
        items = (self.sequence(node, what) if node is not None else None) or []
        texts = [(self.scalar(item, f"an item of {what}"), item) for item in items]
        good = [(text, item) for text, item in texts if text is not None]
        return good if len(good) == len(items) else []

    def _wrong(self, node: Node, what: str, expected: str) -> None:
        self.problem(
            "wrong-type",
            f"{what} must be {expected}",
            node,
            notes=(("found", describe(node)),),
            hint=f"write {expected} there",
        )


def _too_deep(text: str) -> int:
    """1-based line where a text is nested too deeply; else 0.

    PyYAML composes recursively in C, which crashes on deep nesting. From 6.0.4 on its
    scanner has a limit, too, and it reads ahead.
    """
    depth = 0
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            if isinstance(event, CollectionStartEvent):
                depth += 1
                if depth > _MAX_DEPTH:
                    return event.start_mark.line + 1 if event.start_mark else 1
            elif isinstance(event, CollectionEndEvent):
                depth -= 1
    except yaml.MarkedYAMLError as error:
        if error.problem is None or "nesting depth" not in error.problem:
            raise
        return error.problem_mark.line + 1 if error.problem_mark else 1
    return 0


def line_of(node: Node) -> int:
    """1-based line where a node begins."""
    line: int = node.start_mark.line
    return line + 1


def is_null(node: Node) -> bool:
    """Whether a node is a null, written or left out."""
    # A text in quotes is no null, whatever it is.
    return isinstance(node, ScalarNode) and not node.style and node.value in _NULLS


def describe(node: Node) -> str:
    """What a node is, for messages."""
    match node:
        case MappingNode():
            return "a mapping"
        case SequenceNode():
            return "a list"
        case _:
            return "null" if is_null(node) else f'"{node.value}"'
