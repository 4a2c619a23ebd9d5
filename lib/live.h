/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * The settings of a default lock (shfl_mutex, which parks) as one word, by which they are changed
 * while the lock is in use: a reader sees either all former settings or all new ones. The preload
 * library reads it (preload/control.h); `poundlock control` writes it by the same code.
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

#include "any.h"

/* The longest text of settings, its end included. */
#define LIVE_TEXT 64

/* The word of @settings, the settings of a table of any_is_default(). */
W_HIDDEN uint64_t live_word(const uint32_t *settings);

/* Reads @word into @settings. False, and nothing is changed, if it does not have valid ones. */
W_HIDDEN bool live_settings(uint64_t word, uint32_t *settings);

/*
 * For `poundlock control`: the word of the lock that @spec names. 0, and one line in @error, if it
 * is not the default lock with other settings.
 */
W_HIDDEN uint64_t live_word_of(const char *spec, char *error, size_t size);

/*
 * For `poundlock control`: writes the settings of @word, as KEY=VALUE[,...], into @text (LIVE_TEXT
 * bytes). False if it does not have valid ones.
 */
W_HIDDEN bool live_text(uint64_t word, char *text);

#endif
