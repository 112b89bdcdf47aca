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

#include "orch/favour.h"
#include "orch/span.h"

// Worth a call where products are to be small.
#if !ORCH_FAVOUR_SPEED
#define ORCH_OF_SIZE __attribute__((noinline))
#else
#define ORCH_OF_SIZE
#endif

namespace orch {

/// A vector of the buffer: position of item 0 and number of items.
struct FbVector {
  uint32_t at = 0;
  uint32_t count = 0;
};

/// A table of the buffer: its position, 0 if absent, and the offsets of its
/// fields from there, 0 for those that it does not store.
struct FbTable {
  uint32_t at = 0;
  uint32_t count = 0;
  const uint16_t* fields = nullptr;
};

/// The unsigned type of a size: scalars of one size are read by the same code.
template <size_t kBytes>
struct FbBits;
template <>
struct FbBits<1> {
  using Type = uint8_t;
};
template <>
struct FbBits<4> {
  using Type = uint32_t;
};
template <>
struct FbBits<8> {
  using Type = uint64_t;
};

/// A slot that leads to a table, or to a vector of them, with so many fields
/// that are known: those of orchestrator/program/schema.py. Everything that
/// takes a slot takes it.
constexpr uint32_t leads_to(uint32_t slot, uint32_t fields) {
  return slot | fields << 4;
}

/// Fields of the program itself.
inline constexpr uint32_t kProgramFields = 8;

class FbReader {
  /// Bytes of a vtable: all of it is looked at for each table.
  static constexpr uint32_t kMostVtable = 256;

 public:
  /// `size` is the part of the file that holds the flatbuffer, 8 bytes or more.
  FbReader(const uint8_t* base, uint32_t size) : base_(base), size_(size) {}

  bool failed() const { return failed_; }
  void fail() { failed_ = true; }
  /// Whether what failed was a table with a field that is not known here: the
  /// program may mean something else than this loader takes it for.
  bool newer() const { return newer_; }

  template <typename T>
  __attribute__((always_inline)) T read(uint32_t at) {
    T value{};
    if (at > size_ - sizeof(T)) {
      failed_ = true;
    } else {
      memcpy(&value, base_ + at, sizeof value);
    }
    return value;
  }

  /// The first table.
  FbTable root() { return linked(0, kProgramFields); }

  /// Position of a field, 0 if the table does not store it (or is absent).
  __attribute__((always_inline)) uint32_t field(const FbTable& table,
                                                uint32_t slot) const {
    const uint32_t index = slot & 0xF;
    if (index >= table.count || table.fields[index] == 0) return 0;
    return table.at + table.fields[index];
  }

  /// A scalar field, 0 if it is not stored.
  template <typename T>
  T scalar(const FbTable& table, uint32_t slot) {
    const auto bits = stored<typename FbBits<sizeof(T)>::Type>(table, slot);
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
  }

  /// A table field; absent (at == 0) if it is not stored.
  FbTable child(const FbTable& parent, uint32_t slot) {
    const uint32_t at = field(parent, slot);
    return at == 0 ? FbTable{} : linked(at, slot >> 4);
  }

  /// A vector field; empty if it is not stored. Fails if its items, whose size
  /// is a power of two, are not aligned to that.
  FbVector vector(const FbTable& parent, uint32_t slot, uint32_t item_bytes) {
    const uint32_t stored_at = field(parent, slot);
    if (stored_at == 0) return {};
    const uint32_t start = follow(stored_at);
    const uint32_t count = read<uint32_t>(start);
    const uint32_t at = start + 4;
    if (count > (size_ - at) / item_bytes ||
        (count != 0 && (at & (item_bytes - 1)) != 0)) {
      failed_ = true;
      return {};
    }
    return {at, count};
  }

  /// Item `index` of a vector of tables; the index is trusted.
  FbTable item(const FbVector& tables, uint32_t index, uint32_t slot) {
    return linked(tables.at + 4 * index, slot >> 4);
  }

  /// Items of a vector in place.
  const void* items(const FbVector& vector) const { return base_ + vector.at; }

  Span<const char> text(const FbTable& parent, uint32_t slot) {
    const FbVector chars = vector(parent, slot, 1);
    return {reinterpret_cast<const char*>(base_ + chars.at), chars.count};
  }

 private:
  template <typename Bits>
  ORCH_OF_SIZE Bits stored(const FbTable& table, uint32_t slot) {
    const uint32_t at = field(table, slot);
    return at == 0 ? 0 : read<Bits>(at);
  }

