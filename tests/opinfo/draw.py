"""Draws calls of operators from PyTorch's OpInfo database, with eager's results.

    python -m tests.opinfo.draw --out build/opinfo [--operators NAME,...]

needs a Python with PyTorch and PyYAML. Writes a file per operator in the format of
tests/data/kernels/reference_format.py. Calls come from

- the OpInfo database: what its samples dispatch to, in ten dtypes, and in
  complex ones for kernels that take them;
- `SAMPLES` in the files `samples_*.py`, for operators that it does not reach;
- both again with extreme numbers, and in other dim orders.

Where PyTorch's own error is known, from the same call with Double in place of the
narrower floats, a result may be twice as far off, or as far as `error` of
functions.yaml says. Without `error` the bits are those of PyTorch.
"""
# mypy: ignore-errors
# (torch is not there when the project is checked)

from __future__ import annotations

import argparse
import contextlib
import copyreg
import itertools
import random
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from math import isfinite
from pathlib import Path
from typing import Any

import torch
import torch.ao.quantization.fx._decomposed  # registers quantized_decomposed
import yaml
from torch.utils._python_dispatch import TorchDispatchMode

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "data" / "kernels"))

from reference_format import CODES, COMPLEX, EPSILON, In, Out, Writer  # noqa: E402

DTYPES = [
    *(torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.bool),
    *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
]
MEMORY_FORMATS = {torch.contiguous_format: 0, torch.preserve_format: 1}
SAMPLE_BYTES = 1 << 14
"""Of the tensors of a call, at most."""
SKIPPED = ("linalg.", "special.", "_refs", "signal.", "sparse.", "masked.")
"""Beginnings of names of the database whose samples reach no operator of a program."""
HALVES = frozenset({torch.float16, torch.bfloat16})
COMPLEX_PRODUCTS = frozenset({"aten::div.out", "aten::mul.out"})
"""Operators whose results of complex numbers are sums of products."""
ULPS_IF_REAL = {**dict.fromkeys((*COMPLEX_PRODUCTS, "aten::abs.out"), 0.0), "aten::exp.out": 1.0}
"""Operators whose `error` is that of complex numbers, and that of others."""
ROUNDED_ONCE = frozenset({"aten::div.out_mode", "aten::floor_divide.out"})
"""Operators that PyTorch rounds to halves after every step, but only once where the
divisor has one item. Expected is the latter."""
SCALED = frozenset(
    f"aten::{name}.{overload}"
    for name in ("add", "rsub", "sub")
    for overload in ("out", "Scalar_out")
)
"""Operators that PyTorch computes of halves in Float in its vectors, `alpha` rounded to
a half, and with more roundings item by item. Expected is the former."""
IN_MEMORY = frozenset(
    {
        "aten::as_strided_copy.out",
        "dim_order_ops::_clone_dim_order.out",
        "dim_order_ops::_to_dim_order_copy.out",
    }
)
"""Operators whose arguments name an order in memory, or places there."""
PLAIN = frozenset(
    {
        *("aten::mode.values", "aten::_linalg_det.result", "aten::cholesky.out"),
        *("aten::_linalg_slogdet.sign", "aten::linalg_lu_factor_ex.out"),
    }
)
"""Operators whose results for extreme numbers are not specified: PyTorch sorts NaN to
any place; errors of factors of a matrix that nearly has no inverse have no bound."""
INF, NAN = float("inf"), float("nan")
REFUSALS = (*(RuntimeError, IndexError, ValueError, TypeError, NotImplementedError), AssertionError)
"""Errors that PyTorch's operators refuse arguments with; no common one exists."""


@dataclass
class Sample:
    """Arguments of an operator in the order of its schema, less the outputs.

    Args:
        args: Tensors, numbers, texts, lists and None.
        results: What to expect; None: what PyTorch gives for them.
        is_plain: Whether to leave out variants with extreme numbers.
    """

    args: list[Any]
    results: list[torch.Tensor] | None = None
    is_plain: bool = False


