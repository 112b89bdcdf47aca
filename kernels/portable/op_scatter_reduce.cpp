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

/// One branch for each fold, not an instance: the operator is rare.
template <typename T>
void reduce_lines(const Tensor& index, const Tensor& src, int dim,
                  Reduce reduce, bool include_self, Tensor& out) {
  using C = Compute<T>;
  // Integers are computed without a sign, and compared with it.
  using N = typename Choose<kIsFloating<T>, C, T>::type;
  fold_lines<T>(
      index, src, dim, include_self, out,
      [reduce](C result, C item) {
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
      },
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
  ORCH_TRY(copy_to_scatter(self, dim, index, &src, out));
  if (index.numel() == 0) return Error::Ok;
  int along;
  ORCH_TRY(read_dim(dim, out.dim, along));
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    reduce_lines<typename decltype(type)::type>(index, src, along, reduce,
                                                args.boolean(5), out);
    return Error::Ok;
  });
}

}  // namespace orch::portable
