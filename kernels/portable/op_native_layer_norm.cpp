#include "orch_selected/op_native_layer_norm.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/isa.h"
#include "util/lanes.h"
#include "util/moments.h"
#include "util/strided_loop.h"

namespace orch::portable {
namespace {

// clang-format off
#define ORCH_NORMALIZE(x, y) \
  "vsub.f32 " x ", " x ", r2\n" \
  "vmul.f32 " x ", " x ", r3\n" \
  "vmul.f32 " x ", " x ", " y "\n"
#define ORCH_SHIFT(x, y) "vadd.f32 " x ", " x ", " y "\n"
// clang-format on
ORCH_LANES(normalize_lanes, ORCH_NORMALIZE);
ORCH_LANES(shift_lanes, ORCH_SHIFT);

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
/// over them in the order of indices: tensor 0 is the input, 1 the output.
template <typename T>
ORCH_HOT void normalize(const LayerNorm& norm, StridedLoop& loop, const T* from,
                        T* to, int32_t count, Compute<T> eps, Compute<T>& mean,
                        Compute<T>& rstd) {
  using C = Compute<T>;
  const Moments<C> found = moments(from, loop, count);
  const C scale = 1 / math::sqrt(found.squares / static_cast<C>(count) + eps);
  mean = found.mean;
  rstd = scale;
  const T* const weight =
      norm.weight == nullptr ? nullptr : norm.weight->data<T>();
  const T* const bias = norm.bias == nullptr ? nullptr : norm.bias->data<T>();
  const bool in_order = (weight == nullptr || norm.weight->contiguous()) &&
                        (bias == nullptr || norm.bias->contiguous());
  int32_t number = 0;
  for (; loop.valid(); loop.next()) {
    const T* source = from + loop.offset(0);
    T* target = to + loop.offset(1);
    const int32_t source_step = loop.row_stride(0);
    const int32_t target_step = loop.row_stride(1);
    if (in_order && weight != nullptr && bias != nullptr) {
      const T* const factors = weight + number;
      const T* const summands = bias + number;
      const int32_t size = loop.row_size();
      const auto normalized = in_lanes(
          Type<T>{},
          [&found, scale](T item, T factor) {
            return static_cast<T>((static_cast<C>(item) - found.mean) * scale *
                                  static_cast<C>(factor));
          },
          normalize_lanes, static_cast<float>(found.mean),
          static_cast<float>(scale));
      // Of halves, the sum would be rounded twice.
      if constexpr (kIsSame<T, float> && kInLanes<decltype(normalized)>) {
        if (source_step == 1 && target_step == 1) {
          normalized.row(source, target, size, factors);
          in_lanes(
              Type<T>{}, [](T item, T summand) { return item + summand; },
              shift_lanes)
              .row(target, target, size, summands);
          number += size;
          continue;
        }
      } else if constexpr (kFavourSpeed) {
        if (source_step == 1 && target_step == 1) {
          const C mean_of_all = found.mean;
          for (int32_t i = 0; i < size; ++i) {
            const C value = (static_cast<C>(source[i]) - mean_of_all) * scale;
            target[i] = static_cast<T>(value * static_cast<C>(factors[i]) +
                                       static_cast<C>(summands[i]));
          }
          number += size;
          continue;
        }
      }
      for (int32_t i = 0; i < size; ++i) {
        const C value = (static_cast<C>(*source) - found.mean) * scale;
        *target = static_cast<T>(value * static_cast<C>(factors[i]) +
                                 static_cast<C>(summands[i]));
        source += source_step;
        target += target_step;
      }
      number += size;
      continue;
    }
    for (int32_t left = loop.row_size(); left > 0; --left, ++number) {
      C value = (static_cast<C>(*source) - found.mean) * scale;
      if (weight != nullptr) {
        value *= static_cast<C>(
            weight[in_order ? number : offset_of(*norm.weight, number)]);
      }
      if (bias != nullptr) {
        value += static_cast<C>(
            bias[in_order ? number : offset_of(*norm.bias, number)]);
      }
      *target = static_cast<T>(value);
      source += source_step;
      target += target_step;
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
  ORCH_TRY(resize_output(norm.mean, groups, input, norm.out));
  return resize_output(norm.rstd, groups, input, norm.out, norm.mean);
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
  constexpr DtypeSet kDtypes = selected::aten_native_layer_norm_out;
  ORCH_TRY(prepare(norm, first));
  // Only now: they may share their sizes with an output.
  ORCH_CHECK(fits(norm.weight, input, first) && fits(norm.bias, input, first),
             Error::InvalidArgument);

  const Strides from(input);
  const Strides to(norm.out);
  StridedLoop groups;
  StridedLoop items;
  for (int i = 0; i < input.dim; ++i) {
    if (i < first) {
      groups.add(input.size(i), from[i], to[i]);
    } else {
      items.add(input.size(i), from[i], to[i]);
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
