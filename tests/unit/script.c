/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The script of world/world.h. */
#include "../expect.h"
#include "world.h"

#define ACTIONS 8
#define UNPARKS 64
#define BRIEF_READS 2   /* reads of a bounded spin */
#define ENDLESS 1000000 /* operations after which a wait counts as endless */

int32_t script_domain;
uint32_t script_parents[W_LEVELS];
uint32_t script_position;
uint32_t script_places;
uint32_t script_cpus = 1;
long script_time;
uint64_t script_paused;
bool script_own_cpu;
const void *script_prefetched;

static struct {
	struct action {
		long step;
		bool (*run)(void *argument);
		void *argument;
	} actions[ACTIONS];
	int count, done;
	bool acting; /* true during an action, whose operations take no time */
	const void *unparked[UNPARKS];
	int unparks;
	const void *asleep;
} script;

void script_clear(void)
{
	memset(&script, 0, sizeof(script));
	script_time = 0;
	script_paused = 0;
	script_own_cpu = false;
	script_prefetched = NULL;
}

void script_at(long step, bool (*run)(void *argument), void *argument)
{
	EXPECT(script.count < ACTIONS);
	EXPECT(!script.count || script.actions[script.count - 1].step <= step);
	script.actions[script.count++] = (struct action){step, run, argument};
}

static const struct action *pending(void)
{
	return script.done < script.count ? &script.actions[script.done] : NULL;
}

/* Does the next action if it is possible now. */
static bool act(void)
{
	const struct action *action = &script.actions[script.done];
	bool done;

	script.acting = true;
	done = action->run(action->argument);
	script.acting = false;
	script.done += done;
	return done;
}

void script_step(void)
{
	if (script.acting)
		return;
	script_time++;
	EXPECT(script_time < ENDLESS, "waits for ever");
	while (pending() && pending()->step <= script_time && act())
		;
}

void script_finish(void)
{
	while (pending())
		EXPECT(act(), "an action can never be done: the script is wrong");
}

int script_unparks(const void *status)
{
	int count = 0;

	for (int i = 0; i < script.unparks; i++)
		count += script.unparked[i] == status;
	return count;
}

struct w_deadline script_deadline(long step)
{
	return (struct w_deadline){.clock = CLOCK_MONOTONIC, .at.tv_nsec = step};
}

bool script_expired(const struct w_deadline *deadline)
{
	return deadline && script_time >= deadline->at.tv_nsec;
}

bool script_read_again(uint32_t *reads, enum w_how how, const struct w_deadline *deadline)
{
	EXPECT(!script.acting, "an action would have to wait: the script is wrong");
	++*reads;
	if (how == W_ONCE)
		return false;
	return how >= W_BRIEF ? *reads < BRIEF_READS : !script_expired(deadline);
}

void script_unpark(W_ATOMIC(uint32_t) *p)
{
	EXPECT(script.unparks < UNPARKS);
	script.unparked[script.unparks++] = (const void *)p;
	w_event(unpark);
	if (script.asleep == (const void *)p)
		script.asleep = NULL;
}

/* In a sleep, time advances to the next action or to the deadline, whichever is first. */
void script_park(W_ATOMIC(uint32_t) *p, uint32_t expected, const struct w_deadline *deadline)
{
	script_step();
	if (atomic_load(p) != expected)
		return;
	script.asleep = (const void *)p;
	while (script.asleep && !script_expired(deadline)) {
		if (pending() && !(deadline && deadline->at.tv_nsec < pending()->step)) {
			script_time = script_time < pending()->step ? pending()->step : script_time;
			EXPECT(act(), "sleeps for ever");
		} else {
			EXPECT(deadline, "sleeps for ever");
			script_time = deadline->at.tv_nsec;
		}
	}
	script.asleep = NULL;
}
