/* SPDX-License-Identifier: MIT OR Apache-2.0 */
#include "../any_policy.h"
