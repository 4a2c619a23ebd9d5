// SPDX-License-Identifier: MIT OR Apache-2.0
// A program whose waiting is known: four threads hold a monitor for 2 ms each and sleep 2 ms
// between. For each line of input, prints how long they have waited so far, and the time, in ns.
// Ends with the input.
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.atomic.AtomicLong;

public class Monitor {
    static final Object planted = new Object();
    static final AtomicLong waited = new AtomicLong();

    static void plantedSite() throws InterruptedException {
        long start = System.nanoTime();
        synchronized (planted) {
            waited.addAndGet(System.nanoTime() - start);
            Thread.sleep(2);
        }
    }

    static void work() {
        try {
            while (true) {
                plantedSite();
                Thread.sleep(2);
            }
        } catch (InterruptedException interrupted) {
            throw new IllegalStateException(interrupted);
        }
    }

    public static void main(String[] args) throws Exception {
        for (int i = 0; i < 4; i++) {
            Thread thread = new Thread(Monitor::work);
            thread.setDaemon(true);
            thread.start();
        }
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        while (input.readLine() != null) {
            System.out.println(waited.get() + " " + System.nanoTime());
        }
    }
}
