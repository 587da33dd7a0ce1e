# Service.cmake: installs the systemd units of `iron serve`, and samples (drop-ins, Prometheus, Grafana) in
# share/iron. The unit contains the command's full path, which is known only at install time because of
# cmake --install --prefix, so the file is generated then.
install(CODE "
  set(IRON_COMMAND \"\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_BINDIR}/iron\")
  configure_file(\"${PROJECT_SOURCE_DIR}/deploy/systemd/iron.service.in\"
    \"${PROJECT_BINARY_DIR}/iron.service\" @ONLY)")
install(FILES "${PROJECT_BINARY_DIR}/iron.service" deploy/systemd/iron.socket
  DESTINATION lib/systemd/system)
install(FILES deploy/systemd/iron-gpu.conf deploy/systemd/iron-public.conf
  deploy/systemd/iron-public-socket.conf DESTINATION ${CMAKE_INSTALL_DATADIR}/iron/systemd)
install(DIRECTORY deploy/prometheus deploy/grafana DESTINATION ${CMAKE_INSTALL_DATADIR}/iron
  PATTERN "*_test.yml" EXCLUDE)
install(FILES deploy/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/iron)
