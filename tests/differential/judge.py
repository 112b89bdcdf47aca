"""Builds products of random models on targets, and compares every bit."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from orchestrator.build.firmware import carry_out
from orchestrator.cli.main import run
from orchestrator.profile.choices import PASSES
from orchestrator.running.npy import Array
from orchestrator.running.product import read_product
from orchestrator.running.protocol import DeviceError, decode_response
from orchestrator.running.values import Call
from orchestrator.shell.sources import library_names
from tests.differential.exported import exported
from tests.differential.program import FORMS
from tests.differential.unrolled import METHOD, unrolled

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.running.product import Product
    from orchestrator.running.protocol import CallResult
    from tests.differential.program import Model, Value

_TIMEOUT_S: Final = 300.0
PLAIN: Final = (
    '[target]\ncpu = "host"\n[memory]\nplanner = "keep"\n'
    f"[passes]\nskip = {json.dumps(sorted(PASSES))}\n"
)
"""Programs as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A way to build and run a product.

    Args:
        name: For messages.
        target: Tables `[target]`, `[memory]` and so on of a profile.
        load: How it loads models.
    """

    name: str
    target: str
    load: str


def _place(cpu: str, toolchain: str, load: str, more: str = "") -> Place:
    optimize = "speed" if "speed" in more else "size"
    tables = more.replace("speed", "")
    return Place(
        name=f"{cpu} {toolchain} {load} {more}".strip(),
        target=f'[target]\ncpu = "{cpu}"\ntoolchain = "{toolchain}"\n'
        f'optimize = "{optimize}"\n{tables}',
        load=load,
    )


_ROWS: Final = '[memory]\nfuse = "{}"\n'
PLACES: Final = (
    _place("cortex-m55", "zig", "prelinked"),
    _place("cortex-m4", "zig", "prelinked"),
    _place("host", "zig", "pte"),
    _place("cortex-m55", "gnu", "prelinked", "speed" + _ROWS.format("smallest")),
    _place("host", "zig", "prelinked", '[memory]\nconcurrency = "sequential"\n'),
    _place("cortex-m4", "gnu", "prelinked", _ROWS.format("auto")),
    _place("cortex-m4", "zig", "pte"),
)
"""Taken in turns."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What a product does otherwise than the model means.

    Args:
        call: Of the session; -1 if the product was not built or did not answer.
        text: What.
    """

    call: int
    text: str


def judge(models: Sequence[Model], place: Place, folder: Path) -> list[Difference | None]:
    """Whether a product of models on a target does what they mean, by model.

    Models of which the product cannot be built are tried in halves.
    """
    want = meant(models, folder / "meant")
    got = _by_halves(models, place, folder / "given")
    return [
        Difference(call=-1, text=a) if isinstance(a, str) else _compare(a, b)
        for a, b in zip(got, want, strict=True)
    ]


def _by_halves(
    models: Sequence[Model], place: Place, folder: Path
) -> list[list[CallResult | None] | str]:
    """By model: what the product gives, or why it was not built."""
    got = _given(models, place, folder)
    if not isinstance(got, str):
        return [*got]
    if len(models) == 1:
        return [got]
    half = len(models) // 2
    parts = enumerate((models[:half], models[half:]))
    return [x for n, part in parts for x in _by_halves(part, place, folder / f"{n}")]


def _compare(got: list[CallResult | None], want: list[list[bytes]]) -> Difference | None:
    for call, (one, other) in enumerate(zip(got, want, strict=True)):
        if one is None or one.error is not DeviceError.Ok:
            name = "no answer" if one is None else one.error.name
            return Difference(call=call, text=f"call {call}: {name}")
        for output, (value, data) in enumerate(zip(one.outputs, other, strict=True)):
            assert isinstance(value, Array)
            ours = np.frombuffer(value.data, value.dtype)
            theirs = np.frombuffer(data, value.dtype)
            if bits_of(ours) != bits_of(theirs):
                return Difference(
                    call=call, text=f"call {call}, output {output}: {ours[:8]} for {theirs[:8]}"
                )
    return None


def bits_of(items: np.ndarray[Any, Any]) -> bytes:
    """The bytes of an array, where each NaN is the same one.

    Infinity less infinity has another sign bit on x86 than on Arm.
    """
    if items.dtype.kind == "f":
        items = np.where(np.isnan(items), items.dtype.type(np.nan), items)
    return items.tobytes()


def write_profile(
    folder: Path, programs: Sequence[bytes], tables: str, load: str, models: Sequence[str] = ()
) -> tuple[Path, Path]:
    """Write programs and a profile; returns the profile and its build folder.

    Args:
        folder: For them.
        programs: Bytes of models `p0`, `p1` and so on.
        tables: Of the profile.
        load: How it loads the models.
        models: Tables of each model; none if there are none.
    """
    folder.mkdir(parents=True, exist_ok=True)
    libraries = library_names()[::-1]
    text = 'schema = 1\nname = "random"\n' + tables
    text += f"[kernels]\nlibraries = {json.dumps(libraries)}\n"
    for number, (program, more) in enumerate(zip_longest(programs, models)):
        (folder / f"p{number}.pte").write_bytes(program)
        text += f'[[models]]\nname = "p{number}"\npath = "p{number}.pte"\n'
        text += f'load = "{load}"\n{more or ""}'
    (folder / "random.toml").write_text(text)
    return folder / "random.toml", folder / "out"


def built(profile: Path, out: Path) -> Product | None:
    command = ["build", str(profile), "--out", str(out), "--no-lock", "--quiet"]
    if run(command) != 0:
        return None
    return read_product((out / "product.json").read_text())


def carried_out(product: Product, out: Path, calls: Sequence[Call]) -> Sequence[CallResult]:
    firmware = (out / product.firmware).resolve()
    answer = carry_out(product, firmware, calls, timeout_s=_TIMEOUT_S)
    return decode_response(answer.response, calls)


def logical(value: Value, data: bytes) -> Array:
    """An array of items that lie in memory in a value's dim order."""
    stored = np.frombuffer(data, FORMS[value.dtype])
    stored = stored.reshape([value.sizes[d] for d in value.order])
    return Array.of(stored.transpose(np.argsort(value.order)))


