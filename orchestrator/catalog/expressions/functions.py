"""The functions that conditions can call."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from orchestrator.catalog.expressions import moved_shapes, predicates, reductions, shapes
from orchestrator.catalog.expressions.values import Helper, Kind

if TYPE_CHECKING:
    from orchestrator.catalog.expressions.values import Value

_NUMBERS: Final = ("Sizes", "Sequence[Number]", "tuple[Number, ...]")
_KINDS: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "TensorFacts": Kind.TENSOR,
        "tuple[TensorFacts | None, ...]": Kind.TENSORS,
        "Number": Kind.NUMBER,
        **dict.fromkeys(_NUMBERS, Kind.NUMBERS),
        # In Python one dimension need not be a list.
        **dict.fromkeys((f"{numbers} | Number" for numbers in _NUMBERS), Kind.NUMBERS),
        "Value": Kind.SCALAR,
        "tuple[float, ...]": Kind.SCALARS,
        "ScalarType": Kind.DTYPE,
        "bool": Kind.TRUTH,
    }
)
"""By annotation of a parameter or result: its kind."""


def _function(form: str, compute: Callable[..., Value]) -> Helper:
    """A function with the kinds that it is annotated with.

    Args:
        form: How a call is written; with `...` at the end, the last kind may repeat.
        compute: Its parameters that only Python gives are keywords.
    """
    found = signature(compute)
    given = [p for p in found.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    kinds = [_KINDS[p.annotation.removesuffix(" | None")] for p in given]
    names = form.partition("(")[2].split(", ")
    more = names[-1] == "...)"
    least = len(names) - more
    return Helper(
        form=form,
        compute=compute,
        kinds=(*kinds, *kinds[-1:] * (least - len(kinds))),
        gives=_KINDS[found.return_annotation],
        least=least,
        most=0 if more else least,
        optional=any(p.annotation.endswith(" | None") for p in given),
    )


_FUNCTIONS: Final = (
    _function("resizes(tensor, sizes)", predicates.resizes),
    _function("same_dtype(a, b, ...)", predicates.same_dtype),
    _function("same_order(a, b, ...)", predicates.same_order),
    _function("promoted(a, b, ...)", predicates.promoted),
    _function("with_number(dtype, scalar, ...)", predicates.with_number),
    _function("can_cast(from, to)", predicates.can_cast),
    _function("mixable(a, b, ...)", predicates.mixable),
    _function("parts(tensor)", predicates.parts),
    _function("castable(tensors, dtype)", predicates.castable),
    _function("alpha_fits(alpha, dtype)", predicates.alpha_fits),
    _function("holds(dtype, scalar, ...)", predicates.holds),
    _function("holds_whole(dtype, scalar, ...)", predicates.holds_whole),
    _function("is_zero(scalar, dtype)", predicates.is_zero),
    _function("is_float(scalar)", predicates.is_float),
    _function("is_bool(scalar)", predicates.is_bool),
    _function("is_int(scalar)", predicates.is_int),
    _function("same_kind(a, b)", predicates.same_kind),
    _function("gives(result, scalar, ...)", predicates.gives),
    _function("fits_int(scalar)", predicates.fits_int),
    _function("sum_fits(a, b)", predicates.result_fits(operator.add)),
    _function("difference_fits(a, b)", predicates.result_fits(operator.sub)),
    _function("product_fits(a, b)", predicates.result_fits(operator.mul)),
    _function("is_dim(index, rank)", predicates.is_dim),
    _function("are_dims(indices, rank)", predicates.are_dims),
    _function("within(list, low, high)", predicates.within),
    _function("parameters(list, count, low)", predicates.parameters),
    _function("items_within(tensor, low, high)", predicates.items_within),
    _function("indices_fit(tensor, indices)", predicates.indices_fit),
    _function("picks(tensor, index, dim)", predicates.picks),
    _function("covers(tensor, index)", predicates.covers),
    _function("picked(tensor, index, dim)", predicates.picked),
    _function("divides(offsets, indices)", predicates.divides),
    _function("trues(tensor, mask)", predicates.trues),
    _function("nonzeros(tensor)", predicates.nonzeros),
    _function("becomes(scalar, dtype)", predicates.becomes),
    _function("is_channels_last(tensor)", predicates.is_channels_last),
    _function("is_nhwc(tensor)", predicates.is_nhwc),
    _function("per_channel(count, tensor, ...)", predicates.per_channel),
    _function("has_sizes(tensor, sizes)", predicates.has_sizes),
    _function("ends_with(tensor, sizes)", predicates.ends_with),
    _function("splits(tensor, outs, sizes, dim)", predicates.splits),
    _function("fills(tensor, sizes)", predicates.fills),
    _function("copies_to(tensor, row, index)", predicates.copies_to),
    _function("has_order(tensor, dim_order)", predicates.has_order),
    _function("is_dtype(code, tensor)", predicates.is_dtype),
    _function("quantizes(low, high, dtype)", predicates.quantizes),
    _function("divisible(tensor, divisors, dtype)", predicates.divisible),
    _function("broadcast(a, b, ...)", shapes.broadcast),
    _function("reduced(tensor, dims, keepdim)", shapes.reduced),
    _function("reduced_or_all(tensor, dims, keepdim)", shapes.reduced_or_all),
    _function("without(tensor, dim)", shapes.without),
    _function("replaced(tensor, dim, size)", shapes.replaced),
    _function("permuted(tensor, dims)", shapes.permuted),
    _function("squeezed(tensor, dims)", shapes.squeezed),
    _function("unsqueezed(tensor, dim)", shapes.unsqueezed),
    _function("expanded(tensor, sizes)", shapes.expanded),
    _function("viewed(tensor, sizes)", shapes.viewed),
    _function("sliced(tensor, dim, start, end, step)", shapes.sliced),
    _function("concatenated(tensors, dim)", shapes.concatenated),
    _function("indexed(tensor, indices)", shapes.indexed),
    _function("grouped(tensor, shape)", shapes.grouped),
    _function("pooled(tensor, kernel, stride, padding, dilation, ceil_mode)", shapes.pooled),
    _function(
        "pooled_volume(tensor, kernel, stride, padding, dilation, ceil_mode)",
        partial(shapes.pooled, dims=3),
    ),
    _function(
        "convolved(tensor, weight, stride, padding, dilation, transposed, output_padding, groups)",
        shapes.convolved,
    ),
    _function("upsampled(tensor, sizes, factors)", shapes.upsampled),
    _function("transposed(tensor, dim, dim)", moved_shapes.transposed),
    _function("narrowed(tensor, dim, start, length)", moved_shapes.narrowed),
    _function("diagonal(tensor, offset, dim, dim)", moved_shapes.diagonal),
    _function("unfolded(tensor, dim, size, step)", moved_shapes.unfolded),
    _function("repeated(tensor, repeats)", moved_shapes.repeated),
    _function("strided(tensor, sizes, strides, offset)", moved_shapes.strided),
    _function("stacked(tensors, dim)", moved_shapes.stacked),
    _function("extended(tensor, padding)", moved_shapes.extended),
    _function("reflected(tensor, padding)", moved_shapes.reflected),
    _function("replicated(tensor, padding)", moved_shapes.replicated),
    _function("pixels_shuffled(tensor, factor)", moved_shapes.pixels_shuffled),
    _function("pixels_unshuffled(tensor, factor)", moved_shapes.pixels_unshuffled),
    _function("seen_as(tensor, out)", moved_shapes.seen_as),
    _function("summed(tensor, size)", moved_shapes.summed),
    _function("splits_evenly(tensor, outs, size, dim)", moved_shapes.splits_evenly),
    _function("unbinds(tensor, outs, dim)", moved_shapes.unbinds),
    _function("counted(start, end, step, dtype)", shapes.counted),
    _function(
        "pooled_image(nhwc, kernel, stride, padding, dilation, ceil_mode)", shapes.pooled_image
    ),
    _function(
        "convolved_image(nhwc, weight, outputs, stride, padding, dilation)", shapes.convolved_image
    ),
    _function(
        "transposed_image(nhwc, weight, stride, padding, output_padding, dilation)",
        shapes.transposed_image,
    ),
    _function("has_items(tensor, dims)", reductions.has_items),
    _function("are_frequencies(sizes, dims)", reductions.are_frequencies),
    _function("in_parts(tensor)", reductions.in_parts),
    _function("is_norm(power)", reductions.is_norm),
    _function("different(tensor, is_wanted)", reductions.different),
    _function("runs(tensor, is_wanted)", reductions.runs),
    _function("pivoted(tensor)", reductions.pivoted),
    _function("are_fractions(tensor)", reductions.are_fractions),
    _function("has_range(tensor, low, high)", reductions.has_range),
    _function("has_ends(tensor, ends)", reductions.has_ends),
    _function("length(tensor, dim)", reductions.length),
    _function("area(tensor)", reductions.area),
    _function("resized(tensor, dim, size)", reductions.resized),
    _function("halved(tensor, dim)", reductions.halved),
    _function("adapted(tensor, sizes)", reductions.adapted),
    _function("adapted_volume(tensor, sizes)", partial(reductions.adapted, dims=3)),
    _function("fractional(tensor, kernel, sizes, samples)", reductions.fractional),
    _function(
        "fractional_volume(tensor, kernel, sizes, samples)", partial(reductions.fractional, dims=3)
    ),
    _function("trilinear(a, b, c, added_a, added_b, added_c, dims)", reductions.trilinear),
    _function("applied(tensor, weight)", reductions.applied),
    _function("distances(a, b)", reductions.distances),
    _function("pairs(tensor)", reductions.pairs),
    _function("from_nhwc(sizes)", shapes.from_nhwc),
    _function("padded(tensor, before, after, nhwc)", shapes.padded_tensor),
)

PREDICATES: Mapping[str, Helper] = {f.form.partition("(")[0]: f for f in _FUNCTIONS}
"""Functions of conditions by name."""
