/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The locks' settings in the model checker, SMALL_LOCK_KEY for each key of LOCK_settings() in
 * core/: the smallest value at which the behaviour that the key bounds still occurs. Larger values
 * add states and show nothing new.
 */
#ifndef POUNDLOCK_CHECK_SMALL_H
#define POUNDLOCK_CHECK_SMALL_H

#define SMALL_bravo_fair_rw_inhibit 1
#define SMALL_bravo_shfl_rw_batch 3
#define SMALL_bravo_shfl_rw_inhibit 1
#define SMALL_bravo_shfl_rw_patience 1
#define SMALL_bravo_shfl_rw_policy POLICY_NUMA
#define SMALL_bravo_shfl_rw_spins 1
#define SMALL_c_bo_mcs_backoff 2
#define SMALL_c_bo_mcs_batch 1
#define SMALL_c_ptl_tkt_batch 1
#define SMALL_c_tkt_tkt_batch 1
#define SMALL_cfl_mutex_bypass 4
#define SMALL_cfl_mutex_grace_period 0
#define SMALL_cfl_mutex_strict_guarantee 0
#define SMALL_cfl_spin_bypass 4
#define SMALL_cfl_spin_grace_period 0
#define SMALL_cfl_spin_strict_guarantee 0
#define SMALL_cna_reduction 1
#define SMALL_cna_threshold 2
#define SMALL_cst_batch 1
#define SMALL_hbo_angry 1
#define SMALL_hbo_local 1
#define SMALL_hbo_remote 1
#define SMALL_hbo_tries 2
#define SMALL_hmcs_batch 1
#define SMALL_hmcs_levels 2
#define SMALL_malthusian_patience 1
#define SMALL_mcstp_stale 1
#define SMALL_mutexee_window 1
#define SMALL_qspin_patience 1
#define SMALL_scl_slice 1
#define SMALL_shfl_mutex_batch 4
#define SMALL_shfl_mutex_patience 1
#define SMALL_shfl_mutex_policy POLICY_NUMA
#define SMALL_shfl_mutex_spins 1
#define SMALL_shfl_ron_batch 4
#define SMALL_shfl_ron_patience 1
#define SMALL_shfl_ron_policy POLICY_NUMA
#define SMALL_shfl_ron_spins 1
#define SMALL_shfl_rw_batch 3
#define SMALL_shfl_rw_patience 1
#define SMALL_shfl_rw_policy POLICY_NUMA
#define SMALL_shfl_rw_spins 1
#define SMALL_shfl_spin_batch 4
#define SMALL_shfl_spin_policy POLICY_NUMA
#define SMALL_tas_backoff 2
#define SMALL_tas_tries 1
#define SMALL_ticket_backoff 1
#define SMALL_ttas_backoff 2

#endif
