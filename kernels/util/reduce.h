// Operators that make one number of the items along some dimensions.
#pragma once

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/promote.h"
#include "util/strided_loop.h"
#include "util/truncate.h"

namespace orch {

/// Which items go into which result.
struct Reduction {
  /// Over the results; tensor 0 is the output, tensor 1 the input, tensor 2 the
  /// second output.
  StridedLoop kept;
  /// Over the items of one result in the order of their indices, whatever the
  /// dim order; tensor 0 is the input.
  StridedLoop items;
  /// Items of one result.
  int32_t count = 1;
};

/// Gives `out`, and `second` where there is one, its sizes and `reduction` its
/// loops. `dims`: a bit for each dimension that is reduced; where the sizes are
/// kept they become 1. Errors: InvalidArgument, ShapeTooLarge.
template <typename... Outs>
__attribute__((noinline)) Error prepare_reduction(const Tensor& self,
                                                  unsigned dims, bool keep,
                                                  Tensor& out,
                                                  Reduction& reduction,
                                                  Outs&... second) {
  const Strides from(self);
  int32_t sizes[kMaxDim];
  int32_t steps[kMaxDim];  // of the input, by dimension of the output
  size_t rank = 0;
  for (int i = 0; i < self.dim; ++i) {
    const bool reduced = ((dims >> i) & 1U) != 0;
    if (reduced) {
      reduction.count *= self.size(i);
      reduction.items.add(self.size(i), from[i], 0);
    }
    if (reduced && !keep) continue;
    sizes[rank] = reduced ? 1 : self.size(i);
    steps[rank++] = from[i];
  }
  const Span<const int32_t> shape{sizes, rank};
  ORCH_TRY(resize_output(out, shape, self));
  const Strides to(out);
  if constexpr (sizeof...(second) == 0) {
    for (int i = 0; i < out.dim; ++i) {
      const int d = out.order()[i];
      reduction.kept.add(out.size(d), to[d], steps[d]);
    }
  } else {
    ORCH_TRY((resize_output(second, shape, self, out), ...));
    const Strides also(second...);
    for (int i = 0; i < out.dim; ++i) {
      const int d = out.order()[i];
      reduction.kept.add(out.size(d), to[d], steps[d], also[d]);
    }
  }
  return Error::Ok;
}

/// Calls fn(to, from, also) for every result: offsets of its place in the
/// output, of its first item, and of its place in the second output.
template <typename Fn>
void each_result(Reduction& reduction, Fn fn) {
  StridedLoop& kept = reduction.kept;
  for (; kept.valid(); kept.next()) {
    for (int32_t i = 0; i < kept.row_size(); ++i) {
      fn(kept.offset(0) + i * kept.row_stride(0),
         kept.offset(1) + i * kept.row_stride(1),
         kept.offset(2) + i * kept.row_stride(2));
      if (reduction.count != 0) reduction.items.restart();
    }
  }
}

/// Whether every result has items: a smallest or largest one needs one. `dims`
/// as for prepare_reduction.
__attribute__((noinline)) inline bool has_items(const Tensor& self,
                                                unsigned dims) {
  for (int i = 0; i < self.dim; ++i) {
    if (((dims >> i) & 1U) != 0 && self.size(i) == 0) return false;
  }
  return true;
}

/// The dimensions an `int[]? dim` names; all of them if it is None or empty.
/// Errors: InvalidArgument.
inline Error read_reduced_dims(const Args& args, int index, const Tensor& self,
                               unsigned& dims) {
  dims = 0;
  if (args.has(index)) {
    ORCH_TRY(read_dims(args.int_list(index), self.dim, dims));
  }
  if (dims == 0) dims = (1U << self.dim) - 1;
  return Error::Ok;
}

/// Checks a `ScalarType? dtype`: None, or that of the output. Errors:
/// InvalidArgument.
inline Error check_out_dtype(const Args& args, int index, const Tensor& out) {
  ORCH_CHECK(!args.has(index) ||
                 args.integer(index) == static_cast<int64_t>(out.dtype),
             Error::InvalidArgument);
  return Error::Ok;
}

/// Items of a tensor, of dtypes kBits, from `first` on: converted to T, in the
/// type that it is computed in.
template <typename T, uint32_t kBits>
struct CastItems {
  const Tensor& tensor;
  int32_t first;
  Compute<T> operator()(int32_t at) const {
    return static_cast<Compute<T>>(
        load_cast<T, kBits>(tensor.dtype, tensor.memory, first + at));
  }
};

/// out[...] = result for the items that go there:
/// result = fold(load, items) of the loop over these items; load(i) is item i
/// in the type that the output is computed in, to whose dtype it is converted
/// before.
///
/// kBits: dtypes of `self` and `out`. Errors: DtypeNotSelected; then nothing is
/// written.
template <uint32_t kBits, typename Fold>
Error fold_items(const Tensor& self, Tensor& out, Reduction& reduction,
                 Fold fold) {
  constexpr DtypeSet kDtypes{kBits};
  ORCH_CHECK(kDtypes.has(self.dtype), Error::DtypeNotSelected);
  return switch_dtype<kBits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    // Complex numbers do not mix with others.
    constexpr uint32_t kFrom = kIsComplex<T> ? dtype_set(DtypeOf<T>::value).bits
                                             : kBits & ~kComplex.bits;
    if constexpr ((kBits & kComplex.bits) != 0) {
      ORCH_CHECK(DtypeSet{kFrom}.has(self.dtype), Error::DtypeNotSelected);
    }
    StridedLoop& items = reduction.items;
    each_result(reduction, [&](int32_t to, int32_t first, int32_t) {
      C result;
      if (kDtypes.single() || self.dtype == out.dtype) {
        result = fold(ItemsOf<T>{self.data<T>() + first}, items);
      } else if constexpr (!kDtypes.single()) {
        result = fold(CastItems<T, kFrom>{self, first}, items);
      }
      out.mutable_data<T>()[to] = convert<T>(result);
    });
    return Error::Ok;
  });
}

/// aten::<op>.<overload>(Tensor self, int dim, bool keepdim=False, *,
///   Tensor(a!) values, Tensor(b!) indices) -> (Tensor(a!), Tensor(b!))
///
/// One item of each line along `dim`, and its index in the line: that of
/// pick(first, line), where `line` loops over the line from its first item on.
/// kBits: dtypes of `self`; kDim: the place of `dim` among the arguments.
template <uint32_t kBits, int kDim = 1, typename Pick>
Error pick_along(const Args& args, Pick pick) {
  const Tensor& self = args.tensor(0);
  Tensor& values = args.tensor(kDim + 2);
  Tensor& indices = args.tensor(kDim + 3);

  int dim = 0;
  ORCH_TRY(read_dim(args.integer(kDim), self.dim, dim));
  ORCH_CHECK(values.dtype == self.dtype && indices.dtype == ScalarType::Long,
             Error::InvalidArgument);
  ORCH_CHECK(has_items(self, 1U << dim), Error::InvalidArgument);
  Reduction reduction;
  ORCH_TRY(prepare_reduction(self, 1U << dim, args.boolean(kDim + 1), values,
                             reduction, indices));
  return switch_dtype<kBits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    // One dimension is one row.
    const int32_t step = reduction.items.row_stride(0);
    each_result(reduction, [&](int32_t to, int32_t first, int32_t also) {
      const T* from = self.data<T>() + first;
      const int32_t index = pick(from, reduction.items);
      values.mutable_data<T>()[to] = from[index * step];
      indices.mutable_data<int64_t>()[also] = index;
    });
    return Error::Ok;
  });
}

}  // namespace orch
