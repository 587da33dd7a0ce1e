# Service.cmake: the systemd units of `iron serve`, and samples (drop-ins, Prometheus, Grafana) in
# share/iron. The unit names the command by its full path, which only the installation knows: the prefix
# may be given there (cmake --install --prefix), so the file is made then.
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
