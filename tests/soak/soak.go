package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/tests/soak/round"
)

// soak runs rounds by run until the time is over, and reports whether nothing was wrong.
func soak(t *testing.T, o options, out io.Writer, run func(*testing.T, *round.Plan, *round.Counts, string) []string) (ok bool) {
	var counts round.Counts
	r := &report{began: time.Now(), counts: &counts, out: out}
	fmt.Fprintf(out, "soak over %s for %v, rounds of %v at most, from seed %d\n", o.wire, o.total, o.longest, o.seed)
	stop := make(chan struct{})
	var lines sync.WaitGroup
	lines.Go(func() { r.lines(o.every, stop) })
	goroutines := runtime.NumGoroutine()
	ok = true
	for n := uint64(0); time.Since(r.began) < o.total && (o.rounds == 0 || n < o.rounds); n++ {
		p := round.Draw(o.seed+n, o.wire, o.longest)
		r.running(p.Seed)
		stuck := time.AfterFunc(p.Duration+mostLate, func() {
			panic(fmt.Sprintf("the round with seed %d does not end: nothing goes on", p.Seed))
		})
		fails := run(t, p, &counts, o.dir)
		stuck.Stop()
		if left := outliving(goroutines); left > 0 {
			fails = append(fails, fmt.Sprintf("%d goroutines are left", left))
		}
		if len(fails) > 0 {
			ok = false
			r.printf("VIOLATION over %s; again with: go run ./tests/soak -wire %s -longest %v -seed %d -rounds 1\n  %s\n",
				o.wire, o.wire, o.longest, p.Seed, strings.Join(fails, "\n  "))
		}
	}
	close(stop)
	lines.Wait()
	r.line("end")
	return ok
}

// mostLate is more than a round takes beyond its duration that ends by itself, whatever does not
// go on in it.
const mostLate = 10 * time.Minute

// patience is how long goroutines of a round may take to end behind it.
var patience = 10 * time.Second

// outliving returns how many goroutines there are that were not there before.
func outliving(before int) (left int) {
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		if left = runtime.NumGoroutine() - before; left <= 0 {
			return 0
		}
		if time.Now().After(deadline) {
			return left
		}
	}
}

// report prints lines.
type report struct {
	began  time.Time
	counts *round.Counts

	mu         sync.Mutex
	out        io.Writer
	seed       uint64
	goroutines int    // at most
	heap       uint64 // at most
}

func (r *report) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.out, format, args...)
}

func (r *report) running(seed uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seed = seed
}

// look notes how much there is of what must not grow.
func (r *report) look() {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heap = max(r.heap, sample[0].Value.Uint64())
	r.goroutines = max(r.goroutines, runtime.NumGoroutine())
}

// lines prints one now and then.
func (r *report) lines(every time.Duration, stop <-chan struct{}) {
	look, tick := time.NewTicker(100*time.Millisecond), time.NewTicker(every)
	defer look.Stop()
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-look.C:
			r.look()
		case <-tick.C:
			r.line(fmt.Sprint(time.Since(r.began).Round(time.Second)))
		}
	}
}

func (r *report) line(when string) {
	r.look()
	r.printf("%s: seed %d, %v; heap at most %d MB, resident at most %d MB, goroutines %d, at most %d; %d violations\n",
		when, r.seed, r.counts, r.heap>>20, resident()>>20, runtime.NumGoroutine(), r.goroutines, r.counts.Violations.Load())
}

// resident returns how much memory the process had at most.
func resident() (bytes uint64) {
	b, _ := os.ReadFile("/proc/self/status") // 0 says that it is not known
	for line := range strings.Lines(string(b)) {
		if n, err := fmt.Sscanf(line, "VmHWM: %d kB", &bytes); n == 1 && err == nil {
			return bytes << 10
		}
	}
	return 0
}
