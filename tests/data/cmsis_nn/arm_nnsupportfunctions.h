#include "arm_nnfunctions.h"
