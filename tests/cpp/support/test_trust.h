// What tests give products that take signed updates: SHA-256, and HMAC-SHA256
// in the place of a signature, twice to fill its 64 bytes. Small and slow; a
// device uses PSA Crypto or the like.
#pragma once

#include <stdint.h>
#include <string.h>

#include "orch/update.h"

namespace test_trust {

constexpr uint32_t kKeyBytes = 32;
constexpr uint8_t kKey = 0x5a;  // each byte of the key
constexpr uint32_t kDigestBytes = 32;
constexpr uint32_t kBlockBytes = 64;

// Source: FIPS 180-4.
class Sha256 {
 public:
  void add(const uint8_t* bytes, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      block_[size_ % kBlockBytes] = bytes[i];
      if (++size_ % kBlockBytes == 0) compress();
    }
  }

  void finish(uint8_t* digest) {
    const uint64_t bits = uint64_t{size_} * 8;
    const uint8_t one = 0x80;
    const uint8_t zero = 0;
    add(&one, 1);
    while (size_ % kBlockBytes != kBlockBytes - 8) add(&zero, 1);
    for (unsigned i = 0; i < 8; ++i) {
      const uint8_t byte = static_cast<uint8_t>(bits >> (56 - 8 * i));
      add(&byte, 1);
    }
    for (unsigned i = 0; i < kDigestBytes; ++i) {
      digest[i] = static_cast<uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
    }
  }

 private:
  static uint32_t turn(uint32_t x, int by) { return x >> by | x << (32 - by); }

  void compress() {
    static const uint32_t kRounds[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
        0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
        0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
        0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
        0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
        0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
        0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
        0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
        0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t words[64];
    for (int i = 0; i < 16; ++i) {
      words[i] = 0;
      for (int k = 0; k < 4; ++k) words[i] = words[i] << 8 | block_[4 * i + k];
    }
    for (int i = 16; i < 64; ++i) {
      const uint32_t a = words[i - 15];
      const uint32_t b = words[i - 2];
      words[i] = words[i - 16] + (turn(a, 7) ^ turn(a, 18) ^ a >> 3) +
                 words[i - 7] + (turn(b, 17) ^ turn(b, 19) ^ b >> 10);
    }
    uint32_t s[8];
    for (int i = 0; i < 8; ++i) s[i] = state_[i];
    for (int i = 0; i < 64; ++i) {
      const uint32_t e = s[4];
      const uint32_t a = s[0];
      const uint32_t first = s[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) +
                             ((e & s[5]) ^ (~e & s[6])) + kRounds[i] + words[i];
      const uint32_t second = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) +
                              ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
      for (int k = 7; k > 0; --k) s[k] = s[k - 1];
      s[4] += first;
      s[0] = first + second;
    }
    for (int i = 0; i < 8; ++i) state_[i] += s[i];
  }

  uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  uint8_t block_[kBlockBytes] = {};
  uint32_t size_ = 0;
};

inline bool sha256(void*, const uint8_t* bytes, uint32_t size,
                   uint8_t digest[kDigestBytes]) {
  Sha256 hash;
  hash.add(bytes, size);
  hash.finish(digest);
  return true;
}

// Source: RFC 2104.
inline bool verify(void*, const uint8_t* bytes, uint32_t size,
                   const uint8_t* signature) {
  uint8_t mac[kDigestBytes] = {};
  for (int pass = 0; pass < 2; ++pass) {
    uint8_t pad[kBlockBytes];
    for (uint32_t i = 0; i < kBlockBytes; ++i) {
      const unsigned key = i < kKeyBytes ? kKey : 0U;
      pad[i] = static_cast<uint8_t>(key ^ (pass == 0 ? 0x36U : 0x5cU));
    }
    Sha256 hash;
    hash.add(pad, sizeof pad);
    if (pass == 0) {
      hash.add(bytes, size);
    } else {
      hash.add(mac, sizeof mac);
    }
    hash.finish(mac);
  }
  return memcmp(mac, signature, sizeof mac) == 0 &&
         memcmp(mac, signature + sizeof mac, sizeof mac) == 0;
}

constexpr orch_update_trust kTrust = {sha256, verify, nullptr};

}  // namespace test_trust
