package round

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Run carries out a plan, adds to the counts what happened, and returns what should not have
// happened. If there is a directory, a capture of each node's frames around that is left in it then.
func Run(t *testing.T, p *Plan, counts *Counts, dir string) (violations []string) {
	if !p.Wire.Real() {
		return bubble(t, p, counts, dir, func(p *Plan) ground { return newSimulated(p) })
	}
	t.Run(fmt.Sprint("seed ", p.Seed), func(t *testing.T) { violations = run(newWorld(p, counts, newNamespaces(t, p)), dir) })
	return violations
}

// bubble is Run in virtual time.
func bubble(t *testing.T, p *Plan, counts *Counts, dir string, on func(*Plan) ground) (violations []string) {
	synctest.Test(t, func(t *testing.T) {
		g := on(p)
		defer g.close()
		violations = run(newWorld(p, counts, g), dir)
	})
	return violations
}

func run(w *world, dir string) []string {
	p, counts := w.plan, w.counts
	for _, n := range w.nodes {
		if err := n.start(); err != nil {
			w.violatef("node %d does not start: %v", n.index, err)
			w.end()
			w.close()
			return w.failed()
		}
	}
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() { w.watch(stop) })
	w.load()
	for _, s := range w.steps() {
		time.Sleep(s.at - time.Since(w.began))
		s.do()
	}
	time.Sleep(p.Duration - time.Since(w.began))
	w.drain()
	w.farewell()
	close(stop)
	watch.Wait()
	w.close()
	w.judge()
	counts.Rounds.Add(1)
	if p.Keys != NoKeys {
		counts.Sealed.Add(1)
	}
	fails := w.failed()
	if len(fails) > 0 && dir != "" {
		fails = append(fails, w.save(dir)...)
	}
	return fails
}

// load begins all that is to be done.
func (w *world) load() {
	for _, f := range w.flows[:len(w.plan.Flows)] {
		w.work.Go(f.run)
	}
	for i := range w.plan.Links {
		w.work.Go(func() { w.dialLinks(i, &w.plan.Links[i]) })
	}
	for _, way := range w.plan.Letters {
		w.work.Go(func() { w.write(way) })
	}
	if w.plan.Stranger > 0 {
		w.work.Go(w.strangers)
	}
}

// drain has the network calm, everybody there, and waits until all is answered.
func (w *world) drain() {
	for _, leave := range w.leave {
		leave()
	}
	for _, n := range w.nodes {
		n.pause(false)
	}
	w.g.calm()
	for _, n := range w.nodes {
		w.restart(n)
	}
	w.excuse(w.settle())
	w.end()
	w.await("all that goes on ends", w.ended(&w.work))
	for _, f := range w.flows {
		w.await(f.String()+" has nothing under way", func() bool { return f.waiting() == 0 })
	}
}

// ended returns a function that reports whether all of a group have ended.
func (w *world) ended(group *sync.WaitGroup) func() bool {
	over := make(chan struct{})
	go func() {
		group.Wait()
		close(over)
	}()
	return func() bool {
		select {
		case <-over:
			return true
		default:
			return false
		}
	}
}

// await waits until it is so, and complains when that takes too long. Once something took too
// long nothing else is waited for.
func (w *world) await(what string, so func() bool) {
	deadline := time.Now()
	if !w.tooLong {
		deadline = deadline.Add(w.plan.GiveUp + 60*time.Second + w.settle())
	}
	for !so() {
		if time.Now().After(deadline) {
			w.violatef("at the end it is not so that %s", what)
			w.tooLong = true
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// farewell checks that every connection still works. The first transaction may learn of a
// restart.
func (w *world) farewell() {
	for _, f := range w.lasts() {
		from, to := w.nodes[f.plan.From], w.nodes[f.plan.To]
		done := func() bool {
			f.mu.Lock()
			defer f.mu.Unlock()
			return f.pending == 0 && f.lastDone > 0 && f.lastErr == nil && to.book.Free(f.own, 0)
		}
		w.await(f.String()+" works", func() bool {
			if done() {
				return true
			}
			if f.waiting() == 0 {
				if c, ok := from.conn(to); ok && c.Err() != nil {
					from.reset(to)
				}
				select {
				case i := <-f.free:
					if !f.post(i) {
						f.free <- i
					}
				default:
				}
			}
			return false
		})
	}
	for _, n := range w.nodes {
		for _, to := range w.nodes {
			if !Joined(n.index, to.index) {
				continue
			}
			if c, ok := n.conn(to); ok {
				w.await(fmt.Sprintf("node %d has nothing left for %d", n.index, to.index), func() bool {
					s := c.Stats()
					return s.InFlight == 0 && s.Queued == 0 && s.Open == 0 && !s.Down
				})
			}
		}
	}
}

// close ends all nodes.
func (w *world) close() {
	for _, n := range w.nodes {
		n.finish(false, n.index%2 == 0)
	}
	w.await("links end", w.ended(&w.takers))
	w.count()
}

// judge looks at the memories, and at what links left behind.
func (w *world) judge() {
	for _, n := range w.nodes {
		n.book.Image()
	}
	for _, f := range w.flows {
		if n := f.waiting(); n > 0 {
			w.violatef("%v: %d transactions are never done", f, n)
		}
	}
	for _, r := range w.links {
		if r.closed && !r.aborted && !w.plan.MayFail && r.received != r.total {
			w.violatef("%v: %d messages of %d that arrived were received", r, r.received, r.total)
		}
	}
}

// save leaves the plan and a capture of each node, and returns where.
func (w *world) save(dir string) (said []string) {
	for _, n := range w.nodes {
		name := filepath.Join(dir, fmt.Sprintf("soak-%s-%d-node%d.pcap", w.plan.Wire, w.plan.Seed, n.index))
		if err := n.recent.save(name); err != nil {
			said = append(said, err.Error())
			continue
		}
		said = append(said, "capture: "+name)
	}
	name := filepath.Join(dir, fmt.Sprintf("soak-%s-%d-plan.txt", w.plan.Wire, w.plan.Seed))
	text := w.plan.String() + strings.Join(w.failed(), "\n") + "\n"
	if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
		return append(said, err.Error())
	}
	return append(said, "plan: "+name)
}
