#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "api/resolve.h"
#include "base/document.h"
#include "model/model.h"

namespace vram {

/// One line of the list of known models.
struct ModelSummary {
  std::string id;
  std::vector<std::string> aliases;
  std::string family;
  std::string dtype;
  std::string quantization;  ///< method of the checkpoint, or empty
  int64_t parameters = 0, active = 0, layers = 0, max_positions = 0;
  int64_t kv_elements_per_token = 0;
};

struct ModelsAnswer {
  std::vector<ModelSummary> models;
  std::vector<std::string> words;  ///< what was searched for
  int64_t known = 0;               ///< models in the catalogue
};

/// The catalogue's models whose id, alias or family holds every one of `words` (case and separators ignored).
ModelsAnswer answer_models(const std::vector<std::string>& words);

/// Tensors that share a role, a module or a part.
struct ParameterGroup {
  std::string name;
  int64_t tensors = 0;
  int64_t parameters = 0;  ///< learned
  Bytes stored_bytes = 0;
};

/// Layers of one kind.
struct LayerGroup {
  int64_t count = 0;
  std::string layers;  ///< "0-79", "0, 2, 4"
  LayerKind kind;
  int64_t parameters = 0;             ///< of one layer
  int64_t kv_elements_per_token = 0;  ///< of one layer
};

struct ModelAnswer {
  Model model;
  std::vector<ParameterGroup> by_role, by_module, by_part;
  std::vector<LayerGroup> layers;
  int64_t kv_elements_per_token = 0;        ///< of all layers, before any window is full
  int64_t kv_elements_past_window = 0;      ///< of the layers whose cache goes on growing
  int64_t state_elements_per_sequence = 0;  ///< of recurrent layers
};

/// The model of a job, taken apart.
ModelAnswer answer_model(const Job& job, const Knowledge& knowledge);

Document to_json(const ModelsAnswer& answer);
/// `tensors`: with the table of every kind of tensor.
Document to_json(const ModelAnswer& answer, bool tensors);

/// KV bytes of `elements` numbers of 16 bits.
inline Bytes kv_bytes_16bit(int64_t elements) { return checked_mul(elements, 2); }

}  // namespace vram