@dataclass
class Operator:
    """An operator of functions.yaml, and how PyTorch computes it."""

    name: str
    compute: Callable[..., Any] | None
    schema: Any
    error: str
    takes_complex: bool = False
    samples: list[Sample] = field(default_factory=list)

    @property
    def ulps(self) -> float:
        """Units in the last place that results may be off."""
        number, unit, _ = self.error.partition(" ulp")
        return float(number) if unit else 0.0

    @property
    def is_sum(self) -> bool:
        """Whether these units may be those of the terms of a sum."""
        return self.error.endswith(" of the terms")

    @property
    def inputs(self) -> list[Any]:
        """Arguments of the schema that are not written."""
        return [a for a in self.schema.arguments if not a.is_out]


def operators(wanted: set[str]) -> dict[str, Operator]:
    """The operators of all kernel libraries that PyTorch can compute, or `wanted`."""
    found = {}
    for library in ("portable", "quantized"):
        text = (ROOT / "kernels" / library / "functions.yaml").read_text()
        for entry in yaml.safe_load(text):
            name = entry["func"].partition("(")[0]
            if not wanted or name in wanted:
                schema = torch._C.parse_schema(entry["func"])
                compute, error = _compute(name, schema), entry.get("error", "")
                takes_complex = "omplex" in str(entry.get("dtypes"))
                found[name] = Operator(name, compute, schema, error, takes_complex)
    return found


def _compute(name: str, schema: Any) -> Callable[..., Any] | None:
    """The functional form of an out variant, or the variant itself."""
    space, _, rest = name.partition("::")
    base, _, overload = rest.partition(".")
    out = [(a.name, str(a.type)) for a in schema.arguments if not a.is_out]
    for packet in (base, base.removesuffix("_copy")):
        functions = getattr(getattr(torch.ops, space, None), packet, None)
        for own in functions.overloads() if functions is not None else ():
            function = getattr(functions, own)
            arguments = [(a.name, str(a.type)) for a in function._schema.arguments]
            if arguments == out and not function._schema.is_mutable:
                return function
    packet = getattr(getattr(torch.ops, space, None), base, None)
    if packet is None or (overload or "default") not in packet.overloads():
        return None
    function = getattr(packet, overload or "default")
    outs = [a.name for a in function._schema.arguments if a.is_out]
    if [a.name for a in schema.arguments if a.is_out] != outs:
        return None

    def with_outs(*args: Any, **kwargs: Any) -> Any:
        first = next((a for a in args if isinstance(a, torch.Tensor)), None)
        dtype = first.dtype if first is not None else torch.float32
        made = {name: torch.empty(0, dtype=dtype) for name in outs}
        return function(*args, **kwargs, **made)

    return with_outs


