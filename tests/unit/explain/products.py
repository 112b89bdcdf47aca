"""Small products: a few kernels, calls and a report, by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.catalog import Catalog, LibraryText, read_catalog
from orchestrator.core.dtype import ScalarType
from orchestrator.core.kernel import TensorMeta
from orchestrator.core.operator import OperatorName
from orchestrator.errors import KernelError
from orchestrator.explain import Facts, Outcome
from orchestrator.measure.size import (
    Contributor,
    ContributorKind,
    SizeReport,
    SizeSymbol,
    SizeTarget,
    SizeTotals,
)
from orchestrator.selection.op_info import CallPattern, Origin, SelectedOperator, Selection
from orchestrator.selection.resolve import resolve

if TYPE_CHECKING:
    from collections.abc import Iterable

F, H, I, L = (  # noqa: E741
    ScalarType.Float,
    ScalarType.Half,
    ScalarType.Int,
    ScalarType.Long,
)

PORTABLE = """
- func: aten::add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  kernels: [{arg_meta: null, kernel_name: "k::portable::add_out"}]
  sources: [op_add.cpp]
  dtypes: [Float, Half, Int]
  dtype_arguments: [self]
  closure: [Long]
- func: aten::add.Scalar_out(Tensor self, Scalar other, *, Tensor(a!) out) -> Tensor(a!)
  kernels: [{arg_meta: null, kernel_name: "k::portable::add_scalar_out"}]
  sources: [op_add.cpp]
  dtypes: [Float]
- func: aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  kernels: [{arg_meta: null, kernel_name: "k::portable::mul_out"}]
  sources: [op_mul.cpp]
  dtypes: [Float, Int]
- func: aten::sub.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  kernels: [{arg_meta: null, kernel_name: "k::portable::sub_out"}]
  sources: [op_sub.cpp]
  dtypes: [Float]
- func: aten::max.out(Tensor self, *, Tensor(a!) indices) -> Tensor(a!)
  kernels: [{arg_meta: null, kernel_name: "k::portable::max_out"}]
  sources: [op_max.cpp]
  dtypes: {self: [Float, Half], indices: [Long]}
  dtype_arguments: [self]
  closure: [Long]
"""
FAST = """
- func: aten::add.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  kernels:
    - arg_meta: {self: [T, D], other: [T, D], out: [T, D]}
      kernel_name: k::fast::add_half
  type_alias: {T: [Half]}
  dim_order_alias: {D: [0, 1]}
  sources: [op_fast_add.cpp]
- func: aten::mul.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)
  kernels: [{arg_meta: null, kernel_name: "k::fast::mul_out"}]
  sources: [op_mul.cpp]
  dtypes: [Float]
- func: fast::rope.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  kernels: [{arg_meta: null, kernel_name: "k::fast::rope_out"}]
  sources: [op_rope.cpp]
  dtypes: [Float]
