#include "orch_selected/op_fake_quantize_per_tensor_affine_cachemask.h"

#include "orch/kernel.h"
#include "util/broadcast.h"
#include "util/dtype.h"
#include "util/round.h"

namespace orch::portable {
namespace {

/// Quantized numbers whose differences floats hold, and so products with them
/// are rounded once.
constexpr int64_t kMost = 1 << 23;

}  // namespace

// aten::fake_quantize_per_tensor_affine_cachemask.out(Tensor self, float scale,
//   int zero_point, int quant_min, int quant_max, *, Tensor(a!) out0,
//   Tensor(b!) out1) -> (Tensor(a!), Tensor(b!))
//
// Quantized and dequantized, in Float; the second output says which items are
// within the limits. Infinities become the limits, NaN the lower one.
Error fake_quantize_per_tensor_affine_cachemask_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const int64_t zero_point = args.integer(2);
  const int64_t lowest = args.integer(3);
  const int64_t highest = args.integer(4);
  Tensor& out = args.tensor(5);
  Tensor& mask = args.tensor(6);

  ORCH_CHECK(self.dtype == out.dtype && mask.dtype == ScalarType::Bool,
             Error::InvalidArgument);
  ORCH_CHECK(-kMost <= lowest && highest <= kMost && lowest <= zero_point &&
                 zero_point <= highest,
             Error::InvalidArgument);
  ORCH_TRY(set_sizes(out, self.sizes()));
  ORCH_TRY(resize_output(mask, self.sizes(), self, out));
  constexpr DtypeSet kDtypes =
      selected::aten_fake_quantize_per_tensor_affine_cachemask_out;
  const float scale = static_cast<float>(args.real(1));
  const float inverse = 1.0F / scale;
  return switch_dtype<kDtypes.bits>(self.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    using C = Compute<T>;
    const float zero = static_cast<float>(zero_point);
    const float low = static_cast<float>(lowest);
    const float high = static_cast<float>(highest);
    StridedLoop loop = loop_over(out, self, mask);
    for (; loop.valid(); loop.next()) {
      for (int32_t i = 0; i < loop.row_size(); ++i) {
        const C item = static_cast<C>(
            self.data<T>()[loop.offset(1) + i * loop.row_stride(1)]);
        const C value = static_cast<C>(zero) +
                        whole<Rounding::ToEven>(item * static_cast<C>(inverse));
        const bool below = !(value >= static_cast<C>(low));  // or NaN
        const bool above = value > static_cast<C>(high);
        const float limited = below   ? low
                              : above ? high
                                      : static_cast<float>(value);
        out.mutable_data<T>()[loop.offset(0) + i * loop.row_stride(0)] =
            static_cast<T>((limited - zero) * scale);
        mask.mutable_data<bool>()[loop.offset(2) + i * loop.row_stride(2)] =
            !below && !above;
      }
    }
    return Error::Ok;
  });
}

}  // namespace orch::portable
