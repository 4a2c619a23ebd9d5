// SPDX-License-Identifier: MIT OR Apache-2.0

// A program whose waiting is known: four goroutines hold a mutex for 2 ms each and sleep 2 ms
// between. For each line of input, prints how long they have waited so far, and the time, in ns.
// Ends with the input.
package main

import (
	"bufio"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

const pause = 2 * time.Millisecond

var planted sync.Mutex
var waited atomic.Int64

//go:noinline
func plantedSite() {
	start := time.Now()
	planted.Lock()
	waited.Add(int64(time.Since(start)))
	time.Sleep(pause)
	planted.Unlock()
}

func main() {
	began := time.Now()
	for i := 0; i < 4; i++ {
		go func() {
			for {
				plantedSite()
				time.Sleep(pause)
			}
		}()
	}
	// Other wake-ups of goroutines, which are no waits for locks.
	ping := make(chan int)
	go func() {
		for {
			ping <- 1
			time.Sleep(pause)
		}
	}()
	go func() {
		for range ping {
		}
	}()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(waited.Load(), time.Since(began).Nanoseconds())
	}
}
