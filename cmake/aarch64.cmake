# Toolchain for 64-bit ARM Linux: Debian's cross compilers (gcc-aarch64-linux-gnu,
# g++-aarch64-linux-gnu), with tests under qemu-user.
#
#   cmake -S . -B build/aarch64 --toolchain cmake/aarch64.cmake && cmake --build build/aarch64
#   ctest --test-dir build/aarch64 -L unit
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(triplet aarch64-linux-gnu)
set(root /usr/${triplet})

set(CMAKE_C_COMPILER ${triplet}-gcc)
set(CMAKE_CXX_COMPILER ${triplet}-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${root})

# Programs are the host's; what is linked and included is the target's.
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
