#include "orch_selected/op__native_batch_norm_legit.h"

#include "batch_norm.h"
#include "orch/kernel.h"
#include "util/moments.h"

namespace orch::portable {

// aten::_native_batch_norm_legit.out(Tensor input, Tensor? weight,
//   Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var,
//   bool training, float momentum, float eps, *, Tensor(d!) out,
//   Tensor(e!) save_mean, Tensor(f!) save_invstd)
//   -> (Tensor(d!), Tensor(e!), Tensor(f!))
Error _native_batch_norm_legit_out(const Args& args) {
  ORCH_CHECK(!args.boolean(5), Error::NotSupported);
  constexpr DtypeSet kDtypes = selected::aten__native_batch_norm_legit_out;
  return batch_norm<kDtypes.bits>(args, 7);
}

// aten::_native_batch_norm_legit.no_stats_out(Tensor input, Tensor? weight,
//   Tensor? bias, bool training, float momentum, float eps, *,
//   Tensor(a!) out, Tensor(b!) save_mean, Tensor(c!) save_invstd)
//   -> (Tensor(a!), Tensor(b!), Tensor(c!))
//
// Always by the statistics of the input, which become the last two outputs.
Error _native_batch_norm_legit_no_stats_out(const Args& args) {
  constexpr DtypeSet kDtypes =
      selected::aten__native_batch_norm_legit_no_stats_out;
  const Tensor& input = args.tensor(0);
  const Tensor* weight = args.optional_tensor(1);
  const Tensor* bias = args.optional_tensor(2);
  const Scalar& eps = args.scalar(5);
  Tensor& out = args.tensor(6);
  Tensor& mean = args.tensor(7);
  Tensor& rstd = args.tensor(8);

  ORCH_CHECK(input.dim >= 2 && out.dtype == input.dtype,
             Error::InvalidArgument);
  ORCH_TRY(resize_output(out, input.sizes(), input));
  const int32_t sizes[] = {input.size(1)};
  ORCH_TRY(resize_output(mean, sizes, input, out));
  ORCH_TRY(resize_output(rstd, sizes, input, out, mean));
  const Tensor* const parameters[] = {weight, bias, &mean, &rstd};
  for (const Tensor* tensor : parameters) {
    if (tensor != nullptr) {
      ORCH_TRY(check_parameter<kDtypes.bits>(*tensor, input));
    }
  }
  const Strides from(input);
  StridedLoop items;
  int32_t count = 1;
  for (int i = 0; i < input.dim; ++i) {
    if (i == 1) continue;
    items.add(input.size(i), from[i], 0);
    count *= input.size(i);
  }
  return switch_dtype<kDtypes.bits>(input.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    const Channels channels(input, out);
    for (int32_t c = 0; c < out.size(1); ++c) {
      const Moments<C> found =
          moments(input.data<T>() + c * channels.from_step, items, count);
      const C scale = 1 / math::sqrt(found.squares / static_cast<C>(count) +
                                     scalar_as<T>(eps));
      normalize_channel<T, kDtypes.bits>(channels, c, input, weight, bias,
                                         found.mean, scale, out);
      constexpr uint32_t kTo = kParameter<T, kDtypes.bits>;
      store_as<kTo>(mean.dtype, mean.memory, c, found.mean);
      store_as<kTo>(rstd.dtype, rstd.memory, c, scale);
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
