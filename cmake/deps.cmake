# Everything that is not the standard library, with the reason it is here. All are Debian packages.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)              # text formatting; std::format is not in g++ 12
find_package(nlohmann_json REQUIRED)    # config.json, tokenizer.json, reports
find_package(CLI11 REQUIRED)            # command-line flags
find_package(OpenSSL REQUIRED)          # SHA-256 of model files
find_package(PkgConfig REQUIRED)
pkg_check_modules(UTF8PROC REQUIRED IMPORTED_TARGET libutf8proc)  # upper and lower case in chat templates
if(PACELINE_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)     # tests of properties: random sequences of operations
endif()
if(PACELINE_BENCH)
  find_package(benchmark REQUIRED)      # kernel timings
endif()
