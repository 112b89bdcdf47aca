"""The public header: include/<profile>.h."""

from __future__ import annotations

from typing import Final

from orchestrator.core.spelling import packed_version
from orchestrator.emit.artifact import GeneratedFile
from orchestrator.emit.generate.instances import instances_of
from orchestrator.emit.generate.names import cpp_name, cpp_namespace, hook_names, with_attributes
from orchestrator.emit.generate.ports import has_complex, memory_of
from orchestrator.emit.generate.product import Product
from orchestrator.emit.generate.render import render
from orchestrator.emit.generate.target_check import target_check
from orchestrator.memory.plan import identifier

END: Final = "/* The same sizes in structs: no flash unless they are used. */"
"""Constants that are known after linking are inserted before it."""


def api_header(product: Product) -> GeneratedFile:
    """The public header: constants for every buffer, typed functions, C and C++.

    Methods of prelinked models take no other program. Where it is traced, the header declares
    the hooks, and numbers the methods as these get them.
    """
    profile, methods = product.profile, product.methods
    declared = {
        m.base: render(
            "method.h",
            m=m,
            memory=memory_of(product.memory, m),
            is_linked=m.model in product.linked,
            limit=product.limits.get(m.model, 0),
            longest_step=product.steps.get((m.model, m.method.name)),
            checked=product.checked,
        )
        for m in methods
    }
    hooks = hook_names(profile)
    text = render(
        "api.h",
        **product.context,
        upper=identifier(profile).upper(),
        namespace=cpp_namespace(profile),
        declared=declared,
        target=product.target,
        missing=product.resolution.missing,
        versions=product.versions,
        traced=product.traced,
        hooks=hooks,
        # A model's namespace of the same name may be beside it.
        cpp_check="check_" if "check" in map(cpp_name, product.programs) else "check",
        has_complex=has_complex(product.programs),
        has_quantization=any(port.quantization for m in methods for port in m.ports),
        instances=instances_of(profile, methods, product.instances),
        sizes_begin=END,
        unknown_stack=unknown_stack,
        packed_version=packed_version,
        target_check=target_check,
    )
    # Attributes by a pass over the text: in the templates they would stand before each
    # function.
    return GeneratedFile(f"gen/include/{profile}.h", with_attributes(text, users=hooks.values()))


def unknown_stack(base: str) -> str:
    """The stack of a method in its sizes, before it is known."""
    # A mark that `with_stacks` (measure) replaces once the product is linked.
    return f"0 /* {base}: stack not known */"
