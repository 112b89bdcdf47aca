"""The text of a new profile, with comments that say what each key is for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from orchestrator.core.spelling import size_text
from orchestrator.profile.fields import MAX_NAME_LENGTH, near_name
from orchestrator.profile.tables import taken_by
from orchestrator.targets.cores import BOARDS, CPUS

SCHEMA_FILE: Final = "profile.schema.json"
"""The schema beside a new profile, which editors read."""
# Column of comments: wide enough for the longest usual key with its value. By eye.
_COMMENT_COLUMN: Final = 34


@dataclass(frozen=True, slots=True, kw_only=True)
class NewModel:
    """A model of a new profile.

    Args:
        name: Valid and unique in the profile.
        path: Of the program, relative to the profile; "" with `source`.
        source: File and callable, `models/net.py:build`; "" with `path`.
        lowering: Of a model with `source`.
        quantize: Whether a model with `source` becomes int8.
    """

    name: str
    path: str = ""
    source: str = ""
    lowering: str = "portable"
    quantize: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NewProfile:
    """What a new profile says.

    Args:
        name: Of the product.
        cpu: A core.
        board: A board that runs its firmware; "" on `host`.
        toolchain: One of the core's.
        load: How models get onto the device.
        models: At least one.
        flash: Budget, as profiles write sizes; "" for none.
        ram: Likewise.
        libraries: Kernel libraries; empty for the default.
    """

    name: str
    cpu: str
    board: str
    toolchain: str
    load: str
    models: tuple[NewModel, ...]
    flash: str = ""
    ram: str = ""
    libraries: tuple[str, ...] = ()


def product_name(text: str) -> str:
    """A valid name of a product that is close to a text."""
    name = near_name(text, "-") or "product"
    return f"my-{name}"[:MAX_NAME_LENGTH] if taken_by(name) else name


def model_names(texts: Iterable[str]) -> tuple[str, ...]:
    """Valid names of models that are close to texts, each of them once."""
    found: list[str] = []
    for text in texts:
        base = name = near_name(text, "_") or "model"
        number = 2
        while name in found:
            end = f"_{number}"
            name = base[: MAX_NAME_LENGTH - len(end)] + end
            number += 1
        found.append(name)
    return tuple(found)


def profile_text(new: NewProfile) -> str:
    """The text of the profile."""
    lines = [
        f"#:schema {SCHEMA_FILE}",
        "# The line above lets editors complete and check this file (Even Better TOML,",
        "# Taplo). Commit the lock that `orchestrator build` writes beside it.",
        "schema = 1",
        f"name = {_text(new.name)}",
        "",
        *_target_lines(new),
    ]
    for index, model in enumerate(new.models):
        lines += ["", *_model_lines(model, new.load, explain=not index)]
    if new.libraries:
        names = ", ".join(map(_text, new.libraries))
        lines += ["", "[kernels]", "# Each operator has the kernel of the first that can."]
        lines.append(f"libraries = [{names}]")
    return "\n".join([*lines, "", *_budget_lines(new), ""])


def _target_lines(new: NewProfile) -> Iterator[str]:
    cpu = CPUS[new.cpu]
    yield "[target]"
    yield _line("cpu", new.cpu, "`orchestrator targets` lists cores and boards")
    if new.board:
        note = "memory map, linker script, emulator"
        if not BOARDS[new.board].emulator:
            note = "memory map and linker script; no emulator has it"
        yield _line("board", new.board, note)
    others = [f'"{name}"' for name in cpu.toolchains if name != new.toolchain]
    yield _line("toolchain", new.toolchain, f"or {', '.join(others)}" if others else "")
    yield _line("optimize", "size", 'or "speed", "debug"')


def _model_lines(model: NewModel, load: str, *, explain: bool) -> Iterator[str]:
    yield "[[models]]"
    yield _line("name", model.name, "in the C API, and in reports" if explain else "")
    if model.path:
        yield f"path = {_text(model.path)}"
    else:
        yield _line("source", model.source, "the build exports what it returns")
        yield _line("lowering", model.lowering, "docs/export.md has all of them")
    other = {
        "pte": 'by the device; or "prelinked", by the build',
        "prelinked": 'by the build; or "pte", by the device',
    }
    yield _line("load", load, other[load] if explain else "")
    if model.quantize:
        yield ""
        yield "[models.quantize]"
        yield _line("activations", "int8", "scales come from the calibration inputs")


def _budget_lines(new: NewProfile) -> Iterator[str]:
    yield "# A build that needs more fails, and names the largest contributors."
    off = "" if new.flash or new.ram else "# "
    yield f"{off}[budget]"
    for key, kind, chosen in (("flash", "flash", new.flash), ("ram", "ram", new.ram)):
        size = chosen or _memory_of(new.board, kind)
        # A comment: a bound that nobody chose must not fail a build.
        yield f"{'' if chosen else '# '}{key} = {_text(size)}"


def _memory_of(board: str, kind: str) -> str:
    """How much of a kind of memory a board has, as a profile writes it."""
    if not board:
        return "1 MiB"
    return size_text(sum(r.size_bytes for r in BOARDS[board].regions if r.kind == kind))


def _line(key: str, value: str, comment: str) -> str:
    text = f"{key} = {_text(value)}"
    return f"{text:{_COMMENT_COLUMN}}  # {comment}" if comment else text


def _text(value: str) -> str:
    """A basic string of TOML."""
    # TOML's basic strings have the escapes of JSON; JSON leaves DEL as it is, which
    # TOML does not allow.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