- func: fast::max(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  kernels: [{arg_meta: null, kernel_name: "k::fast::max"}]
  sources: [op_max.cpp]
  dtypes: [Float]
- func: fast::max.exact(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  kernels: [{arg_meta: null, kernel_name: "k::fast::max_exact"}]
  sources: [op_max.cpp]
  dtypes: [Float]
- func: fast::gelu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)
  kernels:
    - arg_meta: null
      kernel_name: k::fast::gelu_out
    - arg_meta: {self: [T, D], out: [T, D]}
      kernel_name: k::fast::gelu_half
  type_alias: {T: [Half]}
  dim_order_alias: {D: [0, 1]}
  sources: [op_gelu.cpp]
  dtypes: [Float, Half]
"""
TEXTS = {"portable": PORTABLE, "fast": FAST}


def catalog(*libraries: str) -> Catalog:
    return read_catalog(
        [LibraryText(name=n, file=f"kernels/{n}/functions.yaml", text=TEXTS[n]) for n in libraries]
    )


def call(*dtypes: ScalarType, kinds: str = "TTTT") -> CallPattern:
    places = [i for i, kind in enumerate(kinds) if kind == "T"]
    metas = [TensorMeta(dtype, (0, 1)) for dtype in dtypes]
    return CallPattern(kinds=kinds, tensors=tuple(zip(places, metas, strict=True)))


def asks(
    name: str,
    *calls: tuple[CallPattern, Iterable[int]],
    dtypes: tuple[ScalarType, ...] = (),
    every_dtype: bool = False,
    origins: tuple[Origin, ...] = (Origin("person", "forward"),),
) -> SelectedOperator:
    """An operator that model "person" calls with these instructions."""
    return SelectedOperator(
        name=OperatorName.parse(name),
        patterns=tuple(
            (pattern, tuple(Origin("person", "forward", n) for n in numbers))
            for pattern, numbers in calls
        ),
        dtypes=dtypes,
        every_dtype=every_dtype,
        origins=origins,
    )


ADD = asks("aten::add.out", (call(F, F, F, F), (3, 1, 5)))


def facts(
    *operators: SelectedOperator,
    libraries: tuple[str, ...] = ("portable",),
    report: SizeReport | None = None,
) -> Facts:
    """What is known of a product that asks for these operators."""
    offered = catalog(*libraries)

    def resolve_one(selected: SelectedOperator, among: Catalog) -> Outcome:
        try:
            found = resolve(
                Selection(operators=(selected,)), among, every_dtype=False, span_of=lambda _: None
            )
        except KernelError as error:
            return Outcome(gaps=error.diagnostics)
        return Outcome(bindings=tuple(b for o in found.operators for b in o.bindings))

    outcomes = {o: resolve_one(o, offered).gaps for o in operators}
    return Facts(
        profile="doorbell",
        file="doorbell.toml",
        selection=Selection(operators=operators),
        resolution=resolve(
            Selection(operators=tuple(o for o in operators if not outcomes[o])),
            offered,
            every_dtype=False,
            span_of=lambda _: None,
        ),
        gaps=tuple((o.name, gaps) for o, gaps in outcomes.items() if gaps),
        catalog=offered,
        elsewhere=catalog(*TEXTS),
        resolve=resolve_one,
        report=report,
    )


_K = ContributorKind
PARTS = (
    (_K.MODEL, "person", 1000, 0),
    (_K.KERNEL, "portable/op_add", 300, 8),
    (_K.KERNEL, "portable/op_mul", 200, 0),
    (_K.RUNTIME, "load_method", 500, 0),
    (_K.RUNTIME, "novel", 20, 0),
    (_K.TOOLCHAIN, "compiler_rt", 52, 0),
)
SYMBOLS = (
    ("k::portable::add_out", "_Zadd", _K.KERNEL, "portable/op_add", 200, "op_add"),
    ("k::rows<float, std::pair<int, int>>", "_Zr1", _K.KERNEL, *("portable/op_add", 90), "op_add"),
    ("k::rows<int>", "_Zr2", _K.KERNEL, "portable/op_mul", 80, "op_mul"),
    ("orch::load_method", "_Zload", _K.RUNTIME, "load_method", 72, "load_method"),
    ("__aeabi_memcpy", "__aeabi_memcpy", _K.TOOLCHAIN, "compiler_rt", 4, ""),
)


def report() -> SizeReport:
    """A report with the parts and symbols above."""
    return SizeReport(
        profile="doorbell",
        target=SizeTarget(cpu="host", isa="", board="", toolchain="zig", optimize="size"),
        totals=SizeTotals(
            flash_bytes=2072,
            model_bytes=1000,
            ram_bytes=8,
            arena_bytes=0,
            state_bytes=0,
            data_bytes=8,
            stack_bytes=0,
        ),
        regions=(),
        sections=(),
        contributors=tuple(
            Contributor(kind=k, name=n, flash_bytes=f, ram_bytes=r) for k, n, f, r in PARTS
        ),
        symbols=tuple(
            SizeSymbol(
                name=name,
                symbol=symbol,
                aliases=("memcpy",) if symbol.startswith("__") else (),
                is_function=True,
                address=0,
                size_bytes=size,
                section=".text",
                object=f"runtime/src/{source}.cpp" if source else "compiler_rt.o",
                kind=kind,
                contributor=part,
            )
            for name, symbol, kind, part, size, source in SYMBOLS
        ),
        stack=None,
    )
