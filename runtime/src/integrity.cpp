#include "orch/integrity.h"

namespace orch {
namespace {

// A step of 4 bits by table: docs/runtime.md has what other ways cost.
// Source: table for the polynomial 0xEDB88320, https://en.wikipedia.org/wiki/
// Computation_of_cyclic_redundancy_checks; the tests compare with zlib.
constexpr uint32_t step(uint32_t value, int bits) {
  for (int i = 0; i < bits; ++i) {
    value = value >> 1 ^ ((value & 1) != 0 ? 0xEDB88320U : 0U);
  }
  return value;
}

struct Table {
  uint32_t at[16] = {};
  constexpr Table() {
    for (uint32_t i = 0; i < 16; ++i) at[i] = step(i, 4);
  }
};
constexpr Table kTable;

}  // namespace

uint32_t crc32(const void* bytes, uint32_t count, uint32_t crc) {
  const uint8_t* byte = static_cast<const uint8_t*>(bytes);
  // What the compiler sees defined as constant could else be taken for granted.
  asm volatile("" : "+r"(byte) : : "memory");
  crc = ~crc;
  for (const uint8_t* const end = byte + count; byte != end; ++byte) {
    crc ^= *byte;
    crc = crc >> 4 ^ kTable.at[crc & 15];
    crc = crc >> 4 ^ kTable.at[crc & 15];
  }
  return ~crc;
}

Error check_bytes(Span<const CheckedBytes> blocks) {
  for (const CheckedBytes& block : blocks) {
    ORCH_CHECK(crc32(block.at, block.count) == block.crc, Error::ImageDamaged);
  }
  return Error::Ok;
}

Error check_tables(Span<const Value> values,
                   Span<const Instruction> instructions, uint32_t crc) {
  uint32_t found = 0;
  for (const Value& value : values) {
    uint32_t words[3] = {static_cast<uint32_t>(value.tag()), 0, 0};
    if (value.is_tensor()) {
      const Tensor& tensor = value.tensor();
      words[0] |= static_cast<uint32_t>(tensor.dtype) << 8 |
                  uint32_t{tensor.dim} << 16 | uint32_t{tensor.flags} << 24;
    } else if (value.is_scalar()) {
      words[1] = value.scalar().words[0];
      words[2] = value.scalar().words[1];
    } else if (!value.is_none()) {
      words[1] = value.list().count;
    }
    found = crc32(words, sizeof words, found);
  }
#if ORCH_KERNEL_CALLS
  for (const Instruction& instruction : instructions) {
    uint32_t words[3] = {static_cast<uint32_t>(instruction.kind) |
                             uint32_t{instruction.arg_count} << 8,
                         0, 0};
#if ORCH_INDEX_BYTES != 4
    words[1] = instruction.first_arg;
#endif
    if (instruction.kind == Instruction::Kind::Move) {
      words[1] = static_cast<uint32_t>(instruction.move.from);
      words[2] = static_cast<uint32_t>(instruction.move.to);
    } else if (instruction.kind == Instruction::Kind::JumpFalse) {
      words[1] = static_cast<uint32_t>(instruction.jump.condition);
      words[2] = static_cast<uint32_t>(instruction.jump.destination);
    }
    found = crc32(words, sizeof words, found);
  }
#else
  (void)instructions;  // addresses
#endif
  return found == crc ? Error::Ok : Error::ImageDamaged;
}

}  // namespace orch
