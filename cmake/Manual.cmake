# Manual.cmake: the manual pages and completions, which the command prints from its option tables (`iron man`,
# `iron completion`), and the folders where man and the shells look for them.
set(manual "${PROJECT_BINARY_DIR}/manual")
add_custom_command(OUTPUT "${manual}/made"
  COMMAND ${CMAKE_COMMAND} -E rm -rf "${manual}"
  COMMAND ${CMAKE_COMMAND} -E make_directory "${manual}/man1"
  COMMAND iron man -o "${manual}/man1"
  COMMAND iron completion bash > "${manual}/iron"
  COMMAND iron completion zsh > "${manual}/_iron"
  COMMAND iron completion fish > "${manual}/iron.fish"
  COMMAND ${CMAKE_COMMAND} -E touch "${manual}/made"
  DEPENDS iron COMMENT "Manual pages and completions" VERBATIM)
add_custom_target(manual ALL DEPENDS "${manual}/made")

install(DIRECTORY "${manual}/man1" DESTINATION ${CMAKE_INSTALL_MANDIR} FILES_MATCHING PATTERN "*.1")
install(FILES "${manual}/iron" DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES "${manual}/_iron" DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES "${manual}/iron.fish" DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
