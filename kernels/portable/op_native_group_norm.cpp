#include "orch_selected/op_native_group_norm.h"

#include "orch/kernel.h"
#include "orch/math.h"
#include "util/check.h"
#include "util/moments.h"
#include "util/unary.h"

namespace orch::portable {
namespace {

// clang-format off
#define ORCH_NORMALIZE(x, y) \
  "vsub.f32 " x ", " x ", r2\n" \
  "vmul.f32 " x ", " x ", r3\n" \
  "vadd.f32 " x ", " x ", r12\n"
// clang-format on
ORCH_LANES(normalize_lanes, ORCH_NORMALIZE);

/// The tensors of a call; they have one dtype. `weight` and `bias` may be null.
struct GroupNorm {
  const Tensor& input;
  const Tensor* weight;
  const Tensor* bias;
  Tensor& out;
  Tensor& mean;
  Tensor& rstd;
};

/// Groups of `channels` neighbouring channels; `plane` is over the items of a
/// channel: tensor 0 is the output, 1 the input.
template <typename T>
void normalize(const GroupNorm& norm, int32_t groups, int32_t channels,
               StridedLoop& items, StridedLoop& plane, int32_t count,
               double eps) {
  using C = Compute<T>;
  const Strides from(norm.input);
  const Strides to(norm.out);
  const Strides mean_at(norm.mean);
  const Strides rstd_at(norm.rstd);
  for (int32_t n = 0; n < norm.input.size(0); ++n) {
    for (int32_t g = 0; g < groups; ++g) {
      C mean = 0;
      C rstd = static_cast<C>(__builtin_nanf(""));  // of nothing
      int32_t c = g * channels;
      if (count != 0) {
        const Moments<C> found = moments(
            norm.input.data<T>() + n * from[0] + c * from[1], items, count);
        mean = found.mean;
        rstd = 1 / math::sqrt(found.squares / static_cast<C>(count) +
                              static_cast<C>(eps));
        for (const int32_t end = c + channels; c < end; ++c) {
          C scale = rstd;
          C shift = 0;
          if (norm.weight != nullptr) {
            scale *= static_cast<C>(norm.weight->data<T>()[c]);
          }
          if (norm.bias != nullptr) {
            shift = static_cast<C>(norm.bias->data<T>()[c]);
          }
          const T* source = norm.input.data<T>() + n * from[0] + c * from[1];
          T* target = norm.out.mutable_data<T>() + n * to[0] + c * to[1];
          const auto fn = [mean, scale, shift](T x) {
            return static_cast<T>((static_cast<C>(x) - mean) * scale + shift);
          };
          map_rows(
              plane, source, target,
              in_lanes(Type<T>{}, fn, normalize_lanes, static_cast<float>(mean),
                       static_cast<float>(scale), static_cast<float>(shift)));
          plane.restart();
        }
      }
      norm.mean.mutable_data<T>()[n * mean_at[0] + g * mean_at[1]] =
          static_cast<T>(mean);
      norm.rstd.mutable_data<T>()[n * rstd_at[0] + g * rstd_at[1]] =
          static_cast<T>(rstd);
    }
  }
}

/// Checks a parameter, one number per channel, that may be null.
bool fits(const Tensor* tensor, const Tensor& input) {
  return tensor == nullptr ||
         (tensor->dtype == input.dtype && tensor->dim == 1 &&
          tensor->size(0) == input.size(1));
}

}  // namespace

// aten::native_group_norm.out(Tensor input, Tensor? weight, Tensor? bias,
//   SymInt N, SymInt C, SymInt HxW, int group, float eps, *,
//   Tensor(a!) out0, Tensor(b!) out1, Tensor(c!) out2)
//   -> (Tensor(a!), Tensor(b!), Tensor(c!))
//
// out1 and out2 are mean and 1 / sqrt(variance + eps) of each group.
Error native_group_norm_out(const Args& args) {
  const GroupNorm norm = {args.tensor(0),          args.optional_tensor(1),
                          args.optional_tensor(2), args.tensor(8),
                          args.tensor(9),          args.tensor(10)};
  const Tensor& input = norm.input;
  ORCH_CHECK(input.dim >= 2, Error::InvalidArgument);
  StridedLoop items;
  StridedLoop plane;
  const Strides from(input);
  int32_t groups = 0;
  ORCH_TRY(read_int(args.integer(6), 1, groups));
  const int32_t channels = input.size(1) / groups;
  ORCH_CHECK(channels * groups == input.size(1), Error::InvalidArgument);
  items.add(channels, from[1], 0);
  int32_t area = 1;
  for (int i = 2; i < input.dim; ++i) {
    area *= input.size(i);
    items.add(input.size(i), from[i], 0);
  }
  ORCH_CHECK(args.integer(3) == input.size(0) &&
                 args.integer(4) == input.size(1) && args.integer(5) == area,
             Error::InvalidArgument);
  ORCH_CHECK(norm.out.dtype == input.dtype && norm.mean.dtype == input.dtype &&
                 norm.rstd.dtype == input.dtype,
             Error::InvalidArgument);

  ORCH_TRY(resize_output(norm.out, input.sizes(), input));
  const int32_t sizes[] = {input.size(0), groups};
  ORCH_TRY(resize_output(norm.mean, sizes, input, norm.out));
  ORCH_TRY(resize_output(norm.rstd, sizes, input, norm.out, norm.mean));
  // Only now: they may share their sizes with an output.
  ORCH_CHECK(fits(norm.weight, input) && fits(norm.bias, input),
             Error::InvalidArgument);
  const Strides to(norm.out);
  for (int i = 2; i < input.dim; ++i) {
    plane.add(input.size(i), to[i], from[i]);
  }
  constexpr DtypeSet kDtypes = selected::aten_native_group_norm_out;
  return switch_dtype<kDtypes.bits>(input.dtype, [&](auto type) {
    normalize<typename decltype(type)::type>(
        norm, groups, channels, items, plane, channels * area, args.real(7));
    return Error::Ok;
  });
}

}  // namespace orch::portable
