"""Definitions of a method's functions, which include/<profile>.h declares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from orchestrator.emit.generate.caller import (
    after_run,
    before_run,
    check_memory,
    clear_memory,
    row_of,
    rows_functions,
    set_function,
    set_memory,
)
from orchestrator.emit.generate.names import cpp_name, cpp_namespace
from orchestrator.emit.generate.ports import (
    ApiMethod,
    Port,
    accessor,
    c_item,
    c_parameters,
    c_scalar,
    run_at_parameters,
    run_parameters,
    step_parameters,
)
from orchestrator.memory.plan import identifier
from orchestrator.program.interface import NUMBER_LISTS, TENSOR_LISTS
from orchestrator.program.values import (
    VALUE_KINDS,
    IntListValue,
    NoneValue,
    StringValue,
    TensorValue,
    Value,
)

if TYPE_CHECKING:
    from orchestrator.emit.generate.ports import ApiMethod


def api_functions(method: ApiMethod, *, is_linked: bool) -> str:
    """Definitions of all functions of a method."""
    entry = f"orch::{method.base}_method"
    ports = method.ports
    if method.by_rows is not None:
        return "\n".join(_by_rows(entry, method, method.by_rows))
    inputs = [p for p in ports if p.is_input]
    outputs = [p for p in ports if not p.is_input]
    parameters = _defined(c_parameters(method))
    body = [
        f"orch_status {method.base}({parameters}) {{",
        f"  const orch::ModelMethod& method = {entry};",
        "  orch::Error error = orch::prepare(method);",
    ]
    for port in inputs:
        if port.is_given:
            body += [*set_memory(port), *_resized(method, port)]
            continue
        body += [
            *_bounded(method, port),
            "  if (error == orch::Error::Ok) {",
            *(f"    {line}" for line in _give_input(port)),
            "  }",
        ]
    for port in outputs:
        body += set_memory(port) if port.is_given else ()
    body += [
        *check_memory(method),
        "  if (error == orch::Error::Ok) {",
        *before_run(inputs),
        "    error = orch::run(method).error;",
        *after_run(inputs),
        "  }",
    ]
    for port in outputs:
        if port.is_given and not _is_dynamic(port):
            continue  # its memory is the caller's
        body += [
            "  if (error == orch::Error::Ok) {",
            *(f"    {line}" for line in _get_output(port)),
            "  }",
        ]
    body += [*clear_memory(method), "  return status(error);", "}"]
    for port in ports:
        for line in _accessors(method, port):
            body.append(line)
    body += [
        "",
        f"orch_status {method.base}_run({_defined(run_parameters(method))}) {{",
        *_prepared(entry, method, inputs),
        *check_memory(method),
        "  if (error == orch::Error::Ok) {",
        *before_run(inputs),
        "    error = orch::run(method).error;",
        *after_run(inputs),
        "  }",
        "  return status(error);",
        "}",
        "",
        f"orch_status {method.base}_run_at({_defined(run_at_parameters(method))}) {{",
        *_prepared(entry, method, inputs),
        "  *instruction = UINT32_MAX;",
        *check_memory(method),
        "  if (error == orch::Error::Ok) {",
        *before_run(inputs),
        "    const orch::RunStatus run = orch::run(method);",
        *after_run(inputs),
        "    error = run.error;",
        "    if (error != orch::Error::Ok) *instruction = run.instruction;",
        "  }",
        "  return status(error);",
        "}",
    ]
    body += _in_parts(entry, method, inputs)
    if not is_linked:
        body += ["", *load_function(entry, method)]
    return "\n".join(body)


def _in_parts(entry: str, method: ApiMethod, inputs: list[Port]) -> Iterator[str]:
    """Functions that prepare a method, run it in parts, and give such a run up."""
    base = method.base
    partial = f"orch::{base}_partial"
    yield ""
    yield f"orch_status {base}_prepare() {{"
    yield f"  return status(orch::prepare({entry}));"
    yield "}"
    yield ""
    yield f"orch_status {base}_step({_defined(step_parameters(method))}) {{"
    yield f"  if ({partial}.executed == 0) {{"
    yield from (f"  {line}" for line in _prepared(entry, method, inputs))
    yield from (f"  {line}" for line in check_memory(method))
    yield "    if (error != orch::Error::Ok) return status(error);"
    yield from before_run(inputs)
    yield "  }"
    yield f"  const orch::ModelMethod& method = {entry};"
    yield "  const orch::Error error ="
    yield f"      orch::run_part(method, {partial}, instructions);"
    if kept := after_run(inputs):
        yield "  if (error != orch::Error::NotDone) {"
        yield from kept
        yield "  }"
    yield "  return status(error);"
    yield "}"
    yield ""
    yield f"void {base}_cancel() {{"
    yield f"  {partial} = {{}};"
    yield "}"


def _by_rows(entry: str, method: ApiMethod, port: Port) -> Iterator[str]:
    """Functions of a method whose input comes by rows."""
    base, count = method.base, port.row_count
    yield from rows_functions(entry, method, port)
    yield f"orch_status {base}({_defined(c_parameters(method))}) {{"
    yield f"  const orch::ModelMethod& method = {entry};"
    yield "  orch::Error error = orch::begin_rows(method);"
    yield "  if (error == orch::Error::Ok) {"
    yield f"    error = orch::push_rows(method, {port.name}, {count}, {row_of(port)});"
    yield "  }"
    for output in method.ports:
        if not output.is_input:
            yield "  if (error == orch::Error::Ok) {"
            yield from (f"    {line}" for line in _get_output(output))
            yield "  }"
    yield "  return status(error);"
    yield "}"
    for output in method.ports:
        if not output.is_input:
            yield from _accessors(method, output)


def _prepared(entry: str, method: ApiMethod, inputs: list[Port]) -> list[str]:
    """Prepares a method, and sets inputs that are not written through a pointer."""
    body = [
        f"  const orch::ModelMethod& method = {entry};",
        "  orch::Error error = orch::prepare(method);",
    ]
    for port in inputs:
        body += _resized(method, port)
        if not isinstance(port.value, TensorValue):
            body += ["  if (error == orch::Error::Ok) {", f"    {_set_scalar(port)}", "  }"]
    return body


def _is_dynamic(port: Port) -> bool:
    return isinstance(port.value, TensorValue) and port.value.is_dynamic


def _bounded(method: ApiMethod, port: Port) -> Iterator[str]:
    """Refuses sizes that the program is not for; `resize` refuses larger ones."""
    for bound in port.bounds:
        name = f"{method.base}_{port.name}".upper() + f"_DIM{bound.dim}"
        yield "  if (error == orch::Error::Ok) {"
        yield f"    const int32_t size = {port.name}_sizes[{bound.dim}];"
        yield f"    const int32_t least = {name}_MIN;"
        yield f"    if (size < least || (size - least) % {name}_STEP != 0) {{"
        yield "      error = orch::Error::InvalidArgument;"
        yield "    }"
        yield "  }"


def _resized(method: ApiMethod, port: Port) -> list[str]:
    """Sets the sizes of a dynamic input to those that the caller gave."""
    if not isinstance(port.value, TensorValue) or not port.value.is_dynamic:
        return []
    return [
        *_bounded(method, port),
        "  if (error == orch::Error::Ok) {",
        f"    error = orch::resize({port.place}.tensor(),",
        f"                         {{{port.name}_sizes, {len(port.value.sizes)}}});",
        "  }",
    ]


def _defined(parameters: str) -> str:
    """Parameters of a declaration, for its definition in C++."""
    if parameters == "void":
        return ""
    return re.sub(r"ORCH_AT_LEAST\((\d+)\)", r"\1", parameters)


def _set_scalar(port: Port) -> str:
    kind = accessor(port.value)
    value = f"{port.name} != 0" if kind == "bool" else port.name
    return f"{port.place}.set_{kind}({value});"


def _give_input(port: Port) -> list[str]:
    """Copies a parameter to the method's input."""
    value = port.value
    if not isinstance(value, TensorValue):
        return [_set_scalar(port)]
    sizes = f"{port.place}.tensor().sizes()"
    if value.is_dynamic:
        sizes = f"{{{port.name}_sizes, {len(value.sizes)}}}"
    if port.item is not None:
        return [
            f"error = orch::write_tensor({port.place}.tensor(),",
            f"                           {port.name}, {sizes});",
        ]
    return [
        f"error = orch::set_input(method, {port.index}, {port.name},",
        f"                        {sizes});",
    ]


