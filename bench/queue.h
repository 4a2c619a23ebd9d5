/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The bounded queue of a mutex and two condition variables, which every textbook has, for each
 * contestant with a condition variable: a type with init(), wait(lock) and signal().
 */
#ifndef BENCH_QUEUE_H
#define BENCH_QUEUE_H

#include "contestant.h"

namespace bench
{

template <class Lock, class Cond> class Queue
{
      public:
	Queue(const std::string &spec, std::size_t capacity) : items_(capacity)
	{
		lock_.init(spec);
		not_empty_.init();
		not_full_.init();
	}
	void put(std::uint64_t item)
	{
		lock_.lock();
		while (count_ == items_.size())
			not_full_.wait(lock_);
		items_[last_] = item;
		last_ = next(last_);
		count_++;
		lock_.unlock();
		not_empty_.signal();
	}
	std::uint64_t take()
	{
		lock_.lock();
		while (count_ == 0)
			not_empty_.wait(lock_);
		std::uint64_t item = items_[first_];
		first_ = next(first_);
		count_--;
		lock_.unlock();
		not_full_.signal();
		return item;
	}

      private:
	std::size_t next(std::size_t place) const
	{
		return place + 1 == items_.size() ? 0 : place + 1;
	}

	alignas(cache_line) Lock lock_;
	alignas(cache_line) Cond not_empty_, not_full_;
	alignas(cache_line) std::vector<std::uint64_t> items_;
	std::size_t first_ = 0, last_ = 0, count_ = 0;
};

/* One thread puts and takes in turns, so that it never waits: no other thread uses the queue. */
template <class Lock, class Cond> void fill_and_drain(const Setting &setting, Queued &result)
{
	Queue<Lock, Cond> queue(setting.spec, setting.capacity);
	std::uint64_t begin = now_ns();

	for (std::uint64_t item = 1; item <= setting.operations; item++) {
		queue.put(item);
		result.put += item;
		result.taken += queue.take();
	}
	result.seconds = (now_ns() - begin) / 1e9;
}

/*
 * The items 1 to setting.operations go from the producers to the consumers. Zeros, one for each
 * consumer, end it. Pinned, each producer is on another CPU than the consumer of its number.
 */
template <class Lock, class Cond> void produce_and_consume(const Setting &setting, Queued &result)
{
	Queue<Lock, Cond> queue(setting.spec, setting.capacity);
	std::atomic<std::uint64_t> put{0}, taken{0};
	std::vector<std::thread> producers, consumers;
	Barrier start(setting.producers + setting.consumers + 1);
	Pins pins(setting.pin);

	for (unsigned i = 0; i < setting.producers; i++)
		producers.emplace_back([&, i] {
			std::uint64_t sum = 0;

			pins.pin(i);
			start.wait();
			for (std::uint64_t item = 1 + i; item <= setting.operations;
			     item += setting.producers) {
				queue.put(item);
				sum += item;
			}
			put += sum;
		});
	for (unsigned i = 0; i < setting.consumers; i++)
		consumers.emplace_back([&, i] {
			std::uint64_t sum = 0;

			pins.pin(i + 1);
			start.wait();
			while (std::uint64_t item = queue.take())
				sum += item;
			taken += sum;
		});
	std::uint64_t begin = now_ns();
	start.wait();
	for (std::thread &producer : producers)
		producer.join();
	for (unsigned i = 0; i < setting.consumers; i++)
		queue.put(0);
	for (std::thread &consumer : consumers)
		consumer.join();
	result.seconds = (now_ns() - begin) / 1e9;
	result.put = put;
	result.taken = taken;
}

/* Without producers, one thread does both. */
template <class Lock, class Cond> Queued queued(const Setting &setting)
{
	SleepingThread second(setting.sleeping_thread);
	Queued result;
	rusage before, after;

	getrusage(RUSAGE_SELF, &before);
	if (setting.producers)
		produce_and_consume<Lock, Cond>(setting, result);
	else
		fill_and_drain<Lock, Cond>(setting, result);
	getrusage(RUSAGE_SELF, &after);
	result.sleeps = after.ru_nvcsw - before.ru_nvcsw;
	result.cpu_seconds = cpu_seconds(after) - cpu_seconds(before);
	return result;
}

/* Registers a contestant's condition variable; its lock is registered already. */
template <class Lock, class Cond> struct RegisterQueue {
	explicit RegisterQueue(const std::string &name)
	{
		for (Contestant &contestant : contestants())
			if (name == contestant.name)
				contestant.queued = queued<Lock, Cond>;
	}
};

} // namespace bench

#endif
