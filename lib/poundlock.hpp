// SPDX-License-Identifier: MIT OR GPL-2.0-only
//
// Poundlock for C++17.
//
//   pound::mutex               the default mutex; Lockable and TimedLockable
//   pound::any_mutex           the default, or a lock by name; the same
//   pound::shared_mutex        the default readers-writer lock, or one by name; SharedTimedLockable
//   pound::recursive_mutex     the default mutex for threads that lock it again; TimedLockable
//   pound::condition_variable  for a std::unique_lock of any of them, and for any other lock
//   pound::call_once           with a pound::once_flag: initialisation that runs once
//   pound::counting_semaphore  and pound::binary_semaphore
//   pound::lock_guard          as std::lock_guard, known to clang's -Wthread-safety
//   pound::shared_lock_guard   the same for reading
//   pound::unique_lock         the same as a std::unique_lock, e.g. for a condition variable
//   pound::set_name            names a lock in statistics and reports
//   pound::tenant              makes the calling thread a member of a tenant, for its own lifetime
//
// std::lock_guard, std::unique_lock, std::scoped_lock, std::shared_lock and
// std::condition_variable_any accept the locks. All but locks by name are constant-initialised:
// static ones are ready before any constructor runs. poundlock.h documents them.
//
// Built with -fno-exceptions, a function that would throw prints a line and aborts instead.
#ifndef POUNDLOCK_HPP
#define POUNDLOCK_HPP

#if __cplusplus < 201703L
#error "poundlock.hpp needs C++17: compile with -std=c++17 or later"
#else

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

#include "poundlock.h"

// Private: an attribute for clang's thread safety analysis.
#if defined(__clang__)
#define POUND_TSA(attribute) __attribute__((attribute))
#else
#define POUND_TSA(attribute)
#endif

