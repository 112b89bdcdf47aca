"""The files of a package: those of the product, and rendered templates."""

from __future__ import annotations

import json
import posixpath
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import jinja2

from orchestrator.package.boards import (
    CMSIS_CORES,
    CMSIS_DEVICES,
    ZEPHYR_BOARDS,
    arduino_folder,
)
from orchestrator.package.product import FACTS, product_of

if TYPE_CHECKING:
    from orchestrator.package.ecosystem import Ecosystem
    from orchestrator.package.product import Built, Product


def package_files(
    ecosystem: Ecosystem, built: Built, *, has_library: bool
) -> dict[str, bytes]:
    """Every file of a package, by path.

    Args:
        ecosystem: Whose package.
        built: The product.
        has_library: Its library in the place of its sources.
    """
    names = {"name": built.name, "arduino_folder": arduino_folder(built.target)}
    library = ecosystem.library.format(**names) if has_library else ""
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
    return (
        _templates()
        .get_template(path)
        .render(
            **_names(product),
            p=product,
            b=product.built,
            ecosystem=ecosystem,
            target=product.built.target,
            machine_flags=product.built.target.isa.machine_flags,
            facts=FACTS,
        )
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


@cache
def _templates() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("orchestrator.package"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=jinja2.select_autoescape(("pdsc.j2",), default=False),
    )
