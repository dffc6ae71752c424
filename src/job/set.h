#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "job/job.h"

namespace vram {

/// Where a value stands, for errors.
struct Place {
  std::string file;
  int line = 0;
  std::string shown;  ///< the field as the person wrote it
};

// Each sets one field or throws InputError; `job` is unchanged then.
void set_from_text(Job& job, const Field& field, std::string_view value, const Place& place);
/// `number` is a number, `field` is_number().
void set_from_number(Job& job, const Field& field, const Document& number, const Place& place);
/// `field` is_list().
void set_from_words(Job& job, const Field& field, const std::vector<std::string>& list, const Place& place);

}  // namespace vram
