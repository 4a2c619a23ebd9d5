/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#define LOCK cfl_spin
#define LOCK_HEADER "cfl_spin.h"
#define MORE_CLIENTS
#include "cfl_any.h"
