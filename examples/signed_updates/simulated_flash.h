/* A flash on an array, of which power can be taken at any write or erase. */
#ifndef SIMULATED_FLASH_H_
#define SIMULATED_FLASH_H_

#include "flash.h"

typedef struct {
  uint8_t* bytes;
  uint32_t operations; /* so far */
  uint32_t cut_at;     /* this operation is cut; later ones do nothing */
  uint32_t random;     /* decides which bits change that the cut one begins */
  bool broke_rules;    /* a unit was programmed that was not erased */
} simulated_flash;

#define NEVER_CUT UINT32_MAX

bool simulated_erase(const Flash* flash, uint32_t sector_at);
bool simulated_program(const Flash* flash, uint32_t unit_at,
                       const uint8_t* bytes);

#endif
