# Openapi.cmake: completes docs/openapi.json with the problems of src/server/http.h, so that they are
# written once. It runs as a script, for the build, for scripts/check-openapi and for the server's tests:
#
#   cmake -DTREE=. -DOUTPUT=openapi.json -P cmake/Openapi.cmake
#
#   "{{problems}}": "404 409"               in an operation's responses: a reference for each of these statuses
#                                           and for those that every operation may respond with
#   "{{problem}}": "404 no-such-engine"     in a response: its description and content for all problems with
#                                           this status, with the examples named
#   "{{kinds}}"                             all types of problems
#   "{{rows}}"                              a schema of each problem: its type, status and title together
set(every_operation 400 403 408 414 421 429 431 500 503 505)
file(READ "${TREE}/src/server/http.h" header)
file(READ "${TREE}/docs/openapi.json" text)
string(REGEX MATCHALL "X\\(\"[a-z-]+\", [0-9]+, \"[^\"]+\"\\)" problems "${header}")
foreach(problem IN LISTS problems)
  string(REGEX MATCH "\"(.+)\", (.+), \"(.+)\"" row "${problem}")
  set(kind "${CMAKE_MATCH_1}")
  set(status "${CMAKE_MATCH_2}")
  set(title "${CMAKE_MATCH_3}")
  set(type "\"urn:iron:problem:${kind}\"")
  list(APPEND kinds "${type}")
  list(APPEND descriptions_${status} "${title} (`${kind}`)")
  list(APPEND rows "{\"title\": \"${kind}\", \"required\": [\"type\", \"status\", \"title\"], \"properties\": {\
\"type\": {\"const\": ${type}}, \"status\": {\"const\": ${status}}, \"title\": {\"const\": \"${title}\"}}}")
endforeach()
list(JOIN kinds ",\n       " kinds)
list(JOIN rows ",\n     " rows)
string(REPLACE "\"{{kinds}}\"" "${kinds}" text "${text}")
string(REPLACE "\"{{rows}}\"" "${rows}" text "${text}")

string(REGEX MATCHALL "\"[A-Za-z]+\": {[ \n]*\"{{problem}}\": \"[^\"]+\"" responses "${text}")
foreach(response IN LISTS responses)
  string(REGEX MATCH "\"(.+)\": {[ \n]*(\"{{problem}}\": \"([0-9]+) ?(.*)\")" all "${response}")
  set(name "${CMAKE_MATCH_1}")
  set(mark "${CMAKE_MATCH_2}")
  set(status "${CMAKE_MATCH_3}")
  string(REPLACE " " ";" examples "${CMAKE_MATCH_4}")
  list(TRANSFORM examples REPLACE ".+" "\"\\0\": {\"$ref\": \"#/components/examples/\\0\"}")
  list(JOIN examples ", " examples)
  list(JOIN descriptions_${status} "; " description)
  set(content "\"schema\": {\"allOf\": [{\"$ref\": \"#/components/schemas/Problem\"}, \
{\"properties\": {\"status\": {\"const\": ${status}}}}]}")
  if(examples)
    string(APPEND content ", \"examples\": {${examples}}")
  endif()
  string(REPLACE "${mark}" "\"description\": \"${description}.\",
    \"content\": {\"application/problem+json\": {${content}}}" text "${text}")
  set(reference_${status} "\"${status}\": {\"$ref\": \"#/components/responses/${name}\"}")
endforeach()

string(REGEX MATCHALL "\"{{problems}}\": \"[0-9 ]*\"" marks "${text}")
list(REMOVE_DUPLICATES marks)
foreach(mark IN LISTS marks)
  string(REGEX MATCHALL "[0-9]+" statuses "${mark}")
  list(APPEND statuses ${every_operation})
  list(SORT statuses)
  set(references "")
  foreach(status IN LISTS statuses)
    list(APPEND references "${reference_${status}}")
  endforeach()
  list(JOIN references ",\n     " references)
  string(REPLACE "${mark}" "${references}" text "${text}")
endforeach()

if(NOT text MATCHES "urn:iron:problem" OR text MATCHES "{{")
  message(FATAL_ERROR "${TREE}/docs/openapi.json was not completed: http.h has no problems, or a mark is unknown")
endif()
file(WRITE "${OUTPUT}" "${text}")
