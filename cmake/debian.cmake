# Debian packages, by cpack: libpoundlock0, libpoundlock-dev and poundlock-tools.
#
#   cmake -S . -B build/packages -DCMAKE_INSTALL_PREFIX=/usr -DPOUNDLOCK_TOOLS=ON
#   cmake --build build/packages
#   (cd build/packages && cpack -G DEB)
#
# Each package is one component of cmake/install.cmake and the two files of its own that Debian
# requires: component COMPONENT-debian, which `cmake --install` leaves out.
set(POUNDLOCK_MAINTAINER "Poundlock authors <authors@poundlock.invalid>"
	CACHE STRING "Maintainer of the packages")
find_program(GZIP gzip)
if(NOT GZIP)
	return()
endif()

set(library libpoundlock${PROJECT_VERSION_MAJOR})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(release ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC) # or SOURCE_DATE_EPOCH
set(CPACK_COMPONENTS_ALL "")

# debian_package(COMPONENT PACKAGE SECTION SUMMARY DETAILS)
macro(debian_package component package section summary details)
	string(TOUPPER ${component} upper)
	set(CPACK_DEBIAN_${upper}_PACKAGE_NAME ${package})
	set(CPACK_DEBIAN_${upper}_PACKAGE_SECTION ${section})
	set(CPACK_DEBIAN_${upper}_DESCRIPTION "${summary}\n${details}")
	set(CPACK_COMPONENT_${upper}_GROUP ${component})
	set(CPACK_COMPONENT_${upper}-DEBIAN_GROUP ${component})
	list(APPEND CPACK_COMPONENTS_ALL ${component} ${component}-debian)

	set(name ${package})
	set(directory ${PROJECT_BINARY_DIR}/debian/${package})
	configure_file(cmake/debian/changelog.in ${directory}/changelog.Debian @ONLY)
	execute_process(COMMAND ${GZIP} --best --no-name --force ${directory}/changelog.Debian
		COMMAND_ERROR_IS_FATAL ANY)
	install(FILES ${directory}/changelog.Debian.gz cmake/debian/copyright
		DESTINATION ${CMAKE_INSTALL_DATAROOTDIR}/doc/${package}
		COMPONENT ${component}-debian EXCLUDE_FROM_ALL)
endmacro()

set(what "Mutexes and readers-writer locks for programs with more threads, cores
or sockets than ordinary locks were made for.")
debian_package(runtime ${library} libs
	"scalable, fair and compact locks - shared library"
	"${what}\n.\nThis package has the library that programs load.")
file(WRITE ${PROJECT_BINARY_DIR}/debian/shlibs
	"libpoundlock ${PROJECT_VERSION_MAJOR} ${library} (>= ${PROJECT_VERSION})\n")
file(WRITE ${PROJECT_BINARY_DIR}/debian/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA
	${PROJECT_BINARY_DIR}/debian/shlibs ${PROJECT_BINARY_DIR}/debian/triggers)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)

debian_package(development libpoundlock-dev libdevel
	"scalable, fair and compact locks - development files"
	"${what}\n.\nThis package has the headers for C and C++, the static library, and the
files for CMake and pkg-config.")
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library} (= ${release})")

if(POUNDLOCK_TOOLS)
	debian_package(tools poundlock-tools utils
		"runs programs under scalable locks and observes their locks"
		"The command poundlock runs unmodified programs with their pthread mutexes
replaced by other locks, compares their speed, reports contention, hold
times and fairness, and simulates locks on large machines.
.
This package also has the preload library.")
	set(CPACK_DEBIAN_TOOLS_PACKAGE_SHLIBDEPS ON)
	# CMake strips only its own targets, and compresses no manual.
	install(CODE "
		set(prefix \$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX})
		file(GLOB pages \${prefix}/${CMAKE_INSTALL_MANDIR}/man1/*.1)
		execute_process(COMMAND ${GZIP} --best --no-name --force \${pages}
			COMMAND_ERROR_IS_FATAL ANY)
		execute_process(COMMAND ${CMAKE_STRIP} \${prefix}/${CMAKE_INSTALL_BINDIR}/poundlock
			COMMAND_ERROR_IS_FATAL ANY)"
		COMPONENT tools-debian EXCLUDE_FROM_ALL)
endif()

set(CPACK_PACKAGE_NAME poundlock)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "") # each package has its own
set(CPACK_PACKAGE_CONTACT "${POUNDLOCK_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
include(CPack)
