"""The files of a package: those of the product, and rendered templates."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from orchestrator.package.ecosystem import Ecosystem
from orchestrator.package.product import FACTS, Built, Product, product_of
from orchestrator.package.rendering import rendered
from orchestrator.targets.cores import Target

ZEPHYR_BOARDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "host": ("native_sim/native/64",),
        "cortex-m0plus": ("qemu_cortex_m0",),
        "cortex-m3": ("qemu_cortex_m3", "mps2/an385"),
        "cortex-m4": ("mps2/an386",),
        "cortex-m7": ("mps2/an500",),
        "cortex-m33": ("mps2/an521/cpu0",),
        "cortex-m55": ("mps3/corstone300/an547",),
        "rv32imac": ("qemu_riscv32",),
    }
)
"""Boards for twister, by core: emulated ones, or Zephyr on the development machine."""

CMSIS_CORES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "cortex-m0plus": ("Cortex-M0", "Cortex-M0+"),
        "cortex-m3": ("Cortex-M3",),
        "cortex-m4": ("Cortex-M4",),
        "cortex-m7": ("Cortex-M7",),
        "cortex-m23": ("Cortex-M23",),
        "cortex-m33": ("Cortex-M33",),
        "cortex-m35p": ("Cortex-M35P",),
        "cortex-m55": ("Cortex-M55",),
        "cortex-m85": ("Cortex-M85",),
    }
)
"""`Dcore` of a pack, by core: those with its instruction set."""

CMSIS_DEVICES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "cortex-m0plus": "ARMCM0P",
        "cortex-m3": "ARMCM3",
        "cortex-m4": "ARMCM4",
        "cortex-m7": "ARMCM7",
        "cortex-m23": "ARMCM23",
        "cortex-m33": "ARMCM33",
        "cortex-m35p": "ARMCM35P",
        "cortex-m55": "ARMCM55",
        "cortex-m85": "ARMCM85",
    }
)
"""Device of Arm's pack Cortex_DFP with the core."""


def arduino_folder(target: Target) -> str:
    """Folder of a precompiled library: the core, and FPU and float ABI, if any.

    Source: Arduino library specification, "Precompiled binaries".
    """
    # Arduino's builder makes the name of the folder of `{build.mcu}`, then
    # `{build.fpu}` and `{build.float-abi}` if a core of Arduino has both.
    prefixes = ("-mfpu=", "-mfloat-abi=")
    flags = target.isa.machine_flags
    parts = [f.removeprefix(p) for p in prefixes for f in flags if f.startswith(p)]
    core = target.cpu.name
    return f"{core}/{'-'.join(parts)}" if len(parts) == len(prefixes) else core


def package_files(ecosystem: Ecosystem, built: Built, *, has_library: bool) -> dict[str, bytes]:
    """Every file of a package, by path.

    Args:
        ecosystem: Whose package.
        built: The product.
        has_library: Its library in the place of its sources.
    """
    names = {"name": built.name, "arduino_folder": arduino_folder(built.target)}
    library = ecosystem.library.format(**names) if has_library else ""
    # The self test of a library is a header in C and C++.
    if not ecosystem.is_c:
        built = replace(built, typed_test="")
    product = product_of(
        built, headers=ecosystem.headers, sources=ecosystem.sources, library=library
    )
    names |= {"base": product.base, "upper": product.base.upper()}
    files = dict(product.files)
    for template, path in (*ecosystem.templates, ("README.md.j2", "README.md")):
        text = _render(ecosystem, product, template)
        if text:
            files[path.format(**names)] = text.encode()
    files[f"{FACTS}/package.json"] = _facts(ecosystem, product)
    return files


def _facts(ecosystem: Ecosystem, product: Product) -> bytes:
    built = product.built
    document = {
        "name": built.name,
        "version": built.version,
        "digest": f"sha256:{product.digest}",
        "for": ecosystem.name,
        "generator": built.generator,
        "core": built.target.cpu.name,
        "isa": built.target.isa.name,
    }
    return f"{json.dumps(document, indent=1)}\n".encode()


def _render(ecosystem: Ecosystem, product: Product, template: str) -> str:
    path = posixpath.normpath(f"{ecosystem.name}/{template}")
    return rendered(
        path,
        **_names(product),
        p=product,
        b=product.built,
        ecosystem=ecosystem,
        target=product.built.target,
        machine_flags=product.built.target.isa.machine_flags,
        facts=FACTS,
    )


def _names(product: Product) -> dict[str, object]:
    """What single ecosystems call parts of a product."""
    target, base = product.built.target, product.base
    folder = product.sources_folder
    cpp = [s for s in product.sources if not s.endswith((".c", ".S"))]
    return {
        "zephyr_float_abi": f"{target.cpu.float_abi[:4].upper()}ABI",
        "zephyr_boards": ZEPHYR_BOARDS.get(target.cpu.name, ()),
        "cmsis_cores": CMSIS_CORES.get(target.cpu.name, ()),
        "cmsis_device": CMSIS_DEVICES.get(target.cpu.name, ""),
        # Private headers are sources there.
        "bazel_sources": sorted(
            path
            for path in product.files
            if path.startswith(f"{folder}/") and path not in product.headers
        ),
        "rust_name": base.lower(),
        "rust_methods": product.built.rust_methods,
        "cpp_sources": cpp,
        "c_sources": [s for s in product.sources if s not in cpp],
    }
