# paceline_embed(OUT_VARIABLE NAME FILE): the bytes of a file as a C++ source that defines
# std::string_view NAME(), which apps/embedded.h declares. An empty FILE gives an empty text.
function(paceline_embed out name file)
  set(PACELINE_EMBED_NAME ${name})
  set(PACELINE_EMBED_BYTES "")
  if(file)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "(..)" "0x\\1," PACELINE_EMBED_BYTES "${hex}")
  endif()
  set(source ${PROJECT_BINARY_DIR}/generated/embedded_${name}.cpp)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/embedded.cpp.in ${source} @ONLY)
  set(${out} ${${out}} ${source} PARENT_SCOPE)
endfunction()
