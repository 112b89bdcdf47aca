"""Read one entry of a `functions.yaml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from yaml.nodes import Node, SequenceNode

from orchestrator.catalog.expressions.reader import compiled
from orchestrator.catalog.expressions.values import ExpressionError, Kind
from orchestrator.catalog.keys import KeyReader, tensor_arguments
from orchestrator.catalog.nodes import is_null, line_of
from orchestrator.catalog.scratch_arguments import scratch_arguments
from orchestrator.core.dtype import ALL
from orchestrator.core.kernel import Kernel, KernelKey
from orchestrator.core.operator import ArgKind, Argument, OperatorName, OpSchema, parse_schema
from orchestrator.errors import did_you_mean

if TYPE_CHECKING:
    from orchestrator.catalog.keys import ArgumentDtypes
    from orchestrator.catalog.nodes import YamlFile

# ExecuTorch's keys first. Those in the second line do not matter for our kernels.
_ENTRY_KEYS = (
    *("op", "func", "kernels", "type_alias", "dim_order_alias"),
    *("variants", "tags", "dispatch", "cpp_no_default_args"),
    *("sources", "dtypes", "dtype_arguments", "argument_sets"),
    *("closure", "dim_orders", "scratch", "in_place", "requires"),
    *("isas", "error"),
)
_KERNEL_KEYS = ("arg_meta", "kernel_name")
_DIM_ORDERS = ("any", "same", "contiguous")
_ISAS = ("dsp", "mve")
_ERROR = re.compile(r"undefined|[1-9][0-9]* ulp(?: of the terms)?")
_FUNCTION = re.compile(r"[A-Za-z_]\w*(?:::[A-Za-z_]\w*)+", re.ASCII)
# Relative on every system: without a drive, a backslash or a slash in front.
_SOURCE = re.compile(r"[^\\:/\s]+(?:/[^\\:/\s]+)*")


class EntryReader:
    """Reads the entries of one library; problems are recorded in its file.

    Args:
        file: Where problems are recorded.
        library: The library.
        schemas: Schemas for entries that have only the operator's name.
    """

    def __init__(
        self, file: YamlFile, library: LibraryText, schemas: Mapping[OperatorName, OpSchema]
    ) -> None:
        self._file = file
        self._library = library
        self._schemas = schemas
        self._keys = KeyReader(file)

    def read(self, node: Node) -> list[Kernel]:
        """Kernels of an entry."""
        fields = self._file.mapping(node, "a kernel entry", _ENTRY_KEYS)
        schema = self._schema(node, fields) if fields is not None else None
        if fields is None or schema is None:
            return []
        # Each reader records its own problems, so an entry shows all of them at once.
        tensors = tensor_arguments(schema)
        sources = self._sources(node, fields.get("sources"))
        dtypes = self._argument_dtypes(fields.get("dtypes"), tensors)
        dtype_arguments = self._dtype_arguments(fields.get("dtype_arguments"), tensors)
        argument_sets = self._argument_sets(fields.get("argument_sets"), dtype_arguments)
        closure = self._keys.dtypes(fields.get("closure"), "`closure`")
        dim_orders = self._dim_orders(fields.get("dim_orders"))
        scratch = self._scratch(fields.get("scratch"), schema)
        in_place = self._in_place(fields.get("in_place"), schema)
        requires = self._requires(fields.get("requires"), schema)
        isas = self._isas(fields.get("isas"))
        error = self._error(fields.get("error"))
        return [
            Kernel(
                operator=schema.name,
                schema=schema,
                library=self._library.name,
                function=function,
                sources=sources,
                keys=keys,
                dtypes=of_keys or dtypes,
                dtype_arguments=dtype_arguments,
                argument_sets=argument_sets,
                closure=closure,
                dim_orders=dim_orders,
                entry=f"{self._file.file}:{line_of(node)}",
                scratch=scratch,
                in_place=in_place,
                requires=requires,
                isas=isas,
                error=error,
            )
            for function, keys, of_keys in self._kernels(node, fields, schema)
        ]

    def _schema(self, node: Node, fields: dict[str, Node]) -> OpSchema | None:
        if ("op" in fields) == ("func" in fields):
            self._file.problem(
                "bad-entry",
                "a kernel entry needs either `op` or `func`",
                node,
                hint="write `- func:` with the op schema",
            )
            return None
        what = "func" if "func" in fields else "op"
        text = self._file.scalar(fields[what], f"`{what}`")
        if text is None:
            return None
        try:
            if what == "func":
                return parse_schema(text)
            name = OperatorName.parse(text)
        except ValueError as error:
            hint = "write it as PyTorch's native_functions.yaml does"
            self._file.problem("bad-schema", str(error), fields[what], hint=hint)
            return None
        schema = self._schemas.get(name)
        if schema is None:
            near = did_you_mean(str(name), map(str, self._schemas))
            self._file.problem(
                "missing-schema",
                f"no kernel library has the schema of {name}",
                fields[what],
                hint=near or f"write `- func: {name}(...) -> ...` with its schema",
            )
        return schema

    def _sources(self, entry: Node, node: Node | None) -> tuple[str, ...]:
        """Files to compile for an entry, relative to the library's folder."""
        library = self._library
        found = self._file.scalars(node, "`sources`")
        prefix = f"{library.folder}/" if library.folder else ""
        for source, item in found:
            if _SOURCE.fullmatch(source) is None or ".." in source.split("/"):
                self._file.problem(
                    "bad-source",
                    f'"{source}" is not a file in the folder of the library',
                    item,
                    hint="write a path relative to this file, with / and without ..",
                )
            elif library.files is not None and prefix + source not in library.files:
                self._file.problem(
                    "missing-file",
                    f'there is no source "{source}"',
                    item,
                    notes=(("expected", "a C++, C or assembler file of the library"),),
                    hint="check the path, relative to the folder of this file",
                )
        named = (prefix + source for source, _ in found)
        sources = tuple(dict.fromkeys((*named, *library.sources)))
        if not sources and library.files is not None:
            self._file.problem(
                "missing-source",
                "nothing is compiled for this kernel",
                entry,
                hint="add `sources` to it, or to the library in the profile",
            )
        return sources

    def _argument_dtypes(self, node: Node | None, tensors: dict[str, Argument]) -> ArgumentDtypes:
        """Dtypes per tensor argument; without `dtypes` the kernel takes all of them."""
        if node is None:
            return tuple((name, ALL) for name in tensors)
        if isinstance(node, SequenceNode):
            dtypes = self._keys.dtypes(node, "`dtypes`")
            return tuple((name, dtypes) for name in tensors)
        fields = self._file.mapping(node, "`dtypes`")
        if fields is None:
            return ()
        for name, value in fields.items():
            self._keys.argument(name, value, tensors)
        for name in tensors:
            if name not in fields:
                self._file.problem(
                    "missing-argument",
                    f'`dtypes` lacks the argument "{name}"',
                    node,
                    hint="list every tensor argument, or write one list for all",
                )
        return tuple(
            (name, self._keys.dtypes(fields.get(name), f"`dtypes` of {name}")) for name in tensors
        )

    def _dtype_arguments(self, node: Node | None, tensors: dict[str, Argument]) -> tuple[str, ...]:
        if node is None:
            return tuple(tensors)
        found = self._file.scalars(node, "`dtype_arguments`")
        for name, item in found:
            self._keys.argument(name, item, tensors)
        return tuple(dict.fromkeys(name for name, _ in found))

    def _argument_sets(self, node: Node | None, deciding: tuple[str, ...]) -> tuple[str, ...]:
        found = self._file.scalars(node, "`argument_sets`")
        for name, item in found:
            if name not in deciding:
                message = f'"{name}" does not decide what is instantiated'
                hint = "name arguments of `dtype_arguments`"
                self._file.unknown(name, item, deciding, message, hint=hint)
        return tuple(dict.fromkeys(name for name, _ in found))

    def _dim_orders(self, node: Node | None) -> str:
        text = self._file.scalar(node, "`dim_orders`") if node else "any"
        if node is not None and text is not None and text not in _DIM_ORDERS:
            self._file.unknown(
                *(text, node, _DIM_ORDERS, f'`dim_orders` cannot be "{text}"'),
                hint="use one of these",
                code="bad-dim-orders",
            )
        return text or "any"

    def _scratch(self, node: Node | None, schema: OpSchema) -> tuple[tuple[str, str], ...]:
        """(argument, expression for its size), in the schema's order.

        A library in ExecuTorch's own form has no sizes. That is an error only when an
        operator with scratch arguments is linked.
        """
        fields = self._file.mapping(node, "`scratch`") if node is not None else None
        if node is None or fields is None:
            return ()
        known = [argument.name for _, argument in scratch_arguments(schema)]
        sizes = {}
        for name, value in fields.items():
            text = self._file.scalar(value, f"`scratch` of {name}")
            if name not in known:
                message = f'"{name}" is not a scratch argument of {schema.name}'
                hint = "scratch arguments are tensors named scratch, or ..._scratch"
                self._file.unknown(name, value, known, message, hint=hint)
            elif text is not None:
                sizes[name] = self._scratch_size(value, name, text, schema)
        for name in known:
            if name not in fields:
                self._file.problem(
                    "missing-argument",
                    f'`scratch` lacks the argument "{name}"',
                    node,
                    hint="give the size of every scratch argument, 0 if it is not used",
                )
        return tuple((name, sizes[name]) for name in known if name in sizes)

    def _scratch_size(self, node: Node, name: str, text: str, schema: OpSchema) -> str:
        text = " ".join(text.split())
        try:
            compiled(text, schema, Kind.NUMBER)
        except ExpressionError as error:
            self._file.problem(
                "bad-scratch-size",
                f"`scratch` of {name}: {error}",
                node,
                notes=(("found", text), ("schema", schema.text)),
                hint="docs/scratch.md describes such expressions",
            )
        return text

    def _in_place(self, node: Node | None, schema: OpSchema) -> tuple[str, ...]:
        """Inputs that may share memory with the output, in the schema's order."""
        if node is None:
            return ()
        outs = [a.name for a in schema.arguments if a.is_out]
        # It would not be said which of several outputs may lie over the input.
        if len(outs) != 1:
            self._file.problem(
                "bad-entry",
                f"`in_place` is for operators with one output; {schema.name} has {len(outs)}",
                node,
                hint="leave it out",
            )
            return ()
        known = [
            a.name for a in schema.arguments if a.kind is ArgKind.TENSOR and a.name not in outs
        ]
        found = self._file.scalars(node, "`in_place`")
        for name, item in found:
            if name not in known:
                message = f'"{name}" is not an input of {schema.name}'
                hint = "name tensors that the kernel reads"
                self._file.unknown(name, item, known, message, hint=hint)
        named = {name for name, _ in found}
        return tuple(name for name in known if name in named)

    def _isas(self, node: Node | None) -> tuple[str, ...]:
        """Instruction sets with code of their own."""
        found = self._file.scalars(node, "`isas`")
        for name, item in found:
            if name not in _ISAS:
                message, hint = (f'unknown instruction set "{name}"', "name dsp, mve or both")
                self._file.unknown(name, item, _ISAS, message, hint=hint, code="bad-entry")
        return tuple(name for name, _ in found)

    def _error(self, node: Node | None) -> str:
        """The largest error of floats."""
        if node is None:
            return ""
        text = self._file.scalar(node, "`error`")
        if text and not _ERROR.fullmatch(text):
            self._file.problem(
                "bad-entry",
                f'cannot read the error "{text}"',
                node,
                hint='write "2 ulp", "4 ulp of the terms" or "undefined"',
            )
        return text or ""

    def _requires(self, node: Node | None, schema: OpSchema) -> tuple[str, ...]:
        """Conditions on the arguments of a call, in the order of the file."""
        found = self._file.scalars(node, "`requires`")
        texts = []
        for written, item in found:
            text = " ".join(written.split())
            try:
                compiled(text, schema, Kind.TRUTH)
            except ExpressionError as error:
                self._file.problem(
                    "bad-condition",
                    f"`requires`: {error}",
                    item,
                    notes=(("found", text), ("schema", schema.text)),
                    hint="docs/kernels.md describes conditions",
                )
            else:
                texts.append(text)
        return tuple(texts)

    def _kernels(
        self, node: Node, fields: dict[str, Node], schema: OpSchema
    ) -> list[tuple[str, tuple[KernelKey, ...], ArgumentDtypes]]:
        """Function, keys and dtypes of the keys of each kernel of an entry."""
        kernels = fields.get("kernels")
        items = self._file.sequence(kernels, "`kernels`") if kernels else []
        if items is not None and not items:
            self._file.problem(
                "bad-entry",
                f"the entry of {schema.name} has no kernels",
                node,
                hint="list its `kernels`, each with a `kernel_name`",
            )
        aliases = self._keys.aliases(fields.get("type_alias"), fields.get("dim_order_alias"))
        found = []
        for item in items or ():
            kernel = self._file.mapping(item, "a kernel", _KERNEL_KEYS)
            if kernel is None:
                continue
            function = self._function(item, kernel.get("kernel_name"))
            meta = kernel.get("arg_meta")
            keyed: tuple[tuple[KernelKey, ...], ArgumentDtypes] | None = ((), ())
            if meta is not None and not is_null(meta):
                keyed = self._keys.keys(meta, schema, *aliases)
            if function is not None and keyed is not None:
                found.append((function, *keyed))
        return found

    def _function(self, kernel: Node, node: Node | None) -> str | None:
        if node is None:
            message = "a kernel needs a `kernel_name`"
        else:
            name = self._file.scalar(node, "`kernel_name`")
            if name is None or _FUNCTION.fullmatch(name):
                return name
            message = f'"{name}" is not a qualified C++ function name'
        self._file.problem(
            "bad-kernel-name",
            message,
            node or kernel,
            hint="write it with its namespaces, like my_kernels::add_out",
        )
        return None


