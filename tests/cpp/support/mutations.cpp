#include "support/mutations.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace orch::test {
namespace {

constexpr int kTries = 64;
/// Vtables of programs are shorter: of what looks like one, these count.
constexpr uint16_t kLongestVtable = 4 + 2 * 16;

template <typename T>
T get(const uint8_t* bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes + at, sizeof value);
  return value;
}

template <typename T>
void put(uint8_t* bytes, size_t at, T value) {
  std::memcpy(bytes + at, &value, sizeof value);
}

/// A number that is likely to be on the edge of what is checked.
uint32_t edge(Random& random) {
  static constexpr uint32_t kEdges[] = {
      0,          1,          2,          3,          4,          7,
      8,          16,         100,        0xFF,       0xFFFF,     0x10000,
      0x3FFFFFFF, 0x40000000, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFE, 0xFFFFFFFF};
  return kEdges[random.below(std::size(kEdges))];
}

struct Table {
  size_t at = 0;
  size_t vtable = 0;
  size_t slots = 0;  // 0: none was found
};

/// What looks like a table, from a random place on.
Table find_table(const uint8_t* bytes, size_t size, Random& random) {
  for (int i = 0; i < kTries; ++i) {
    const size_t at = random.below(size / 4) * 4;
    const int64_t vtable = static_cast<int64_t>(at) - get<int32_t>(bytes, at);
    if (vtable <= 0 || static_cast<size_t>(vtable) + 4 > size ||
        vtable % 2 != 0) {
      continue;
    }
    const size_t start = static_cast<size_t>(vtable);
    const auto vtable_bytes = get<uint16_t>(bytes, start);
    const auto table_bytes = get<uint16_t>(bytes, start + 2);
    if (vtable_bytes <= 4 || vtable_bytes > kLongestVtable ||
        vtable_bytes % 2 != 0 || table_bytes < 4 ||
        start + vtable_bytes > size || at + table_bytes > size) {
      continue;
    }
    return {at, start, (vtable_bytes - size_t{4}) / 2};
  }
  return {};
}

/// Place of what looks like an offset; 0 if none is found.
size_t find_offset(const uint8_t* bytes, size_t size, Random& random) {
  for (int i = 0; i < kTries; ++i) {
    const size_t at = random.below(size / 4) * 4;
    const auto offset = get<uint32_t>(bytes, at);
    if (at != 0 && offset >= 4 && offset % 4 == 0 && offset < size - at) {
      return at;
    }
  }
  return 0;
}

bool change_field(uint8_t* bytes, size_t size, Random& random) {
  const Table table = find_table(bytes, size, random);
  if (table.slots == 0) return false;
  const size_t entry = table.vtable + 4 + 2 * random.below(table.slots);
  const auto offset = get<uint16_t>(bytes, entry);
  const size_t field = table.at + offset;
  switch (random.below(4)) {
    case 0:  // what is not stored has its default
      put<uint16_t>(bytes, entry, 0);
      return true;
    case 1: {  // the fields of a table have each other's content
      const size_t other = table.vtable + 4 + 2 * random.below(table.slots);
      put(bytes, entry, get<uint16_t>(bytes, other));
      put(bytes, other, offset);
      return true;
    }
    case 2:
      if (offset == 0 || field + 4 > size) return false;
      put(bytes, field,
          get<uint32_t>(bytes, field) + static_cast<uint32_t>(random.below(9)) -
              4);
      return true;
    default:
      if (offset == 0 || field + 4 > size) return false;
      if (random.below(2) == 0) {
        bytes[field] = static_cast<uint8_t>(random.below(16));
      } else {
        put(bytes, field, edge(random));
      }
      return true;
  }
}

bool change_offset(uint8_t* bytes, size_t size, Random& random) {
  const size_t at = find_offset(bytes, size, random);
  const size_t other = find_offset(bytes, size, random);
  if (at == 0 || other == 0) return false;
  const size_t target = other + get<uint32_t>(bytes, other);
  // An offset only leads forward.
  if (target <= at) return false;
  put(bytes, at, static_cast<uint32_t>(target - at));
  return true;
}

}  // namespace

void change(uint8_t* bytes, size_t size, Random& random) {
  const size_t at = random.below(size);
  // Offsets, indices, counts and sizes are words at multiples of 4.
  const size_t word = at / 4 * 4;
  const bool whole = word + 4 <= size;
  uint32_t value = whole ? get<uint32_t>(bytes, word) : 0;
  switch (random.below(8)) {
    case 0:
      bytes[at] = static_cast<uint8_t>(random.next());
      return;
    case 1:
    case 2:
      bytes[at] ^= static_cast<uint8_t>(1U << random.below(8));
      return;
    case 3:
      value = edge(random);
      break;
    case 4:
      value += static_cast<uint32_t>(random.below(9)) - 4;
      break;
    case 5:  // another word of the program: an index or size that occurs
      if (whole) value = get<uint32_t>(bytes, random.below(size / 4) * 4);
      break;
    case 6:
      value = static_cast<uint32_t>(random.below(32));
      break;
    default:
      bytes[at] = static_cast<uint8_t>(random.below(16));
      return;
  }
  if (whole) put(bytes, word, value);
}

void change_structure(uint8_t* bytes, size_t size, Random& random) {
  const bool done =
      size >= 16 && (random.below(3) == 0 ? change_offset(bytes, size, random)
                                          : change_field(bytes, size, random));
  if (!done) change(bytes, size, random);
}

void cross(uint8_t* bytes, size_t size, const uint8_t* other, size_t other_size,
           size_t most, Random& random) {
  if (size < 16 || other_size < 16) return;
  const size_t to = random.below(size / 4) * 4;
  const size_t from = random.below(other_size / 4) * 4;
  const size_t count =
      std::min({4 + random.below(most / 4) * 4, size - to, other_size - from});
  std::memcpy(bytes + to, other + from, count);
}

}  // namespace orch::test