def _accessors(method: ApiMethod, port: Port) -> Iterator[str]:
    """Functions that access a port without a copy."""
    value = port.value
    name = f"{method.base}_{port.name}"
    if port.is_given:
        yield ""
        yield from set_function(f"orch::{method.base}_method", method, port)
    elif isinstance(value, TensorValue):
        c_type = port.c_type
        declared = f"{c_type}*" if port.is_input else f"const {c_type}*"
        result = f"{port.place}.tensor().mutable_data<{c_type}>()"
        yield from _accessor(method, f"{declared} {name}(void)", result)
    elif port.is_input:
        return  # a parameter of run
    elif isinstance(value, IntListValue):
        result = f"orch::list_int(method, {port.index}, index)"
        yield from _accessor(method, f"int64_t {name}_item(uint32_t index)", result)
        yield from _count(method, port, "count")
    elif isinstance(value, (StringValue, *NUMBER_LISTS)):
        c_type = "char" if isinstance(value, StringValue) else c_item(value)
        result = f"static_cast<const {c_type}*>({port.place}.list().items)"
        yield from _accessor(method, f"const {c_type}* {name}(void)", result)
        end = "length" if isinstance(value, StringValue) else "count"
        yield from _count(method, port, end)
    else:
        result = f"{port.place}.to_{accessor(value)}()"
        yield from _accessor(method, f"{c_scalar(value)} {name}(void)", result)


