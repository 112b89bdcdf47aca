#include "orch_selected/op_linear.h"

#include "orch/kernel.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/limits.h"
#include "util/lines.h"
#include "util/matmul.h"

namespace orch::portable {
namespace {

template <typename T>
void linear(const Tensor& input, const Tensor& weight, const Tensor* bias,
            Tensor& out) {
  using C = Compute<T>;
  const Strides strides(weight);
  const T* shift = bias == nullptr ? nullptr : bias->data<T>();
  const int32_t shift_step = shift != nullptr && bias->numel() == 1 ? 0 : 1;
  // Rows of the input are those of a matrix as long as they lie evenly.
  Lines lines(input, input.dim - 1, out, out);
  StridedLoop& loop = lines.loop;
  for (; loop.valid(); loop.next()) {
    matmul<T>(
        {input.data<T>() + loop.offset(1), loop.row_stride(1), lines.step[1]},
        {weight.data<T>(), strides[1], strides[0]},
        {out.mutable_data<T>() + loop.offset(0), loop.row_stride(0),
         lines.step[0]},
        loop.row_size(), lines.size, weight.size(0),
        [=](C sum, int32_t, int32_t j) {
          if (shift == nullptr) return sum;
          return sum + static_cast<C>(shift[j * shift_step]);
        });
  }
}

}  // namespace

// aten::linear.out(Tensor input, Tensor weight, Tensor? bias=None, *,
//   Tensor(a!) out) -> Tensor(a!)
Error linear_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& weight = args.tensor(1);
  const Tensor* bias = args.optional_tensor(2);
  Tensor& out = args.tensor(3);

  ORCH_CHECK(input.dim >= 1 && weight.dim == 2 &&
                 input.size(input.dim - 1) == weight.size(1),
             Error::InvalidArgument);
  ORCH_CHECK(input.dtype == out.dtype && weight.dtype == out.dtype,
             Error::InvalidArgument);
  int32_t sizes[kMaxDim];
  for (int i = 0; i < input.dim; ++i) sizes[i] = input.size(i);
  sizes[input.dim - 1] = weight.size(0);
  ORCH_TRY(resize_output(out, {sizes, input.dim}, input, weight));
  if (bias != nullptr) {
    ORCH_CHECK(bias->dtype == out.dtype && bias->dim <= 1 &&
                   (bias->numel() == 1 || bias->numel() == weight.size(0)),
               Error::InvalidArgument);
  }
  constexpr DtypeSet kDtypes = selected::aten_linear_out;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    linear<typename decltype(type)::type>(input, weight, bias, out);
    return Error::Ok;
  });
}

// The same of floats, within limits that follow.
Error linear_limited_out(const Args& args) {
  return call_limited(linear_out, args);
}

}  // namespace orch::portable
