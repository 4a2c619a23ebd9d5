// SPDX-License-Identifier: MIT OR Apache-2.0
//
// Correct code for clang's thread safety analysis. With one of these macros it has one error, which
// the analysis must report:
//   NO_LOCK     an access without the lock
//   READ_LOCK   a write under a read lock
//   TRY_LOCK    an access after a failed attempt to lock
//   NO_UNLOCK   a lock that is not released
//   TWICE       a lock that is acquired twice
//   AFTER_WAIT  an access after a wait, when the lock has been released
#include "poundlock.hpp"

using namespace std::chrono_literals;

static pound::mutex mutex;
static pound::shared_mutex shared;
static int value __attribute__((guarded_by(mutex)));
static int table __attribute__((guarded_by(shared)));

static int locked()
{
	pound::lock_guard guard(mutex);

	return ++value;
}

static int tried()
{
	if (mutex.try_lock_for(1ms)) {
		value++;
		mutex.unlock();
	}
	if (!mutex.try_lock())
		return 0;
	value++;
	mutex.unlock();
	return 1;
}

static int read()
{
	pound::shared_lock_guard guard(shared);

	return table;
}

static void write()
{
	pound::lock_guard guard(shared);

	table++;
}

static pound::condition_variable changed;

// Waits with a guard, and with the lock itself.
static int waited()
{
	pound::unique_lock guard(mutex);

	while (!value)
		changed.wait(guard);
	while (changed.wait_for(guard, 1ms) == std::cv_status::no_timeout)
		value++;
	changed.wait(guard, []() POUND_TSA(requires_capability(mutex)) { return value != 0; });
	guard.unlock();
	guard.lock();
	value = 1;
	guard.unlock();
	mutex.lock();
	changed.wait_for(mutex, 1ms);
	mutex.unlock();
	return 1;
}

// Called with the lock held, which the analysis does not see.
static int asserted()
{
	mutex.assert_held();
	shared.assert_shared_held();
	return value + table;
}

// A lock by name, as a member.
class account
{
      public:
	void pay(int amount)
	{
		pound::lock_guard guard(lock);
		balance += amount;
	}

	void pay_in_section(int amount) __attribute__((requires_capability(lock)))
	{
		balance += amount;
	}

	void pay_twice(int amount)
	{
		lock.lock();
		pay_in_section(amount);
		pay_in_section(amount);
		lock.unlock();
	}

      private:
	pound::any_mutex lock{"mcs"};
	int balance __attribute__((guarded_by(lock))) = 0;
};

#ifdef NO_LOCK
int wrong()
{
	return value;
}
#endif

#ifdef READ_LOCK
void wrong()
{
	pound::shared_lock_guard guard(shared);
	table++;
}
#endif

#ifdef TRY_LOCK
void wrong()
{
	if (!mutex.try_lock_until(std::chrono::steady_clock::now()))
		value++;
	else
		mutex.unlock();
}
#endif

#ifdef NO_UNLOCK
void wrong()
{
	shared.lock_shared();
}
#endif

#ifdef TWICE
void wrong()
{
	pound::lock_guard guard(mutex);
	mutex.lock();
	mutex.unlock();
}
#endif

#ifdef AFTER_WAIT
void wrong()
{
	pound::unique_lock guard(mutex);
	changed.wait_for(guard, 1ms);
	guard.unlock();
	value++;
}
#endif

int main()
{
	account mine;

	mine.pay(1);
	mine.pay_twice(2);
	write();
	return locked() + tried() + read() + waited() + asserted() != 4;
}
