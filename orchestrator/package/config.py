"""The header that each packaged source includes first: macros, and what flags may be.

Another build system gives its own flags. What decides about the bits of results is
not left to them: it is in this header, or the header refuses to compile.
"""

from __future__ import annotations

from collections.abc import Iterable


def config_header(
    head: str, product: str, defines: Iterable[tuple[str, str]], includes: Iterable[str]
) -> str:
    """The text of the header.

    Args:
        head: Text of the first line.
        product: Name of the product.
        defines: Macros of all sources, (name, value).
        includes: Headers that all sources include, relative to it.
    """
    macros = "".join(f"#define {name} {value}\n" for name, value in defines)
    included = "".join(f'#include "{path}"\n' for path in includes)
    return f"""\
/* {head} */
#pragma once

/* What the build of the product decided. */
{macros}
#ifndef __ASSEMBLER__

#if defined(__cplusplus) && __cplusplus < 201703L
#error "{product} is C++17: compile with -std=c++17 or newer, or package with --binary"
#endif

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "{product} is for little-endian machines"
#endif

/* Results have the same bits everywhere. Flags that would change them: */
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || \\
    defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__) || \\
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ != 0)
#error "{product} has exact floats: compile it without -ffast-math and its parts"
#endif
#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && \\
    __FLT_EVAL_METHOD__ != 16
#error "{product} has exact floats: compile it without excess precision (-mfpmath=sse)"
#endif
#ifdef __cplusplus
static_assert(sizeof(1.0) == 8,
              "compile it without -fsingle-precision-constant and -fshort-double");
#endif

/* A product is rounded before it is added to a sum, as by -ffp-contract=off. Vectors
 * that a compiler makes of loops would round subnormal numbers to 0 on cores with MVE;
 * clang has only the flags of the package against them. */
#if defined(__clang__)
#pragma clang fp contract(off)
#elif defined(__GNUC__)
#pragma GCC optimize("fp-contract=off", "no-tree-vectorize")
#endif

{included}#endif
"""
