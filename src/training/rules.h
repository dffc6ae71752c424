#pragma once

#include <string>
#include <vector>

#include "catalog/constant.h"
#include "graph/layers.h"

namespace vram {

/// What a stack (a training framework in a version range) must say. Everything else about a job is arithmetic.
struct Rules {
  std::string stack = "generic";
  std::string version;  ///< as resolved: "core 0.17 (newest known)"
  std::string source;
  KernelChoice kernels;
  // Mixed precision: bytes of the gradient kept for each parameter, and whether it exists from the start of the
  // process.
  int64_t gradient_bytes = 2;
  bool gradients_from_start = true;
  bool weight_is_master = false;  ///< FSDP: the fp32 shard is the parameter; 16-bit copies exist while gathered
  // Parameters gathered for compute (ZeRO-3, FSDP).
  int64_t gather_bytes = 2;           ///< of one gathered parameter
  int64_t prefetch = 1;               ///< layers gathered ahead of the one that computes
  int64_t reduce_bytes = 0;           ///< of one parameter of a layer, in the staging buffer of its reduce-scatter
  std::vector<Constant> buckets;      ///< communication buckets, in bytes; summed
  bool gradients_in_buckets = false;  ///< plain data parallelism reduces a second copy of every gradient
  /// Weight gradients are added to their buffer inside the matrix product, yet autograd is handed a tensor of each
  /// weight's shape: bytes of one number of it; 0: no such tensors. One a distinct shape is kept, the output head's
  /// only while used.
  int64_t placeholder_bytes = 0;
  int64_t vocabulary_multiple = 1;  ///< vocabulary rows of a tensor-parallel rank are padded to a multiple of this
  int64_t step_copy_bytes = 0;      ///< fp32 gradient copy of the local shard during the optimizer step
  int64_t default_zero = 0;
  bool sequence_parallel = false;  ///< tensor parallelism divides norms and residuals along the sequence
  bool etp_follows_tp = false;     ///< expert tensor parallelism defaults to tensor parallelism (Megatron)
  int64_t adapter_bytes = 4;
  std::vector<std::string> workspace_constants;  ///< data rows for library workspaces; "id.*" picks the device's row
  std::vector<std::string> expert_workspace_constants;  ///< more of them where the model has experts, one row a stream
};

}  // namespace vram
