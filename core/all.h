/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Every lock of locks.def, for those who take all of them at once. The preprocessor cannot include by that list: this is
 * the second line that a new lock needs.
 */
#ifndef POUNDLOCK_ALL_H
#define POUNDLOCK_ALL_H

#include "bravo_fair_rw.h"
#include "bravo_shfl_rw.h"
#include "c_bo_mcs.h"
#include "c_ptl_tkt.h"
#include "c_tkt_tkt.h"
#include "clh.h"
#include "adaptive.h"
#include "cfl_mutex.h"
#include "cfl_spin.h"
#include "cna.h"
#include "cst.h"
#include "fair_rw.h"
#include "hapax.h"
#include "hbo.h"
#include "hmcs.h"
#include "malthusian.h"
#include "mcs.h"
#include "mcstp.h"
#include "qspin.h"
#include "ron.h"
#include "ron_plock.h"
#include "ron_shared.h"
#include "ron_ticket.h"
#include "mutexee.h"
#include "reciprocating.h"
#include "scl.h"
#include "shfl_mutex.h"
#include "shfl_rw.h"
#include "shfl_spin.h"
#include "tas.h"
#include "ticket.h"
#include "ttas.h"

#endif