namespace pound
{

namespace detail
{

// Throws @exception, or aborts in code without exceptions.
template <class Exception> [[noreturn]] void fail(const Exception &exception)
{
#if defined(__cpp_exceptions)
	throw exception;
#else
	std::fprintf(stderr, "poundlock: %s\n", exception.what());
	std::abort();
#endif
}

// The latest deadline, in seconds since a clock's epoch: of the year 2262.
constexpr auto latest = std::chrono::floor<std::chrono::seconds>(std::chrono::nanoseconds::max());

// Whether @time is at least @limit, of any types: a comparison of durations may overflow.
template <class Time, class Limit> bool reaches(const Time &time, const Limit &limit)
{
	using seconds = std::chrono::duration<long double>;

	return seconds(time) >= seconds(limit);
}

// The timespec of a time since a clock's epoch, cut to the times from the epoch to @latest.
template <class Rep, class Period>
timespec to_timespec(const std::chrono::duration<Rep, Period> &since_epoch)
{
	if (reaches(since_epoch, latest))
		return {static_cast<time_t>(latest.count()), 0};
	if (!reaches(since_epoch, std::chrono::seconds(0)))
		return {0, 0};

	auto seconds = std::chrono::floor<std::chrono::seconds>(since_epoch);
	auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(since_epoch - seconds);

	return {static_cast<time_t>(seconds.count()), static_cast<long>(rest.count())};
}

// The time in @timeout from now: now if that is negative, the latest time if it is later.
template <class Rep, class Period>
std::chrono::steady_clock::time_point after(const std::chrono::duration<Rep, Period> &timeout)
{
	auto now = std::chrono::steady_clock::now();

	if (reaches(timeout, std::chrono::steady_clock::time_point::max() - now))
		return std::chrono::steady_clock::time_point::max();
	if (!reaches(timeout, std::chrono::seconds(0)))
		return now;
	return now + std::chrono::ceil<std::chrono::steady_clock::duration>(timeout);
}

template <class Clock> constexpr bool is_system = std::is_same_v<Clock, std::chrono::system_clock>;
template <class Clock> constexpr bool is_steady = std::is_same_v<Clock, std::chrono::steady_clock>;

// Clocks by which the library can wait: in libstdc++ and libc++, system_clock is CLOCK_REALTIME and
// steady_clock CLOCK_MONOTONIC.
template <class Clock> constexpr bool is_native = is_system<Clock> || is_steady<Clock>;

// Calls timed(clock, deadline), which returns 0 or ETIMEDOUT, once, with @time as the deadline. The
// remaining time of a clock that is not native is measured on steady_clock. Returns false at the
// deadline, which may be early by such a clock.
template <class Timed, class Clock, class Duration>
bool try_once(Timed timed, const std::chrono::time_point<Clock, Duration> &time)
{
	timespec deadline;

	if constexpr (is_native<Clock>)
		deadline = to_timespec(time.time_since_epoch());
	else
		deadline = to_timespec(after(time - Clock::now()).time_since_epoch());
	return timed(is_system<Clock> ? CLOCK_REALTIME : CLOCK_MONOTONIC, &deadline) == 0;
}

// Whether try_once() returned before @time.
template <class Clock, class Duration>
bool is_early(const std::chrono::time_point<Clock, Duration> &time)
{
	if constexpr (is_native<Clock>)
		return false;
	else
		return Clock::now() < time;
}

// As try_once(), until it succeeds or @time has passed.
template <class Timed, class Clock, class Duration>
bool try_until(Timed timed, const std::chrono::time_point<Clock, Duration> &time)
{
	do {
		if (try_once(timed, time))
			return true;
	} while (is_early(time));
	return false;
}

// The timed functions of TimedLockable, for a @Lock with a function timed_lock(clock, deadline) for
// try_until().
template <class Lock> class POUND_TSA(capability("mutex")) timed_lockable
{
      public:
	template <class Rep, class Period>
	bool try_lock_for(const std::chrono::duration<Rep, Period> &timeout) noexcept
		POUND_TSA(try_acquire_capability(true))
	{
		return try_lock_until(after(timeout));
	}

	template <class Clock, class Duration>
	bool try_lock_until(const std::chrono::time_point<Clock, Duration> &time) noexcept
		POUND_TSA(try_acquire_capability(true))
	{
		return try_until(
			[this](clockid_t clock, const timespec *deadline) {
				return static_cast<Lock *>(this)->timed_lock(clock, deadline);
			},
			time);
	}
};

} // namespace detail

// The default mutex (poundlock.h). Not recursive, not copyable.
class POUND_TSA(capability("mutex")) mutex : public detail::timed_lockable<mutex>
{
      public:
	constexpr mutex() noexcept = default;
	mutex(const mutex &) = delete;
	mutex &operator=(const mutex &) = delete;
#ifdef POUNDLOCK_DEBUG
	~mutex()
	{
		pound_debug_destroy(&native);
	}
#endif

	void lock() noexcept POUND_TSA(acquire_capability())
	{
		pound_mutex_lock(&native);
	}

	bool try_lock() noexcept POUND_TSA(try_acquire_capability(true))
	{
		return pound_mutex_trylock(&native);
	}

	void unlock() noexcept POUND_TSA(release_capability())
	{
		pound_mutex_unlock(&native);
	}

	// Leaves the mutex to the first waiter, if there is one.
	void unlock_fair() noexcept POUND_TSA(release_capability())
	{
		pound_mutex_unlock_fair(&native);
	}

	// Reports, in code with POUNDLOCK_DEBUG, that the calling thread does not hold it.
	void assert_held() const noexcept POUND_TSA(assert_capability(this))
	{
		pound_mutex_assert_held(&native);
	}

	using native_handle_type = pound_mutex_t *;
	native_handle_type native_handle() noexcept
	{
		return &native;
	}

      private:
	friend detail::timed_lockable<mutex>;

	int timed_lock(clockid_t clock, const timespec *deadline) noexcept
	{
		return pound_mutex_timedlock(&native, clock, deadline);
	}

