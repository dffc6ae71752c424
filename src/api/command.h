#pragma once

#include <string>

#include "job/job.h"

namespace vram {

/// The command line that asks `verb` (called `name`) about this job: "vram train 7B --on 8xH100 --zero 3". Fields that
/// the verb does not have are left out; values are quoted for a shell where they need it.
std::string command_line(Verb verb, const std::string& name, const Job& job);

/// What a job says of one field, as an option's value; empty where it says nothing.
std::string field_text(const Field& field, const Job& job);

/// Sets one field of `to` to what `from` says of it, also to nothing.
void copy_field(const Field& field, const Job& from, Job& to);

}  // namespace vram
