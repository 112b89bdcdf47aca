#include "orch_selected/op_scatter_reduce.h"

#include "orch/kernel.h"
#include "util/along_dim.h"
#include "util/divide.h"
#include "util/dtype.h"
#include "util/fold_lines.h"
#include "util/scalar.h"
#include "util/word.h"

namespace orch::portable {
namespace {

enum class Reduce { Sum, Product, Mean, Smallest, Largest };

/// Errors: InvalidArgument.
Error read_reduce(const List& word, Reduce& reduce) {
  if (is_word(word, "sum")) {
    reduce = Reduce::Sum;
  } else if (is_word(word, "prod")) {
    reduce = Reduce::Product;
  } else if (is_word(word, "mean")) {
    reduce = Reduce::Mean;
  } else if (is_word(word, "amin")) {
    reduce = Reduce::Smallest;
  } else {
    ORCH_CHECK(is_word(word, "amax"), Error::InvalidArgument);
    reduce = Reduce::Largest;
  }
  return Error::Ok;
}

/// `item` folded into `result`. One branch for each fold, not an instance: the
/// operator is rare.
template <typename T>
Compute<T> folded(Reduce reduce, Compute<T> result, Compute<T> item) {
  using C = Compute<T>;
  // Integers are computed without a sign, and compared with it.
  using N = typename Choose<kIsFloating<T>, C, T>::type;
  switch (reduce) {
    case Reduce::Product:
      return static_cast<C>(result * item);
    case Reduce::Smallest:
    case Reduce::Largest: {
      const N a = static_cast<N>(item);
      const N b = static_cast<N>(result);
      const bool beyond = reduce == Reduce::Smallest ? a < b : a > b;
      return beyond || is_nan(a) ? item : result;
    }
    case Reduce::Sum:
    case Reduce::Mean:
      break;
  }
  return static_cast<C>(result + item);
}

/// What a fold of any item with it leaves as it is.
template <typename T>
T neutral(Reduce reduce) {
  switch (reduce) {
    case Reduce::Product:
      return static_cast<T>(1);
    case Reduce::Smallest:
      return highest<T>();
    case Reduce::Largest:
      return lowest<T>();
    case Reduce::Sum:
    case Reduce::Mean:
      break;
  }
  // 0 + -0 would be 0.
  if constexpr (kIsFloating<T>) return -T(0);
  return T(0);
}

/// Folds items one after the other into those of `out`, where nothing is lost
/// in between.
template <typename T>
Error reduce_items(const Tensor& index, const Tensor& src, int dim,
                   Reduce reduce, bool include_self, Tensor& out) {
  using C = Compute<T>;
  const T* const from = src.data<T>();
  T* const to = out.mutable_data<T>();
  if (!include_self) {
    AlongDim along(out, dim, index, src);
    const T start = neutral<T>(reduce);
    ORCH_TRY_DATA(
        along.each([to, start](int32_t at, int32_t) { to[at] = start; }));
  }
  AlongDim along(out, dim, index, src);
  return along.each([reduce, from, to](int32_t at, int32_t k) {
    to[at] = convert<T>(
        folded<T>(reduce, static_cast<C>(to[at]), static_cast<C>(from[k])));
  });
}

/// The same in blocks: means need counts, halves are rounded once.
template <typename T>
void reduce_lines(const Tensor& index, const Tensor& src, int dim,
                  Reduce reduce, bool include_self, Tensor& out) {
  using C = Compute<T>;
  fold_lines<T>(
      index, src, dim, include_self, out,
      [reduce](C result, C item) { return folded<T>(reduce, result, item); },
      [reduce](C result, int32_t count) {
        if (reduce != Reduce::Mean) return result;
        if constexpr (kIsFloating<T>) {
          return result / static_cast<C>(count);
        } else {
          return static_cast<C>(divide_floor(
              static_cast<int64_t>(static_cast<T>(result)), int64_t{count}));
        }
      });
}

}  // namespace

// aten::scatter_reduce.two_out(Tensor self, int dim, Tensor index, Tensor src,
//   str reduce, *, bool include_self=True, Tensor(a!) out) -> Tensor(a!)
Error scatter_reduce_two_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const int64_t dim = args.integer(1);
  const Tensor& index = args.tensor(2);
  const Tensor& src = args.tensor(3);
  Tensor& out = args.tensor(6);

  constexpr DtypeSet kDtypes = selected::aten_scatter_reduce_two_out;
  Reduce reduce;
  ORCH_CHECK(src.dtype == out.dtype, Error::InvalidArgument);
  ORCH_CHECK(kDtypes.has(out.dtype), Error::DtypeNotSelected);
  ORCH_TRY(read_reduce(args.value(4).list(), reduce));
  ORCH_TRY_DATA(copy_to_scatter(self, dim, index, &src, out));
  if (index.numel() == 0) return Error::Ok;
  int along;
  ORCH_TRY(read_dim(dim, out.dim, along));
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (!kIsHalf<T>) {
      if (reduce != Reduce::Mean) {
        return reduce_items<T>(index, src, along, reduce, args.boolean(5), out);
      }
    }
    reduce_lines<T>(index, src, along, reduce, args.boolean(5), out);
    return Error::Ok;
  });
}

}  // namespace orch::portable