	pound_mutex_t native = POUND_MUTEX_INIT;
};

// The default lock, or one by name, e.g. pound::any_mutex("mcs,wait=spin"): throws
// std::invalid_argument if the specification is wrong.
class POUND_TSA(capability("mutex")) any_mutex : public detail::timed_lockable<any_mutex>
{
      public:
	constexpr any_mutex() noexcept = default;
	explicit any_mutex(const std::string &spec)
	{
		char error[256];

		if (pound_lock_init(&native, spec.c_str(), error, sizeof(error)))
			detail::fail(std::invalid_argument(error));
	}
	any_mutex(const any_mutex &) = delete;
	any_mutex &operator=(const any_mutex &) = delete;

	~any_mutex()
	{
		pound_lock_destroy(&native);
	}

	void lock() noexcept POUND_TSA(acquire_capability())
	{
		pound_lock_lock(&native);
	}

	bool try_lock() noexcept POUND_TSA(try_acquire_capability(true))
	{
		return pound_lock_trylock(&native);
	}

	void unlock() noexcept POUND_TSA(release_capability())
	{
		pound_lock_unlock(&native);
	}

	// As mutex::unlock_fair() if it is shfl_mutex; the order of other locks is their own.
	void unlock_fair() noexcept POUND_TSA(release_capability())
	{
		pound_lock_unlock_fair(&native);
	}

	// Reports, in code with POUNDLOCK_DEBUG, that the calling thread does not hold it.
	void assert_held() const noexcept POUND_TSA(assert_capability(this))
	{
		pound_lock_assert_held(&native);
	}

      private:
	friend detail::timed_lockable<any_mutex>;

	int timed_lock(clockid_t clock, const timespec *deadline) noexcept
	{
		return pound_lock_timedlock(&native, clock, deadline);
	}

	pound_lock_t native = POUND_LOCK_INIT;
};

// The default readers-writer lock (poundlock.h), or one by name, e.g. pound::shared_mutex("bravo"):
// throws std::invalid_argument if the specification is wrong. lock_shared() throws
// std::system_error (EAGAIN) if the lock has 2^27 readers. Not copyable.
//
// There is no upgrade, as in std::shared_mutex. To write what a reader has found to be missing:
//
//   {
//           std::shared_lock reader(mutex);
//           if (cache.count(key))
//                   return cache[key];
//   }
//   std::unique_lock writer(mutex); // another thread may have written meanwhile
//   if (!cache.count(key))
//           cache[key] = compute(key);
//   return cache[key];
class POUND_TSA(capability("mutex")) shared_mutex : public detail::timed_lockable<shared_mutex>
{
      public:
	constexpr shared_mutex() noexcept = default;
	explicit shared_mutex(const std::string &spec)
	{
		char error[256];

		if (pound_rwlock_init(&native, spec.c_str(), error, sizeof(error)))
			detail::fail(std::invalid_argument(error));
	}
	shared_mutex(const shared_mutex &) = delete;
	shared_mutex &operator=(const shared_mutex &) = delete;
#ifdef POUNDLOCK_DEBUG
	~shared_mutex()
	{
		pound_debug_destroy(&native);
	}
#endif

	void lock() noexcept POUND_TSA(acquire_capability())
	{
		pound_rwlock_wrlock(&native);
	}

	bool try_lock() noexcept POUND_TSA(try_acquire_capability(true))
	{
		return pound_rwlock_trywrlock(&native);
	}

	void unlock() noexcept POUND_TSA(release_capability())
	{
		pound_rwlock_wrunlock(&native);
	}

	// Leaves the lock to the first waiter, if there is one.
	void unlock_fair() noexcept POUND_TSA(release_capability())
	{
		pound_rwlock_wrunlock_fair(&native);
	}

	void lock_shared() POUND_TSA(acquire_shared_capability())
	{
		entered(pound_rwlock_rdlock(&native));
	}

	bool try_lock_shared() noexcept POUND_TSA(try_acquire_shared_capability(true))
	{
		return pound_rwlock_tryrdlock(&native);
	}

