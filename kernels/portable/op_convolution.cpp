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
  Filters filters(conv, input, weight, out);
  const T* start = bias == nullptr ? nullptr : bias->data<T>();
#if ORCH_FLOAT_VECTORS
  if constexpr (kIsSame<T, float>) {
    convolve_vectors(filters, input.data<T>(), weight.data<T>(), start,
                     out.mutable_data<T>());
    return;
  } else
#endif
  {
    convolve_plain(filters, input.data<T>(), weight.data<T>(), start,
                   out.mutable_data<T>());
  }
}

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

}  // namespace orch::portable
