#include <string.h>

#include "orch/check_update.h"

namespace orch {
namespace {

constexpr uint32_t kProgramAlignment = 16;
constexpr uint32_t kFormatAt = 8;
constexpr uint32_t kIdentityAt = 16;
constexpr uint32_t kModelAt = 48;
constexpr uint32_t kFirmwareAt = 92;
constexpr uint32_t kSizeAt = 96;
constexpr uint32_t kDigestAt = 104;
constexpr uint32_t kSpareAt = 136;
constexpr uint32_t kDigestBytes = 32;
constexpr uint32_t kFormat = 1;

uint32_t word(const uint8_t* at) {
  return uint32_t{at[0]} | uint32_t{at[1]} << 8 | uint32_t{at[2]} << 16 |
         uint32_t{at[3]} << 24;
}

bool is_update(const uint8_t* header, uint32_t size) {
  return size >= ORCH_UPDATE_HEADER_BYTES &&
         memcmp(header, "ORCH-UPD", kFormatAt) == 0 &&
         word(header + kFormatAt) == kFormat &&
         word(header + kFormatAt + 4) == 0 && word(header + kSizeAt + 4) == 0 &&
         word(header + kSpareAt) == 0 && word(header + kSpareAt + 4) == 0 &&
         word(header + kSizeAt) == size - ORCH_UPDATE_HEADER_BYTES;
}

}  // namespace

orch_update_result check_update(const UpdateTarget& target, const void* update,
                                uint32_t size, uint32_t lowest_version,
                                const orch_update_trust& trust) {
  const uint8_t* const header = static_cast<const uint8_t*>(update);
  if (reinterpret_cast<uintptr_t>(update) % kProgramAlignment != 0) {
    return ORCH_UPDATE_MISALIGNED;
  }
  if (!is_update(header, size)) return ORCH_UPDATE_INVALID;
  if (memcmp(header + kIdentityAt, target.identity, sizeof target.identity) !=
      0) {
    return ORCH_UPDATE_OTHER_PRODUCT;
  }
  if (memcmp(header + kModelAt, target.model, sizeof target.model) != 0) {
    return ORCH_UPDATE_OTHER_MODEL;
  }
  if (word(header + kFirmwareAt) > target.firmware_version) {
    return ORCH_UPDATE_NEEDS_FIRMWARE;
  }
  if (orch_update_version(update) < lowest_version) return ORCH_UPDATE_TOO_OLD;
  if (!trust.verify(trust.context, header, ORCH_UPDATE_SIGNED_BYTES,
                    header + ORCH_UPDATE_SIGNED_BYTES)) {
    return ORCH_UPDATE_NOT_SIGNED;
  }
  uint8_t digest[kDigestBytes] = {};
  if (!trust.sha256(trust.context, header + ORCH_UPDATE_HEADER_BYTES,
                    size - ORCH_UPDATE_HEADER_BYTES, digest) ||
      memcmp(digest, header + kDigestAt, sizeof digest) != 0) {
    return ORCH_UPDATE_DAMAGED;
  }
  return ORCH_UPDATE_OK;
}

}  // namespace orch