	template <class Rep, class Period>
	bool try_lock_shared_for(const std::chrono::duration<Rep, Period> &timeout) noexcept
		POUND_TSA(try_acquire_shared_capability(true))
	{
		return try_lock_shared_until(detail::after(timeout));
	}

	template <class Clock, class Duration>
	bool try_lock_shared_until(const std::chrono::time_point<Clock, Duration> &time) noexcept
		POUND_TSA(try_acquire_shared_capability(true))
	{
		return detail::try_until(
			[this](clockid_t clock, const timespec *deadline) {
				return pound_rwlock_timedrdlock(&native, clock, deadline);
			},
			time);
	}

	// For a thread that may hold it for reading already: passes waiting writers.
	void lock_shared_again() POUND_TSA(acquire_shared_capability())
	{
		entered(pound_rwlock_rdlock_again(&native));
	}

	bool try_lock_shared_again() noexcept POUND_TSA(try_acquire_shared_capability(true))
	{
		return pound_rwlock_tryrdlock_again(&native);
	}

	void unlock_shared() noexcept POUND_TSA(release_shared_capability())
	{
		pound_rwlock_rdunlock(&native);
	}

	// As the last reader, leaves the lock to the first waiter, if there is one.
	void unlock_shared_fair() noexcept POUND_TSA(release_shared_capability())
	{
		pound_rwlock_rdunlock_fair(&native);
	}

	// Reports, in code with POUNDLOCK_DEBUG, that the calling thread does not hold it.
	void assert_held() const noexcept POUND_TSA(assert_capability(this))
	{
		pound_rwlock_assert_wrheld(&native);
	}

	// The same for a thread that holds it in any way.
	void assert_shared_held() const noexcept POUND_TSA(assert_shared_capability(this))
	{
		pound_rwlock_assert_held(&native);
	}

	using native_handle_type = pound_rwlock_t *;
	native_handle_type native_handle() noexcept
	{
		return &native;
	}

      private:
	friend detail::timed_lockable<shared_mutex>;

	static void entered(int error)
	{
		if (error)
			detail::fail(std::system_error(error, std::generic_category(),
						       "too many readers"));
	}

	int timed_lock(clockid_t clock, const timespec *deadline) noexcept
	{
		return pound_rwlock_timedwrlock(&native, clock, deadline);
	}

	pound_rwlock_t native = POUND_RWLOCK_INIT;
};

// The default mutex for threads that lock it again (poundlock.h), with the interface of
// std::recursive_timed_mutex. lock() throws std::system_error (EAGAIN) if the owner has locked it
// 2^32 times. Not copyable.
class POUND_TSA(capability("mutex")) recursive_mutex
    : public detail::timed_lockable<recursive_mutex>
{
      public:
	constexpr recursive_mutex() noexcept = default;
	recursive_mutex(const recursive_mutex &) = delete;
	recursive_mutex &operator=(const recursive_mutex &) = delete;

	void lock() POUND_TSA(acquire_capability())
	{
		int error = pound_recursive_mutex_lock(&native);

		if (error)
			detail::fail(std::system_error(error, std::generic_category(),
						       "locked too often"));
	}

	bool try_lock() noexcept POUND_TSA(try_acquire_capability(true))
	{
		return pound_recursive_mutex_trylock(&native);
	}

	void unlock() noexcept POUND_TSA(release_capability())
	{
		pound_recursive_mutex_unlock(&native);
	}

	using native_handle_type = pound_recursive_mutex_t *;
	native_handle_type native_handle() noexcept
	{
		return &native;
	}

      private:
	friend detail::timed_lockable<recursive_mutex>;

	int timed_lock(clockid_t clock, const timespec *deadline) noexcept
	{
		return pound_recursive_mutex_timedlock(&native, clock, deadline);
	}

	pound_recursive_mutex_t native = POUND_RECURSIVE_MUTEX_INIT;
};

// A std::unique_lock that locks @mutex when it is made, also to wait with a condition_variable.
template <class Mutex> class POUND_TSA(scoped_lockable) unique_lock : public std::unique_lock<Mutex>
{
      public:
	explicit unique_lock(Mutex &mutex) POUND_TSA(acquire_capability(mutex))
	    : std::unique_lock<Mutex>(mutex)
	{
	}

	// Releases it if it is locked.
	~unique_lock() POUND_TSA(release_capability())
	{
	}

	void lock() POUND_TSA(acquire_capability())
	{
		std::unique_lock<Mutex>::lock();
	}

	void unlock() POUND_TSA(release_capability())
	{
		std::unique_lock<Mutex>::unlock();
	}
};

// A condition variable with the interface of std::condition_variable and
// std::condition_variable_any, for std::unique_lock<pound::mutex> and any other lock. It may be
// destroyed as soon as every waiter has been notified, even if they have not returned yet. Not
// copyable.
//
// A wait returns with the lock locked, and is to be repeated until the condition holds, which the
// functions with a predicate do. If locking again throws, std::terminate() is called, as by
// std::condition_variable. The wait is not a cancellation point.
//
// For clang's -Wthread-safety a wait leaves the lock as it was: locked. With a pound::unique_lock,
// code that waits in a loop of its own is checked; a predicate is a function of its own, which
// needs the attribute requires_capability.
class condition_variable
{
      public:
	constexpr condition_variable() noexcept = default;
	condition_variable(const condition_variable &) = delete;
	condition_variable &operator=(const condition_variable &) = delete;

