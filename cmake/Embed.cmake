# vram_embed(target symbol file...): compiles files into a target as string views, listed by
#   namespace vram::embedded { extern const File symbol[]; extern const size_t symbol_count; }
# so that the command is one file and starts without reading data from disk.
set(VRAM_EMBED_TOOL_SOURCE ${CMAKE_SOURCE_DIR}/tools/embed.cc)
add_executable(vram_embed_tool ${VRAM_EMBED_TOOL_SOURCE})
target_compile_features(vram_embed_tool PRIVATE cxx_std_20)

function(vram_embed target symbol)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/${symbol}_embedded.cc)
  add_custom_command(
    OUTPUT ${output}
    COMMAND vram_embed_tool ${output} ${symbol} ${ARGN}
    WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    DEPENDS vram_embed_tool ${ARGN}
    COMMENT "Embedding ${symbol}")
  target_sources(${target} PRIVATE ${output})
endfunction()