class Recorder(TorchDispatchMode):
    """Keeps the arguments of every operator that is called."""

    def __init__(self, most: int) -> None:
        """Keep so many calls of a kind at most."""
        super().__init__()
        self.most = most
        self.kinds: Counter = Counter()
        self.calls: dict[str, list[list[Any]]] = {}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Record, and call."""
        if not func._schema.is_mutable and func.namespace == "aten":
            named = kwargs or {}
            given = [
                args[i] if i < len(args) else named.get(a.name, a.default_value)
                for i, a in enumerate(func._schema.arguments)
            ]
            key = f"{func} {[_kind(a) for a in given]}"
            self.kinds[key] += 1
            known = all(_is_known(a) for a in given)
            small = _bytes(given) <= SAMPLE_BYTES
            if known and small and self.kinds[key] <= self.most:
                kept = self.calls.setdefault(str(func), [])
                kept.append([_clone(a) for a in given])
        return func(*args, **(kwargs or {}))


def _is_known(value: Any) -> bool:
    """Whether a program can have such an argument."""
    if isinstance(value, list | tuple):
        return all(_is_known(item) for item in value)
    if type(value) is torch.Tensor:
        return value.layout == torch.strided and value.dtype in CODES
    kinds = (bool, int, float, str, torch.dtype, torch.memory_format, type(None))
    return isinstance(value, kinds)


def _clone(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone(memory_format=torch.contiguous_format)
    if isinstance(value, list | tuple):
        return [_clone(item) for item in value]
    return value


def _kind(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return (value.dtype, value.dim(), value.numel() == 0)
    if isinstance(value, list | tuple):
        return [_kind(item) for item in value]
    return type(value).__name__


def memory_format(name: str) -> torch.memory_format:
    """`torch.contiguous_format` by that name."""
    return getattr(torch, name.rpartition(".")[2])


# PyTorch's own way to pickle one fails.
copyreg.pickle(torch.memory_format, lambda value: (memory_format, (str(value),)))


def collect(file: Path, most: int) -> dict[str, list[list[Any]]]:
    """Arguments of all calls that the samples of the database lead to.

    Args:
        file: Where they are kept once they are collected, which takes minutes.
        most: Calls of a kind, at most.
    """
    if file.exists():
        return torch.load(file, weights_only=False)
    from torch.testing._internal.common_methods_invocations import op_db  # noqa: PLC0415

    recorder = Recorder(most)
    infos = [i for i in op_db if not i.name.startswith(SKIPPED)]
    for info, dtype in itertools.product(infos, (*DTYPES, *COMPLEX)):
        if dtype not in info.supported_dtypes("cpu"):
            continue
        with contextlib.suppress(Exception):  # of PyTorch's own making
            samples = info.sample_inputs("cpu", dtype, requires_grad=False)
            for sample in itertools.islice(samples, 30):
                with contextlib.suppress(Exception), recorder:
                    info.op(sample.input, *sample.args, **sample.kwargs)
    file.parent.mkdir(parents=True, exist_ok=True)
    torch.save(recorder.calls, file)
    return recorder.calls


def draw(wanted: dict[str, Operator], calls: dict[str, list[list[Any]]]) -> None:
    """Give the operators their samples."""
    for operator in wanted.values():
        given = calls.get(str(operator.compute), [])
        operator.samples += [
            Sample(args)
            for args in given
            if operator.takes_complex or not any(t.is_complex() for t in _tensors(args))
        ]
    for file in sorted(Path(__file__).parent.glob("samples_*.py")):
        module = import_module(f"tests.opinfo.{file.stem}")
        for name, samples in module.SAMPLES.items():
            if name in wanted:
                wanted[name].samples += samples()


def variants(samples: Iterable[Sample], rng: random.Random, *, sums: bool) -> Iterator[Sample]:
    """The samples, and some of them with extreme numbers."""
    for sample in samples:
        yield sample
        if sample.results is None and not sample.is_plain and rng.random() < 0.5:
            yield Sample([_extreme(a, rng, sums=sums) for a in sample.args])


def _extreme(value: Any, rng: random.Random, *, sums: bool) -> Any:
    """A tensor with extreme numbers among its items; indices stay as they are.

    Whether sums of the largest numbers overflow on the way depends on their order.
    """
    if isinstance(value, list | tuple):
        return [_extreme(item, rng, sums=sums) for item in value]
    if not isinstance(value, torch.Tensor) or value.numel() == 0:
        return value
    if value.is_complex():
        made = [_extreme(part, rng, sums=sums) for part in (value.real, value.imag)]
        return torch.complex(*made) if value.dtype != torch.complex32 else value
    if value.dtype in EPSILON:
        limits = torch.finfo(value.dtype)
        numbers = [0.0, -0.0, 1.0, -1.0]
        numbers += [] if sums else [INF, -INF, NAN, limits.max, limits.min]
        numbers += [limits.tiny, -limits.smallest_normal / 4, 0.5, -2.5, limits.eps]
    elif value.dtype in (torch.int64, torch.int32) or value.dtype == torch.bool:
        return value  # an index, perhaps
    else:
        limits = torch.iinfo(value.dtype)
        numbers = [0, 1, limits.max, limits.min, limits.max - 1]
    made = value.clone().flatten()
    for i in range(made.numel()):
        if rng.random() < 0.4:
            made[i] = rng.choice(numbers)
    return made.reshape(value.shape)


def compute(operator: Operator, args: list[Any]) -> list[torch.Tensor] | None:
    """What PyTorch gives; None if it refuses the call."""
    found = _computed(operator, args)
    half = found[0].dtype if found else None
    if half not in HALVES:
        return found
    if operator.name in SCALED:
        args = [
            a if isinstance(a, torch.Tensor) else float(torch.tensor(a, dtype=half)) for a in args
        ]
    if operator.name in SCALED | ROUNDED_ONCE:
        wide = [t.to(half).float() if isinstance(t, torch.Tensor) else t for t in args]
        return [o.to(half) for o in _computed(operator, wide)]
    return found


def _computed(operator: Operator, args: list[Any]) -> list[torch.Tensor] | None:
    if operator.compute is None:
        return None
    given = [_clone(a) for a in args]
    pairs = list(zip(operator.inputs, given, strict=False))
    positional = [value for a, value in pairs if not a.kwarg_only]
    named = {a.name: value for a, value in pairs if a.kwarg_only}
    try:
        found = operator.compute(*positional, **named)
    except REFUSALS:
        return None
    outs = list(found) if isinstance(found, tuple | list) else [found]
    if not all(isinstance(o, torch.Tensor) and o.dtype in CODES for o in outs):
        return None
    return [o.detach().clone(memory_format=torch.contiguous_format) for o in outs]


def in_double(args: list[Any]) -> list[Any]:
    """The arguments with Double in place of narrower floats; a single tensor is one."""
    is_single = sum(1 for _ in _tensors(args)) == 1

    def wider(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            if value.is_complex():
                return value.to(torch.complex128)
            return value.double() if is_single or value.dtype in EPSILON else value
        if isinstance(value, list | tuple):
            return [wider(item) for item in value]
        if isinstance(value, torch.dtype) and value in EPSILON:
            return torch.float64
        return value

    return [wider(a) for a in args]


def _loses_remainders(operator: Operator, args: list[Any], outs: list[torch.Tensor]) -> bool:
    """Whether PyTorch's vectors may have given NaN for an enormous quotient."""
    if "::fmod" not in operator.name and "::remainder" not in operator.name:
        return False
    one, other = (torch.as_tensor(a).double() for a in args[:2])
    usual = one.isfinite() & other.isfinite() & (other != 0)
    return any(bool((o.isnan() & usual).any()) for o in outs)


