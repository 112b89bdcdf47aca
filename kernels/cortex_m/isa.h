// Which instructions the kernels of this build may use.
#pragma once

#include "util/isa.h"
