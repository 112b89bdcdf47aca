#include "orch/tensor.h"

#include "orch/value.h"
#include "switches.h"

namespace orch {

Strides::Strides(const Tensor& tensor) {
  int32_t stride = 1;
  for (int i = tensor.dim; i-- > 0;) {
    const int d = tensor.contiguous() ? i : tensor.order()[i];
    at[d] = stride;
    // A size of 0 leaves the rest 0: such a tensor has no element to reach.
    stride *= tensor.dims[d];
  }
}

static bool has_sizes(const Tensor& tensor, Span<const int32_t> sizes) {
  if (tensor.dim != sizes.size()) return false;
  for (int i = 0; i < tensor.dim; ++i) {
    if (tensor.dims[i] != sizes[static_cast<size_t>(i)]) return false;
  }
  return true;
}

bool same_sizes(const Tensor& a, const Tensor& b) {
  return has_sizes(a, b.sizes());
}

bool same_layout(const Tensor& a, const Tensor& b) {
  if (a.dim != b.dim) return false;
  return memcmp(a.order(), b.order(), a.dim) == 0;
}

Error resize(Tensor& tensor, Span<const int32_t> sizes) {
  if (has_sizes(tensor, sizes)) return Error::Ok;
  ORCH_CHECK(sizes.size() == tensor.dim, Error::InvalidArgument);
  ORCH_CHECK(kDynamicSizes && (tensor.flags & Tensor::kDynamic) != 0,
             Error::InvalidArgument);
  // `extent` leaves zeros out: below 2^31, as the loader has it, so that no
  // arithmetic on sizes and strides can overflow.
  uint64_t extent_bytes = item_bytes(tensor.dtype);
  bool empty = false;
  for (const int32_t size : sizes) {
    ORCH_CHECK(size >= 0, Error::InvalidArgument);
    empty |= size == 0;
    extent_bytes *= size == 0 ? 1U : static_cast<uint32_t>(size);
    ORCH_CHECK(extent_bytes <= INT32_MAX, Error::ShapeTooLarge);
  }
  const int32_t capacity_bytes = tensor.dims[-1];
  ORCH_CHECK(empty || static_cast<int32_t>(extent_bytes) <= capacity_bytes,
             Error::ShapeTooLarge);
  // Sizes of a dynamic tensor lie in the method state, which is writable.
  memcpy(const_cast<int32_t*>(tensor.dims), sizes.data(),
         tensor.dim * sizeof(int32_t));
  return Error::Ok;
}

int64_t IntList::operator[](int index) const {
  const IntItem at = static_cast<const IntItem*>(list_.items)[index];
  return values_[at].to_int();
}

int64_t Scalar::to_int() const {
  if (tag != Tag::Double) return bits();
  const double value = to_double();
  if (value >= 0x1p63) return INT64_MAX;
  if (value < -0x1p63) return INT64_MIN;
  if (value != value) return 0;
  return static_cast<int64_t>(value);
}

}  // namespace orch