def allowed(  # noqa: C901  # one way to be off each
    operator: Operator, args: list[Any], outs: list[torch.Tensor]
) -> tuple[float, float]:
    """Absolute and relative error that is allowed."""
    if any(o.is_complex() for o in outs):
        # Of the parts; a complex tensor stands for its numbers' distances from 0.
        return _allowed_complex(operator, args, outs)
    if not any(o.dtype in EPSILON for o in outs):
        return 0.0, 0.0
    if _loses_remainders(operator, args, outs):
        return INF, INF
    ulps = operator.ulps
    step = max(EPSILON.get(o.dtype, 0.0) for o in outs)
    if operator.name in ULPS_IF_REAL and not args[0].is_complex():
        ulps = ULPS_IF_REAL[operator.name]
    if ulps == 0:
        return 0.0, 0.0
    # Steps between subnormal numbers do not become smaller.
    limits = [torch.finfo(o.dtype) for o in outs if o.dtype in EPSILON]
    absolute = ulps * max(float(i.smallest_normal * i.eps) for i in limits)
    exact = compute(operator, in_double(args))
    for one, other in zip(outs, exact or (), strict=False):
        if one.dtype in EPSILON and one.shape == other.shape:
            rounded = other.to(one.dtype)
            if bool((rounded.isfinite() & ~one.isfinite()).any()):
                return INF, INF
            error = (one.double() - other.double()).abs()
            finite = error[error.isfinite()]
            if finite.numel():
                absolute = max(absolute, 2 * float(finite.max()))
    if operator.is_sum:
        sizes = [_magnitude(a) for a in in_double(args)]
        for one in compute(operator, sizes) or ():
            large = one.double().abs()
            large = large[large.isfinite()]
            if large.numel():
                scale = float(large.max())
                absolute = max(absolute, ulps * min(step, 2.0**-23) * scale)
    return absolute, ulps * step


def _allowed_complex(
    operator: Operator, args: list[Any], outs: list[torch.Tensor]
) -> tuple[float, float]:
    """Absolute and relative error of complex numbers, as distances."""
    is_product = operator.name in COMPLEX_PRODUCTS
    ulps = operator.ulps
    if ulps == 0:
        return 0.0, 0.0
    if is_product and not all(bool(o.isfinite().all()) for o in outs):
        return INF, INF  # PyTorch's vectors give others than the rest of a tensor
    step = max(EPSILON.get(o.real.dtype, 0.0) for o in outs)
    absolute = 0.0
    for one, other in zip(outs, compute(operator, in_double(args)) or (), strict=False):
        error = (one.to(torch.complex128) - other).abs()
        finite = error[error.isfinite()]
        if finite.numel():
            absolute = max(absolute, 2 * float(finite.max()))
    if operator.is_sum:
        sizes = [_magnitude(a) for a in in_double(args)]
        for one in compute(operator, sizes) or ():
            large = one.abs()
            large = large[large.isfinite()]
            if large.numel():
                absolute = max(absolute, ulps * step * float(large.max()))
    return absolute, ulps * step


