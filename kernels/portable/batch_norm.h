// Batch normalization: one scale and one shift for each channel.
#pragma once

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/dtype.h"
#include "util/scalar.h"
#include "util/unary.h"

namespace orch::portable {

/// One number per channel, in the dtype of the input or, beside halves, Float.
template <uint32_t kBits>
Error check_parameter(const Tensor& tensor, const Tensor& input) {
  const bool half =
      input.dtype == ScalarType::Half || input.dtype == ScalarType::BFloat16;
  ORCH_CHECK(tensor.dim == 1 && tensor.size(0) == input.size(1),
             Error::InvalidArgument);
  ORCH_CHECK(tensor.dtype == input.dtype ||
                 (half && tensor.dtype == ScalarType::Float),
             Error::InvalidArgument);
  return DtypeSet{kBits}.has(tensor.dtype) ? Error::Ok
                                           : Error::DtypeNotSelected;
}

/// Dtypes of parameters beside an input of type T.
template <typename T, uint32_t kBits>
inline constexpr uint32_t kParameter =
    kBits&(dtype_set(DtypeOf<T>::value).bits |
           (kIsHalf<T> ? dtype_set(ScalarType::Float).bits : 0U));

template <typename T, uint32_t kBits>
Compute<T> parameter(const Tensor& tensor, int32_t channel) {
  return load_as<Compute<T>, kParameter<T, kBits>>(tensor.dtype, tensor.memory,
                                                   channel);
}

/// The items of a channel of `input` and of `out`, which have the same sizes.
struct Channels {
  StridedLoop loop;  // tensor 0 is the output, tensor 1 the input
  int32_t to_step;
  int32_t from_step;

  Channels(const Tensor& input, const Tensor& out) {
    const Strides from(input);
    const Strides to(out);
    for (int i = 0; i < out.dim; ++i) {
      const int d = out.order()[i];
      if (d != 1) loop.add(out.size(d), to[d], from[d]);
    }
    to_step = to[1];
    from_step = from[1];
  }
};

// clang-format off
#define ORCH_SCALE_SHIFT(x, y) \
  "vmul.f32 " x ", " x ", r2\n" \
  "vadd.f32 " x ", " x ", r3\n"
// clang-format on
ORCH_LANES(scale_shift_lanes, ORCH_SCALE_SHIFT);
#undef ORCH_SCALE_SHIFT

/// out = (input - mean) * scale + bias in one channel, as PyTorch computes it.
/// `scale` is 1 / sqrt(variance + eps), without the weight.
template <typename T, uint32_t kBits>
void normalize_channel(const Channels& channels, int32_t c, const Tensor& input,
                       const Tensor* weight, const Tensor* bias,
                       Compute<T> mean, Compute<T> scale, Tensor& out) {
  using C = Compute<T>;
  if (weight != nullptr) scale = parameter<T, kBits>(*weight, c) * scale;
  const C product = mean * scale;
  const C shift =
      (bias == nullptr ? C(0) : parameter<T, kBits>(*bias, c)) - product;
  StridedLoop loop = channels.loop;
  const auto fn = [scale, shift](T x) {
    return static_cast<T>(static_cast<C>(x) * scale + shift);
  };
  map_rows(loop, input.data<T>() + c * channels.from_step,
           out.mutable_data<T>() + c * channels.to_step,
           in_lanes(Type<T>{}, fn, scale_shift_lanes, static_cast<float>(scale),
                    static_cast<float>(shift)));
}

/// Batch normalization by given statistics. Arguments: 0 input, 1 weight?,
/// 2 bias?, 3 mean, 4 variance; `last`: eps, then three outputs, of which the
/// second and third would be the statistics of a training step: they stay
/// empty.
///
/// kBits: dtypes of all.
template <uint32_t kBits>
Error batch_norm(const Args& args, int last) {
  const Tensor& input = args.tensor(0);
  const Tensor* weight = args.optional_tensor(1);
  const Tensor* bias = args.optional_tensor(2);
  const Tensor& mean = args.tensor(3);
  const Tensor& var = args.tensor(4);
  const Scalar& eps = args.scalar(last);
  Tensor& out = args.tensor(last + 1);

  ORCH_CHECK(input.dim >= 2 && out.dtype == input.dtype,
             Error::InvalidArgument);
  ORCH_TRY(check_parameter<kBits>(mean, input));
  ORCH_TRY(check_parameter<kBits>(var, input));
  if (weight != nullptr) ORCH_TRY(check_parameter<kBits>(*weight, input));
  if (bias != nullptr) ORCH_TRY(check_parameter<kBits>(*bias, input));
  ORCH_TRY(resize_output(out, input.sizes(), mean, var));
  const int32_t none[] = {0};
  for (int i = last + 2; i <= last + 3; ++i) {
    ORCH_TRY(resize_output(args.tensor(i), none, input, mean, var, out));
  }
  return switch_dtype<kBits>(input.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const Channels channels(input, out);
    for (int32_t c = 0; c < out.size(1); ++c) {
      normalize_channel<T, kBits>(
          channels, c, input, weight, bias, parameter<T, kBits>(mean, c),
          1 / math::sqrt(parameter<T, kBits>(var, c) + scalar_as<T>(eps)), out);
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