def meant(models: Sequence[Model], folder: Path) -> list[list[list[bytes]]]:
    """By model, call and output: the items that the model means."""
    profile, out = write_profile(folder, [unrolled(m) for m in models], PLAIN, "pte")
    product = built(profile, out)
    assert product is not None, f"{profile} cannot be built"
    methods = {m.model: m for m in product.methods if m.name == METHOD}
    calls = [
        Call(
            method=methods[f"p{number}"],
            inputs=tuple(
                logical(value, data)
                for index, inputs in model.session
                for value, data in zip(model.methods[index].inputs, inputs, strict=True)
            ),
        )
        for number, model in enumerate(models)
    ]
    found = []
    for model, result in zip(models, carried_out(product, out, calls), strict=True):
        assert result.error is DeviceError.Ok, result
        outputs = iter(result.outputs)
        found.append(
            [
                [next(outputs).data for _ in model.methods[index].outputs]  # type: ignore[union-attr]  # arrays
                for index, _ in model.session
            ]
        )
    return found


def _given(
    models: Sequence[Model], place: Place, folder: Path
) -> list[list[CallResult | None]] | str:
    """By model and call: what the product gives; why there is none."""
    programs = [exported(model) for model in models]
    profile, out = write_profile(folder, programs, place.target, place.load)
    product = built(profile, out)
    if product is None:
        return "the product cannot be built"
    methods = {(m.model, m.name): m for m in product.methods}
    calls, owners = [], []
    for number, model in enumerate(models):
        for index, inputs in model.session:
            method = model.methods[index]
            values = zip(method.inputs, inputs, strict=True)
            calls.append(
                Call(
                    method=methods[f"p{number}", method.name],
                    inputs=tuple(logical(value, data) for value, data in values),
                )
            )
            owners.append(number)
    found: list[list[CallResult | None]] = [[] for _ in models]
    results = carried_out(product, out, calls)
    for position, number in enumerate(owners):
        done = position < len(results)
        found[number].append(results[position] if done else None)
    return found
