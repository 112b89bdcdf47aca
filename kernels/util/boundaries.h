// Places of numbers among boundaries that are in order.
#pragma once

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/indexing.h"
#include "util/promote.h"
#include "util/scalar.h"
#include "util/strided_loop.h"

namespace orch {

/// A search for numbers in the lines of the last dimension of a tensor: in the
/// only one, or each line of numbers in its own.
struct Search {
  const Tensor& boundaries;
  /// Indices of the boundaries of a line in order; null if they are in order.
  const Tensor* sorter;
  /// The numbers, or null: then `number` is the only one.
  const Tensor* items;
  const Scalar* number;
  /// Whether a number's place is behind boundaries that are equal to it.
  bool is_behind;
};

/// Checks the arguments, and the indices of the sorter; gives `out` its sizes.
/// Errors: InvalidArgument, NotSupported (the sorter has another dim order),
/// ShapeTooLarge.
__attribute__((noinline)) inline Error prepare_search(const Search& search,
                                                      bool is_narrow,
                                                      Tensor& out) {
  const Tensor& boundaries = search.boundaries;
  const Tensor* const items = search.items;
  const Tensor* const sorter = search.sorter;
  ORCH_CHECK(out.dtype == (is_narrow ? ScalarType::Int : ScalarType::Long) &&
                 boundaries.dim > 0,
             Error::InvalidArgument);
  const int last = boundaries.dim - 1;
  if (last > 0) {
    ORCH_CHECK(items != nullptr && items->dim == boundaries.dim,
               Error::InvalidArgument);
    for (int d = 0; d < last; ++d) {
      ORCH_CHECK(items->size(d) == boundaries.size(d), Error::InvalidArgument);
    }
  }
  if (sorter != nullptr) {
    ORCH_CHECK(
        sorter->dtype == ScalarType::Long && same_sizes(*sorter, boundaries),
        Error::InvalidArgument);
    for (int d = 0; d < boundaries.dim; ++d) {
      ORCH_CHECK(sorter->order()[d] == boundaries.order()[d],
                 Error::NotSupported);
    }
    ORCH_CHECK_DATA(are_within(sorter->data<int64_t>(), sorter->numel(), 0,
                               boundaries.size(last)),
                    Error::InvalidArgument);
  }
  Span<const int32_t> sizes;
  if (items != nullptr) sizes = items->sizes();
  return resize_output(out, sizes, boundaries,
                       items != nullptr ? *items : boundaries,
                       sorter != nullptr ? *sorter : boundaries);
}

/// search_sorted for numbers that are compared as T. kFrom: dtypes of items and
/// boundaries.
template <typename T, uint32_t kFrom>
Error find_places(const Search& search, Tensor& out) {
  const Tensor& boundaries = search.boundaries;
  const Tensor* const items = search.items;
  const int last = boundaries.dim - 1;
  const Strides from(boundaries);
  const Strides own(items != nullptr ? *items : out);
  const Strides to(out);
  StridedLoop loop;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    loop.add(out.size(d), to[d], own[d], d < last ? from[d] : 0);
  }
  const int32_t size = boundaries.size(last);
  const int32_t step = from[last];
  for (; loop.valid(); loop.next()) {
    for (int32_t i = 0; i < loop.row_size(); ++i) {
      const auto item = number_of(
          items == nullptr
              ? scalar_to<T>(*search.number)
              : load_as<T, kFrom>(items->dtype, items->memory,
                                  loop.offset(1) + i * loop.row_stride(1)));
      const int32_t line = loop.offset(2) + i * loop.row_stride(2);
      int32_t low = 0;
      int32_t high = size;
      while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        int32_t at = middle;
        if (search.sorter != nullptr) {
          const int64_t index =
              search.sorter->data<int64_t>()[line + middle * step];
          ORCH_CHECK_DATA(is_index(index, size), Error::InvalidArgument);
          at = static_cast<int32_t>(index);
        }
        const auto boundary = number_of(load_as<T, kFrom>(
            boundaries.dtype, boundaries.memory, line + at * step));
        // What is not a number is above all.
        if (search.is_behind ? !(boundary > item) : !(boundary >= item)) {
          low = middle + 1;
        } else {
          high = middle;
        }
      }
      store_as<kIndices.bits>(out.dtype, out.memory,
                              loop.offset(0) + i * loop.row_stride(0), low);
    }
  }
  return Error::Ok;
}

/// out[...] = the place of each number among the boundaries of its line, found
/// by halves as PyTorch finds it, also where they are not in order.
///
/// kBits: dtypes of numbers and boundaries. kCommon: what they are compared in,
/// `common` being one. Errors: InvalidArgument, NotSupported, ShapeTooLarge,
/// DtypeNotSelected.
template <uint32_t kBits, uint32_t kCommon>
Error search_sorted(const Search& search, ScalarType common, bool is_narrow,
                    Tensor& out) {
  constexpr DtypeSet kDtypes{kBits};
  ORCH_CHECK(kDtypes.has(search.boundaries.dtype) &&
                 (search.items == nullptr || kDtypes.has(search.items->dtype)),
             Error::DtypeNotSelected);
  ORCH_TRY_DATA(prepare_search(search, is_narrow, out));
  return switch_dtype<kCommon & kReal.bits>(common, [&](auto type) {
    using T = typename decltype(type)::type;
    constexpr DtypeSet kT = dtype_set(DtypeOf<T>::value);
    return find_places<T, castable_from(kDtypes, kT).bits>(search, out);
  });
}

/// The place of each item of a tensor. Truth values are compared as numbers.
template <uint32_t kBits>
Error search_sorted(const Search& search, bool is_narrow, Tensor& out) {
  constexpr DtypeSet kDtypes{kBits};
  constexpr bool kTruth = kDtypes.has(ScalarType::Bool);
  constexpr DtypeSet kByte = dtype_set(ScalarType::Byte);
  constexpr uint32_t kCommon =
      with_promoted(kDtypes).bits | (kTruth ? kByte.bits : 0);
  ScalarType common = result_type(search.boundaries, *search.items);
  if (kTruth && common == ScalarType::Bool) common = ScalarType::Byte;
  return search_sorted<kBits, kCommon>(search, common, is_narrow, out);
}

/// The place of a number.
template <uint32_t kBits>
Error search_sorted_number(const Search& search, bool is_narrow, Tensor& out) {
  constexpr DtypeSet kDtypes{kBits};
  return search_sorted<kBits, with_number(kDtypes).bits>(
      search, result_type(search.boundaries.dtype, *search.number), is_narrow,
      out);
}

}  // namespace orch
