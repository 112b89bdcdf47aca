// Kernels under test. In a build they are declared by the generated table.
#pragma once

#include "orch/kernel.h"

namespace orch::portable {

Error _native_batch_norm_legit_no_training_out(const Args& args);
Error _softmax_out(const Args& args);
Error add_out(const Args& args);
Error addmm_out(const Args& args);
Error avg_pool2d_out(const Args& args);
Error convolution_out(const Args& args);
Error max_pool2d_with_indices_out(const Args& args);
Error mm_out(const Args& args);
Error permute_copy_out(const Args& args);
Error relu_out(const Args& args);
Error tanh_out(const Args& args);

}  // namespace orch::portable
