// Writes a C++ source that holds the bytes of some files. Usage: embed OUTPUT SYMBOL FILE...
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace {

// String literals longer than this are split: the standard promises only 65,536 characters a literal.
constexpr size_t kLiteral = 16'000;

void write_literal(std::ofstream& out, const std::string& bytes) {
  if (bytes.empty()) out << "\"\"";
  for (size_t begin = 0; begin < bytes.size(); begin += kLiteral) {
    out << '"';
    const size_t end = std::min(bytes.size(), begin + kLiteral);
    for (size_t i = begin; i < end; ++i) {
      const unsigned char c = static_cast<unsigned char>(bytes[i]);
      if (c == '\n') {
        out << "\\n";
      } else if (c == '"' || c == '\\' || c == '?') {
        out << '\\' << static_cast<char>(c);
      } else if (c >= 0x20 && c < 0x7f) {
        out << static_cast<char>(c);
      } else {
        char octal[8];
        std::snprintf(octal, sizeof octal, "\\%03o", c);
        out << octal;
      }
    }
    out << "\"\n";
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::ofstream out(argv[1], std::ios::binary);
  const std::string symbol = argv[2];
  // Adjacent literals are one to the compiler, and longer than the standard promises; every compiler in use takes them.
  out << "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n";
  out << "#include \"base/embedded.h\"\nnamespace vram::embedded {\n";
  std::string rows;
  for (int i = 3; i < argc; ++i) {
    std::ifstream in(argv[i], std::ios::binary);
    if (!in) {
      std::cerr << "embed: cannot read " << argv[i] << "\n";
      return 1;
    }
    const std::string bytes((std::istreambuf_iterator<char>(in)), {});
    const std::string name = "f" + std::to_string(i - 3);
    out << "static constexpr char " << name << "[] =\n";
    write_literal(out, bytes);
    out << ";\n";
    const std::string path = argv[i];
    rows += "  {\"" + path.substr(path.find_last_of('/') + 1) + "\", {" + name + ", sizeof " + name + " - 1}},\n";
  }
  out << "extern const File " << symbol << "[];\nextern const size_t " << symbol << "_count;\n";
  out << "const File " << symbol << "[] = {\n" << rows << "};\n";
  out << "const size_t " << symbol << "_count = " << argc - 3 << ";\n}  // namespace vram::embedded\n";
  return out.good() ? 0 : 1;
}
