"""Functions of all instances of a model, which choose one by its number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from orchestrator.emit.generate.names import cpp_name, cpp_namespace
from orchestrator.memory.plan import identifier

if TYPE_CHECKING:
    from orchestrator.emit.generate.ports import ApiMethod

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