	void notify_one() noexcept
	{
		pound_cond_signal(&native);
	}

	void notify_all() noexcept
	{
		pound_cond_broadcast(&native);
	}

	template <class Lock> void wait(Lock &lock) noexcept
	{
		wait_with(lock);
	}

	template <class Lock, class Predicate>
	void wait(Lock &lock, Predicate stop_waiting) POUND_TSA(no_thread_safety_analysis)
	{
		while (!stop_waiting())
			wait(lock);
	}

	template <class Lock, class Clock, class Duration>
	std::cv_status wait_until(Lock &lock, const std::chrono::time_point<Clock, Duration> &time)
	{
		auto timed = [&](clockid_t clock, const timespec *deadline) {
			return timed_wait_with(lock, clock, deadline);
		};

		// A wait that ends early counts as a spurious wake-up: only the caller can test the
		// condition before another wait.
		return detail::try_once(timed, time) || detail::is_early(time)
			       ? std::cv_status::no_timeout
			       : std::cv_status::timeout;
	}

	template <class Lock, class Clock, class Duration, class Predicate>
	bool wait_until(Lock &lock, const std::chrono::time_point<Clock, Duration> &time,
			Predicate stop_waiting) POUND_TSA(no_thread_safety_analysis)
	{
		while (!stop_waiting())
			if (wait_until(lock, time) == std::cv_status::timeout)
				return stop_waiting();
		return true;
	}

	template <class Lock, class Rep, class Period>
	std::cv_status wait_for(Lock &lock, const std::chrono::duration<Rep, Period> &timeout)
	{
		return wait_until(lock, detail::after(timeout));
	}

	template <class Lock, class Rep, class Period, class Predicate>
	bool wait_for(Lock &lock, const std::chrono::duration<Rep, Period> &timeout,
		      Predicate stop_waiting)
	{
		return wait_until(lock, detail::after(timeout), std::move(stop_waiting));
	}

	using native_handle_type = pound_cond_t *;
	native_handle_type native_handle() noexcept
	{
		return &native;
	}

      private:
	template <class Lock> struct lockable {
		static void lock(void *of) noexcept POUND_TSA(no_thread_safety_analysis)
		{
			static_cast<Lock *>(of)->lock();
		}

		static void unlock(void *of) noexcept POUND_TSA(no_thread_safety_analysis)
		{
			static_cast<Lock *>(of)->unlock();
		}

		static constexpr pound_lockable type = {lock, unlock};
	};

	void wait_with(std::unique_lock<mutex> &lock) noexcept
	{
		pound_cond_wait(&native, lock.mutex()->native_handle());
	}

