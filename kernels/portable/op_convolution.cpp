#include "orch_selected/op_convolution.h"

#include "convolve.h"
#include "convolve_mve.h"
#include "orch/kernel.h"
#include "read_convolution.h"
#include "util/check.h"
#include "util/dtype.h"

namespace orch::portable {
namespace {

template <typename T>
void convolve(const Convolution& conv, const Tensor& input,
              const Tensor& weight, const Tensor* bias, Tensor& out) {
  const TensorFilters filters(conv, input, weight, out);
  const AnyTaps taps = {conv.transposed};
  const T* start = bias == nullptr ? nullptr : bias->data<T>();
#if ORCH_FLOAT_VECTORS
  if constexpr (kIsSame<T, float>) {
    convolve_vectors(filters, filters.volumes, taps, input.data<T>(),
                     weight.data<T>(), start, out.mutable_data<T>());
    return;
  } else
#endif
  {
    convolve_plain(filters, filters.volumes, taps, AnyDots{}, input.data<T>(),
                   weight.data<T>(), start, out.mutable_data<T>());
  }
}

/// What relu makes of sums; NaN stays.
struct Relu {
  float operator()(float sum) const { return is_negative(sum) ? 0 : sum; }
};

/// A prepared call, of images.
template <typename Tapping, typename Dots, typename Finish = AsSummed>
__attribute__((noinline)) void convolve(const PreparedCall& prepared,
                                        Tapping tapping,
                                        [[maybe_unused]] Dots dots,
                                        [[maybe_unused]] Finish finish = {}) {
  const auto& call = static_cast<const ConvolutionCall&>(prepared);
  const float* const input = static_cast<const float*>(call.input);
  const float* const weight = static_cast<const float*>(call.weight);
  const float* const bias = static_cast<const float*>(call.bias);
  float* const out = static_cast<float*>(call.out);
#if ORCH_FLOAT_VECTORS
  convolve_vectors(*call.shape, kOneImage, tapping, input, weight, bias, out);
#else
  convolve_plain(*call.shape, kOneImage, tapping, dots, input, weight, bias,
                 out, finish);
#endif
}

#if !ORCH_FLOAT_VECTORS
template <typename Finish = AsSummed>
void convolve_known(const PreparedCall& call, KnownDots dots) {
  convolve(call, KnownTaps<false>{}, dots, Finish{});
}

template <DotFactors kFactors, bool kRest, typename Finish = AsSummed>
void convolve_four(const PreparedCall& call) {
  constexpr KnownDots::Fn kOne = kRest ? dot1<float> : nullptr;
  convolve_known<Finish>(call, {KnownDots::four_of<kFactors>(), kOne});
}
#endif

}  // namespace

// aten::convolution.out(Tensor input, Tensor weight, Tensor? bias,
//   SymInt[] stride, SymInt[] padding, SymInt[] dilation, bool transposed,
//   SymInt[] output_padding, SymInt groups, *, Tensor(a!) out) -> Tensor(a!)
Error convolution_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& weight = args.tensor(1);
  const Tensor* const bias = args.optional_tensor(2);
  Tensor& out = args.tensor(9);

  Convolution conv;
  int32_t sizes[kMaxDim];
  ORCH_CHECK(out.dtype == input.dtype, Error::InvalidArgument);
  ORCH_TRY(read_convolution(args, 0, conv, sizes));
  if (bias != nullptr) {
    ORCH_CHECK(bias->dtype == input.dtype && bias->dim == 1 &&
                   bias->size(0) == sizes[1],
               Error::InvalidArgument);
  }
  ORCH_TRY(resize_output(out, {sizes, input.dim}, input, weight,
                         bias != nullptr ? *bias : input));
  constexpr DtypeSet kDtypes = selected::aten_convolution_out;
  return switch_dtype<kDtypes.bits>(input.dtype, [&](auto type) {
    convolve<typename decltype(type)::type>(conv, input, weight, bias, out);
    return Error::Ok;
  });
}

// The same of floats, and relu of what it gives.
Error convolution_relu_out(const Args& args) {
  ORCH_TRY(convolution_out(args));
  Tensor& out = args.tensor(9);
  float* const items = out.mutable_data<float>();
  const int32_t count = static_cast<int32_t>(out.numel());
  for (int32_t i = 0; i < count; ++i) items[i] = Relu{}(items[i]);
  return Error::Ok;
}

// Prepared: any convolution of images, and any transposed one.
void convolution(const PreparedCall& call) {
  convolve(call, KnownTaps<false>{}, AnyDots{});
}

void convolution_transposed(const PreparedCall& call) {
  convolve(call, KnownTaps<true>{}, AnyDots{});
}

#if !ORCH_FLOAT_VECTORS
// Those whose groups have a multiple of four output channels, or with `_rest`
// other numbers, by what the weights of the innermost loop are; depthwise ones
// with so many channels; all with fewer than four.
void convolution_threes(const PreparedCall& call) {
  convolve_four<DotFactors::kThrees, false>(call);
}

void convolution_threes_rest(const PreparedCall& call) {
  convolve_four<DotFactors::kThrees, true>(call);
}

void convolution_fours(const PreparedCall& call) {
  convolve_four<DotFactors::kFours, false>(call);
}

void convolution_fours_rest(const PreparedCall& call) {
  convolve_four<DotFactors::kFours, true>(call);
}

void convolution_apart(const PreparedCall& call) {
  convolve_four<DotFactors::kApart, false>(call);
}

void convolution_apart_rest(const PreparedCall& call) {
  convolve_four<DotFactors::kApart, true>(call);
}

void convolution_depthwise(const PreparedCall& call) {
  convolve_known(call, {dot4<float, false>, nullptr});
}

void convolution_depthwise_rest(const PreparedCall& call) {
  convolve_known(call, {dot4<float, false>, dot1<float>});
}

void convolution_one(const PreparedCall& call) {
  convolve_known(call, {nullptr, dot1<float>});
}

// The same, and relu of what they give: another copy of the loops, which the
// build takes only if no call takes those above.
void convolution_threes_relu(const PreparedCall& call) {
  convolve_four<DotFactors::kThrees, false, Relu>(call);
}

void convolution_threes_rest_relu(const PreparedCall& call) {
  convolve_four<DotFactors::kThrees, true, Relu>(call);
}

void convolution_fours_relu(const PreparedCall& call) {
  convolve_four<DotFactors::kFours, false, Relu>(call);
}

void convolution_fours_rest_relu(const PreparedCall& call) {
  convolve_four<DotFactors::kFours, true, Relu>(call);
}

void convolution_apart_relu(const PreparedCall& call) {
  convolve_four<DotFactors::kApart, false, Relu>(call);
}

void convolution_apart_rest_relu(const PreparedCall& call) {
  convolve_four<DotFactors::kApart, true, Relu>(call);
}

void convolution_depthwise_relu(const PreparedCall& call) {
  convolve_known<Relu>(call, {dot4<float, false>, nullptr});
}

void convolution_depthwise_rest_relu(const PreparedCall& call) {
  convolve_known<Relu>(call, {dot4<float, false>, dot1<float>});
}

void convolution_one_relu(const PreparedCall& call) {
  convolve_known<Relu>(call, {nullptr, dot1<float>});
}
#endif

}  // namespace orch::portable