def _count(method: ApiMethod, port: Port, end: str) -> Iterator[str]:
    declared = f"uint32_t {method.base}_{port.name}_{end}(void)"
    return _accessor(method, declared, f"{port.place}.list().count")


def _accessor(method: ApiMethod, declared: str, result: str) -> Iterator[str]:
    yield ""
    yield f"{declared} {{"
    yield f"  const orch::ModelMethod& method = orch::{method.base}_method;"
    nothing = "nullptr" if "*" in declared else "0"
    yield f"  if (orch::prepare(method) != orch::Error::Ok) return {nothing};"
    yield f"  return {result};"
    yield "}"


def _get_output(port: Port) -> list[str]:
    value, source = port.value, port.place
    if port.is_given:
        return [f"orch::get_sizes(method, {port.index}, {port.name}_sizes);"]
    if isinstance(value, TensorValue):
        sizes = f"{port.name}_sizes" if value.is_dynamic else "nullptr"
        if port.item is not None:
            return [
                f"error = orch::read_tensor({source}.tensor(), {port.name},",
                f"                          {value.size_bytes}, {sizes});",
            ]
        return [
            f"error = orch::get_output(method, {port.index}, {port.name},",
            f"                         {value.size_bytes}, {sizes});",
        ]
    if isinstance(value, IntListValue):
        return [
            f"error = orch::get_ints(method, {port.index}, {port.name},",
            f"                       {max(port.most_items, 1)}, {port.name}_count);",
        ]
    if isinstance(value, (StringValue, *NUMBER_LISTS)):
        is_text = isinstance(value, StringValue)
        c_type = "char" if is_text else c_item(value)
        return [
            f"*{port.name} = static_cast<const {c_type}*>({source}.list().items);",
            f"*{port.name}_{'length' if is_text else 'count'} = {source}.list().count;",
        ]
    return [f"*{port.name} = {source}.to_{accessor(value)}();"]


