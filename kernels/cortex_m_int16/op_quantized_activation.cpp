#include "orch/kernel.h"
#include "util/check.h"
#include "util/strided_loop.h"

namespace orch::cortex_m_int16 {
namespace {

/// Entries of a table, from 2^1 + 1 to 2^16 + 1: the results for items that lie
/// 2^shift apart, the lowest first, and for the one behind the highest.
class Table {
 public:
  explicit Table(const Tensor& lut) : entries_(lut.data<int16_t>()) {
    for (int32_t left = lut.numel() - 1; left > 1; left >>= 1) --shift_;
  }

  /// Whether a tensor has as many entries as a table.
  static bool fits(const Tensor& lut) {
    const int32_t steps = lut.numel() - 1;
    return steps > 1 && steps <= UINT16_MAX + 1 && (steps & (steps - 1)) == 0;
  }

  /// The result for an item, on the line between its neighbours.
  int16_t of(int32_t item) const {
    const uint32_t at = static_cast<uint32_t>(item - INT16_MIN);
    const int16_t* const entry = entries_ + (at >> shift_);
    const int32_t rest = static_cast<int32_t>(at & ((1U << shift_) - 1));
    const int32_t half = static_cast<int32_t>((1U << shift_) >> 1);
    return static_cast<int16_t>(
        entry[0] + (((entry[1] - entry[0]) * rest + half) >> shift_));
  }

 private:
  const int16_t* entries_;
  uint32_t shift_ = 16;
};

}  // namespace

// cortex_m::quantized_activation.out(Tensor input, Tensor lut, *,
//   Tensor(a!) out) -> Tensor(a!)
Error quantized_activation_out(const Args& args) {
  const Tensor& input = args.tensor(0);
  const Tensor& lut = args.tensor(1);
  Tensor& out = args.tensor(2);

  ORCH_CHECK(input.dtype == ScalarType::Short &&
                 lut.dtype == ScalarType::Short &&
                 out.dtype == ScalarType::Short && Table::fits(lut),
             Error::InvalidArgument);
  ORCH_CHECK(lut.contiguous(), Error::NotSupported);
  ORCH_TRY(resize_output(out, input.sizes(), lut));
  const Table table(lut);
  StridedLoop loop = loop_over(out, input);
  for (; loop.valid(); loop.next()) {
    const int16_t* x = input.data<int16_t>() + loop.offset(1);
    int16_t* y = out.mutable_data<int16_t>() + loop.offset(0);
    for (int32_t left = loop.row_size(); left > 0; --left) {
      *y = table.of(*x);
      x += loop.row_stride(1);
      y += loop.row_stride(0);
    }
  }
  return Error::Ok;
}

}  // namespace orch::cortex_m_int16
