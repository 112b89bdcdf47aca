#include "orch_selected/op_add.h"

#include "orch/kernel.h"
#include "util/affine.h"
#include "util/broadcast.h"
#include "util/check.h"
#include "util/dtype.h"

namespace orch::quantized {
namespace {

/// Reads `float scale, int zero_point, int quant_min, int quant_max` from
/// argument `first` on. Errors: InvalidArgument.
Error read(const Args& args, int first, Affine& affine) {
  const int64_t low = args.integer(first + 2);
  const int64_t high = args.integer(first + 3);
  ORCH_CHECK(low >= 0 && low <= high && high <= UINT8_MAX,
             Error::InvalidArgument);
  affine.scale = static_cast<float>(args.real(first));
  affine.low = static_cast<int32_t>(low);
  affine.high = static_cast<int32_t>(high);
  return read_zero_point(args.integer(first + 1), affine);
}

/// The number that a quantized one stands for, rounded once.
template <typename T>
float dequantized(T value, const Affine& affine) {
  if constexpr (sizeof(T) < sizeof(int32_t)) {
    const uint32_t number =
        static_cast<uint32_t>(value) - static_cast<uint32_t>(affine.zero_point);
    return static_cast<float>(static_cast<int32_t>(number)) * affine.scale;
  } else {
    // More than 24 bits: a product of floats would be rounded twice.
    const uint64_t number = static_cast<uint64_t>(value) -
                            static_cast<uint64_t>(int64_t{affine.zero_point});
    return static_cast<float>(
        static_cast<double>(static_cast<int64_t>(number)) *
        static_cast<double>(affine.scale));
  }
}

template <typename T>
ORCH_HOT void add(const Tensor& a, const Tensor& b, const Affine* parameters,
                  Tensor& out) {
  // What is written cannot change them.
  const Affine affine[] = {parameters[0], parameters[1], parameters[2]};
  const NearAffine near = near_affine(affine[2]);
  const bool is_near = suits_near(affine[2]);
  const float zero_point = static_cast<float>(affine[2].zero_point);
  StridedLoop loop = loop_over(out, a, b);
  for (; loop.valid(); loop.next()) {
    const T* x = a.data<T>() + loop.offset(1);
    const T* y = b.data<T>() + loop.offset(2);
    T* to = out.mutable_data<T>() + loop.offset(0);
    const int32_t x_step = loop.row_stride(1);
    const int32_t y_step = loop.row_stride(2);
    const int32_t to_step = loop.row_stride(0);
    for (int32_t left = loop.row_size(); left != 0; --left) {
      const float sum = dequantized(*x, affine[0]) + dequantized(*y, affine[1]);
      const float scaled = near.inverse * sum;
      // The limits fit 8 bits, whatever the dtype.
      *to = is_near ? static_cast<T>(to_quantized(scaled, near))
                    : static_cast<T>(limited<uint8_t>(
                          round_even(scaled) + zero_point, affine[2]));
      x += x_step;
      y += y_step;
      to += to_step;
    }
  }
}

}  // namespace

// quantized_decomposed::add.out(Tensor a, float a_scale, int a_zero_point,
//   int a_quant_min, int a_quant_max, Tensor b, float b_scale,
//   int b_zero_point, int b_quant_min, int b_quant_max, float out_scale,
//   int out_zero_point, int out_quant_min, int out_quant_max, *,
//   Tensor(a!) out) -> Tensor(a!)
Error add_out(const Args& args) {
  const Tensor& a = args.tensor(0);
  const Tensor& b = args.tensor(5);
  Tensor& out = args.tensor(14);

  ORCH_CHECK(a.dtype == out.dtype && b.dtype == out.dtype,
             Error::InvalidArgument);
  ORCH_CHECK(same_sizes(a, b), Error::InvalidArgument);
  Affine affine[3];
  ORCH_TRY(read(args, 1, affine[0]));
  ORCH_TRY(read(args, 6, affine[1]));
  ORCH_TRY(read(args, 10, affine[2]));
  ORCH_TRY(resize_output(out, a.sizes(), a, b));
  constexpr DtypeSet kDtypes =
      selected::quantized_decomposed_add_out & kIntegral;
  return switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    add<typename decltype(type)::type>(a, b, affine, out);
    return Error::Ok;
  });
}

}  // namespace orch::quantized
