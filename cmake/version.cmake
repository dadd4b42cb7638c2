# The version and the commit, for --version and every report. Asked at configure time.
execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} describe --always --dirty --abbrev=12
                OUTPUT_VARIABLE PACELINE_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT PACELINE_COMMIT)
  set(PACELINE_COMMIT "unknown")
endif()
configure_file(${PROJECT_SOURCE_DIR}/src/base/version.cpp.in
               ${PROJECT_BINARY_DIR}/generated/version.cpp @ONLY)
