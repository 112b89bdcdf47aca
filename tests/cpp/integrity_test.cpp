// Checksums and what they are compared with. That the build's are the same is
// held on every target by tests/qemu/test_integrity.py.
#include "orch/integrity.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

namespace orch {
namespace {

uint32_t crc_of(const std::string& text) {
  return crc32(text.data(), static_cast<uint32_t>(text.size()));
}

TEST_CASE("CRC-32 as in zip") {
  // Source: "check" values of CRC-32/ISO-HDLC; zlib gives the same.
  CHECK(crc_of("") == 0);
  CHECK(crc_of("123456789") == 0xCBF43926);
  CHECK(crc_of(std::string(32, '\0')) == 0x190A55AD);
  CHECK(crc_of(std::string(32, '\xff')) == 0xFF6CAB0B);
}

TEST_CASE("CRC-32 of parts goes on from the one before") {
  const char text[] = "123456789";
  for (uint32_t cut = 0; cut <= 9; ++cut) {
    CHECK(crc32(text + cut, 9 - cut, crc32(text, cut)) == 0xCBF43926);
  }
}

TEST_CASE("every one, two and three wrong bits of a short block are noticed") {
  std::vector<uint8_t> bytes(8);
  const auto crc = [&] { return crc32(bytes.data(), 8); };
  const auto flip = [&](unsigned bit) {
    bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] ^ 1U << bit % 8);
  };
  const uint32_t good = crc();
  unsigned unnoticed = 0;
  for (unsigned a = 0; a < 64; ++a) {
    flip(a);
    if (crc() == good) ++unnoticed;
    for (unsigned b = 0; b < a; ++b) {
      flip(b);
      if (crc() == good) ++unnoticed;
      for (unsigned c = 0; c < b; ++c) {
        flip(c);
        if (crc() == good) ++unnoticed;
        flip(c);
      }
      flip(b);
    }
    flip(a);
  }
  CHECK(unnoticed == 0);
}

TEST_CASE("one wrong block of several is noticed, and none is right") {
  const char good[] = "123456789";
  const char bad[] = "123456788";
  const CheckedBytes right = {good, 9, 0xCBF43926};
  const CheckedBytes wrong = {bad, 9, 0xCBF43926};
  const CheckedBytes empty = {good, 0, 0};
  const CheckedBytes all[] = {right, empty, right};
  const CheckedBytes last[] = {right, empty, wrong};
  CHECK(check_bytes({}) == Error::Ok);
  CHECK(check_bytes(all) == Error::Ok);
  CHECK(check_bytes(last) == Error::ImageDamaged);
}

TEST_CASE("tables are compared by all but their addresses") {
  const int32_t dims[] = {2};
  const uint8_t order[] = {0};
  uint8_t memory[2] = {};
  Value values[] = {Value(Scalar{Tag::None, {0, 0}}),
                    Value(Scalar{Tag::Int, {7, 1}}),
                    Value(Tensor{Tag::Tensor, ScalarType::Char, 1,
                                 Tensor::kContiguous, memory, dims, order}),
                    Value(List{Tag::IntList, 1, dims})};
  Instruction instructions[] = {
      Instruction({[](const Args&) { return Error::Ok; }, dims}, 1),
      Instruction(Instruction::Move{1, 0}),
      Instruction(Instruction::Jump{1, 3})};
  const uint32_t words[] = {
      0, 0, 0, 2, 7, 1,       1U | 1U << 8 | 1U << 16 | 2U << 24,
      0, 0, 6, 1, 0, 1U << 8, 0,
      0, 1, 1, 0, 2, 1,       3};
  const uint32_t crc = crc32(words, sizeof words);
  const auto check = [&] { return check_tables(values, instructions, crc); };
  CHECK(check() == Error::Ok);
  CHECK(check_tables({}, {}, 0) == Error::Ok);
  CHECK(check_tables({}, instructions, crc) == Error::ImageDamaged);

  const Value tensor = values[2];
  values[2].tensor().memory = nullptr;
  CHECK(check() == Error::Ok);
  values[2].tensor().flags = 0;
  CHECK(check() == Error::ImageDamaged);
  values[2] = tensor;
  instructions[0].call.function = nullptr;
  CHECK(check() == Error::Ok);
  instructions[0].arg_count = 2;
  CHECK(check() == Error::ImageDamaged);
  instructions[0].arg_count = 1;
  instructions[2].jump.destination = 2;
  CHECK(check() == Error::ImageDamaged);
  instructions[2].jump.destination = 3;
  values[1].set_int(8);
  CHECK(check() == Error::ImageDamaged);
}

TEST_CASE("the new status has its name") {
  CHECK(static_cast<int>(Error::ImageDamaged) == 14);
  CHECK(std::strcmp(to_string(Error::ImageDamaged), "ImageDamaged") == 0);
}

}  // namespace
}  // namespace orch