  /// The table that the offset stored at `place` leads to. Fails if it has
  /// another field than the first `fields`.
  __attribute__((noinline)) FbTable linked(uint32_t place, uint32_t fields) {
    const uint32_t at = follow(place);
    // Wraps around to what is too large where it leads out of the buffer.
    const uint32_t vtable = at - read<uint32_t>(at);
    if (vtable > size_ - 2 || vtable % 2 != 0) {
      failed_ = true;
      return {};
    }
    const uint16_t* const words =
        reinterpret_cast<const uint16_t*>(base_ + vtable);
    const uint32_t bytes = words[0];
    if (bytes < 4 || bytes > kMostVtable || bytes % 2 != 0 ||
        bytes > size_ - vtable) {
      failed_ = true;
      return {};
    }
    const uint32_t count = (bytes - 4) / 2;
    // Writers leave out what is at its default.
    for (uint32_t i = fields; i < count; ++i) {
      if (words[2 + i] != 0) newer_ = failed_ = true;
    }
    return {at, count, words + 2};
  }

  /// Follows the offset stored at `at`.
  __attribute__((always_inline)) uint32_t follow(uint32_t at) {
    const uint32_t offset = read<uint32_t>(at);
    if (offset > size_ - at) {
      failed_ = true;
      return 0;
    }
    return at + offset;
  }

  const uint8_t* base_;
  uint32_t size_;
  bool failed_ = false;
  bool newer_ = false;
};

// Slots of the tables of the .pte schema: the field's position, a union takes
// two. Source: ExecuTorch schema/program.fbs (ET12).
namespace slot {
enum Program : uint32_t {
  kVersion = 0,
  kExecutionPlan = leads_to(1, 10),
  kConstantBuffer = leads_to(2, 1),
  kDelegateData = leads_to(3, 1),
  kSegments = leads_to(4, 2),
  kConstantSegment = leads_to(5, 2),
  kMutableDataSegments = leads_to(6, 2),
  kNamedData = leads_to(7, 2),
};
enum Plan : uint32_t {
  kName = 0,
  kValues = leads_to(2, 2),
  kInputs = 3,
  kOutputs = 4,
  kChains = leads_to(5, 4),
  kOperators = leads_to(6, 2),
  kDelegates = leads_to(7, 3),
  kBufferSizes = 8,
};
enum Segment : uint32_t { kOffset = 0, kSize = 1 };
enum NamedData : uint32_t { kKey = 0, kKeySegment = 1 };
enum Subsegments : uint32_t { kSegmentIndex = 0, kOffsets = 1 };
enum EValue : uint32_t {
  kValType = 0,
  kVal = leads_to(1, 1),  // numbers, texts, lists
  kValNull = leads_to(1, 0),
  kValTensor = leads_to(1, 10),
};
enum TensorField : uint32_t {
  kScalarType = 0,
  kStorageOffset = 1,
  kSizes = 2,
  kDimOrder = 3,
  kDataBuffer = 5,
  kAllocation = leads_to(6, 3),
  kLayout = 7,
  kDynamism = 8,
  kExtra = leads_to(9, 5),
};
enum Allocation : uint32_t { kMemoryId = 0, kOffsetLow = 1, kOffsetHigh = 2 };
enum Extra : uint32_t {
  kMutableSegment = 0,
  kQualifiedName = 1,
  kLocation = 2
};
enum Operator : uint32_t { kOpName = 0, kOverload = 1 };
enum Chain : uint32_t { kInstructions = leads_to(2, 2) };
enum Call : uint32_t {
  kArgsType = 0,
  // Also of calls of delegates, whose `scratch` builds write anew as arguments.
  kArgs = leads_to(1, 2),
  kArgsFree = leads_to(1, 1),
};
enum KernelCall : uint32_t { kOpIndex = 0, kCallArgs = 1 };
enum Delegate : uint32_t {
  kDelegateId = 0,
  kProcessed = leads_to(1, 2),
  kCompileSpecs = leads_to(2, 2),
};
enum DelegateData : uint32_t { kDataLocation = 0, kDataIndex = 1 };
enum InlineData : uint32_t { kInlineBytes = 0 };
enum CompileSpec : uint32_t { kSpecKey = 0, kSpecValue = 1 };
enum Pair : uint32_t { kFirst = 0, kSecond = 1 };
}  // namespace slot

}  // namespace orch
