#include "orch_selected/op_scatter.h"

#include <string.h>

#include "orch/kernel.h"
#include "util/along_dim.h"
#include "util/dtype.h"
#include "util/scalar.h"

namespace orch::portable {
namespace {

/// Whether `number` is an item of `dtype`: floats and Bool take all, unsigned
/// integers also the negative of what they hold. Source: PyTorch,
/// checked_convert.
bool is_item(const Scalar& number, ScalarType dtype) {
  if ((kFloating | kComplex | kBool).has(dtype)) return true;
  const unsigned bits = 8 * static_cast<unsigned>(item_bytes(dtype)) - 1;
  const bool is_byte = dtype == ScalarType::Byte;
  if (number.is_floating()) {
    const double value = number.as_double();
    const double high = static_cast<double>(uint64_t{1} << bits);
    if (is_byte) return value >= -UINT8_MAX && value <= UINT8_MAX;
    // 2^63 - 1 is no double: 2^63 passes, and becomes the limit.
    return value >= -high && (bits == 63 ? value <= high : value <= high - 1);
  }
  const int64_t value = number.bits();
  if (is_byte) return value >= -UINT8_MAX && value <= UINT8_MAX;
  return value >> bits == 0 || value >> bits == -1;
}

}  // namespace

// aten::scatter.src_out(Tensor self, int dim, Tensor index, Tensor src, *,
//   Tensor(a!) out) -> Tensor(a!)
//
// Of several items for one place, the last along `dim` stays.
Error scatter_src_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const int64_t dim = args.integer(1);
  const Tensor& index = args.tensor(2);
  const Tensor& src = args.tensor(3);
  Tensor& out = args.tensor(4);

  constexpr DtypeSet kDtypes = selected::aten_scatter_src_out;
  ORCH_CHECK(src.dtype == out.dtype, Error::InvalidArgument);
  ORCH_CHECK(kDtypes.has(out.dtype), Error::DtypeNotSelected);
  ORCH_TRY_DATA(copy_to_scatter(self, dim, index, &src, out));
  if (index.numel() == 0) return Error::Ok;
  AlongDim along(out, dim, index, src);
  return switch_item<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T* const from = src.data<T>();
    T* const to = out.mutable_data<T>();
    return along.each([from, to](int32_t at, int32_t k) { to[at] = from[k]; });
  });
}

// aten::scatter.value_out(Tensor self, int dim, Tensor index, Scalar value, *,
//   Tensor(a!) out) -> Tensor(a!)
Error scatter_value_out(const Args& args) {
  const Tensor& self = args.tensor(0);
  const int64_t dim = args.integer(1);
  const Tensor& index = args.tensor(2);
  const Scalar& number = args.scalar(3);
  Tensor& out = args.tensor(4);

  constexpr DtypeSet kDtypes = selected::aten_scatter_value_out;
  uint64_t bits = 0;  // of one item
  ORCH_CHECK(is_item(number, out.dtype), Error::InvalidArgument);
  ORCH_TRY(switch_dtype<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    const T value = scalar_to<T>(number);
    memcpy(&bits, &value, sizeof value);
    return Error::Ok;
  }));
  ORCH_TRY_DATA(copy_to_scatter(self, dim, index, nullptr, out));
  if (index.numel() == 0) return Error::Ok;
  AlongDim along(out, dim, index, index);
  return switch_item<kDtypes.bits>(out.dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    T value;
    memcpy(&value, &bits, sizeof value);
    T* const to = out.mutable_data<T>();
    return along.each([to, value](int32_t at, int32_t) { to[at] = value; });
  });
}

}  // namespace orch::portable
