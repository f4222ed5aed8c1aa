package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/dgrdma/dgrdma/metrics"
)

// watcher runs top on a terminal.
type watcher struct {
	*topOptions
	src           *viewSource
	screen        *screen
	first         *metrics.View // of this program
	before, now   *metrics.View
	began, latest time.Time
	trouble       error // why the latest look failed
	looks         int
}

// watch shows view after view until it is ended. A program that ends meanwhile may
// come back.
func (o *topOptions) watch(ctx context.Context, src *viewSource, out *os.File, std *stdio) error {
	l, err := src.look(ctx)
	if err != nil {
		return err
	}
	w := &watcher{topOptions: o, src: src, began: time.Now()}
	if w.screen, err = openScreen(out, std.in); err != nil {
		return fmt.Errorf("use the terminal: %w", err)
	}
	w.saw(l, nil)
	err = w.run(ctx)
	w.screen.close()
	fmt.Fprintln(std.err, w.summary())
	return err
}

func (w *watcher) run(ctx context.Context) error {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGWINCH, syscall.SIGTSTP)
	defer signal.Stop(signals)
	tick := time.NewTicker(w.interval)
	defer tick.Stop()
	// One look at a time, beside which keys count.
	looking, cancel := context.WithCancel(ctx)
	type result struct {
		topLook
		err error
	}
	results := make(chan result, 1)
	busy := false
	defer func() {
		if cancel(); busy {
			<-results
		}
	}()
	for {
		if err := w.draw(); err != nil {
			return err
		}
		if w.count > 0 && w.looks >= w.count {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case key := <-w.screen.keys:
			if key == 'q' || key == 'Q' {
				return nil
			}
		case s := <-signals:
			if s == syscall.SIGTSTP {
				if err := w.screen.suspend(); err != nil {
					return err
				}
			}
		case <-tick.C:
			if !busy {
				busy = true
				go func() {
					l, err := w.src.look(looking)
					results <- result{l, err}
				}()
			}
		case r := <-results:
			busy = false
			if ctx.Err() == nil {
				w.saw(r.topLook, r.err)
			}
		}
	}
}

// saw notes the outcome of a look.
func (w *watcher) saw(l topLook, err error) {
	w.looks++
	if w.trouble = err; err != nil {
		return
	}
	if w.first == nil || secondsBetween(w.first, l.view) == 0 {
		w.first = l.view
	}
	w.before, w.now, w.latest = w.now, l.view, time.Now()
}

func (w *watcher) draw() error {
	trouble := ""
	if w.trouble != nil {
		trouble = fmt.Sprintf("as of %s ago: %v", time.Since(w.latest).Round(time.Second), w.trouble)
	}
	columns, lines := w.screen.size()
	return w.screen.show(topLayout(w.src.title(w.now, trouble), topTables(w.before, w.now), columns, lines))
}

// summary returns what moved while top ran.
func (w *watcher) summary() string {
	var sum topChange
	sum.now, sum.before = make(map[string]uint64), make(map[string]uint64)
	add := func(to map[string]uint64, v *metrics.View) {
		for _, e := range v.Endpoints {
			for name, n := range e.Counters {
				to[name] += n
			}
		}
		for _, h := range v.RDMA {
			c := topChange{now: h.Counters}
			to["bytes_sent"] += c.counted(rdmaOut...)
			to["bytes_received"] += c.counted(rdmaIn...)
		}
	}
	add(sum.now, w.now)
	add(sum.before, w.first)
	s := fmt.Sprintf("watched %s for %v: %.1f MB out, %.1f MB in", w.src.host, time.Since(w.began).Round(100*time.Millisecond),
		float64(sum.counted("bytes_sent"))/1e6, float64(sum.counted("bytes_received"))/1e6)
	if len(w.now.Endpoints) > 0 { // of RDMA over TCP the system sends again
		s += fmt.Sprintf(", %.2f %% of frames sent again", sum.again())
	}
	if w.trouble != nil {
		s += "; at the end: " + w.trouble.Error()
	}
	return s
}
