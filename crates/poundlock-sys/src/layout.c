/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The layout of poundlock.h's structures as the C compiler sees it, for the test that compares it with lib.rs. */
#include "poundlock.h"

const size_t poundlock_sys_layout[] = {
	sizeof(pound_mutex_t),    _Alignof(pound_mutex_t),        offsetof(pound_mutex_t, pound_state),
	sizeof(pound_lock_t),     _Alignof(pound_lock_t),         sizeof(pound_rwlock_t),
	_Alignof(pound_rwlock_t), sizeof(struct pound_lock_info), offsetof(struct pound_lock_info, atomics_reading),
};
