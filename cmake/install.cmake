# `cmake --install`: the program, the library's headers and archives, and a package, so that another
# project says find_package(paceline) and links paceline::engine.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(TARGETS paceline RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
# Where the program looks for heads and stores, from its own folder: ../share/paceline/heads.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/heads/
        DESTINATION ${CMAKE_INSTALL_BINDIR}/../share/paceline/heads
        FILES_MATCHING PATTERN "*.safetensors" PATTERN "*.plstore" PATTERN "README.md")
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})

# What engine/engine.h needs, from the bottom up.
set(boxes base kernels io text models spec engine)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/paceline)
foreach(box ${boxes})
  target_include_directories(paceline_${box} INTERFACE
                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/paceline>)
  target_compile_features(paceline_${box} INTERFACE cxx_std_20)
  set_target_properties(paceline_${box} PROPERTIES EXPORT_NAME ${box})
  install(TARGETS paceline_${box} EXPORT paceline
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
endforeach()
foreach(box base engine models spec text)  # the headers that engine/engine.h reaches
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/src/${box}
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/paceline FILES_MATCHING PATTERN "*.h")
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/src/io/checkpoint.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/paceline/io)

install(EXPORT paceline NAMESPACE paceline:: FILE paceline-targets.cmake
        DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/paceline-config.cmake.in
                              ${PROJECT_BINARY_DIR}/generated/paceline-config.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/generated/paceline-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/generated/paceline-config.cmake
              ${PROJECT_BINARY_DIR}/generated/paceline-config-version.cmake
        DESTINATION ${package_dir})