def _magnitude(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.is_complex():
        return value.abs().to(value.dtype)
    if isinstance(value, torch.Tensor) and value.dtype in EPSILON:
        return value.abs()
    if isinstance(value, list | tuple):
        return [_magnitude(item) for item in value]
    return value


def argument(  # one kind each
    value: Any, declared: str, rng: random.Random, *, plain: bool
) -> Any:
    """An argument as the file has it."""
    if isinstance(value, torch.dtype):
        return CODES[value]
    if isinstance(value, torch.memory_format):
        return MEMORY_FORMATS[value]
    if isinstance(value, torch.Tensor):
        return In(value, () if plain else _order(value.dim(), rng))
    if isinstance(value, int | float) and "List[" in declared:
        return [value]
    if isinstance(value, int | float) and declared == "Tensor":
        raise TypeError  # programs have tensors there
    if isinstance(value, list | tuple):
        items = [argument(item, "", rng, plain=plain) for item in value]
        if declared.startswith("float[]") or "List[float]" in declared:
            return [float(item) for item in items]
        return items
    if "float" in declared and isinstance(value, int):
        return float(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(type(value))


def _order(rank: int, rng: random.Random) -> tuple[int, ...]:
    order = list(range(rank))
    if rank > 1:
        rng.shuffle(order)
    return tuple(order)


def record(operator: Operator, rng: random.Random, most_bytes: int) -> Writer:
    """The operator's calls, as a file has them."""
    writer = Writer()
    outputs = [a for a in operator.schema.arguments if a.is_out]
    is_list = any("List" in str(a.type) for a in outputs)
    samples: Iterable[Sample] = operator.samples
    if operator.name not in PLAIN:
        samples = variants(samples, rng, sums=operator.is_sum)
    for sample in samples:
        outs = sample.results or compute(operator, sample.args)
        if outs is None or _bytes(sample.args) + _bytes(outs) > most_bytes:
            continue
        if any(t.dtype not in CODES or t.dim() > 8 for t in _tensors(sample.args)):
            continue
        atol, rtol = allowed(operator, sample.args, outs)
        if not isfinite(atol):
            continue  # PyTorch overflows on the way to a number that the dtype holds
        reordered = rng.random() < 0.3 and operator.name not in IN_MEMORY
        for plain in (True, False) if reordered else (True,):
            try:
                args = [
                    argument(value, str(a.type), rng, plain=plain)
                    for a, value in zip(operator.inputs, sample.args, strict=False)
                ]
            except (TypeError, KeyError):
                continue
            given = [Out(o, () if plain else _order(o.dim(), rng)) for o in outs]
            for i, declared in enumerate(operator.inputs):
                is_written = declared.alias_info and declared.alias_info.is_write
                if is_written and not outputs:
                    args[i] = given.pop(0)  # changed in place
            writer.call(operator.name, args, given, outs_are_list=is_list, tolerance=(atol, rtol))
    return writer


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _bytes(values: Iterable[Any]) -> int:
    return sum(t.numel() * t.element_size() for t in _tensors(values))


def main() -> None:
    """Draw and write."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--operators", default="", help="NAME,...; default: all")
    parser.add_argument("--each", type=int, default=3, help="calls of a kind")
    parser.add_argument("--bytes", type=int, default=1 << 16, help="of a call, at most")
    options = parser.parse_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    wanted = operators({*filter(None, options.operators.split(","))})
    warnings.simplefilter("ignore")
    draw(wanted, collect(options.out / "samples.pt", options.each))
    for name, operator in sorted(wanted.items()):
        writer = record(operator, random.Random(name), options.bytes)
        (options.out / f"{name.replace('::', '.')}.bin").write_bytes(writer.file())
        print(f"{len(writer.calls):6} {name}")


if __name__ == "__main__":
    main()