	int timed_wait_with(std::unique_lock<mutex> &lock, clockid_t clock,
			    const timespec *deadline) noexcept
	{
		return pound_cond_timedwait(&native, lock.mutex()->native_handle(), clock,
					    deadline);
	}

	// The mutex itself, which is the same for all waiters: they are woken one after another.
	template <class Mutex> void wait_with(std::unique_lock<Mutex> &lock) noexcept
	{
		wait_with(*lock.mutex());
	}

	template <class Mutex>
	int timed_wait_with(std::unique_lock<Mutex> &lock, clockid_t clock,
			    const timespec *deadline) noexcept
	{
		return timed_wait_with(*lock.mutex(), clock, deadline);
	}

	template <class Mutex> void wait_with(unique_lock<Mutex> &lock) noexcept
	{
		wait_with(static_cast<std::unique_lock<Mutex> &>(lock));
	}

	template <class Mutex>
	int timed_wait_with(unique_lock<Mutex> &lock, clockid_t clock,
			    const timespec *deadline) noexcept
	{
		return timed_wait_with(static_cast<std::unique_lock<Mutex> &>(lock), clock,
				       deadline);
	}

	template <class Lock> void wait_with(Lock &lock) noexcept
	{
		pound_cond_wait_any(&native, std::addressof(lock), &lockable<Lock>::type);
	}

	template <class Lock>
	int timed_wait_with(Lock &lock, clockid_t clock, const timespec *deadline) noexcept
	{
		return pound_cond_timedwait_any(&native, std::addressof(lock),
						&lockable<Lock>::type, clock, deadline);
	}

	pound_cond_t native = POUND_COND_INIT;
};

using condition_variable_any = condition_variable;

// Holds @mutex from its construction to its destruction.
template <class Mutex> class POUND_TSA(scoped_lockable) lock_guard
{
      public:
	using mutex_type = Mutex;

	explicit lock_guard(Mutex &mutex) POUND_TSA(acquire_capability(mutex)) : mutex(mutex)
	{
		mutex.lock();
	}
	lock_guard(const lock_guard &) = delete;
	lock_guard &operator=(const lock_guard &) = delete;

	~lock_guard() POUND_TSA(release_capability())
	{
		mutex.unlock();
	}

      private:
	Mutex &mutex;
};

// The same for reading.
template <class Mutex> class POUND_TSA(scoped_lockable) shared_lock_guard
{
      public:
	using mutex_type = Mutex;

	explicit shared_lock_guard(Mutex &mutex) POUND_TSA(acquire_shared_capability(mutex))
	    : mutex(mutex)
	{
		mutex.lock_shared();
	}
	shared_lock_guard(const shared_lock_guard &) = delete;
	shared_lock_guard &operator=(const shared_lock_guard &) = delete;

	~shared_lock_guard() POUND_TSA(release_capability())
	{
		mutex.unlock_shared();
	}

      private:
	Mutex &mutex;
};

// Names @lock, e.g. a pound::mutex, in statistics and reports: pound_set_name(). False if there is
// no room. A name does not end with its lock, unless that is an any_mutex: "" removes it.
template <class Lock> bool set_name(const Lock &lock, const char *name) noexcept
{
	static_assert(std::is_standard_layout_v<Lock>, "its address is that of the lock in it");
	return !pound_set_name(std::addressof(lock), name);
}

// Whether the function of a call_once() has returned. Not copyable.
class once_flag
{
      public:
	constexpr once_flag() noexcept = default;
	once_flag(const once_flag &) = delete;
	once_flag &operator=(const once_flag &) = delete;

	using native_handle_type = pound_once_t *;
	native_handle_type native_handle() noexcept
	{
		return &native;
	}

      private:
	pound_once_t native = POUND_ONCE_INIT;
};

namespace detail
{

// Ends the run of a once_flag's function, also by an exception or by the end of the thread.
class once_run
{
      public:
	explicit once_run(pound_once_t *once) noexcept : once(once)
	{
	}
	once_run(const once_run &) = delete;
	once_run &operator=(const once_run &) = delete;

