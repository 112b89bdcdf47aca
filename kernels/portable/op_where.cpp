#include "orch_selected/op_where.h"

#include "orch/kernel.h"
#include "util/binary.h"
#include "util/broadcast.h"
#include "util/isa.h"

namespace orch::portable {
namespace {

/// Items of `from` go where the condition is `wanted`. T is the dtype of `out`.
template <typename T, uint32_t kFrom, typename Load>
void copy_where(bool wanted, const Tensor& condition, const Tensor& from,
                Tensor& out, Load load) {
  StridedLoop loop = loop_over(out, condition, from);
  for (; loop.valid(); loop.next()) {
    T* to = out.mutable_data<T>() + loop.offset(0);
    const uint8_t* mask = condition.data<uint8_t>() + loop.offset(1);
    int32_t at = loop.offset(2);
    int32_t left = loop.row_size();
    do {
      if ((*mask != 0) == wanted) *to = load(from, at);
      to += loop.row_stride(0);
      mask += loop.row_stride(1);
      at += loop.row_stride(2);
    } while (--left != 0);
  }
}

/// Errors: DtypeNotSelected.
template <uint32_t kBits>
Error choose(bool wanted, const Tensor& condition, const Tensor& from,
             Tensor& out) {
  if (from.dtype == out.dtype) {
    return switch_item<kBits>(out.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      copy_where<T, kBits>(wanted, condition, from, out,
                           [](const Tensor& tensor, int32_t at) {
                             return tensor.data<T>()[at];
                           });
      return Error::Ok;
    });
  }
  constexpr DtypeSet kDtypes{kBits};
  if constexpr (!kDtypes.single()) {
    ORCH_CHECK(kDtypes.has(from.dtype), Error::DtypeNotSelected);
    return switch_dtype<kBits>(out.dtype, [&](auto type) {
      using T = typename decltype(type)::type;
      constexpr DtypeSet kT = dtype_set(DtypeOf<T>::value);
      constexpr uint32_t kFrom = castable_from(kDtypes, kT).bits;
      copy_where<T, kFrom>(
          wanted, condition, from, out, [](const Tensor& tensor, int32_t at) {
            return load_as<T, kFrom>(tensor.dtype, tensor.memory, at);
          });
      return Error::Ok;
    });
  }
  return Error::DtypeNotSelected;
}

/// Whether items with the same indices lie at the same places.
bool lies_as(const Tensor& tensor, const Tensor& out) {
  return tensor.contiguous() && same_sizes(tensor, out);
}

/// All four tensors laid out alike, of dtype T.
template <typename T>
ORCH_HOT void choose_all(const Tensor& condition, const Tensor& self,
                         const Tensor& other, Tensor& out) {
  const uint8_t* mask = condition.data<uint8_t>();
  const T* a = self.data<T>();
  const T* b = other.data<T>();
  T* to = out.mutable_data<T>();
  int32_t left = out.numel();
#if ORCH_FLOAT_VECTORS
  if constexpr (sizeof(T) == 4) {
    // As integers, which are never taken for others.
    if (left == 0) return;
    asm volatile(
        "dlstp.32 lr, %[left]\n"
        "1:\n"
        "vldrb.u32 q2, [%[mask]], #4\n"
        "vldrw.32 q0, [%[b]], #16\n"
        "vldrw.32 q1, [%[a]], #16\n"
        "vpt.i32 ne, q2, zr\n"
        "vmovt q0, q1\n"
        "vstrw.32 q0, [%[to]], #16\n"
        "letp lr, 1b\n"
        : [mask] "+l"(mask), [a] "+r"(a), [b] "+r"(b), [to] "+r"(to)
        : [left] "r"(left)
        : "lr", "q0", "q1", "q2", "memory");
    return;
  }
#endif
  for (; left > 0; --left) {
    const T x = *a++;
    const T y = *b++;
    *to++ = *mask++ != 0 ? x : y;
  }
}

}  // namespace

// aten::where.self_out(Tensor condition, Tensor self, Tensor other, *,
//   Tensor(a!) out) -> Tensor(a!)
Error where_self_out(const Args& args) {
  const Tensor& condition = args.tensor(0);
  const Tensor& self = args.tensor(1);
  const Tensor& other = args.tensor(2);
  Tensor& out = args.tensor(3);

  const bool is_mask = condition.dtype == ScalarType::Bool ||
                       condition.dtype == ScalarType::Byte;
  ORCH_CHECK(is_mask && result_type(self, other) == out.dtype,
             Error::InvalidArgument);
  // Read after `out` was written where the condition holds.
  ORCH_CHECK_DATA(condition.memory != out.memory || out.numel() == 0,
                  Error::NotSupported);
  constexpr DtypeSet kDtypes = selected::aten_where_self_out;
  ORCH_CHECK(kDtypes.has(self.dtype) && kDtypes.has(other.dtype) &&
                 kDtypes.has(out.dtype),
             Error::DtypeNotSelected);
  ORCH_TRY(resize_broadcast(out, condition, self, other));
  if (self.dtype == out.dtype && other.dtype == out.dtype && out.contiguous() &&
      lies_as(condition, out) && lies_as(self, out) && lies_as(other, out)) {
    return switch_item<kDtypes.bits>(out.dtype, [&](auto type) {
      choose_all<typename decltype(type)::type>(condition, self, other, out);
      return Error::Ok;
    });
  }
  ORCH_TRY(choose<kDtypes.bits>(true, condition, self, out));
  return choose<kDtypes.bits>(false, condition, other, out);
}

}  // namespace orch::portable
