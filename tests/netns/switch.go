package netns

import (
	"container/heap"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/internal/namespace"
)

// Switch joins the two namespaces of a [Pair] through a process of ours: each
// has a cable to a third one, and frames are carried between the two cables by
// goroutines, which do to them what [Faults] say.
type Switch struct {
	Pair
	seed  uint64
	lanes [2]*lane
	ports [2]*os.File
	wg    sync.WaitGroup
}

// lane is one direction: frames that wait until they are sent on.
type lane struct {
	mu      sync.Mutex
	dir     *direction
	waiting journeys
	order   uint64
	wake    chan struct{} // capacity 1: something new waits
	stop    chan struct{}
}

// NewSwitch makes a switch that lasts until the test ends. faults[0] is what
// happens to frames from side 0. It logs the seed.
func NewSwitch(t testing.TB, mtu int, seed uint64, faults [2]Faults) *Switch {
	t.Helper()
	t.Logf("switch: seed %d", seed)
	pair, ports, err := namespace.OpenFabric(mtu)
	if err != nil {
		t.Fatal(err)
	}
	s := &Switch{Pair: pairOf(pair), ports: ports, seed: seed}
	for side := range s.lanes {
		s.lanes[side] = &lane{dir: newDirection(faults[side], seed, uint64(side)), wake: make(chan struct{}, 1), stop: make(chan struct{})}
	}
	for side, l := range s.lanes {
		s.wg.Add(2)
		go func() {
			defer s.wg.Done()
			l.take(s.ports[side])
		}()
		go func() {
			defer s.wg.Done()
			l.send(s.ports[1-side])
		}()
	}
	t.Cleanup(s.close)
	return s
}

func (s *Switch) close() {
	for side := range s.ports {
		s.ports[side].Close()
		close(s.lanes[side].stop)
	}
	s.wg.Wait()
	s.Pair.Close()
}

// SetFaults changes what happens to frames from a side.
func (s *Switch) SetFaults(side int, f Faults) {
	l := s.lanes[side]
	l.mu.Lock()
	defer l.mu.Unlock()
	passed, rng := l.dir.passed, l.dir.rng
	l.dir = newDirection(f, s.seed, uint64(side))
	l.dir.passed, l.dir.rng = passed, rng
}

// Passed returns what happened so far to frames from a side.
func (s *Switch) Passed(side int) Passed {
	l := s.lanes[side]
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dir.passed
}

func (l *lane) take(port *os.File) {
	buf := make([]byte, 1<<16)
	var out []journey
	for {
		n, err := port.Read(buf)
		if errors.Is(err, os.ErrClosed) {
			return
		}
		if err != nil {
			continue // the cable was pulled; the kernel says so once
		}
		l.mu.Lock()
		out = l.dir.pass(time.Now(), append([]byte(nil), buf[:n]...), out[:0])
		for _, j := range out {
			heap.Push(&l.waiting, waiting{j, l.order})
			l.order++
		}
		l.mu.Unlock()
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

func (l *lane) send(port *os.File) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		f, wait := l.next(time.Now())
		if f != nil {
			port.Write(f) // refused is lost
			continue
		}
		timer.Reset(wait)
		select {
		case <-l.stop:
			return
		case <-l.wake:
		case <-timer.C:
		}
	}
}

// next takes the frame that is due, or tells how long to wait.
func (l *lane) next(now time.Time) ([]byte, time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return nil, time.Hour
	}
	if wait := l.waiting[0].due.Sub(now); wait > 0 {
		return nil, wait
	}
	return heap.Pop(&l.waiting).(waiting).frame, 0
}

// waiting is a frame in the heap; frames due at the same time keep their order.
type waiting struct {
	journey
	order uint64
}

type journeys []waiting

func (q journeys) Len() int      { return len(q) }
func (q journeys) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q journeys) Less(i, j int) bool {
	if c := q[i].due.Compare(q[j].due); c != 0 {
		return c < 0
	}
	return q[i].order < q[j].order
}
func (q *journeys) Push(x any) { *q = append(*q, x.(waiting)) }
func (q *journeys) Pop() any {
	last := len(*q) - 1
	x := (*q)[last]
	(*q)[last] = waiting{}
	*q = (*q)[:last]
	return x
}
