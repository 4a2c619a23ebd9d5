# Installation in three components: runtime (the shared library), development
# (headers, static library, CMake and pkg-config files) and tools (preload library, command). The
# licences have a component of their own, which packages replace by files in their own format.
# Nothing that is installed knows the prefix, so the tree may be moved.
include(CMakePackageConfigHelpers)

install(TARGETS poundlock-static poundlock-shared EXPORT poundlock
	LIBRARY COMPONENT runtime NAMELINK_COMPONENT development ARCHIVE COMPONENT development)
install(FILES lib/poundlock.h lib/poundlock.hpp lib/poundlock_watch.h
	DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development)
# find_package(poundlock) provides poundlock::static and poundlock::shared.
set(config ${CMAKE_INSTALL_LIBDIR}/cmake/poundlock)
install(EXPORT poundlock NAMESPACE poundlock:: FILE poundlockTargets.cmake DESTINATION ${config}
	COMPONENT development)
configure_package_config_file(lib/poundlockConfig.cmake.in poundlockConfig.cmake
	INSTALL_DESTINATION ${config})
write_basic_package_version_file(poundlockConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/poundlockConfig.cmake
	${CMAKE_CURRENT_BINARY_DIR}/poundlockConfigVersion.cmake
	DESTINATION ${config} COMPONENT development)
file(RELATIVE_PATH PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(lib/poundlock.pc.in poundlock.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/poundlock.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
	COMPONENT development)

if(TARGET poundlock-preload)
	install(TARGETS poundlock-preload LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/poundlock
		COMPONENT tools)
endif()
install(FILES LICENSE-APACHE LICENSE-GPL-2.0 LICENSE-MIT README.md CHANGELOG.md
	DESTINATION ${CMAKE_INSTALL_DOCDIR}
	COMPONENT licences)
