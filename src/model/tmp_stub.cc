#include "model/model.h"
namespace vram {
int64_t Tensor::elements() const { int64_t n = 1; for (int64_t d : shape) n = checked_mul(n, d); return n; }
int64_t Attention::cache_elements_per_token() const { return kv_heads * (head_dim + value_head_dim); }
}
