// Bounds-checked flatbuffer reader for untrusted bytes.
//
// Errors stick: a read outside the buffer returns 0 and sets `failed()`, so
// that a sequence of reads needs one check at its end, before anything read is
// used as an index or a pointer. Positions are byte offsets from the start of
// the file.
//
// Source: FlatBuffers internals, https://flatbuffers.dev/internals/
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "orch/span.h"

namespace orch {

/// A vector of the buffer: position of item 0 and number of items.
struct FbVector {
  uint32_t at = 0;
  uint32_t count = 0;
};

/// A table of the buffer: its position and that of its vtable; 0 if absent.
struct FbTable {
  uint32_t at = 0;
  uint32_t vtable = 0;
  uint32_t vtable_bytes = 0;
};

class FbReader {
 public:
  /// `size` is the part of the file that holds the flatbuffer.
  FbReader(const uint8_t* base, uint32_t size) : base_(base), size_(size) {}

  bool failed() const { return failed_; }
  void fail() { failed_ = true; }

  template <typename T>
  T read(uint32_t at) {
    T value{};
    if (at > size_ || sizeof(T) > size_ - at) {
      failed_ = true;
    } else {
      memcpy(&value, base_ + at, sizeof value);
    }
    return value;
  }

  /// The table at `at`.
  FbTable table(uint32_t at) {
    FbTable table;
    const int64_t vtable = static_cast<int64_t>(at) - read<int32_t>(at);
    if (vtable < 0 || vtable >= size_) {
      failed_ = true;
      return table;
    }
    table.vtable = static_cast<uint32_t>(vtable);
    table.vtable_bytes = read<uint16_t>(table.vtable);
    if (table.vtable_bytes < 4 || table.vtable_bytes > size_ - table.vtable) {
      failed_ = true;
      return FbTable{};
    }
    table.at = at;
    return table;
  }

  /// Position of a field, 0 if the table does not store it (or is absent).
  uint32_t field(const FbTable& table, uint32_t slot) {
    const uint32_t entry = 4 + 2 * slot;
    if (entry + 2 > table.vtable_bytes) return 0;
    const uint32_t offset = read<uint16_t>(table.vtable + entry);
    return offset == 0 ? 0 : table.at + offset;
  }

  /// A scalar field, `fallback` if it is not stored.
  template <typename T>
  T scalar(const FbTable& table, uint32_t slot, T fallback = 0) {
    const uint32_t at = field(table, slot);
    return at == 0 ? fallback : read<T>(at);
  }

  /// A table field; absent (at == 0) if it is not stored.
  FbTable child(const FbTable& parent, uint32_t slot) {
    const uint32_t at = field(parent, slot);
    return at == 0 ? FbTable{} : table(follow(at));
  }

  /// A vector field; empty if it is not stored.
  FbVector vector(const FbTable& parent, uint32_t slot, uint32_t item_bytes) {
    const uint32_t at = field(parent, slot);
    if (at == 0) return {};
    const uint32_t start = follow(at);
    const uint32_t count = read<uint32_t>(start);
    if (failed_ || count > (size_ - start - 4) / item_bytes) {
      failed_ = true;
      return {};
    }
    return {start + 4, count};
  }

  /// Item `index` of a vector of tables; the index is trusted.
  FbTable item(const FbVector& tables, uint32_t index) {
    return table(follow(tables.at + 4 * index));
  }

  /// Items of a vector in place. Fails if they are not aligned to their size, a
  /// power of two.
  const void* items(const FbVector& vector, uint32_t item_bytes) {
    if (vector.count != 0 && (vector.at & (item_bytes - 1)) != 0)
      failed_ = true;
    return base_ + vector.at;
  }

  Span<const char> text(const FbTable& parent, uint32_t slot) {
    const FbVector chars = vector(parent, slot, 1);
    return {reinterpret_cast<const char*>(base_ + chars.at), chars.count};
  }

 private:
  /// Follows the offset stored at `at`.
  uint32_t follow(uint32_t at) {
    const uint32_t offset = read<uint32_t>(at);
    if (failed_ || offset > size_ - at) {
      failed_ = true;
      return 0;
    }
    return at + offset;
  }

  const uint8_t* base_;
  uint32_t size_;
  bool failed_ = false;
};

// Slots of the tables of the .pte schema: the field's position, a union takes
// two. Source: ExecuTorch schema/program.fbs (ET12).
namespace slot {
enum Program : uint32_t {
  kVersion = 0,
  kExecutionPlan = 1,
  kConstantBuffer = 2,
  kDelegateData = 3,
  kSegments = 4,
  kConstantSegment = 5,
  kMutableDataSegments = 6,
};
enum Plan : uint32_t {
  kName = 0,
  kValues = 2,
  kInputs = 3,
  kOutputs = 4,
  kChains = 5,
  kOperators = 6,
  kDelegates = 7,
  kBufferSizes = 8,
};
enum Segment : uint32_t { kOffset = 0, kSize = 1 };
enum Subsegments : uint32_t { kSegmentIndex = 0, kOffsets = 1 };
enum EValue : uint32_t { kValType = 0, kVal = 1 };
enum TensorField : uint32_t {
  kScalarType = 0,
  kStorageOffset = 1,
  kSizes = 2,
  kDimOrder = 3,
  kDataBuffer = 5,
  kAllocation = 6,
  kLayout = 7,
  kDynamism = 8,
  kExtra = 9,
};
enum Allocation : uint32_t { kMemoryId = 0, kOffsetLow = 1, kOffsetHigh = 2 };
enum Extra : uint32_t {
  kMutableSegment = 0,
  kQualifiedName = 1,
  kLocation = 2
};
enum Operator : uint32_t { kOpName = 0, kOverload = 1 };
enum Chain : uint32_t { kInstructions = 2 };
enum Call : uint32_t { kArgsType = 0, kArgs = 1 };
enum KernelCall : uint32_t { kOpIndex = 0, kCallArgs = 1 };
enum Delegate : uint32_t {
  kDelegateId = 0,
  kProcessed = 1,
  kCompileSpecs = 2,
};
enum DelegateData : uint32_t { kDataLocation = 0, kDataIndex = 1 };
enum InlineData : uint32_t { kInlineBytes = 0 };
enum CompileSpec : uint32_t { kSpecKey = 0, kSpecValue = 1 };
enum Pair : uint32_t { kFirst = 0, kSecond = 1 };
}  // namespace slot

}  // namespace orch
