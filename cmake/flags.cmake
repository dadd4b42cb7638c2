# What every file is compiled with.
add_compile_options(-Wall -Wextra -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees impossible lengths in its own std::string.
  add_compile_options(-Wno-restrict -Wno-stringop-overread)
endif()
if(PACELINE_WERROR)
  add_compile_options(-Werror)
endif()

# A fused multiply-add is written where it is wanted and nowhere else: bits depend on it.
# -fno-math-errno lets sqrt be one instruction; it changes no result.
add_compile_options(-ffp-contract=off -fno-math-errno)

if(PACELINE_SANITIZE)
  add_compile_options(-fsanitize=${PACELINE_SANITIZE} -fno-omit-frame-pointer
                      -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PACELINE_SANITIZE})
endif()
