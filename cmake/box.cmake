# paceline_box(NAME FILES a.cpp ... [TESTS a_test.cpp ...] [USES lower boxes] [LIBS targets]
#              [TEST_LIBS targets])
# One box of the layout, one library target: a file that reaches for a box it does not use
# fails to link. Tests stand beside the code and become one program a box.
include(GoogleTest)

function(paceline_test_program target)
  cmake_parse_arguments(ARG "" "" "FILES;LIBS" ${ARGN})
  add_executable(${target} ${ARG_FILES})
  target_link_libraries(${target} PRIVATE ${ARG_LIBS} GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE PACELINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  gtest_discover_tests(${target} TEST_PREFIX "${target}/" DISCOVERY_MODE PRE_TEST
                       PROPERTIES TIMEOUT 600)
endfunction()

function(paceline_box name)
  cmake_parse_arguments(BOX "" "" "FILES;TESTS;USES;LIBS;TEST_LIBS" ${ARGN})
  add_library(paceline_${name} STATIC ${BOX_FILES})
  target_include_directories(paceline_${name} PUBLIC
                             $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  list(TRANSFORM BOX_USES PREPEND paceline_)
  target_link_libraries(paceline_${name} PUBLIC ${BOX_USES} PRIVATE ${BOX_LIBS})
  set_property(GLOBAL APPEND PROPERTY PACELINE_BOXES paceline_${name})
  if(PACELINE_TESTS AND BOX_TESTS)
    paceline_test_program(${name}_test FILES ${BOX_TESTS}
                          LIBS paceline_${name} ${BOX_LIBS} ${BOX_TEST_LIBS})
  endif()
endfunction()
