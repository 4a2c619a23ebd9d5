/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The settings of a lock whose waiters shuffle and park (shfl_mutex, shfl_ron, shfl_rw and
 * bravo_shfl_rw) as one word, by which they are changed while the lock is in use: a reader sees
 * either all former settings or all new ones. The preload library reads it (preload/control.h);
 * `poundlock control` writes it by the same code. Settings that are not in the word
 * (bravo_shfl_rw's `inhibit`) stay.
 *
 * Any process may have written a word: only whole, valid settings are read from it.
 *
 *   bits 0 to 29    patience
 *   bits 30 to 49   batch
 *   bits 50 to 57   policy
 *   bits 58 to 62   spins
 *   bit 63          1; a word of 0 has no settings
 */
#ifndef POUNDLOCK_LIVE_H
#define POUNDLOCK_LIVE_H

#include "any_rw.h"

/* The longest text of settings, its end included. */
#define LIVE_TEXT 64

/* The words of a lock of @ops; 0 if they cannot change while it is used. */
W_HIDDEN uint64_t live_word(const struct any_ops *ops);
W_HIDDEN uint64_t live_rw_word(const struct any_rw_ops *ops);

/*
 * Reads @word into @settings, those of such a lock. False, and nothing is changed, if it does not
 * have valid ones.
 */
W_HIDDEN bool live_settings(uint64_t word, uint32_t *settings);

/*
 * For `poundlock control`: the word of the lock that @spec names, shfl_mutex, shfl_ron or
 * shfl_rw, which parks. 0, and one line in @error, if it is another one.
 */
W_HIDDEN uint64_t live_word_of(const char *spec, char *error, size_t size);

/*
 * For `poundlock control`: writes the settings of @word, as KEY=VALUE[,...], into @text (LIVE_TEXT
 * bytes). False if it does not have valid ones.
 */
W_HIDDEN bool live_text(uint64_t word, char *text);

#endif