	~once_run()
	{
		pound_once_end(once, completed);
	}

	bool completed = false;

      private:
	pound_once_t *once;
};

} // namespace detail

// As std::call_once: invokes @function unless a call with @flag has returned from one before. Waits
// while another thread does. An exception leaves @flag as if it had not been called, and one of the
// waiting threads invokes its function.
template <class Function, class... Arguments>
void call_once(once_flag &flag, Function &&function, Arguments &&...arguments)
{
	if (!pound_once_begin(flag.native_handle()))
		return;
	detail::once_run run(flag.native_handle());
	std::invoke(std::forward<Function>(function), std::forward<Arguments>(arguments)...);
	run.completed = true;
}

// A semaphore with the interface of C++20's std::counting_semaphore. A thread that has acquired it
// may destroy it at once, although the release() may not have returned. release() throws
// std::system_error (EOVERFLOW) if the value would exceed max(). Waiters are not served in order.
// Not copyable.
template <std::ptrdiff_t LeastMax = POUND_SEM_MAX> class counting_semaphore
{
	static_assert(LeastMax >= 0 && LeastMax <= std::ptrdiff_t(POUND_SEM_MAX));

      public:
	// @value: from 0 to max().
	constexpr explicit counting_semaphore(std::ptrdiff_t value) noexcept
	    : native(POUND_SEM_INIT(static_cast<std::uint32_t>(value)))
	{
	}
	counting_semaphore(const counting_semaphore &) = delete;
	counting_semaphore &operator=(const counting_semaphore &) = delete;

	static constexpr std::ptrdiff_t max() noexcept
	{
		return POUND_SEM_MAX;
	}

	// @count: at least 0.
	void release(std::ptrdiff_t count = 1)
	{
		int error = count > max() ? EOVERFLOW : post(count);

		if (error)
			detail::fail(std::system_error(error, std::generic_category(),
						       "the semaphore's value is too high"));
	}

	void acquire() noexcept
	{
		pound_sem_wait(&native);
	}

	bool try_acquire() noexcept
	{
		return pound_sem_trywait(&native);
	}

	template <class Rep, class Period>
	bool try_acquire_for(const std::chrono::duration<Rep, Period> &timeout) noexcept
	{
		return try_acquire_until(detail::after(timeout));
	}

	template <class Clock, class Duration>
	bool try_acquire_until(const std::chrono::time_point<Clock, Duration> &time) noexcept
	{
		return detail::try_until(
			[this](clockid_t clock, const timespec *deadline) {
				return pound_sem_timedwait(&native, clock, deadline);
			},
			time);
	}

	using native_handle_type = pound_sem_t *;
	native_handle_type native_handle() noexcept
	{
		return &native;
	}

      private:
	int post(std::ptrdiff_t count) noexcept
	{
		return pound_sem_post(&native, static_cast<std::uint32_t>(count));
	}

	pound_sem_t native;
};

using binary_semaphore = counting_semaphore<1>;

// Puts the calling thread into tenant @id of weight @weight (pound_thread_tenant() in poundlock.h)
// until the destructor runs, which puts it back into the group that it was in. Throws
// std::invalid_argument if the weight is 0, std::length_error if there are too many groups.
class tenant
{
      public:
	explicit tenant(std::uint64_t id, std::uint32_t weight = 1024)
	{
		int error = pound_thread_tenant(id, weight);

		if (error)
			pound_thread_return(outer);
		if (error == EINVAL)
			detail::fail(std::invalid_argument("a tenant's weight is at least 1"));
		if (error)
			detail::fail(std::length_error("there are too many tenants and cgroups"));
	}
	tenant(const tenant &) = delete;
	tenant &operator=(const tenant &) = delete;

	~tenant()
	{
		pound_thread_return(outer);
	}

      private:
	std::uint32_t outer = pound_thread_group();
};

} // namespace pound

#endif

#endif
