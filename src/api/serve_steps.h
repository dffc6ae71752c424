#pragma once

#include "api/serve.h"

namespace vram {

/// The four-step capacity plan (weights, reserve, usable memory, one request), redone by hand beside the textbook's.
/// Needs the ranks of `answer`; sets its steps and the textbook's K.
void fill_steps(ServeAnswer& answer, const Model& model, const Machine& machine, const Job& job,
                const ServingRules& rules);

}  // namespace vram
