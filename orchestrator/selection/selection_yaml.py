"""Operator lists in YAML, `functions.yaml` and `selected_operators.yaml`, as requests.

Sources: ExecuTorch `codegen/tools/gen_oplist.py` and torchgen
`selective_build/selector.py` for the keys of lists and what they mean;
`docs/source/kernel-library-custom-aten-kernel.md` for kernel libraries.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from orchestrator.catalog.nodes import YamlFile, describe, is_null
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import KernelKey
from orchestrator.core.operator import OperatorName
from orchestrator.errors import ProfileError
from orchestrator.selection.op_info import Origin, SelectedOperator, Selection

DEFAULT_KEY: Final = "default"
"""Kernel key of an operator that is wanted with every dtype."""

# These select for PyTorch Mobile; ExecuTorch's tools write them empty.
_MOBILE_KEYS: tuple[str, ...] = ("build_features", "custom_classes", "kernel_metadata")
_MOBILE_FLAG = "include_all_non_op_selectives"
_LIST_KEYS: Final = (
    *("operators", "et_kernel_metadata", "include_all_operators"),
    *(*_MOBILE_KEYS, _MOBILE_FLAG, "debug_info"),
)
_OPERATOR_KEYS: Final = (
    "name",
    "debug_info",
    "include_all_overloads",
    "is_root_operator",
    "is_used_for_training",
)
_TRUE: Final = frozenset({"true", "yes", "on"})
_FALSE: Final = frozenset({"false", "no", "off"})
_NAME_OF_SCHEMA: Final = re.compile(r"\s*([\w:.]+)\s*\(")


def read_operator_list(
    text: str, *, file: str, origin: Origin, keep_sources: bool = False
) -> Selection:
    """Read an operator list of either form; an empty file requests nothing.

    - A kernel library (a YAML list): the operators of its `op:` and `func:` entries,
      with every dtype. Which kernels serve them does not come from this file.
    - Selected operators (a YAML mapping): the operators with their kernel keys. The
      key `default` stands for every dtype, and a key of one tensor without dim order,
      such as `v1/6;`, for a dtype with any dim orders; an empty list of keys
      stands for every dtype too. An operator that `et_kernel_metadata` does not have
      is only listed, like one that a model lists and never calls; in a file without
      `et_kernel_metadata` all have every dtype.

    Args:
        text: Of the file.
        file: Its path, for messages.
        origin: What requests the operators.
        keep_sources: Keep the origins that a list has itself (`debug_info`).

    Returns:
        Operators sorted by name, which are distinct.

    Raises:
        ProfileError: Every problem of the file.
    """
    reader = _Reader(YamlFile(file, text), keep_sources=keep_sources)
    reader.read()
    if reader.file.problems:
        raise ProfileError(reader.file.problems)
    return Selection(
        operators=tuple(
            SelectedOperator(
                name=name,
                keys=tuple(sorted(wanted.keys)),
                dtypes=tuple(sorted(wanted.dtypes)),
                every_dtype=wanted.every_dtype,
                origins=tuple(sorted(map(Origin, wanted.sources))) or (origin,),
            )
            for name, wanted in sorted(reader.operators.items())
        ),
        every_operator=reader.every_operator,
    )


@dataclass(slots=True)
class _Wanted:
    """The requests for one operator."""

    keys: set[KernelKey] = field(default_factory=set)
    dtypes: set[ScalarType] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    every_dtype: bool = False


class _Reader:
    def __init__(self, file: YamlFile, *, keep_sources: bool) -> None:
        self.file = file
        self.keep_sources = keep_sources
        self.operators: dict[OperatorName, _Wanted] = {}
        self.every_operator = False

    def read(self) -> None:
        root = self.file.root()
        match root:
            case None:
                pass  # empty, or the problem is noted
            case SequenceNode():
                for entry in root.value:
                    self._read_entry(entry)
            case MappingNode():
                self._read_selected(root)
            case _ if not is_null(root):
                self.file.problem(
                    "wrong-type",
                    f"{self.file.file} is not an operator list",
                    root,
                    notes=(
                        ("found", describe(root)),
                        ("expected", "a functions.yaml or selected_operators.yaml"),
                    ),
                    hint="write a list of `- op: aten::add.out`",
                )

    def _want(self, text: str, node: Node) -> _Wanted | None:
        """List the operator of a name and return it; None if it is not a name."""
        try:
            name = OperatorName.parse(text)
        except ValueError:
            self.file.problem(
                "bad-operator",
                f'"{text}" is not an operator name',
                node,
                notes=(("expected", "namespace::base.overload"),),
                hint="write it like aten::add.out",
            )
            return None
        return self.operators.setdefault(name, _Wanted())

    # Kernel libraries

    def _read_entry(self, node: Node) -> None:
        fields = self.file.mapping(node, "an entry of a kernel library")
        if fields is None:
            return
        given = [key for key in ("op", "func") if key in fields]
        if len(given) != 1:
            self.file.problem(
                "bad-entry",
                "an entry needs either `op` or `func`",
                node,
                notes=(("found", ", ".join(fields) or "nothing"),),
                hint="write `- op: aten::add.out`, or `- func:` and the schema",
            )
            return
        text = self.file.scalar(fields[given[0]], f"`{given[0]}`")
        if text is None:
            return
        if given == ["func"]:
            match = _NAME_OF_SCHEMA.match(text)
            if match is None:
                self.file.problem(
                    "bad-schema",
                    f'"{text}" is not an op schema',
                    fields["func"],
                    notes=(("expected", "name(arguments) -> returns"),),
                    hint="give the schema, or write `op:` and only the name",
                )
                return
            text = match[1]
        if wanted := self._want(text, fields[given[0]]):
            wanted.every_dtype = True

    # Selected operators

    def _read_selected(self, root: Node) -> None:
        found = self.file.mapping(root, "an operator list", _LIST_KEYS) or {}
        fields = {key: value for key, value in found.items() if not is_null(value)}
        self._reject_mobile_keys(fields)
        if node := fields.get("include_all_operators"):
            self.every_operator = self._boolean(node, "include_all_operators")
        if node := fields.get("operators"):
            self._read_operators(node)
        if node := fields.get("et_kernel_metadata"):
            self._read_keys(node)
        else:
            for wanted in self.operators.values():
                wanted.every_dtype = True

    def _read_operators(self, node: Node) -> None:
        for text, key, value in self._named(node, "operators"):
            wanted = self._want(text, key)
            if is_null(value):
                continue
            what = f'operator "{text}"'
            fields = self.file.mapping(value, what, _OPERATOR_KEYS) or {}
            # A name with an overload has no others: then it says nothing.
            overloads = fields.get("include_all_overloads")
            if (
                wanted is not None
                and overloads is not None
                and self._boolean(overloads, "include_all_overloads")
                and not OperatorName.parse(text).overload
            ):
                self.file.problem(
                    "bad-oplist",
                    f'"{text}" requests all overloads of an operator',
                    overloads,
                    notes=(("expected", "include_all_overloads: false"),),
                    hint="list each overload as a separate operator",
                )
            sources = self._sources(fields.get("debug_info"))
            if wanted is not None and self.keep_sources:
                wanted.sources.update(sources)

    def _sources(self, node: Node | None) -> list[str]:
        """What requests an operator, according to the list."""
        if node is None or is_null(node):
            return []
        items = self.file.sequence(node, "`debug_info`") or []
        # ExecuTorch's tool writes a null for operators that no file requests.
        texts = [self.file.scalar(item, "a source") for item in items if not is_null(item)]
        return [text for text in texts if text is not None]

    def _read_keys(self, node: Node) -> None:
        for text, key, value in self._named(node, "et_kernel_metadata"):
            wanted = self._want(text, key)
            found = self.file.scalars(value, f'the kernel keys of "{text}"')
            if wanted is None:
                continue
            # An operator without keys has all of them, as in ExecuTorch's tools.
            wanted.every_dtype |= not found
            for key_text, item in found:
                self._add_key(wanted, key_text.strip(), item)

    def _named(self, node: Node, what: str) -> list[tuple[str, Node, Node]]:
        """Name, where it stands, and what is said of it, of every operator."""
        named = self.file.mapping(node, what)
        if named is None or not isinstance(node, MappingNode):
            return []
        places = {key.value: key for key, _ in node.value}
        return [(name, places[name], value) for name, value in named.items()]

    def _reject_mobile_keys(self, fields: dict[str, Node]) -> None:
        asked = [key for key in _MOBILE_KEYS if key in fields and fields[key].value]
        flag = fields.get(_MOBILE_FLAG)
        if flag is not None and self._boolean(flag, _MOBILE_FLAG):
            asked.append(_MOBILE_FLAG)
        for key in asked:
            self.file.problem(
                "bad-oplist",
                f"`{key}` has no meaning for ExecuTorch and would be lost",
                fields[key],
                hint="this list seems to be PyTorch Mobile's: list operators instead",
            )

    def _add_key(self, wanted: _Wanted, text: str, node: Node) -> None:
        if text == DEFAULT_KEY:
            wanted.every_dtype = True
            return
        key = _parse_key(text)
        if key is None:
            self.file.problem(
                "bad-kernel-key",
                f'"{text}" is not a kernel key',
                node,
                notes=(("expected", f"v1/6;0,1|6;0,1 or v1/6; or {DEFAULT_KEY}"),),
                hint="write dtype codes and dim orders as the programs have them",
            )
        # ExecuTorch's tool writes a dtype as a key of one tensor without dimensions.
        elif len(key.tensors) == 1 and not key.tensors[0].dim_order:
            wanted.dtypes.add(key.tensors[0].dtype)
        else:
            wanted.keys.add(key)

    def _boolean(self, node: Node, what: str) -> bool:
        text = node.value.lower() if isinstance(node, ScalarNode) else ""
        if text in _TRUE | _FALSE:
            return text in _TRUE
        self.file.problem(
            "wrong-type",
            f"{what} must be true or false",
            node,
            notes=(("found", describe(node)),),
            hint="write true or false",
        )
        return False


def _parse_key(text: str) -> KernelKey | None:
    """A kernel key whose dim orders are permutations; None if it is none."""
    try:
        key = KernelKey.parse(text)
    except ValueError:
        return None
    orders = (tensor.dim_order for tensor in key.tensors)
    if all(sorted(order) == list(range(len(order))) for order in orders):
        return key
    return None