def load_function(entry: str, method: ApiMethod) -> Iterator[str]:
    """The function that loads another program, with the interface it must have."""
    m = method.method
    yield f"orch_status {method.base}_load(const void* program, uint32_t size) {{"
    yield f"  const orch::ModelMethod& method = {entry};"
    yield "  if (program == nullptr) {"
    yield "    orch::unload(method);"
    yield "    return status(orch::prepare(method));"
    yield "  }"
    spans = []
    checks = []
    for side, indices in (("inputs", m.inputs), ("outputs", m.outputs)):
        promised = []
        for place, index in enumerate(indices):
            value = m.values[index]
            name = f"{side}{place}"
            is_given = method.is_given(place, is_input=side == "inputs")
            promised.append(_port(value, name, is_given=is_given))
            yield from _arrays(value, name)
            if not isinstance(value, TENSOR_LISTS) or not value.items:
                continue
            items = [m.values[i] if i >= 0 else NoneValue() for i in value.items]
            for number, item in enumerate(items):
                yield from _arrays(item, f"{name}_item{number}")
            ports = [_port(x, f"{name}_item{n}") for n, x in enumerate(items)]
            yield f"  static constexpr orch::Port {name}_items[] = {{"
            yield ",\n".join(ports) + "};"
            writable = "true" if side == "inputs" else "false"
            checks.append(
                f"orch::items_fit(method, orch::{side[:-1]}(method, {place}),\n"
                f"                       {name}_items, {writable})"
            )
        if promised:
            yield f"  static constexpr orch::Port {side}[] = {{"
            yield ",\n".join(promised) + "};"
        spans.append(side if promised else "{}")
    replaced = (
        "orch::replace(",
        "      method, {static_cast<const uint8_t*>(program), size},",
        f"      {spans[0]}, {spans[1]})",
    )
    if not checks:
        yield f"  return status({replaced[0]}"
        yield from (replaced[1], f"{replaced[2]});", "}")
        return
    yield f"  orch::Error error = {replaced[0]}"
    yield from (replaced[1], f"{replaced[2]};")
    for check in checks:
        yield f"  if (error == orch::Error::Ok &&\n      !{check}) {{"
        yield "    error = orch::Error::InvalidArgument;\n  }"
    yield "  if (error != orch::Error::Ok) orch::unload(method);"
    yield "  return status(error);"
    yield "}"


def _arrays(value: Value, name: str) -> Iterator[str]:
    """Sizes and dim order of a tensor that has dimensions."""
    if isinstance(value, TensorValue) and value.sizes:
        sizes, order = _items(value.sizes), _items(value.dim_order)
        yield f"  static constexpr int32_t {name}_sizes[] = {{{sizes}}};"
        yield f"  static constexpr uint8_t {name}_order[] = {{{order}}};"


def _port(value: Value, name: str, *, is_given: bool = False) -> str:
    """The interface of a value; its arrays have this name."""
    if not isinstance(value, TensorValue):
        return f"      {{{VALUE_KINDS[type(value)].tag}, {', '.join(['{}'] * 5)}}}"
    arrays = f"{name}_sizes, {name}_order" if value.sizes else "nullptr, nullptr"
    flags = ["orch::Tensor::kDynamic"] if value.is_dynamic else []
    flags += ["orch::Tensor::kCaller"] if is_given else []
    return (
        f"      {{orch::Tag::Tensor, orch::ScalarType::{value.dtype.name},"
        f" {' | '.join(flags) or 0}, {len(value.sizes)}, {arrays}}}"
    )


