"""Operator lists that are not models: names, a dictionary of dtypes, YAML files.

Every reader gives a `Selection` that `union` adds to others.

Source: ExecuTorch `codegen/tools/gen_oplist.py` and `gen_all_oplist.py`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final, TypeGuard

from yaml.nodes import MappingNode, SequenceNode

from orchestrator.catalog.nodes import YamlFile, is_null
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey, TensorMeta
from orchestrator.core.op_info import Origin, SelectedOperator, Selection
from orchestrator.core.operator import OperatorName
from orchestrator.errors import Diagnostic, UsageError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterable

    from yaml.nodes import Node

DEFAULT: Final = "default"
"""Stands for a kernel key in a list: every dtype and dim order."""

# gen_oplist spells these two in its own way; everybody else as our table does.
_SPELLINGS: Final = {
    "QUInt4X2": ScalarType.QUInt4x2,
    "QUInt2X4": ScalarType.QUInt2x4,
}
_OPERATOR_HINT: Final = "write it with its overload, such as aten::add.out"
_BOOLEANS: Final = dict.fromkeys(("true", "yes", "on"), True) | dict.fromkeys(
    ("false", "no", "off"), False
)
# Those from the second line on belong to PyTorch Mobile and say nothing here.
_LIST_KEYS: Final = (
    *("operators", "et_kernel_metadata", "include_all_operators"),
    *("build_features", "custom_classes", "kernel_metadata"),
    *("include_all_non_op_selectives", "debug_info"),
)
_OPERATOR_KEYS: Final = (
    *("name", "debug_info", "include_all_overloads"),
    *("is_root_operator", "is_used_for_training"),
)
_SCHEMA: Final = re.compile(r"\s*([^\s(]+)\s*\(.*\)\s*->.+", re.DOTALL)


def read_names(text: str, *, source: str) -> Selection:
    """Operators named one after the other, each with every dtype.

    Args:
        text: Names between commas or white space; `aten::` may be left out.
        source: Who asks, for messages and as origin.

    Raises:
        UsageError: Every text that is no operator name.
    """
    problems: list[Diagnostic] = []
    names = [n for n in re.split(r"[,\s]+", text) if n]
    operators = [
        _operator(name, [DEFAULT], source)
        for text in names
        if (name := _name(text, source, problems)) is not None
    ]
    _raise(problems)
    return Selection(operators=tuple(operators))


def read_dictionary(text: str, *, source: str) -> Selection:
    """Operators with dtypes or kernel keys, as JSON.

    Args:
        text: `{"aten::add.out": ["Float", "v1/3;0,1|3;0,1|3;0,1|3;0,1"]}`. A dtype
            stands for the kernel key `v1/<code>;`; an empty list for every dtype.
        source: Who asks, for messages and as origin.

    Raises:
        UsageError: Everything that is wrong with it.
    """
    problems: list[Diagnostic] = []
    operators = []
    for operator, items in _json_pairs(text, source):
        name = _name(operator, source, problems)
        if not _is_texts(items):
            problems.append(
                Diagnostic(
                    code="bad-ops-dict",
                    message=f"{source}: {operator} has no list of texts",
                    notes=(("found", _shown(items)),),
                    hint='write a list such as ["Float", "Int"]; [] is every dtype',
                )
            )
            continue
        keys: list[KernelKey | str] = [] if items else [DEFAULT]
        for item in items:
            key = _dtype_or_key(item)
            if key is None:
                problems.append(_bad_dtype(item, f"{source}: {operator}"))
            else:
                keys.append(key)
        if name is not None:
            operators.append(_operator(name, keys, source))
    _raise(problems)
    return Selection(operators=tuple(operators))


def read_list(text: str, *, file: str, source: str) -> Selection:
    """A `functions.yaml` or a `selected_operators.yaml`, whoever wrote it.

    Operators of a `functions.yaml` (a list) are asked for with every dtype. In a
    `selected_operators.yaml` (a mapping), an operator that is listed without a
    kernel key keeps none; an empty list of keys stands for every dtype.

    Args:
        text: Of the file; an empty one selects nothing.
        file: Its path, for messages.
        source: Origin of what the file asks for without saying for whom.

    Raises:
        UsageError: Everything that is wrong with it.
    """
    yaml = YamlFile(file, text)
    root = yaml.root()
    selection = Selection()
    if isinstance(root, SequenceNode):
        operators = [_entry(yaml, node, source) for node in root.value]
        selection = Selection(operators=tuple(o for o in operators if o is not None))
    elif root is not None and not is_null(root):
        selection = _ListReader(yaml, source).read(root)
    _raise(yaml.problems)
    return selection


def _entry(yaml: YamlFile, node: Node, source: str) -> SelectedOperator | None:
    """Operator of an entry of a `functions.yaml`; None if something is wrong."""
    fields = yaml.mapping(node, "a kernel entry")
    if fields is None:
        return None
    if ("op" in fields) == ("func" in fields):
        yaml.problem(
            "bad-entry",
            "a kernel entry needs either `op` or `func`",
            node,
            hint="write `- op:` with the operator or `- func:` with its schema",
        )
        return None
    key = "func" if "func" in fields else "op"
    text = yaml.scalar(fields[key], f"`{key}`")
    if text is None:
        return None
    if key == "func":
        match = _SCHEMA.fullmatch(text)
        if match is None:
            yaml.problem(
                "bad-schema",
                f'"{text}" is not an op schema "name(arguments) -> returns"',
                fields[key],
                hint="write it as PyTorch's native_functions.yaml does",
            )
            return None
        text = match[1]
    name = _yaml_name(yaml, text, fields[key])
    return _operator(name, [DEFAULT], source) if name is not None else None


class _ListReader:
    """Reads a `selected_operators.yaml`; what is wrong is noted in its file."""

    def __init__(self, yaml: YamlFile, source: str) -> None:
        self._yaml = yaml
        self._source = source
        self._keys: dict[OperatorName, list[KernelKey | str]] = {}
        self._origins: dict[OperatorName, list[str]] = {}

    def read(self, root: Node) -> Selection:
        """Everything the file asks for."""
        fields = self._yaml.mapping(root, "an operator list", _LIST_KEYS) or {}
        for text, node, keys in self._named(fields, "et_kernel_metadata"):
            if (name := _yaml_name(self._yaml, text, node)) is not None:
                self._origins.setdefault(name, [])
                self._keys.setdefault(name, []).extend(self._kernel_keys(text, keys))
        for text, node, info in self._named(fields, "operators"):
            if (name := _yaml_name(self._yaml, text, node)) is not None:
                self._origins.setdefault(name, []).extend(self._sources(text, info))
        self._refuse_what_is_not_kept(fields)
        return Selection(
            operators=tuple(
                _operator(name, self._keys.get(name, ()), *(of or [self._source]))
                for name, of in self._origins.items()
            ),
            every_operator=self._boolean(fields, "include_all_operators"),
        )

    def _named(self, fields: dict[str, Node], key: str) -> list[tuple[str, Node, Node]]:
        """Operator, where it is named, and what is said of it."""
        node = fields.get(key)
        if node is None or is_null(node):
            return []
        named = self._yaml.mapping(node, f"`{key}`")
        if named is None or not isinstance(node, MappingNode):
            return []
        places = {k.value: k for k, _ in node.value}
        return [(name, places[name], value) for name, value in named.items()]

    def _kernel_keys(self, operator: str, node: Node) -> list[KernelKey | str]:
        items = self._yaml.scalars(node, f"the kernel keys of {operator}")
        keys: list[KernelKey | str] = []
        for text, item in items or ():
            if text.strip() == DEFAULT:
                keys.append(DEFAULT)
                continue
            try:
                keys.append(KernelKey.parse(text))
            except ValueError as error:
                self._yaml.problem(
                    "bad-kernel-key",
                    str(error),
                    item,
                    hint="make the list anew, or write `default` for every dtype",
                )
        return keys or [DEFAULT]

    def _sources(self, operator: str, node: Node) -> list[str]:
        """Who asked for an operator."""
        if is_null(node):
            return []
        what = f"what is said of {operator}"
        fields = self._yaml.mapping(node, what, _OPERATOR_KEYS) or {}
        if self._boolean(fields, "include_all_overloads"):
            self._yaml.problem(
                "bad-oplist",
                f"{operator} asks for all overloads of an operator",
                fields["include_all_overloads"],
                hint="list the overloads that are meant, one by one",
            )
        info = fields.get("debug_info")
        if info is None or is_null(info):
            return []
        items = self._yaml.sequence(info, "`debug_info`") or []
        # ExecuTorch's tool writes a null for operators that no file asked for.
        texts = [self._yaml.scalar(i, "a source") for i in items if not is_null(i)]
        return [text for text in texts if text is not None]

    def _boolean(self, fields: dict[str, Node], key: str) -> bool:
        node = fields.get(key)
        if node is None:
            return False
        text = self._yaml.scalar(node, f"`{key}`")
        if text is not None and text.lower() not in _BOOLEANS:
            self._yaml.problem(
                "wrong-type",
                f"`{key}` must be true or false",
                node,
                notes=(("found", f'"{text}"'),),
                hint="write true or false there",
            )
        return _BOOLEANS.get((text or "").lower(), False)

    def _refuse_what_is_not_kept(self, fields: dict[str, Node]) -> None:
        asked: list[str] = [
            key
            for key in ("build_features", "custom_classes", "kernel_metadata")
            if key in fields and not is_null(fields[key]) and fields[key].value
        ]
        if self._boolean(fields, "include_all_non_op_selectives"):
            asked.append("include_all_non_op_selectives")
        for key in asked:
            self._yaml.problem(
                "bad-oplist",
                f"`{key}` means nothing to ExecuTorch and would be lost",
                fields[key],
                hint="this list seems to be PyTorch Mobile's: list operators instead",
            )


def _operator(
    name: OperatorName, keys: Iterable[KernelKey | str], *sources: str
) -> SelectedOperator:
    keys = list(keys)
    return SelectedOperator(
        name=name,
        keys=tuple(sorted({key for key in keys if isinstance(key, KernelKey)})),
        every_dtype=DEFAULT in keys,
        origins=tuple(Origin(source) for source in sorted(set(sources))),
    )


def _name(text: str, source: str, problems: list[Diagnostic]) -> OperatorName | None:
    try:
        return OperatorName.parse(text)
    except ValueError as error:
        problems.append(
            Diagnostic(
                code="bad-operator",
                message=f"{source}: {error}",
                hint=_OPERATOR_HINT,
            )
        )
        return None


def _yaml_name(yaml: YamlFile, text: str, node: Node) -> OperatorName | None:
    try:
        return OperatorName.parse(text)
    except ValueError as error:
        yaml.problem("bad-operator", str(error), node, hint=_OPERATOR_HINT)
        return None


def _dtype_or_key(text: str) -> KernelKey | None:
    text = text.strip()
    dtype = _SPELLINGS.get(text) or ScalarType.__members__.get(text)
    if dtype is not None:
        # Without a dim order, which is how a 0-d tensor is written as well.
        return KernelKey((TensorMeta(dtype, ()),))
    try:
        return KernelKey.parse(text)
    except ValueError:
        return None


def _bad_dtype(text: str, who: str) -> Diagnostic:
    return Diagnostic(
        code="bad-dtype",
        message=f'{who} has "{text}", neither a dtype nor a kernel key',
        notes=(("expected", "a dtype such as Float, or a key such as v1/6;0,1|6;0,1"),),
        hint=did_you_mean(text, ScalarType.__members__)
        or "write Float, Half, Char, Int, Long, Bool or another name of ScalarType",
    )


def _json_pairs(text: str, source: str) -> list[tuple[str, object]]:
    """Names and values of a JSON object; a name that occurs twice stays twice."""
    try:
        found = json.loads(text, object_pairs_hook=_Pairs)
        problem = f"it is {type(found).__name__}"
    except (ValueError, RecursionError) as error:
        found, problem = None, str(error)
    if isinstance(found, _Pairs):
        return list(found)
    raise UsageError(
        Diagnostic(
            code="bad-ops-dict",
            message=f"{source} is no JSON object",
            notes=(("found", problem),),
            hint='write {"aten::add.out": ["Float"]}, in quotes for the shell',
        )
    )


class _Pairs(list[tuple[str, object]]):
    """A JSON object, not to be taken for a JSON array."""


def _shown(value: object) -> str:
    return "an object" if isinstance(value, _Pairs) else json.dumps(value)


def _is_texts(items: object) -> TypeGuard[list[str]]:
    return (
        isinstance(items, list)
        and not isinstance(items, _Pairs)
        and all(isinstance(item, str) for item in items)
    )


def _raise(problems: list[Diagnostic]) -> None:
    if problems:
        raise UsageError(problems)
