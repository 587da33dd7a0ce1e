# Server.cmake: the store (SQLite), the server on it (libmicrohttpd) and the client. They are separate
# libraries that only the command links: libiron needs only libc and threads. Without its library the
# server is left out; CMake and `iron serve` report the reason.
#
# Sets IRON_WITH_SERVER, and the targets iron_store, iron_server and iron_client.

# iron_part(<part> <what needs it> <header> <library> <Debian's package>): sets <part>_why to the reason why it is left out, or "".
function(iron_part part folder header library package)
  set(why "")
  file(GLOB sources src/${folder}/*.c)
  if(NOT sources)
    set(why "src/${folder} does not exist")
  elseif(NOT IRON_SERVER)
    set(why "IRON_SERVER is OFF")
  elseif(IRON_STATIC_COMMAND)
    set(why "a command without shared libraries cannot use ${library}")
  elseif(CMAKE_CROSSCOMPILING)
    set(why "the installed ${library} is for another architecture")
  else()
    find_path(IRON_${part}_INCLUDE ${header})
    find_library(IRON_${part}_LIBRARY ${library})
    mark_as_advanced(IRON_${part}_INCLUDE IRON_${part}_LIBRARY)
    if(NOT IRON_${part}_INCLUDE OR NOT IRON_${part}_LIBRARY)
      set(why "${library} is not found (Debian: ${package})")
    endif()
  endif()
  set(${part}_why "${why}" PARENT_SCOPE)
endfunction()

# iron_part_library(<target> <folder> [part] [libraries...])
function(iron_part_library target folder part)
  file(GLOB sources CONFIGURE_DEPENDS src/${folder}/*.c)
  add_library(${target} STATIC ${sources} ${${target}_more})
  set_target_properties(${target} PROPERTIES C_VISIBILITY_PRESET hidden LINKER_LANGUAGE C)
  target_include_directories(${target} PUBLIC src "${generated}")
  if(part)
    target_include_directories(${target} SYSTEM PUBLIC "${IRON_${part}_INCLUDE}")
    target_link_libraries(${target} PUBLIC "${IRON_${part}_LIBRARY}")
  endif()
  target_compile_definitions(${target} PRIVATE IRON_VERSION="${PROJECT_VERSION}")
  target_link_libraries(${target} PUBLIC ${ARGN} iron_static iron_flags)
endfunction()

iron_part(SQLITE store sqlite3.h sqlite3 libsqlite3-dev)
iron_part(MICROHTTPD server microhttpd.h microhttpd libmicrohttpd-dev)

if(NOT SQLITE_why)
  iron_part_library(iron_store store SQLITE)
endif()
set(IRON_WITH_SERVER OFF)
set(server_why "${SQLITE_why}")
if(NOT server_why)
  set(server_why "${MICROHTTPD_why}")
endif()
if(server_why)
  message(STATUS "iron serve: left out, since ${server_why}")
else()
  set(IRON_WITH_SERVER ON)
  set(openapi "${CMAKE_CURRENT_BINARY_DIR}/generated/pages/openapi.json")
  add_custom_command(
    OUTPUT "${openapi}"
    COMMAND ${CMAKE_COMMAND} "-DTREE=${CMAKE_CURRENT_SOURCE_DIR}" "-DOUTPUT=${openapi}" -P "${CMAKE_CURRENT_SOURCE_DIR}/cmake/Openapi.cmake"
    DEPENDS docs/openapi.json src/server/http.h cmake/Openapi.cmake
    COMMENT "OpenAPI document" VERBATIM)
  iron_embed(openapi_text "${openapi}")
  include(cmake/Dashboard.cmake)
  set(iron_server_more "${openapi_text_source}" ${dashboard_sources})
  iron_part_library(iron_server server MICROHTTPD iron_store)
endif()
iron_part_library(iron_client client "")
