#include "orch_selected/op_mixed_linear.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"

namespace orch::quantized {
namespace {

/// A row of weights, from its first column on.
struct Bytes {
  static Bytes row(const Tensor& weight, int32_t i) {
    const Strides to(weight);
    return {weight.data<int8_t>() + i * to[0], to[1]};
  }
  int32_t next() {
    const int32_t factor = *at;
    at += step;
    return factor;
  }
  const int8_t* at;
  int32_t step;
};

/// The same of 4 bits, the lower ones of a byte first.
struct Pairs {
  static Pairs row(const Tensor& weight, int32_t i) {
    return {weight.data<int8_t>() + i * weight.size(1), false};
  }
  int32_t next() {
    const int32_t two = *at;
    const int32_t factor = high ? two : static_cast<int8_t>(two * 16);
    at += high ? 1 : 0;
    high = !high;
    return factor >> 4;
  }
  const int8_t* at;
  bool high;
};

/// Sums of groups of columns, each times its scale.
template <typename Weights, typename T, typename R>
void multiply(const Tensor& input, const Tensor& weight, const Tensor& scales,
              Tensor& out) {
  using C = Compute<R>;
  const Strides x(input);
  const Strides at_scale(scales);
  const Strides to(out);
  const int32_t terms = input.size(1);
  const bool grouped = scales.dim == 2;
  const int32_t groups = grouped ? scales.size(1) : 1;
  const int32_t group = groups == 0 ? 0 : (terms + groups - 1) / groups;
  const int32_t scale_step = grouped ? at_scale[1] : 0;
  for (int32_t i = 0; i < out.size(0); ++i) {
    for (int32_t j = 0; j < out.size(1); ++j) {
      const T* item = input.data<T>() + i * x[0];
      Weights row = Weights::row(weight, j);
      const T* scale = scales.data<T>() + j * at_scale[0];
      C sum = 0;
      for (int32_t left = terms; left > 0;) {
        const int32_t count = left < group ? left : group;
        C part = 0;
        for (int32_t k = count; k != 0; --k) {
          part += static_cast<C>(static_cast<float>(*item) *
                                 static_cast<float>(row.next()));
          item += x[1];
        }
        sum += part * static_cast<C>(static_cast<float>(*scale));
        scale += scale_step;
        left -= count;
      }
      out.mutable_data<R>()[i * to[0] + j * to[1]] = static_cast<R>(sum);
    }
  }
}

/// For the dtypes of a call.
template <typename Weights>
Error multiply_selected(const Tensor& input, const Tensor& weight,
                        const Tensor& scales, Tensor& out) {
  constexpr DtypeSet kIn =
      selected::quantized_decomposed_mixed_linear_out_of_input &
      dtype_set(ScalarType::Float, ScalarType::Half, ScalarType::BFloat16);
  constexpr DtypeSet kOut =
      selected::quantized_decomposed_mixed_linear_out_of_out & kFloating;
  return switch_dtype<kIn.bits>(input.dtype, [&](auto in) {
    return switch_dtype<kOut.bits>(out.dtype, [&](auto to) {
      multiply<Weights, typename decltype(in)::type,
               typename decltype(to)::type>(input, weight, scales, out);
      return Error::Ok;
    });
  });
}

}  // namespace

// quantized_decomposed::mixed_linear.out(Tensor input, Tensor weight,
//   Tensor weight_scales, Tensor? weight_zero_points, ScalarType? dtype=None,
//   *, Tensor(a!) out) -> Tensor(a!)
//
// Each row of the weights, or each group of its columns, has a scale.
Error mixed_linear_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& weight = args.tensor(1);
  const Tensor& scales = args.tensor(2);
  Tensor& out = args.tensor(5);

  ORCH_CHECK(!args.has(3), Error::NotSupported);
  ORCH_CHECK(weight.dtype == ScalarType::Char && scales.dtype == input.dtype,
             Error::InvalidArgument);
  ORCH_CHECK(!args.has(4) || args.integer(4) == static_cast<int64_t>(out.dtype),
             Error::InvalidArgument);
  ORCH_CHECK(input.dim == 2 && weight.dim == 2 &&
                 (scales.dim == 1 || scales.dim == 2) &&
                 input.size(1) == weight.size(1) &&
                 scales.size(0) == weight.size(0),
             Error::InvalidArgument);
  ORCH_CHECK(scales.dim == 1 || scales.size(1) > 0, Error::InvalidArgument);
  ORCH_CHECK(weight.size(1) <= kMaxExtent &&
                 (scales.dim == 1 || scales.size(1) <= kMaxExtent),
             Error::InvalidArgument);
  const int32_t sizes[] = {input.size(0), weight.size(0)};
  ORCH_TRY(resize_output(out, sizes, input, weight, scales));
  return multiply_selected<Bytes>(input, weight, scales, out);
}

// What the build makes of it where the weights are constants from -8 to 7: they
// have 4 bits, two in a byte, each row in bytes of its own. The build has
// checked the rest.
Error int4_mixed_linear_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& weight = args.tensor(1);
  const Tensor& scales = args.tensor(2);
  Tensor& out = args.tensor(5);
  const int32_t sizes[] = {input.size(0), weight.size(0)};
  ORCH_TRY(resize_output(out, sizes, input, weight, scales));
  return multiply_selected<Pairs>(input, weight, scales, out);
}

}  // namespace orch::quantized
