/* Signed updates of models, for C and C++: what a device checks before its
 * loader sees a byte. `orchestrator update pack` makes them;
 * docs/howto-signed-updates.md says how they are used.
 *
 * An update is a header of ORCH_UPDATE_HEADER_BYTES, then the program. Numbers
 * are little-endian. The signature is of all bytes of the header before it:
 *
 *     0  8   "ORCH-UPD"
 *     8  4   format, 1
 *    12  4   0
 *    16  32  SHA-256 of product and interface, `identity`
 *    48  40  name of the model, filled with zeros
 *    88  4   version of the model
 *    92  4   oldest firmware that runs it: major << 24 | minor << 16 | patch
 *    96  4   size of the program
 *   100  4   0
 *   104  32  SHA-256 of the program
 *   136  8   0
 *   144  64  signature
 */
#ifndef ORCH_UPDATE_H_
#define ORCH_UPDATE_H_

#ifndef __cplusplus
#include <stdbool.h>
#endif
#include <stdint.h>

#include "orch/status.h"

#define ORCH_UPDATE_SIGNED_BYTES 144
#define ORCH_UPDATE_SIGNATURE_BYTES 64
#define ORCH_UPDATE_HEADER_BYTES 208

#ifdef __cplusplus
extern "C" {
#endif

/* Why an update is refused, in the order of the checks. */
#ifdef __cplusplus
enum orch_update_result : uint8_t {
#else
typedef uint8_t orch_update_result;
enum {
#endif
  ORCH_UPDATE_OK = 0,
  /* Not at a multiple of 16. */
  ORCH_UPDATE_MISALIGNED,
  /* No update of this format, cut off, or with bytes behind its end. */
  ORCH_UPDATE_INVALID,
  /* For another product, or for another interface of this one. */
  ORCH_UPDATE_OTHER_PRODUCT,
  ORCH_UPDATE_OTHER_MODEL,
  /* It needs newer firmware than this. */
  ORCH_UPDATE_NEEDS_FIRMWARE,
  /* Older than the caller allows: a roll-back. */
  ORCH_UPDATE_TOO_OLD,
  /* The signature is not by the right key, or not of this header. */
  ORCH_UPDATE_NOT_SIGNED,
  /* The program is not the one that was signed. */
  ORCH_UPDATE_DAMAGED,
  /* All of this holds, but the loader rejects the program. */
  ORCH_UPDATE_NOT_LOADED
};

/* Cryptography, which the application brings. */
typedef struct {
  /* Stores the SHA-256 of `size` bytes; false if that fails. */
  bool (*sha256)(void* context, const uint8_t* bytes, uint32_t size,
                 uint8_t digest[32]);
  /* Whether a signature of 64 bytes is that of `size` bytes. */
  bool (*verify)(void* context, const uint8_t* bytes, uint32_t size,
                 const uint8_t* signature);
  void* context; /* passed on */
} orch_update_trust;

/* Version of the model in an update that was accepted: store it, and give it
 * as lowest version the next time. */
static inline uint32_t orch_update_version(const void* update) {
  const uint8_t* const at = (const uint8_t*)update + 88;
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
         (uint32_t)at[3] << 24;
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif
