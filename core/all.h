/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Includes every lock of locks.def. The preprocessor cannot include from that list, so a new lock
 * needs a line here as well.
 */
#ifndef POUNDLOCK_ALL_H
#define POUNDLOCK_ALL_H

#include "adaptive.h"
#include "c_bo_mcs.h"
#include "c_ptl_tkt.h"
#include "c_tkt_tkt.h"
#include "cfl_mutex.h"
#include "cfl_spin.h"
#include "clh.h"
#include "cna.h"
#include "cst.h"
#include "hapax.h"
#include "hbo.h"
#include "hmcs.h"
#include "malthusian.h"
#include "mcs.h"
#include "mcstp.h"
#include "mutexee.h"
#include "qspin.h"
#include "reciprocating.h"
#include "ron.h"
#include "ron_plock.h"
#include "ron_shared.h"
#include "ron_ticket.h"
#include "rw/bravo_fair_rw.h"
#include "rw/bravo_shfl_rw.h"
#include "rw/fair_rw.h"
#include "rw/shfl_rw.h"
#include "scl.h"
#include "shfl_mutex.h"
#include "shfl_ron.h"
#include "shfl_spin.h"
#include "tas.h"
#include "ticket.h"
#include "ttas.h"

#endif