def _items(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


# Functions of all instances of a model, which choose one by its number.

_DECLARED: Final = re.compile(
    r"^(?P<inline>static inline )?(?P<type>[\w ]+[ *]+)(?P<name>\w+)"
    r"\((?P<parameters>[^{};]*)\)(?P<end>;| \{)$",
    re.MULTILINE,
)
_NAME: Final = re.compile(r"(\w+)(?:\[.*)?$")
_CONSTANT: Final = re.compile(r"^#define (\w+)", re.MULTILINE)


def groups_of(
    methods: Sequence[ApiMethod], instances: Mapping[str, str]
) -> dict[str, list[ApiMethod]]:
    """By name of a model with instances: the methods of its first one.

    Args:
        methods: Methods of the product.
        instances: By name of an instance: what the profile names the model.
    """
    first: dict[str, str] = {}
    for model, of in instances.items():
        first.setdefault(of, model)
    return {of: [m for m in methods if m.model == model] for of, model in first.items()}


def count_of(model: str, instances: Mapping[str, str]) -> int:
    """How many instances a model has."""
    return sum(of == model for of in instances.values())


def instance_functions(profile: str, model: str, count: int, method: ApiMethod, text: str) -> str:
    """Functions and constants of a method, for an instance by its number.

    They are inline: with a number that the compiler knows, a call is one of the
    instance's own function.

    Args:
        profile: Name of the profile.
        model: What the profile names the model.
        count: Of its instances.
        method: A method of its first instance.
        text: Its part of the header.
    """
    own = f"{identifier(profile)}_{model}_0_"
    of_all = own.removesuffix("0_")
    parts = [f"/* Model {model}, method {method.method.name}: an instance by its number. */"]
    parts += [
        f"#define {name.replace(own.upper(), of_all.upper(), 1)} {name}"
        for name in _CONSTANT.findall(text)
        if name.startswith(own.upper())
    ]
    for found in _DECLARED.finditer(text):
        if found["name"].startswith(own):
            parts += _function(found, own, of_all, count)
    return "\n".join(parts)


def cpp_instances(
    profile: str, model: str, method: ApiMethod, *, parameters: str, arguments: str
) -> str:
    """The same of the function with copies, in C++ with arrays of checked length."""
    outer, inner = cpp_namespace(profile), cpp_name(model)
    separator = ", " if parameters else ""
    called = f"{identifier(profile)}_{model}_{identifier(method.method.name)}"
    return (
        f"namespace {outer} {{\nnamespace {inner} {{\n"
        f"inline orch_status {cpp_name(method.method.name)}"
        f"(unsigned instance{separator}{parameters}) {{\n"
        f"  return ::{called}(instance{separator}{arguments});\n"
        "}\n"
        f"}}  // namespace {inner}\n}}  // namespace {outer}"
    )


def _function(found: re.Match[str], own: str, of_all: str, count: int) -> Iterator[str]:
    name = found["name"].replace(own, of_all, 1)
    written = " ".join(found["parameters"].split())
    parameters = [] if written == "void" else written.split(", ")
    names = ", ".join(m[1] for p in parameters if (m := _NAME.search(p)))
    declared = found["type"]
    if found["inline"]:  # the same for all
        yield f"static inline {declared}{name}({written}) {{"
        yield f"  return {found['name']}({names});"
        yield "}"
        return
    is_void = declared.startswith("void")
    nothing = "ORCH_NOT_FOUND" if declared.startswith("orch_status") else "0"
    listed = ", ".join(["unsigned instance", *parameters])
    yield f"static inline {declared}{name}({listed}) {{"
    yield "  switch (instance) {"
    for number in range(count):
        called = found["name"].replace(own, f"{of_all}{number}_", 1)
        does = f"{called}({names}); break" if is_void else f"return {called}({names})"
        yield f"    case {number}: {does};"
    yield f"    default: {'break' if is_void else f'return {nothing}'};"
    yield "  }"
    yield "}"
