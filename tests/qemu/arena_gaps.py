"""What a product writes beside its arenas: firmware that has gaps around them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from orchestrator.emit.compile import CompileUnit
from tests.qemu.bare_firmware import run_firmware

if TYPE_CHECKING:
    from pathlib import Path

    from tests.product import Product

_GAP: Final = 64
"""Bytes in front of each arena, and behind the last one."""
_FUNCTION: Final = re.compile(r"^ORCH_NODISCARD orch_status (\w+)_forward\((.*)\)", re.MULTILINE)
_ARRAY: Final = re.compile(r"int8_t \w+\[ORCH_AT_LEAST\((\d+)\)\]")

_APPLICATION: Final = """
#include <stdint.h>
#include "PRODUCT.h"
#include "orch/platform.h"

extern "C" uint8_t DECLARED;

namespace {
uint8_t* const gaps[] = {NAMES};
int8_t tensors[ARRAYS][MOST];
uint32_t words[2];  // bytes that changed, calls that failed

uint8_t canary(int place) { return static_cast<uint8_t>(0x5A + 7 * place); }
}  // namespace

int orch_application(const char*, const char* response_path) {
  for (uint8_t* gap : gaps) {
    for (int i = 0; i < GAP; ++i) gap[i] = canary(i);
  }
  uint32_t seed = 1;
  for (int8_t& item : tensors[0]) {
    seed = seed * 1664525u + 1013904223u;
    item = static_cast<int8_t>(seed >> 24);
  }
CALLS
  for (const uint8_t* gap : gaps) {
    for (int i = 0; i < GAP; ++i) words[0] += gap[i] != canary(i);
  }
  const orch::platform::File response =
      orch::platform::open_for_writing(response_path);
  if (!orch::platform::write(response, words, sizeof words)) return 2;
  orch::platform::close(response);
  return 0;
}
"""


def changed_bytes(folder: Path, product: Product, target: tuple[str, str, str]) -> int:
    """Bytes around arenas that runs of all models change; all calls must succeed.

    Args:
        folder: An empty one.
        product: Built, of models with int8 inputs and outputs, and an arena each.
        target: Cpu, isa and toolchain.
    """
    name = product.profile.stem
    plan = (product.out / "memory_plan.json").read_text()
    header = (product.out / "include" / f"{name}.h").read_text()
    functions = _FUNCTION.findall(header)
    models = [function.rpartition("_")[2] for function, _ in functions]
    counts = [[*map(int, _ARRAY.findall(arguments))] for _, arguments in functions]
    names = [f"gap_{number}" for number in range(len(models) + 1)]
    text = _APPLICATION
    for word, by in {
        "PRODUCT": name,
        "DECLARED": ", ".join(f"{gap}[]" for gap in names),
        "NAMES": ", ".join(names),
        "ARRAYS": str(max(map(len, counts))),
        "MOST": str(max(map(max, counts))),
        "GAP": str(_GAP),
        "CALLS": "\n".join(
            f"  words[1] += {function}_forward("
            f"{', '.join(f'tensors[{i}]' for i in range(len(sizes)))}) != ORCH_OK;"
            for (function, _), sizes in zip(functions, counts, strict=True)
        ),
    }.items():
        text = re.sub(rf"\b{word}\b", by, text)
    (folder / "app.cpp").write_text(text)
    gaps = [f"    {gap} = .; . += {_GAP};\n" for gap in names]
    arenas = [f"    *(.bss.orch_arena_{model}_forward_1)\n" for model in models]
    parts = [part for pair in zip(gaps, arenas, strict=False) for part in pair]
    assert len(models) == len(json.loads(plan)["models"])
    includes = [f"-I{product.out / 'include'}"]

    def units(flags: tuple[str, ...]) -> list[CompileUnit]:
        source = str(folder / "app.cpp")
        return [CompileUnit(source, "obj/app.o", (*flags, *includes))]

    changed, failed = run_firmware(
        folder,
        target=target,
        sources=(),
        units=units,
        libraries=[product.out / f"lib{name}.a"],
        sections=f"  .arenas (NOLOAD) : {{\n{''.join(parts)}{gaps[-1]}  }} > sram\n",
        request=(),
    )
    assert failed == 0
    return changed
