"""Functions of all instances of a model, which choose one by its number."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orchestrator.emit.generate.ports import ApiMethod
from orchestrator.memory.plan import method_symbol

# Reads the header's own text, as method.h.jinja writes it: functions for all instances
# then follow from those of one.
_DECLARED: Final = re.compile(
    r"^(?P<inline>static inline )?(?P<type>[\w ]+[ *]+)(?P<name>\w+)"
    r"\((?P<parameters>[^{};]*)\)(?P<end>;| \{)$",
    re.MULTILINE,
)
_NAME: Final = re.compile(r"(\w+)(?:\[.*)?$")
_CONSTANT: Final = re.compile(r"^#define (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """A model with instances.

    Args:
        profile: Name of the profile.
        model: What the profile names the model.
        count: Of its instances.
        methods: Those of its first instance.
    """

    profile: str
    model: str
    count: int
    methods: list[ApiMethod]

    @property
    def base(self) -> str:
        """What names of functions for all instances begin with."""
        return method_symbol(self.profile, self.model, "")

    def name_of(self, method: ApiMethod) -> str:
        """Name of a method's function for all instances."""
        return method_symbol(self.profile, self.model, method.method.name)

    def functions(self, method: ApiMethod, text: str) -> str:
        """Functions and constants of a method, for an instance by its number.

        They are inline: with a number that the compiler knows, a call is one of the
        instance's own function.

        Args:
            method: A method of the first instance.
            text: Its part of the header.
        """
        of_all, own = self.base, f"{self.base}0_"
        parts = [
            f"/* Model {self.model}, method {method.method.name}: an instance by its number. */"
        ]
        parts += [
            f"#define {name.replace(own.upper(), of_all.upper(), 1)} {name}"
            for name in _CONSTANT.findall(text)
            if name.startswith(own.upper())
        ]
        for found in _DECLARED.finditer(text):
            if found["name"].startswith(own):
                parts += _function(found, own, of_all, self.count)
        return "\n".join(parts)


def instances_of(
    profile: str, methods: Sequence[ApiMethod], instances: Mapping[str, str]
) -> list[Instances]:
    """The models with instances.

    Args:
        profile: Name of the profile.
        methods: Methods of the product.
        instances: By name of an instance: what the profile names the model.
    """
    numbers: dict[str, list[str]] = {}
    for instance, model in instances.items():
        numbers.setdefault(model, []).append(instance)
    return [
        Instances(
            profile=profile,
            model=model,
            count=len(names),
            methods=[m for m in methods if m.model == names[0]],
        )
        for model, names in numbers.items()
    ]


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
    # A number without an instance: a status says so, a pointer is null.
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
