#include "adapter.h"
#include "cortex_m/elementwise.h"

namespace cmsis_adapter {

// cortex_m::quantized_batch_matmul.out(Tensor lhs, int lhs_zero_point,
//   Tensor rhs_transposed, int rhs_zero_point, int output_zero_point,
//   int output_multiplier, int output_shift, Tensor scratch, *,
//   Tensor(a!) out) -> Tensor(a!)
//
// The zero points of the inputs are what is added to them: programs hold them
// with the other sign.
Error quantized_batch_matmul_out(const Args& args) {
  const Tensor& lhs = args.tensor(0);  // [batch, rows, depth]
  const Tensor& rhs = args.tensor(2);  // [batch, columns, depth]
  Tensor& out = args.tensor(8);

  ORCH_CHECK(lhs.dtype == ScalarType::Char && rhs.dtype == ScalarType::Char &&
                 out.dtype == ScalarType::Char && lhs.dim == 3 && rhs.dim == 3,
             Error::InvalidArgument);
  ORCH_CHECK(lhs.contiguous() && rhs.contiguous() && out.contiguous(),
             Error::NotSupported);
  const int32_t batch = lhs.size(0);
  const int32_t rows = lhs.size(1);
  const int32_t depth = lhs.size(2);
  const int32_t columns = rhs.size(1);
  ORCH_CHECK(batch == rhs.size(0) && depth == rhs.size(2) && depth > 0,
             Error::InvalidArgument);
  int32_t of_lhs;
  int32_t of_rhs;
  int32_t of_out;
  Scale scale;
  ORCH_TRY(read_offset(args, 1, of_lhs));
  ORCH_TRY(read_offset(args, 3, of_rhs));
  ORCH_TRY(read_item(args, 4, of_out));
  ORCH_TRY(read_scale(args, 5, scale));
  const int32_t sizes[] = {batch, rows, columns};
  ORCH_TRY(resize_output(out, sizes, lhs, rhs));
  if (out.numel() == 0) return Error::Ok;

  const cmsis_nn_bmm_params params = {
      false, true, {of_lhs, of_rhs, of_out, {INT8_MIN, INT8_MAX}}};
  const cmsis_nn_per_tensor_quant_params scales = {scale.multiplier,
                                                   scale.shift};
  const cmsis_nn_dims left = {1, batch, rows, depth};
  const cmsis_nn_dims right = {1, batch, columns, depth};
  const cmsis_nn_dims to = {1, batch, rows, columns};
  const cmsis_nn_dims sums = {depth, 1, 1, columns};
  cmsis_nn_context context;
  ORCH_TRY(give_scratch(
      args.tensor(7), arm_fully_connected_s8_get_buffer_size(&sums), context));
  return to_error(arm_batch_matmul_s8(
      &context, &params, &scales, &left, lhs.data<int8_t>(), &right,
      rhs.data<int8_t>(), &to, out.mutable_data<int8_t>()));
}

}  // namespace cmsis_adapter
