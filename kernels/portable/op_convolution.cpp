#include "orch_selected/op_convolution.h"

#include "convolve.h"
#include "convolve_mve.h"
#include "orch/kernel.h"
#include "read_convolution.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/limits.h"

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

/// A prepared call, of images.
#if ORCH_FLOAT_VECTORS
template <typename Tapping>
__attribute__((noinline)) void convolve(const PreparedCall& prepared,
                                        Tapping tapping,
                                        const Limits* limits = nullptr) {
  const auto& call = static_cast<const ConvolutionCall&>(prepared);
  convolve_vectors(*call.shape, kOneImage, tapping,
                   static_cast<const float*>(call.input),
                   static_cast<const float*>(call.weight),
                   static_cast<const float*>(call.bias),
                   static_cast<float*>(call.out), limits);
}
#else
template <typename Finish, typename Tapping, typename Dots>
__attribute__((noinline)) void convolve(const PreparedCall& prepared,
                                        Tapping tapping, Dots dots) {
  const auto& call = static_cast<const typename Finish::Call&>(prepared);
  convolve_plain(*call.shape, kOneImage, tapping, dots,
                 static_cast<const float*>(call.input),
                 static_cast<const float*>(call.weight),
                 static_cast<const float*>(call.bias),
                 static_cast<float*>(call.out), Finish{call});
}

/// What becomes of sums.
struct Summed : AsSummed {
  using Call = ConvolutionCall;

  explicit Summed(const Call& /*call*/) {}
};

struct Relu {
  using Call = ConvolutionCall;

  explicit Relu(const Call& /*call*/) {}
  ORCH_ALWAYS_INLINE void operator()(float sum, float* to) const {
    *to = relu_of(sum);
  }
};

struct Limited {
  using Call = LimitedConvolutionCall;

  explicit Limited(const Call& call) : limits(call.limits) {}
  ORCH_ALWAYS_INLINE void operator()(const float& sum, float* to) const {
    store_within(limits, sum, to);
  }

  Limits limits;
};

template <typename Finish>
void convolve_known(const PreparedCall& call, KnownDots dots) {
  convolve<Finish>(call, KnownTaps<false>{}, dots);
}

template <DotFactors kFactors, bool kRest, typename Finish>
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

// The same of floats, within limits that follow; and where these are those of
// relu, in all convolutions of a method.
Error convolution_limited_out(const Args& args) {
  return call_limited(convolution_out, args);
}

Error convolution_relu_out(const Args& args) {
  return convolution_limited_out(args);
}

#if ORCH_FLOAT_VECTORS
// Prepared: convolutions of images; transposed ones; with relu; with limits.
void convolution(const PreparedCall& call) {
  convolve(call, KnownTaps<false>{});
}

void convolution_transposed(const PreparedCall& call) {
  convolve(call, KnownTaps<true>{});
}

#if ORCH_SUMS_LIMITED
void convolution_relu(const PreparedCall& call) {
  convolve(call, KnownTaps<false>{}, &kReluLimits);
}

void convolution_limited(const PreparedCall& prepared) {
  const auto& call = static_cast<const LimitedConvolutionCall&>(prepared);
  const ConvolutionCall plain = {{},        call.input, call.weight,
                                 call.bias, call.out,   call.shape};
  convolve(plain, KnownTaps<false>{}, &call.limits);
}
#endif
#else
// Prepared: any convolution of images, and any transposed one.
void convolution(const PreparedCall& call) {
  convolve<Summed>(call, KnownTaps<false>{}, AnyDots{});
}

void convolution_relu(const PreparedCall& call) {
  convolve<Relu>(call, KnownTaps<false>{}, AnyDots{});
}

void convolution_limited(const PreparedCall& call) {
  convolve<Limited>(call, KnownTaps<false>{}, AnyDots{});
}

void convolution_transposed(const PreparedCall& call) {
  convolve<Summed>(call, KnownTaps<true>{}, AnyDots{});
}

// Others, of three kinds: each has its own copy of the loops, so the build
// takes one kind for all calls of a method. Those whose groups have a multiple
// of four output channels, or with `_rest` other numbers, by what the weights
// of the innermost loop are; depthwise ones with so many channels; all with
// fewer than four.
#define ORCH_CONVOLUTIONS(kind, Finish)                              \
  void convolution_threes##kind(const PreparedCall& call) {          \
    convolve_four<DotFactors::kThrees, false, Finish>(call);         \
  }                                                                  \
  void convolution_threes_rest##kind(const PreparedCall& call) {     \
    convolve_four<DotFactors::kThrees, true, Finish>(call);          \
  }                                                                  \
  void convolution_fours##kind(const PreparedCall& call) {           \
    convolve_four<DotFactors::kFours, false, Finish>(call);          \
  }                                                                  \
  void convolution_fours_rest##kind(const PreparedCall& call) {      \
    convolve_four<DotFactors::kFours, true, Finish>(call);           \
  }                                                                  \
  void convolution_apart##kind(const PreparedCall& call) {           \
    convolve_four<DotFactors::kApart, false, Finish>(call);          \
  }                                                                  \
  void convolution_apart_rest##kind(const PreparedCall& call) {      \
    convolve_four<DotFactors::kApart, true, Finish>(call);           \
  }                                                                  \
  void convolution_depthwise##kind(const PreparedCall& call) {       \
    convolve_known<Finish>(call, {dot4<float, false>, nullptr});     \
  }                                                                  \
  void convolution_depthwise_rest##kind(const PreparedCall& call) {  \
    convolve_known<Finish>(call, {dot4<float, false>, dot1<float>}); \
  }                                                                  \
  void convolution_one##kind(const PreparedCall& call) {             \
    convolve_known<Finish>(call, {nullptr, dot1<float>});            \
  }                                                                  \
  static_assert(true)

ORCH_CONVOLUTIONS(, Summed);
ORCH_CONVOLUTIONS(_relu, Relu);
ORCH_CONVOLUTIONS(_limited, Limited);
#undef ORCH_CONVOLUTIONS
#endif

}  // namespace orch::portable
