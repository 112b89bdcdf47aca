"""The functions that conditions can call."""

from __future__ import annotations

import operator
from functools import partial
from typing import TYPE_CHECKING, Final

from orchestrator.catalog.expressions import (
    image_shapes,
    moved_shapes,
    picked,
    predicates,
    reductions,
    shapes,
)
from orchestrator.catalog.expressions.values import Helper, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping


def _shape(form: str, compute: object, *kinds: Kind, optional: bool = False) -> Helper:
    return _function(form, compute, *kinds, gives=Kind.NUMBERS, optional=optional)


def _function(
    form: str,
    compute: object,
    *kinds: Kind,
    gives: Kind = Kind.TRUTH,
    optional: bool = False,
    more: bool = False,
) -> Helper:
    return Helper(
        form=form,
        compute=compute,  # type: ignore[arg-type]  # called with the kinds below
        kinds=kinds,
        gives=gives,
        least=len(kinds),
        most=0 if more else len(kinds),
        optional=optional,
    )


_T, _N, _L = Kind.TENSOR, Kind.NUMBER, Kind.NUMBERS
_D, _B, _X = Kind.DTYPE, Kind.TRUTH, Kind.SCALAR

_FUNCTIONS: Final = (
    _function("resizes(tensor, sizes)", predicates.resizes, _T, _L),
    _function(
        "same_dtype(a, b, ...)", predicates.same_dtype, _T, _T, more=True, optional=True
    ),
    _function("same_order(a, b, ...)", predicates.same_order, _T, _T, more=True),
    _function(
        "promoted(a, b, ...)",
        predicates.promoted,
        *(_T, _T),
        gives=_D,
        optional=True,
        more=True,
    ),
    _function(
        "with_number(dtype, scalar, ...)",
        predicates.with_number,
        *(_D, _X),
        gives=_D,
        optional=True,
        more=True,
    ),
    _function("can_cast(from, to)", predicates.can_cast, _D, _D),
    _function(
        "mixable(a, b, ...)", predicates.mixable, _T, _T, more=True, optional=True
    ),
    _function("parts(tensor)", predicates.parts, _T, gives=_D),
    _function("castable(tensors, dtype)", predicates.castable, Kind.TENSORS, _D),
    _function("alpha_fits(alpha, dtype)", predicates.alpha_fits, _X, _D),
    _function(
        "holds(dtype, scalar, ...)",
        predicates.holds,
        *(_D, _X),
        optional=True,
        more=True,
    ),
    _function(
        "holds_whole(dtype, scalar, ...)", predicates.holds_whole, _D, _X, more=True
    ),
    _function("is_zero(scalar, dtype)", predicates.is_zero, _X, _D),
    _function("is_float(scalar)", predicates.is_float, _X),
    _function("is_bool(scalar)", predicates.is_bool, _X),
    _function("is_int(scalar)", predicates.is_int, _X),
    _function("same_kind(a, b)", predicates.same_kind, _X, _X),
    _function("gives(result, scalar, ...)", predicates.gives, _X, _X, more=True),
    _function("fits_int(scalar)", predicates.fits_int, _X),
    _function("sum_fits(a, b)", predicates.result_fits(operator.add), _X, _X),
    _function("difference_fits(a, b)", predicates.result_fits(operator.sub), _X, _X),
    _function("product_fits(a, b)", predicates.result_fits(operator.mul), _X, _X),
    _function("is_dim(index, rank)", predicates.is_dim, _N, _N),
    _function("are_dims(indices, rank)", predicates.are_dims, _L, _N),
    _function("within(list, low, high)", predicates.within, _L, _N, _N),
    _function("parameters(list, count, low)", predicates.parameters, _L, _N, _N),
    _function(
        "items_within(tensor, low, high)",
        predicates.items_within,
        *(_T, _N, _N),
        optional=True,
    ),
    _function("indices_fit(tensor, indices)", predicates.indices_fit, _T, Kind.TENSORS),
    _function("picks(tensor, index, dim)", picked.picks, _T, _T, _N),
    _function("covers(tensor, index)", picked.covers, _T, _T),
    _function("picked(tensor, index, dim)", picked.picked, _T, _T, _N),
    _function("divides(offsets, indices)", picked.divides, _T, _T),
    _function("trues(tensor, mask)", picked.trues, _T, _T, gives=_N),
    _function("nonzeros(tensor)", picked.nonzeros, _T, gives=_N),
    _function("becomes(scalar, dtype)", picked.becomes, _X, _D),
    _function("is_channels_last(tensor)", predicates.is_channels_last, _T),
    _function("is_nhwc(tensor)", predicates.is_nhwc, _T),
    _function(
        "per_channel(count, tensor, ...)",
        predicates.per_channel,
        *(_N, _T),
        optional=True,
        more=True,
    ),
    _function(
        "has_sizes(tensor, sizes)", predicates.has_sizes, *(_T, _L), optional=True
    ),
    _function("ends_with(tensor, sizes)", predicates.ends_with, _T, _L),
    _function(
        "splits(tensor, outs, sizes, dim)", predicates.splits, _T, Kind.TENSORS, _L, _N
    ),
    _function("fills(tensor, sizes)", predicates.fills, _T, _L),
    _function("copies_to(tensor, row, index)", predicates.copies_to, _T, _T, _N),
    _function("has_order(tensor, dim_order)", predicates.has_order, _T, _L),
    _function("is_dtype(code, tensor)", predicates.is_dtype, _N, _T),
    _function("quantizes(low, high, dtype)", predicates.quantizes, _N, _N, _D),
    _function("divisible(tensor, divisors, dtype)", predicates.divisible, _T, _T, _D),
    _function(
        "broadcast(a, b, ...)",
        shapes.broadcast,
        *(_T, _T),
        gives=_L,
        optional=True,
        more=True,
    ),
    _shape("reduced(tensor, dims, keepdim)", shapes.reduced, _T, _L, _B, optional=True),
    _shape(
        "reduced_or_all(tensor, dims, keepdim)",
        shapes.reduced_or_all,
        *(_T, _L, _B),
        optional=True,
    ),
    _shape("without(tensor, dim)", shapes.without, _T, _N),
    _shape("replaced(tensor, dim, size)", shapes.replaced, _T, _N, _N),
    _shape("permuted(tensor, dims)", shapes.permuted, _T, _L),
    _shape("squeezed(tensor, dims)", shapes.squeezed, _T, _L),
    _shape("unsqueezed(tensor, dim)", shapes.unsqueezed, _T, _N),
    _shape("expanded(tensor, sizes)", shapes.expanded, _T, _L),
    _shape("viewed(tensor, sizes)", shapes.viewed, _T, _L),
    _shape(
        "sliced(tensor, dim, start, end, step)",
        shapes.sliced,
        *(_T, _N, _N, _N, _N),
        optional=True,
    ),
    _shape("concatenated(tensors, dim)", shapes.concatenated, Kind.TENSORS, _N),
    _shape("indexed(tensor, indices)", shapes.indexed, _T, Kind.TENSORS),
    _shape("grouped(tensor, shape)", shapes.grouped, _T, _L),
    _shape(
        "pooled(tensor, kernel, stride, padding, dilation, ceil_mode)",
        shapes.pooled,
        *(_T, _L, _L, _L, _L, _B),
    ),
    _shape(
        "pooled_volume(tensor, kernel, stride, padding, dilation, ceil_mode)",
        partial(shapes.pooled, dims=3),
        *(_T, _L, _L, _L, _L, _B),
    ),
    _shape(
        "convolved(tensor, weight, stride, padding, dilation, transposed,"
        " output_padding, groups)",
        shapes.convolved,
        *(_T, _T, _L, _L, _L, _B, _L, _N),
    ),
    _shape(
        "upsampled(tensor, sizes, factors)",
        shapes.upsampled,
        *(_T, _L, Kind.SCALARS),
        optional=True,
    ),
    _shape("transposed(tensor, dim, dim)", moved_shapes.transposed, _T, _N, _N),
    _shape(
        "narrowed(tensor, dim, start, length)",
        moved_shapes.narrowed,
        *(_T, _N, _N, _N),
    ),
    _shape(
        "diagonal(tensor, offset, dim, dim)",
        moved_shapes.diagonal,
        *(_T, _N, _N, _N),
    ),
    _shape("unfolded(tensor, dim, size, step)", moved_shapes.unfolded, _T, _N, _N, _N),
    _shape("repeated(tensor, repeats)", moved_shapes.repeated, _T, _L),
    _shape(
        "strided(tensor, sizes, strides, offset)",
        moved_shapes.strided,
        *(_T, _L, _L, _N),
        optional=True,
    ),
    _shape("stacked(tensors, dim)", moved_shapes.stacked, Kind.TENSORS, _N),
    _shape("extended(tensor, padding)", moved_shapes.extended, _T, _L),
    _shape("reflected(tensor, padding)", moved_shapes.reflected, _T, _L),
    _shape("replicated(tensor, padding)", moved_shapes.replicated, _T, _L),
    _shape("pixels_shuffled(tensor, factor)", moved_shapes.pixels_shuffled, _T, _N),
    _shape("pixels_unshuffled(tensor, factor)", moved_shapes.pixels_unshuffled, _T, _N),
    _shape("seen_as(tensor, out)", moved_shapes.seen_as, _T, _T),
    _shape("summed(tensor, size)", moved_shapes.summed, _T, _N, optional=True),
    _function(
        "splits_evenly(tensor, outs, size, dim)",
        moved_shapes.splits_evenly,
        *(_T, Kind.TENSORS, _N, _N),
    ),
    _function("unbinds(tensor, outs, dim)", moved_shapes.unbinds, _T, Kind.TENSORS, _N),
    _shape("counted(start, end, step, dtype)", shapes.counted, _X, _X, _X, _D),
    _shape(
        "pooled_image(nhwc, kernel, stride, padding, dilation, ceil_mode)",
        image_shapes.pooled_image,
        *(_L, _L, _L, _L, _L, _B),
    ),
    _shape(
        "convolved_image(nhwc, weight, outputs, stride, padding, dilation)",
        image_shapes.convolved_image,
        *(_L, _T, _N, _L, _L, _L),
    ),
    _shape(
        "transposed_image(nhwc, weight, stride, padding, output_padding, dilation)",
        image_shapes.transposed_image,
        *(_L, _T, _L, _L, _L, _L),
    ),
    _function("has_items(tensor, dims)", reductions.has_items, _T, _L, optional=True),
    _function("are_frequencies(sizes, dims)", reductions.are_frequencies, _L, _L),
    _shape("in_parts(tensor)", reductions.in_parts, _T),
    _function("is_norm(power)", reductions.is_norm, _X),
    _shape("different(tensor, is_wanted)", reductions.different, _T, _B),
    _shape("runs(tensor, is_wanted)", reductions.runs, _T, _B),
    _shape("pivoted(tensor)", reductions.pivoted, _T),
    _function("are_fractions(tensor)", reductions.are_fractions, _T),
    _function("has_range(tensor, low, high)", reductions.has_range, _T, _X, _X),
    _function("length(tensor, dim)", reductions.length, _T, _N, gives=_N),
    _function("area(tensor)", reductions.area, _T, gives=_N),
    _shape("resized(tensor, dim, size)", reductions.resized, _T, _N, _N),
    _shape("halved(tensor, dim)", reductions.halved, _T, _N),
    _shape("adapted(tensor, sizes)", reductions.adapted, _T, _L),
    _shape(
        "adapted_volume(tensor, sizes)", partial(reductions.adapted, dims=3), _T, _L
    ),
    _shape(
        "fractional(tensor, kernel, sizes, samples)",
        reductions.fractional,
        *(_T, _L, _L, _T),
    ),
    _shape(
        "fractional_volume(tensor, kernel, sizes, samples)",
        partial(reductions.fractional, dims=3),
        *(_T, _L, _L, _T),
    ),
    _shape(
        "trilinear(a, b, c, added_a, added_b, added_c, dims)",
        lambda a, b, c, d, e, f, dims: reductions.trilinear((a, b, c), (d, e, f), dims),
        *(_T, _T, _T, _L, _L, _L, _L),
    ),
    _shape("applied(tensor, weight)", reductions.applied, _T, _T),
    _shape("distances(a, b)", reductions.distances, _T, _T),
    _shape("pairs(tensor)", reductions.pairs, _T),
    _shape("from_nhwc(sizes)", image_shapes.from_nhwc, _L),
    _shape(
        "padded(tensor, before, after, nhwc)",
        image_shapes.padded_tensor,
        *(_T, _L, _L, _B),
    ),
)

PREDICATES: Mapping[str, Helper] = {f.form.partition("(")[0]: f for f in _FUNCTIONS}
"""Functions of conditions by name."""
