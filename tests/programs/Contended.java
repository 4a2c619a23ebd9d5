// SPDX-License-Identifier: MIT OR Apache-2.0
// Threads that contend for monitors, wait and notify, make garbage and start threads. args[0]: per cent of the work.
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ArrayBlockingQueue;

public class Contended {
    static final int THREADS = 8;
    static long sum;
    static int turn;
    static final Object monitor = new Object();

    static void work(int index, int rounds, ArrayBlockingQueue<long[]> queue) throws InterruptedException {
        for (int i = 0; i < rounds; i++) {
            synchronized (monitor) {
                sum++;
            }
            if (i % 50 == 0) {
                queue.put(new long[1000 + i % 7]);
                queue.take();
            }
            if (i % 200 == 0) {
                synchronized (monitor) {
                    while (turn % THREADS != index) {
                        monitor.wait();
                    }
                    turn++;
                    monitor.notifyAll();
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        int rounds = 200 * Integer.parseInt(args[0]);
        ArrayBlockingQueue<long[]> queue = new ArrayBlockingQueue<>(THREADS);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            int index = i;
            threads.add(new Thread(() -> {
                try {
                    work(index, rounds, queue);
                } catch (InterruptedException interrupted) {
                    throw new IllegalStateException(interrupted);
                }
            }));
        }
        threads.forEach(Thread::start);
        for (Thread thread : threads) {
            thread.join();
        }
        if (sum != (long) THREADS * rounds || turn != THREADS * ((rounds + 199) / 200)) {
            System.err.println(sum + " additions and " + turn + " turns");
            System.exit(1);
        }
        System.out.println("checked: " + sum + " additions, " + turn + " turns");
    }
}
