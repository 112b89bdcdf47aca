// Rows of quantized weights as floats: an embedding by index.
#pragma once

#include "orch/value.h"
#include "util/check.h"
#include "util/dtype.h"
#include "util/indexing.h"
#include "util/strided_loop.h"

namespace orch::quantized {

/// Dtypes of parameters and results.
inline constexpr DtypeSet kParameters =
    dtype_set(ScalarType::Half, ScalarType::BFloat16, ScalarType::Float);

/// The arguments of an embedding: Tensor weight, Tensor weight_scales,
/// Tensor? weight_zero_points, int weight_quant_min, int weight_quant_max,
/// Tensor indices.
struct Embedding {
  const Tensor& weight;
  const Tensor& scales;
  const Tensor* zero_points;
  const Tensor& indices;
  int32_t columns;  // of unpacked weights
  int32_t groups;   // of columns, which share a scale

  explicit Embedding(const Args& args)
      : weight(args.tensor(0)),
        scales(args.tensor(1)),
        zero_points(args.optional_tensor(2)),
        indices(args.tensor(5)) {}
};

/// Checks the arguments, and all indices; gives `out` its sizes. packed:
/// weights in a byte. Errors: InvalidArgument, ShapeTooLarge.
__attribute__((noinline)) inline Error prepare(const Args& args, int32_t packed,
                                               Embedding& embedding,
                                               Tensor& out) {
  const Tensor& weight = embedding.weight;
  const Tensor& scales = embedding.scales;
  const Tensor* const zero_points = embedding.zero_points;
  const Tensor& indices = embedding.indices;
  ORCH_CHECK(weight.dtype == ScalarType::Byte ||
                 (packed == 1 && weight.dtype == ScalarType::Char),
             Error::InvalidArgument);
  ORCH_CHECK(kParameters.has(scales.dtype) && kIndices.has(indices.dtype),
             Error::InvalidArgument);
  ORCH_CHECK(weight.dim == 2 && (scales.dim == 1 || scales.dim == 2) &&
                 scales.size(0) == weight.size(0) && indices.dim < kMaxDim,
             Error::InvalidArgument);
  // What the limits are does not matter.
  ORCH_CHECK(args.integer(3) <= args.integer(4), Error::InvalidArgument);
  ORCH_CHECK(weight.size(1) <= kMaxExtent / 4, Error::InvalidArgument);
  embedding.columns = weight.size(1) * packed;
  embedding.groups = scales.dim == 2 ? scales.size(1) : 1;
  ORCH_CHECK(embedding.groups > 0 && embedding.columns % embedding.groups == 0,
             Error::InvalidArgument);
  if (zero_points != nullptr) {
    ORCH_CHECK(
        kParameters.has(zero_points->dtype) && same_sizes(*zero_points, scales),
        Error::InvalidArgument);
  }
  for (int32_t i = 0, count = indices.numel(); i < count; ++i) {
    const int64_t row = load_index(indices, i);
    ORCH_CHECK_DATA(row >= 0 && row < weight.size(0), Error::InvalidArgument);
  }
  int32_t sizes[kMaxDim];
  for (int i = 0; i < indices.dim; ++i) sizes[i] = indices.size(i);
  sizes[indices.dim] = embedding.columns;
  const size_t rank = static_cast<size_t>(indices.dim) + 1;
  return resize_output(out, {sizes, rank}, weight, scales, indices,
                       zero_points != nullptr ? *zero_points : scales);
}

/// A scale or a zero point.
__attribute__((noinline)) inline float load_parameter(const Tensor& tensor,
                                                      int32_t offset) {
  return load_as<float, kParameters.bits>(tensor.dtype, tensor.memory, offset);
}

/// A weight of so many bits, column `column` of a row. Weights of less than 8
/// bits are stored as their distance from the smallest: 2 bits with the first
/// column lowest, 4 bits with it highest.
template <int kBits>
int32_t load_weight(const uint8_t* row, int32_t step, int32_t column) {
  if constexpr (kBits == 2) {
    return ((row[column / 4 * step] >> (column % 4 * 2)) & 3) - 2;
  } else if constexpr (kBits == 4) {
    return ((row[column / 2 * step] >> (column % 2 == 0 ? 4 : 0)) & 15) - 8;
  } else {
    return row[column * step];
  }
}

template <typename T, int kBits>
Error embed_rows(const Embedding& embedding, Tensor& out) {
  const Strides from(embedding.weight);
  const Strides at_scale(embedding.scales);
  const Strides at_zero(embedding.zero_points != nullptr
                            ? *embedding.zero_points
                            : embedding.scales);
  const Strides at_index(embedding.indices);
  const Strides to(out);
  const int last = out.dim - 1;
  const int32_t rows = embedding.weight.size(0);
  const int32_t group = embedding.columns / embedding.groups;
  // Signed bytes, with their first bit changed, are as far from -128.
  const bool is_signed = embedding.weight.dtype == ScalarType::Char;
  const int32_t change = is_signed ? 128 : 0;
  StridedLoop loop;
  for (int d = 0; d < last; ++d) {
    loop.add(embedding.indices.size(d), to[d], at_index[d]);
  }
  for (; loop.valid(); loop.next()) {
    for (int32_t i = 0; i < loop.row_size(); ++i) {
      const int64_t index = load_index(embedding.indices,
                                       loop.offset(1) + i * loop.row_stride(1));
      // Again: where memories overlap, what was written may be an index.
      ORCH_CHECK_DATA(index >= 0 && index < rows, Error::InvalidArgument);
      const int32_t row = static_cast<int32_t>(index);
      const uint8_t* const weights =
          embedding.weight.data<uint8_t>() + row * from[0];
      T* target =
          out.mutable_data<T>() + loop.offset(0) + i * loop.row_stride(0);
      int32_t column = 0;
      for (int32_t g = 0; g < embedding.groups; ++g) {
        const int32_t own = embedding.scales.dim == 2 ? g : 0;
        const float scale = load_parameter(
            embedding.scales,
            row * at_scale[0] +
                (embedding.scales.dim == 2 ? own * at_scale[1] : 0));
        float zero = 0;
        if (embedding.zero_points != nullptr) {
          zero = load_parameter(
              *embedding.zero_points,
              row * at_zero[0] +
                  (embedding.scales.dim == 2 ? own * at_zero[1] : 0));
        }
        for (const int32_t end = column + group; column < end; ++column) {
          const int32_t value =
              (load_weight<kBits>(weights, from[1], column) ^ change) - change;
          *target = static_cast<T>((static_cast<float>(value) - zero) * scale);
          target += to[last];
        }
      }
    }
  }
  return Error::Ok;
}

/// An embedding by weights of 8, 4 or 2 bits. out_index: the argument that is
/// the output. kDtypes: its dtypes. Errors: InvalidArgument, ShapeTooLarge,
/// DtypeNotSelected.
template <int kBits, uint32_t kDtypes>
Error embed(const Args& args, int out_index) {
  Tensor& out = args.tensor(out_index);
  Embedding embedding(args);
  ORCH_CHECK(kParameters.has(out.dtype), Error::InvalidArgument);
  ORCH_TRY_DATA(prepare(args, 8 / kBits, embedding, out));
  return switch_dtype<kDtypes & kParameters.bits>(out.dtype, [&](auto type) {
    return embed_rows<typename decltype(type)::type, kBits>(embedding, out);
  });
}

/// The same for the overload with `ScalarType? dtype`, None or that of the
/// output.
template <int kBits, uint32_t kDtypes>
Error embed_as(const Args& args) {
  ORCH_CHECK(!args.has(6) ||
                 args.integer(6) == static_cast<int64_t>(args.tensor(7).dtype),
             Error::InvalidArgument);
  return embed<kBits, kDtypes>(args, 7);
}

}  // namespace orch::quantized
