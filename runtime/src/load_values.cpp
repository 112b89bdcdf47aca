// Loading the values of a method: scalars, lists, tensors and where they lie.

#include <string.h>

#include "method_loader.h"

#if ORCH_COMMON_ARENAS
#include "orch/model.h"
#endif

namespace orch {

bool is_common(const void* place) {
#if ORCH_COMMON_ARENAS
  const uintptr_t at = reinterpret_cast<uintptr_t>(place);
  for (const Span<uint8_t>& block : kCommonArenas) {
    if (at - reinterpret_cast<uintptr_t>(block.data()) < block.size()) {
      return true;
    }
  }
#endif
  (void)place;
  return false;
}

namespace {

/// Values of the KernelTypes union. Source: ExecuTorch schema/program.fbs.
enum class ValueType : uint8_t {
  Null = 1,
  Int,
  Bool,
  Double,
  Tensor,
  String,
  IntList,
  DoubleList,
  BoolList,
  TensorList,
  OptionalTensorList,
};

/// What the lists of a program become, by type from String on.
struct ListKind {
  Tag tag;
  uint8_t item_bytes;
};
constexpr ListKind kListKinds[] = {
    {Tag::String, 1},   {Tag::IntList, 8},    {Tag::DoubleList, 8},
    {Tag::BoolList, 1}, {Tag::TensorList, 4}, {Tag::TensorList, 4},
};

/// Flag of a tensor in memory of the caller that is no input or output so far.
constexpr uint8_t kUnnamed = 0x80;

}  // namespace

/// Words of state for the capacity and sizes of tensors whose sizes may change.
Error MethodLoader::count_dynamic(size_t& words) {
  for (uint32_t i = 0; i < values_at_.count; ++i) {
    const FbTable table = reader_.item(values_at_, i, slot::kValues);
    if (reader_.scalar<uint8_t>(table, slot::kValType) !=
        static_cast<uint8_t>(ValueType::Tensor)) {
      continue;
    }
    const FbTable tensor = reader_.child(table, slot::kValTensor);
    if (reader_.scalar<int8_t>(tensor, slot::kDynamism) != 0) {
      // What has more dimensions will be refused; here it must not overflow.
      const uint32_t dim = reader_.vector(tensor, slot::kSizes, 4).count;
      words += 1 + (dim < kMaxDim ? dim : kMaxDim);
    }
  }
  return reader_.failed() ? Error::InvalidProgram : Error::Ok;
}

/// Shared state begins anew with each load, also where only another method has
/// a name for it and so its data.
Error MethodLoader::load_shared_state(const FbVector& plans) {
  const FbVector own_sizes = buffer_sizes_;
  const Bump state = state_;
  for (uint32_t i = 0; i < plans.count; ++i) {
    const FbTable plan = reader_.item(plans, i, slot::kExecutionPlan);
    buffer_sizes_ = reader_.vector(plan, slot::kBufferSizes, 8);
    const FbVector values = reader_.vector(plan, slot::kValues, 4);
    ORCH_CHECK(!reader_.failed(), Error::InvalidProgram);
    ORCH_TRY(spend(values.count));
    for (uint32_t k = 0; k < values.count; ++k) {
      const FbTable value = reader_.item(values, k, slot::kValues);
      if (reader_.scalar<uint8_t>(value, slot::kValType) !=
          static_cast<uint8_t>(ValueType::Tensor)) {
        continue;
      }
      const FbTable table = reader_.child(value, slot::kValTensor);
      const FbTable allocation = reader_.child(table, slot::kAllocation);
      constexpr uint32_t kSharedId = 2;
      if (reader_.failed() || allocation.at == 0 ||
          reader_.scalar<uint32_t>(table, slot::kDataBuffer) == 0 ||
          reader_.scalar<uint32_t>(allocation, slot::kMemoryId) != kSharedId) {
        continue;
      }
      Tensor ignored;
      ORCH_TRY(load_tensor(table, ignored));
    }
  }
  buffer_sizes_ = own_sizes;
  state_ = state;
  return reader_.failed() ? Error::InvalidProgram : Error::Ok;
}

Error MethodLoader::load_value(uint32_t index) {
  const FbTable table = reader_.item(values_at_, index, slot::kValues);
  const uint8_t type = reader_.scalar<uint8_t>(table, slot::kValType);
  slot::EValue content_at = slot::kVal;
  if (type == static_cast<uint8_t>(ValueType::Tensor)) {
    content_at = slot::kValTensor;
  }
  if (type == static_cast<uint8_t>(ValueType::Null))
    content_at = slot::kValNull;
  const FbTable content = reader_.child(table, content_at);
  ORCH_CHECK(!reader_.failed() && content.at != 0, Error::InvalidProgram);
  Value& value = values_[index];
  switch (static_cast<ValueType>(type)) {
    case ValueType::Null:
      value.set_none();
      break;
    case ValueType::Int:
      value.set_int(reader_.scalar<int64_t>(content, 0));
      break;
    case ValueType::Bool:
      value.set_bool(reader_.scalar<uint8_t>(content, 0) != 0);
      break;
    case ValueType::Double:
      value.set_double(reader_.scalar<double>(content, 0));
      break;
    case ValueType::Tensor:
      ORCH_TRY(load_tensor(content, value.tensor()));
      break;
    case ValueType::String:
    case ValueType::IntList:
    case ValueType::DoubleList:
    case ValueType::BoolList:
    case ValueType::TensorList:
    case ValueType::OptionalTensorList: {
      const ListKind kind =
          kListKinds[type - static_cast<uint8_t>(ValueType::String)];
      const FbVector list = reader_.vector(content, 0, kind.item_bytes);
      value.set_list(kind.tag, reader_.items(list), list.count);
      break;
    }
    default:  // of a newer ExecuTorch
      return Error::UnsupportedProgram;
  }
  return reader_.failed() ? Error::InvalidProgram : Error::Ok;
}

Error MethodLoader::load_tensor(const FbTable& table, Tensor& tensor) {
  const FbVector sizes = reader_.vector(table, slot::kSizes, 4);
  const FbVector order = reader_.vector(table, slot::kDimOrder, 1);
  const ScalarType dtype = static_cast<ScalarType>(
      reader_.scalar<uint8_t>(table, slot::kScalarType));
  const int32_t* const dims = static_cast<const int32_t*>(reader_.items(sizes));
  const uint8_t* const dim_order =
      static_cast<const uint8_t*>(reader_.items(order));
  const int8_t dynamism = reader_.scalar<int8_t>(table, slot::kDynamism);
  const uint32_t dim = sizes.count;
  ORCH_CHECK(!reader_.failed() && dim == order.count, Error::InvalidProgram);
  ORCH_CHECK(dim <= kMaxDim, Error::UnsupportedProgram);
  ORCH_CHECK(reader_.scalar<int32_t>(table, slot::kStorageOffset) == 0 &&
                 reader_.scalar<int8_t>(table, slot::kLayout) == 0,
             Error::UnsupportedProgram);
  ORCH_CHECK(dynamism >= 0 && dynamism <= 2, Error::InvalidProgram);

  // Below 2^31 bytes even with empty dimensions counted as 1, so that no
  // kernel's arithmetic on sizes and strides can overflow.
  uint32_t bytes = static_cast<uint32_t>(item_bytes(dtype));
  ORCH_CHECK(bytes != 0, Error::UnsupportedProgram);
  bool empty = false;
  uint32_t seen = 0;
  uint32_t moved = 0;
  for (uint32_t i = 0; i < dim; ++i) {
    // A negative size counts as one that is too large.
    const uint32_t size = static_cast<uint32_t>(dims[i]);
    if (size == 0) {
      empty = true;
    } else {
      const uint64_t bound = uint64_t{bytes} * size;
      ORCH_CHECK(bound <= INT32_MAX, Error::InvalidProgram);
      bytes = static_cast<uint32_t>(bound);
    }
    const uint32_t outer = dim_order[i];
    ORCH_CHECK(outer < dim, Error::InvalidProgram);
    seen |= 1U << outer;
    moved |= outer ^ i;
  }
  ORCH_CHECK(seen + 1 == 1U << dim, Error::InvalidProgram);
  if (empty) bytes = 0;

  tensor.tag = Tag::Tensor;
  tensor.dtype = dtype;
  tensor.dim = static_cast<uint8_t>(dim);
  tensor.flags = moved == 0 ? Tensor::kContiguous : 0;
  tensor.memory = nullptr;
  tensor.dims = dims;
  tensor.dim_order = dim_order;
  ORCH_TRY(locate(table, tensor, bytes));
  if (dynamism != 0) {
    int32_t* const words = state_.take<int32_t>(1 + dim);
    if (words == nullptr) return Error::Ok;  // the caller asks what fits
    words[0] = static_cast<int32_t>(bytes);
    memcpy(words + 1, dims, dim * sizeof(int32_t));
    tensor.dims = words + 1;
    tensor.flags |= Tensor::kDynamic;
  }
  return Error::Ok;
}

/// Finds the memory of a tensor: in an arena, or in the program if it is
/// constant.
Error MethodLoader::locate(const FbTable& table, Tensor& tensor, size_t bytes) {
  const uint32_t buffer = reader_.scalar<uint32_t>(table, slot::kDataBuffer);
  const FbTable allocation = reader_.child(table, slot::kAllocation);
  const FbTable extra = reader_.child(table, slot::kExtra);
  const uint8_t location =
      extra.at == 0 ? 0 : reader_.scalar<uint8_t>(extra, slot::kLocation);
  ORCH_CHECK(!reader_.failed() && location <= 1, Error::InvalidProgram);
#if ORCH_EXTERNAL_DATA
  if (location == 1) {
    ORCH_CHECK(allocation.at == 0, Error::UnsupportedProgram);
    return external(extra, tensor, bytes);
  }
#endif
  ORCH_CHECK(location == 0,
             Error::UnsupportedProgram);  // data outside the program

  const size_t align = alignment(tensor.dtype);
  if (allocation.at == 0) {
    // Without a buffer it is an input or output in the caller's memory.
    if (kCallerIo && buffer == 0 && bytes != 0) {
      tensor.flags |= Tensor::kCaller | kUnnamed;
      return Error::Ok;
    }
    ORCH_CHECK(buffer != 0 || bytes == 0, Error::UnsupportedProgram);
    const uint8_t* data = program_.bytes_.data();
    if (buffer != 0) ORCH_TRY(constant(buffer, bytes, data));
    ORCH_CHECK(reinterpret_cast<uintptr_t>(data) % align == 0,
               Error::InvalidProgram);
    tensor.memory = const_cast<uint8_t*>(data);  // kReadOnly guards it
    tensor.flags |= Tensor::kReadOnly;
    return Error::Ok;
  }

  const uint32_t id = reader_.scalar<uint32_t>(allocation, slot::kMemoryId);
  const uint32_t high = reader_.scalar<uint32_t>(allocation, slot::kOffsetHigh);
  const uint32_t offset =
      reader_.scalar<uint32_t>(allocation, slot::kOffsetLow);
  ORCH_CHECK(id != 0 && id < buffer_sizes_.count && high == 0,
             Error::InvalidProgram);
  const int64_t planned = reader_.read<int64_t>(buffer_sizes_.at + 8 * id);
  ORCH_CHECK(planned <= INT32_MAX && offset <= planned &&
                 bytes <= static_cast<uint64_t>(planned) - offset,
             Error::InvalidProgram);
  ORCH_CHECK(id <= memory_.arenas.size() && static_cast<uint64_t>(planned) <=
                                                memory_.arenas[id - 1].size(),
             Error::ArenaTooSmall);
  uint8_t* const arena = memory_.arenas[id - 1].data();
  ORCH_CHECK(reinterpret_cast<uintptr_t>(arena) % kArenaAlignment == 0,
             Error::Misaligned);
  ORCH_CHECK(offset % align == 0, Error::InvalidProgram);
  tensor.memory = arena + offset;

  if (buffer != 0) {  // mutable buffer with an initial state
    // Another method would overwrite it.
    ORCH_CHECK(bytes == 0 || !is_common(tensor.memory),
               Error::UnsupportedProgram);
    const FbVector segments =
        reader_.vector(root_, slot::kMutableDataSegments, 4);
    const uint64_t segment =
        reader_.scalar<uint64_t>(extra, slot::kMutableSegment);
    ORCH_CHECK(!reader_.failed() && segment < segments.count,
               Error::InvalidProgram);
    const uint8_t* data = nullptr;
    Pieces pieces;
    ORCH_TRY(find_pieces(reader_.item(segments, static_cast<uint32_t>(segment),
                                      slot::kMutableDataSegments),
                         pieces));
    ORCH_TRY(piece(pieces, buffer, bytes, data));
    if (bytes != 0) memcpy(tensor.memory, data, bytes);
  }
  return Error::Ok;
}

#if ORCH_EXTERNAL_DATA
/// Finds a constant that lies outside of the program by its name.
Error MethodLoader::external(const FbTable& extra, Tensor& tensor,
                             size_t bytes) {
  const Span<const char> name = reader_.text(extra, slot::kQualifiedName);
  ORCH_CHECK(!reader_.failed(), Error::InvalidProgram);
  for (const ExternalData& data : memory_.external) {
    size_t same = 0;
    while (same < name.size() && data.name[same] == name[same] &&
           name[same] != '\0') {
      ++same;
    }
    if (same != name.size() || data.name[same] != '\0') continue;
    ORCH_CHECK(data.bytes == bytes && data.dtype == tensor.dtype,
               Error::InvalidProgram);
    tensor.memory = const_cast<uint8_t*>(data.data);  // kReadOnly guards it
    tensor.flags |= Tensor::kReadOnly;
    return Error::Ok;
  }
  return Error::UnsupportedProgram;
}
#endif

Error MethodLoader::constant(uint32_t buffer, size_t bytes,
                             const uint8_t*& data) {
  FbTable segment;
  if (kInlineConstants || constants_.starts.at == 0) {
    segment = reader_.child(root_, slot::kConstantSegment);
  }
  if constexpr (kInlineConstants) {
    const FbVector inside = reader_.vector(root_, slot::kConstantBuffer, 4);
    if (inside.count != 0 &&
        reader_.vector(segment, slot::kOffsets, 8).count == 0) {
      ORCH_CHECK(!reader_.failed() && buffer < inside.count,
                 Error::InvalidProgram);
      const FbVector storage = reader_.vector(
          reader_.item(inside, buffer, slot::kConstantBuffer), 0, 1);
      data = static_cast<const uint8_t*>(reader_.items(storage));
      ORCH_CHECK(!reader_.failed() && bytes <= storage.count,
                 Error::InvalidProgram);
      return Error::Ok;
    }
  }
  if (constants_.starts.at == 0) ORCH_TRY(find_pieces(segment, constants_));
  return piece(constants_, buffer, bytes, data);
}

Error MethodLoader::find_pieces(const FbTable& offsets, Pieces& pieces) {
  const uint32_t segment_index =
      reader_.scalar<uint32_t>(offsets, slot::kSegmentIndex);
  pieces.starts = reader_.vector(offsets, slot::kOffsets, 8);
  const FbVector segments = reader_.vector(root_, slot::kSegments, 4);
  ORCH_CHECK(!reader_.failed() && segment_index < segments.count,
             Error::InvalidProgram);
  const FbTable segment =
      reader_.item(segments, segment_index, slot::kSegments);
  const uint64_t base = reader_.scalar<uint64_t>(segment, slot::kOffset);
  const uint64_t size = reader_.scalar<uint64_t>(segment, slot::kSize);
  ORCH_CHECK(!reader_.failed() && base <= program_.segment_bytes_ &&
                 size <= program_.segment_bytes_ - base,
             Error::InvalidProgram);
  pieces.base = static_cast<uint32_t>(base);
  pieces.size = static_cast<uint32_t>(size);
  return Error::Ok;
}

Error MethodLoader::piece(const Pieces& pieces, uint32_t index, size_t bytes,
                          const uint8_t*& data) {
  ORCH_CHECK(index < pieces.starts.count, Error::InvalidProgram);
  const uint64_t start = reader_.read<uint64_t>(pieces.starts.at + 8 * index);
  ORCH_CHECK(start <= pieces.size && bytes <= pieces.size - start,
             Error::InvalidProgram);
  data = program_.bytes_.data() + program_.segment_base_ + pieces.base + start;
  return Error::Ok;
}

/// Only inputs and outputs can lie in memory of the caller, and its inputs are
/// not written.
Error MethodLoader::check_callers(const FbTable& plan) {
  constexpr uint32_t kEnds[] = {slot::kInputs, slot::kOutputs};
  for (const uint32_t slot : kEnds) {
    Span<const int32_t> named;
    ORCH_TRY(indices(plan, slot, named));
    for (const int32_t index : named) {
      Value& value = values_[index];
      if (!value.is_tensor()) continue;
      uint8_t& flags = value.tensor().flags;
      if ((flags & Tensor::kCaller) == 0) continue;
      flags &= static_cast<uint8_t>(~kUnnamed);
      if (slot == slot::kInputs) flags |= Tensor::kReadOnly;
    }
  }
  for (uint32_t i = 0; i < values_count_; ++i) {
    ORCH_CHECK(
        !values_[i].is_tensor() || (values_[i].tensor().flags & kUnnamed) == 0,
        Error::UnsupportedProgram);
  }
  return Error::Ok;
}

/// Items of lists must name values of the right kind.
Error MethodLoader::check_lists() {
  for (uint32_t i = 0; i < values_count_; ++i) {
    if (values_[i].tag() != Tag::IntList &&
        values_[i].tag() != Tag::TensorList) {
      continue;
    }
    const List& list = values_[i].list();
    ORCH_TRY(spend(list.count));
    for (uint32_t k = 0; k < list.count; ++k) {
      if (list.tag == Tag::IntList) {
        const int64_t at = static_cast<const int64_t*>(list.items)[k];
        ORCH_CHECK(at == static_cast<int32_t>(at) &&
                       valid(static_cast<int32_t>(at)) &&
                       values_[at].tag() == Tag::Int,
                   Error::InvalidProgram);
      } else {
        const int32_t at = static_cast<const int32_t*>(list.items)[k];
        ORCH_CHECK(at == -1 || (valid(at) && (values_[at].is_tensor() ||
                                              values_[at].is_none())),
                   Error::InvalidProgram);
      }
    }
  }
  return Error::Ok;
}

}  // namespace orch
