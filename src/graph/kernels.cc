#include "graph/block.h"

namespace vram {

std::string_view kernel_name(Kernel kernel) {
  switch (kernel) {
    case Kernel::linear:
      return "linear";
    case Kernel::norm_python:
      return "norm.python";
    case Kernel::norm_fused:
      return "norm.fused";
    case Kernel::attention_fused:
      return "attention.fused";
    case Kernel::batched_matmul:
      return "batched_matmul";
    case Kernel::softmax:
      return "softmax";
    case Kernel::silu:
      return "silu";
    case Kernel::gelu:
      return "gelu";
    case Kernel::relu2:
      return "relu2";
    case Kernel::tanh:
      return "tanh";
    case Kernel::mul:
      return "mul";
    case Kernel::swiglu_fused:
      return "swiglu.fused";
    case Kernel::dropout:
      return "dropout";
    case Kernel::free_form:
      return "free_form";
    case Kernel::scan:
      return "scan";
    case Kernel::gather_rows:
      return "gather_rows";
    case Kernel::log_softmax:
      return "log_softmax";
    case Kernel::nll:
      return "nll";
    case Kernel::cross_entropy_in_place:
      return "cross_entropy.in_place";
    case Kernel::cross_entropy_fused:
      return "cross_entropy.fused";
  }
  return "?";
}

Set kernel_saves(const Operation& op) {
  Set set = 0;
  const auto take = [&set](const std::vector<BlockId>& ids) {
    for (BlockId id : ids) set |= bit(id);
  };
  switch (op.kernel) {
    case Kernel::linear:
      // dW = dy^T x needs x; dx = dy W needs only the weight, which exists anyway.
      if (op.trainable) take(op.in);
      break;
    case Kernel::norm_python:
      // x.float() and rsqrt(...) are kept by pow and mul; the normalised value only as a factor of a trainable gain.
      // aux = {fp32 copy, statistics, normalised value}.
      set |= bit(op.aux[0]) | bit(op.aux[1]);
      if (op.trainable) set |= bit(op.aux[2]);
      break;
    case Kernel::norm_fused:
      take(op.in);
      take(op.aux);
      break;
    case Kernel::attention_fused:
      take(op.in);
      take(op.out);
      take(op.aux);
      break;
    case Kernel::batched_matmul:
    case Kernel::mul:
    case Kernel::silu:
    case Kernel::gelu:
    case Kernel::relu2:
    case Kernel::swiglu_fused:
    case Kernel::scan:
      take(op.in);
      break;
    case Kernel::softmax:
    case Kernel::tanh:
    case Kernel::log_softmax:
      take(op.out);
      break;
    case Kernel::dropout:
    case Kernel::gather_rows:
    case Kernel::cross_entropy_in_place:
      take(op.aux);
      break;
    case Kernel::cross_entropy_fused:
      take(op.in);
      break;
    case Kernel::free_form:
    case Kernel::nll:
      break;
  }
  return set;
}

std::string_view kernel_source(Kernel kernel) {
  switch (kernel) {
    case Kernel::linear:
      return "PyTorch derivatives.yaml: linear, mm";
    case Kernel::norm_python:
      return "transformers LlamaRMSNorm.forward; PyTorch derivatives.yaml: mul, rsqrt";
    case Kernel::norm_fused:
      return "PyTorch derivatives.yaml: native_layer_norm, _fused_rms_norm; Transformer Engine layernorm";
    case Kernel::attention_fused:
      return "PyTorch derivatives.yaml: _scaled_dot_product_flash_attention";
    case Kernel::batched_matmul:
      return "PyTorch derivatives.yaml: bmm";
    case Kernel::softmax:
      return "PyTorch derivatives.yaml: _softmax";
    case Kernel::silu:
      return "PyTorch derivatives.yaml: silu";
    case Kernel::gelu:
      return "PyTorch derivatives.yaml: gelu";
    case Kernel::relu2:
      return "Megatron-Core squared_relu: the square keeps its input";
    case Kernel::tanh:
      return "PyTorch derivatives.yaml: tanh";
    case Kernel::mul:
      return "PyTorch derivatives.yaml: mul.Tensor";
    case Kernel::swiglu_fused:
      return "Megatron-Core fused_bias_swiglu; Liger swiglu";
    case Kernel::dropout:
      return "PyTorch derivatives.yaml: native_dropout (mask of one byte an element on CUDA)";
    case Kernel::free_form:
      return "PyTorch derivatives.yaml: add, view, cat, _to_copy keep no tensor";
    case Kernel::scan:
      return "mamba_ssm selective_scan: inputs are kept, states recomputed";
    case Kernel::gather_rows:
      return "PyTorch derivatives.yaml: embedding, index_select keep the indices";
    case Kernel::log_softmax:
      return "PyTorch derivatives.yaml: _log_softmax";
    case Kernel::nll:
      return "PyTorch derivatives.yaml: nll_loss (keeps its weight only)";
    case Kernel::cross_entropy_in_place:
      return "Megatron-Core tensor_parallel/cross_entropy.py";
    case Kernel::cross_entropy_fused:
      return "Transformer Engine pytorch/cross_entropy.py";
  }
  return {};
}

}  // namespace vram