# The kernels of several libraries, in the order in which they are tried.


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryText:
    """A kernel library's `functions.yaml`.

    Args:
        name: Name of the library, as the profile writes it.
        file: Path of the file, for messages.
        text: Its text.
        folder: Folder of the file in the library, POSIX; "" for the library's folder.
        sources: Files compiled with every kernel, relative to the library's folder.
        files: All files of the library; None if unknown.
    """

    name: str
    file: str
    text: str
    folder: str = ""
    sources: tuple[str, ...] = ()
    files: frozenset[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All kernels of the libraries.

    Within one library an (operator, kernel key) occurs once, and all libraries agree
    on the signature of an operator: `read_catalog` checks both.

    Args:
        libraries: (name, kernels), in the order in which they are tried.
        order: (operator, libraries that are tried for it instead of all).
    """

    libraries: tuple[tuple[str, tuple[Kernel, ...]], ...] = ()
    order: tuple[tuple[OperatorName, tuple[str, ...]], ...] = ()
    _offers: Mapping[OperatorName, tuple[tuple[Kernel, ...], ...]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        offers: dict[OperatorName, dict[str, list[Kernel]]] = {}
        for library, kernels in self.libraries:
            for kernel in kernels:
                by_library = offers.setdefault(kernel.operator, {})
                by_library.setdefault(library, []).append(kernel)
        for operator, names in self.order:
            found = offers.get(operator, {})
            offers[operator] = {name: found[name] for name in names if name in found}
        frozen = {
            name: tuple(tuple(kernels) for kernels in by_library.values())
            for name, by_library in offers.items()
            if by_library
        }
        object.__setattr__(self, "_offers", MappingProxyType(frozen))

    @property
    def operators(self) -> tuple[OperatorName, ...]:
        """Every operator that has a kernel, sorted by the text of its name."""
        return tuple(sorted(self._offers, key=str))

    def offers(self, name: OperatorName) -> tuple[tuple[Kernel, ...], ...]:
        """Kernels of an operator, by library; libraries without one are left out."""
        return self._offers.get(name, ())
