/* Cryptography of this example; `trust_psa.c` has it from PSA Crypto. */
#ifndef TRUST_H_
#define TRUST_H_

#include "orch/update.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills in what the update functions call; false if the public key is wrong. */
bool trust_init(orch_update_trust* trust, const uint8_t* key, uint32_t size);

#ifdef __cplusplus
}
#endif

#endif
