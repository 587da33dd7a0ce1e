# Pages: the HTML, the style sheet and the scripts of a folder in web/ become one self-contained text,
# embedded by the assembler's .incbin under a hidden symbol, with a terminating zero.
#
#   iron_page(NAME FOLDER)     sets NAME_page to the source to compile: iron__NAME_page, from
#                              FOLDER/NAME.html with FOLDER/NAME.css and FOLDER/NAME*.js
#   iron_embed(SYMBOL FILE)    sets SYMBOL_source to the source to compile: iron__SYMBOL, the file's bytes,
#                              and iron__SYMBOL_bytes, a uint64_t, since a file may contain zeros
#
# Run as a script (cmake -P), this file joins the parts: they replace the lines {{style}} and {{script}}
# of the HTML. The program fills in {{data}}, {{ops}} and {{comparison}}.
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${HTML}" page)
  file(READ "${CSS}" style)
  set(script "")
  string(REPLACE "|" ";" scripts "${SCRIPTS}")
  foreach(path IN LISTS scripts)
    file(READ "${path}" part)
    string(APPEND script "${part}")
  endforeach()
  foreach(part IN ITEMS style script)
    string(FIND "${page}" "{{${part}}}" at)
    if(at EQUAL -1)
      message(FATAL_ERROR "${HTML} has no line {{${part}}}")
    endif()
    string(REPLACE "{{${part}}}" "${${part}}" page "${page}")
  endforeach()
  string(REGEX MATCHALL "{{(data|ops|comparison)}}" places "${page}")
  if(NOT places STREQUAL "{{data}};{{ops}};{{comparison}}")
    message(FATAL_ERROR "${HTML} and its parts must hold {{data}}, {{ops}} and {{comparison}}, once each: ${places}")
  endif()
  file(WRITE "${OUTPUT}" "${page}")
  return()
endif()

function(iron_embed symbol file)
  set(assembly "${CMAKE_CURRENT_BINARY_DIR}/generated/pages/${symbol}.S")
  file(CONFIGURE OUTPUT "${assembly}" CONTENT [[
/* A file with a terminating zero, and its length without the zero. */
  .section .rodata
  .global iron__@symbol@
  .hidden iron__@symbol@
  .global iron__@symbol@_bytes
  .hidden iron__@symbol@_bytes
iron__@symbol@:
  .incbin "@file@"
after_@symbol@:
  .byte 0
  .balign 8
iron__@symbol@_bytes:
  .quad after_@symbol@ - iron__@symbol@
  .section .note.GNU-stack,"",%progbits
]] @ONLY)
  set_source_files_properties("${assembly}" PROPERTIES OBJECT_DEPENDS "${file}")
  set(${symbol}_source "${assembly}" PARENT_SCOPE)
endfunction()

function(iron_page name folder)
  set(source "${CMAKE_CURRENT_SOURCE_DIR}/${folder}")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/generated/pages")
  set(text "${output}/${name}.html")
  file(GLOB scripts CONFIGURE_DEPENDS "${source}/*.js")
  list(SORT scripts)
  string(REPLACE ";" "|" joined "${scripts}")
  set(parts "${source}/${name}.html" "${source}/${name}.css" ${scripts})
  file(MAKE_DIRECTORY "${output}")
  add_custom_command(
    OUTPUT "${text}"
    COMMAND ${CMAKE_COMMAND} "-DHTML=${source}/${name}.html" "-DCSS=${source}/${name}.css"
            "-DSCRIPTS=${joined}" "-DOUTPUT=${text}" -P "${CMAKE_CURRENT_SOURCE_DIR}/cmake/Embed.cmake"
    DEPENDS ${parts} "${CMAKE_CURRENT_SOURCE_DIR}/cmake/Embed.cmake"
    COMMENT "Page of the ${name}" VERBATIM)
  iron_embed(${name}_page "${text}")
  set(${name}_page "${${name}_page_source}" PARENT_SCOPE)
endfunction()
