/* SHA-256 and ECDSA with P-256 by PSA Crypto: Mbed TLS, TF-M's secure side, or
 * the driver of a chip. Mbed TLS is no part of Orchestrator, and has its own
 * licence: Apache-2.0 or GPL-2.0-or-later. */
#include <psa/crypto.h>

#include "trust.h"

static bool hash(void* context, const uint8_t* bytes, uint32_t size,
                 uint8_t digest[32]) {
  size_t count = 0;
  (void)context;
  return psa_hash_compute(PSA_ALG_SHA_256, bytes, size, digest, 32, &count) ==
             PSA_SUCCESS &&
         count == 32;
}

static bool verify(void* context, const uint8_t* bytes, uint32_t size,
                   const uint8_t* signature) {
  const psa_key_id_t* const key = context;
  return psa_verify_message(*key, PSA_ALG_ECDSA(PSA_ALG_SHA_256), bytes, size,
                            signature,
                            ORCH_UPDATE_SIGNATURE_BYTES) == PSA_SUCCESS;
}

bool trust_init(orch_update_trust* trust, const uint8_t* key, uint32_t size) {
  static psa_key_id_t id;
  psa_key_attributes_t attributes = PSA_KEY_ATTRIBUTES_INIT;
  psa_set_key_type(&attributes,
                   PSA_KEY_TYPE_ECC_PUBLIC_KEY(PSA_ECC_FAMILY_SECP_R1));
  psa_set_key_usage_flags(&attributes, PSA_KEY_USAGE_VERIFY_MESSAGE);
  psa_set_key_algorithm(&attributes, PSA_ALG_ECDSA(PSA_ALG_SHA_256));
  trust->sha256 = hash;
  trust->verify = verify;
  trust->context = &id;
  return psa_crypto_init() == PSA_SUCCESS &&
         psa_import_key(&attributes, key, size, &id) == PSA_SUCCESS;
}
