#include "orch_selected/op_native_layer_norm.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/moments.h"
#include "util/strided_loop.h"

namespace orch::portable {
namespace {

/// The tensors of a call; they have one dtype. `weight` and `bias` may be null.
struct LayerNorm {
  const Tensor& input;
  const Tensor* weight;
  const Tensor* bias;
  Tensor& out;
  Tensor& mean;
  Tensor& rstd;
};

/// Offset of an item by its number in the order of indices.
__attribute__((noinline)) int32_t offset_of(const Tensor& tensor,
                                            int32_t number) {
  if (tensor.contiguous()) return number;
  const Strides strides(tensor);
  int32_t offset = 0;
  for (int i = tensor.dim; i-- > 0;) {
    const int32_t rest = number / tensor.size(i);
    offset += (number - rest * tensor.size(i)) * strides[i];
    number = rest;
  }
  return offset;
}

/// Normalizes the items of one group, which begin at `from`, to `to`; `loop` is
/// over them: tensor 0 is the input, 1 the output, 2 the weights, and the
/// biases as well if they are laid out alike.
template <typename T>
void normalize(const LayerNorm& norm, StridedLoop& loop, const T* from, T* to,
               int32_t count, Compute<T> eps, Compute<T>& mean,
               Compute<T>& rstd) {
  using C = Compute<T>;
  const bool alike = norm.weight == nullptr || norm.bias == nullptr ||
                     same_layout(*norm.weight, *norm.bias);
  const Moments<C> found = moments(from, loop, count);
  mean = found.mean;
  rstd = 1 / math::sqrt(found.squares / static_cast<C>(count) + eps);
  int32_t number = 0;
  for (; loop.valid(); loop.next()) {
    for (int32_t i = 0; i < loop.row_size(); ++i, ++number) {
      const int32_t of = loop.offset(2) + i * loop.row_stride(2);
      C value = (static_cast<C>(from[loop.offset(0) + i * loop.row_stride(0)]) -
                 found.mean) *
                rstd;
      if (norm.weight != nullptr) {
        value *= static_cast<C>(norm.weight->data<T>()[of]);
      }
      if (norm.bias != nullptr) {
        value += static_cast<C>(
            norm.bias->data<T>()[alike ? of : offset_of(*norm.bias, number)]);
      }
      to[loop.offset(1) + i * loop.row_stride(1)] = static_cast<T>(value);
    }
  }
  loop.restart();
}

/// Whether an optional tensor fits the last dimensions of the input.
bool fits(const Tensor* tensor, const Tensor& input, int first) {
  if (tensor == nullptr) return true;
  if (tensor->dtype != input.dtype || tensor->dim != input.dim - first) {
    return false;
  }
  for (int i = first; i < input.dim; ++i) {
    if (tensor->size(i - first) != input.size(i)) return false;
  }
  return true;
}

/// Strides by the last dimensions of a tensor of rank `rank`.
void last_strides(const Tensor* tensor, int rank, int32_t* strides) {
  for (int i = 0; i < rank; ++i) strides[i] = 0;
  if (tensor == nullptr) return;
  const Strides own(*tensor);
  for (int i = 0; i < tensor->dim; ++i) {
    strides[rank - tensor->dim + i] = own[i];
  }
}

/// Gives the outputs their sizes. Errors: InvalidArgument, ShapeTooLarge.
Error prepare(const LayerNorm& norm, int first) {
  const Tensor& input = norm.input;
  ORCH_CHECK(norm.out.dtype == input.dtype && norm.mean.dtype == input.dtype &&
                 norm.rstd.dtype == input.dtype,
             Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  for (int i = 0; i < input.dim; ++i) {
    sizes[i] = i < first ? input.size(i) : 1;
  }
  const Span<const int32_t> groups{sizes, input.dim};
  ORCH_TRY(resize_output(norm.out, input.sizes(), input));
  const Tensor* const parameters[] = {norm.weight, norm.bias};
  Tensor* const statistics[] = {&norm.mean, &norm.rstd};
  for (Tensor* out : statistics) {
    for (const Tensor* other : parameters) {
      ORCH_CHECK(other == nullptr || keeps_sizes(*other, *out, groups),
                 Error::InvalidArgument);
    }
    ORCH_TRY(resize_output(*out, groups, input, norm.out));
  }
  return Error::Ok;
}

}  // namespace

// aten::native_layer_norm.out(Tensor input, SymInt[] normalized_shape,
//   Tensor? weight, Tensor? bias, float eps, *, Tensor(a!) out0,
//   Tensor(b!) out1, Tensor(c!) out2)
//   -> (Tensor(a!), Tensor(b!), Tensor(c!))
//
// out1 and out2 are mean and 1 / sqrt(variance + eps) of each group.
Error native_layer_norm_out(const Args& args) {
  const LayerNorm norm = {args.tensor(0),          args.optional_tensor(2),
                          args.optional_tensor(3), args.tensor(5),
                          args.tensor(6),          args.tensor(7)};
  const IntList shape = args.int_list(1);

  const Tensor& input = norm.input;
  const int first = input.dim - shape.size();
  ORCH_CHECK(shape.size() > 0 && first >= 0, Error::InvalidArgument);
  int32_t count = 1;
  for (int i = first; i < input.dim; ++i) {
    ORCH_CHECK(shape[i - first] == input.size(i), Error::InvalidArgument);
    count *= input.size(i);
  }
  ORCH_CHECK(fits(norm.weight, input, first) && fits(norm.bias, input, first),
             Error::InvalidArgument);
  constexpr DtypeSet kDtypes = selected::aten_native_layer_norm_out;
  ORCH_TRY(prepare(norm, first));

  const Strides from(input);
  const Strides to(norm.out);
  int32_t parameters[kMaxDim];
  last_strides(norm.weight != nullptr ? norm.weight : norm.bias, input.dim,
               parameters);
  StridedLoop groups;
  StridedLoop items;
  for (int i = 0; i < input.dim; ++i) {
    if (i < first) {
      groups.add(input.size(i), from[i], to[i]);
    } else {
      items.add(input.size(i), from[i], to[i], parameters[i]);
    }
  }
  return switch_dtype<kDtypes.bits>(input.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    const C eps = static_cast<C>(args.real(4));
    int32_t number = 0;
    for (; groups.valid(); groups.next()) {
      for (int32_t i = 0; i < groups.row_size(); ++i, ++number) {
        C mean = 0;
        C rstd = static_cast<C>(__builtin_nanf(""));  // of nothing
        if (count != 0) {
          normalize<T>(
              norm, items,
              input.data<T>() + groups.offset(0) + i * groups.row_stride(0),
              norm.out.mutable_data<T>() + groups.offset(1) +
                  i * groups.row_stride(1),
              count, eps, mean, rstd);
        }
        norm.mean.mutable_data<T>()[offset_of(norm.mean, number)] =
            static_cast<T>(mean);
        norm.rstd.mutable_data<T>()[offset_of(norm.rstd, number)] =
            static_cast<T>(rstd);
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
