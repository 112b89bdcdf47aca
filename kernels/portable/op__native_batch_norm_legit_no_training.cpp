#include "orch_selected/op__native_batch_norm_legit_no_training.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/dtype.h"
#include "util/scalar.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

constexpr DtypeSet kDtypes =
    selected::aten__native_batch_norm_legit_no_training_out;

/// One number per channel, in the dtype of the input or, beside halves, Float.
Error check_parameter(const Tensor& tensor, const Tensor& input) {
  const bool half =
      input.dtype == ScalarType::Half || input.dtype == ScalarType::BFloat16;
  ORCH_CHECK(tensor.dim == 1 && tensor.size(0) == input.size(1),
             Error::InvalidArgument);
  ORCH_CHECK(tensor.dtype == input.dtype ||
                 (half && tensor.dtype == ScalarType::Float),
             Error::InvalidArgument);
  return kDtypes.has(tensor.dtype) ? Error::Ok : Error::DtypeNotSelected;
}

template <typename T>
void normalize(const Tensor& input, const Tensor* weight, const Tensor* bias,
               const Tensor& mean, const Tensor& var, const Scalar& eps,
               Tensor& out) {
  using C = Compute<T>;
  constexpr DtypeSet kT = dtype_set(DtypeOf<T>::value);
  constexpr uint32_t kParameter =
      (kIsHalf<T> ? kDtypes & (kT | dtype_set(ScalarType::Float)) : kT).bits;
  const auto load = [](const Tensor& tensor, int32_t channel) {
    return load_as<C, kParameter>(tensor.dtype, tensor.memory, channel);
  };

  const Strides from(input);
  const Strides to(out);
  StridedLoop channel;
  for (int i = 0; i < out.dim; ++i) {
    const int d = out.order()[i];
    if (d != 1) channel.add(out.size(d), to[d], from[d]);
  }
  for (int32_t c = 0; c < out.size(1); ++c) {
    // out = input * scale + shift, as PyTorch computes it.
    C scale = 1 / math::sqrt(load(var, c) + scalar_as<T>(eps));
    if (weight != nullptr) scale = load(*weight, c) * scale;
    const C product = load(mean, c) * scale;
    const C shift = (bias == nullptr ? C(0) : load(*bias, c)) - product;

    const T* from_channel = input.data<T>() + c * from[1];
    T* to_channel = out.mutable_data<T>() + c * to[1];
    StridedLoop loop = channel;
    map_rows(loop, from_channel, to_channel, [=](T x) {
      return static_cast<T>(static_cast<C>(x) * scale + shift);
    });
  }
}

}  // namespace

// aten::_native_batch_norm_legit_no_training.out(Tensor input, Tensor? weight,
//   Tensor? bias, Tensor running_mean, Tensor running_var, float momentum,
//   float eps, *, Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2)
//   -> (Tensor(a!), Tensor(b!), Tensor(c!))
//
// out1 and out2 would be the statistics of a training step: they stay empty.
Error _native_batch_norm_legit_no_training_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor* weight = args.optional_tensor(1);
  const Tensor* bias = args.optional_tensor(2);
  const Tensor& mean = args.tensor(3);
  const Tensor& var = args.tensor(4);
  Tensor& out = args.tensor(7);

  ORCH_CHECK(input.dim >= 2 && out.dtype == input.dtype,
             Error::InvalidArgument);
  ORCH_TRY(check_parameter(mean, input));
  ORCH_TRY(check_parameter(var, input));
  if (weight != nullptr) ORCH_TRY(check_parameter(*weight, input));
  if (bias != nullptr) ORCH_TRY(check_parameter(*bias, input));
  ORCH_TRY(resize_output(out, input.sizes(), mean, var));
  const int32_t none[] = {0};
  for (int i = 8; i <= 9; ++i) {
    ORCH_TRY(resize_output(args.tensor(i), none, input, mean, var, out));
  }
  return switch_dtype<kDtypes.bits>(input.dtype, [&](auto type) {
    normalize<typename decltype(type)::type>(input, weight, bias, mean, var,
                                             args.scalar(6), out);
    return Error::Ok;
  });
}

}  // namespace orch::portable
