#pragma once

#include "api/resolve.h"
#include "base/document.h"
#include "base/error.h"

namespace vram {

/// The JSON form of a question's answer and its exit status.
struct Reply {
  Exit status = Exit::yes;
  Document answer;
};

/// Answers {"verb": "fit" | "train" | "serve" | "sheet" | "diff" | "tiers" | "check" | "models" | "gpus", "job": {...},
/// ...}. The job is a job file's content. Besides: "other" and "of" (diff: the second job; "train" or "serve" where
/// fields don't tell), "words" (models, gpus: search words), "tensors" (models with a model: list every tensor),
/// "compare" (gpus: device names), "claim" and "list" (check). InputError for anything else; what the verb refuses, it
/// throws.
Reply call(const Document& request, const Knowledge& knowledge);

}  // namespace vram
