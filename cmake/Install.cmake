# Install.cmake: installs the command, both libraries, the headers, a relocatable pkg-config file and
# the CMake package iron::iron (iron::iron_static for the static library).
include(CMakePackageConfigHelpers)

if(TARGET iron-mpi)
  install(TARGETS iron-mpi RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()
install(TARGETS iron RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS iron_shared iron_static EXPORT iron-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# iron_server.h belongs to libraries that are not installed (the command's server and client), and
# iron_json.h is only for the commands.
install(DIRECTORY include/iron DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h"
  PATTERN iron_server.h EXCLUDE PATTERN iron_json.h EXCLUDE)

set(cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/iron)
install(EXPORT iron-targets NAMESPACE iron:: DESTINATION ${cmake_dir})
configure_package_config_file(cmake/iron-config.cmake.in iron-config.cmake
  INSTALL_DESTINATION ${cmake_dir})
write_basic_package_version_file(iron-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/iron-config.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/iron-config-version.cmake" DESTINATION ${cmake_dir})

# From lib/pkgconfig up to the prefix, whatever the library folder is called.
file(RELATIVE_PATH to_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" to_prefix "${to_prefix}")
configure_file(cmake/iron.pc.in iron.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/iron.pc" DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

if(IRON_WITH_SERVER)
  include(cmake/Service.cmake)
endif()
# The command prints its own manual, so it has to run: a cross build cannot, and a build with a sanitizer is
# not installed by users.
if(NOT CMAKE_CROSSCOMPILING AND NOT IRON_SANITIZE)
  include(cmake/Manual.cmake)
endif()
