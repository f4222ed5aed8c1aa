package dgrdma

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// gigabit is a link with a wire and a window that hold little.
var gigabit = simnet.Link{Rate: 1e9, Latency: 20 * time.Microsecond}

// finishing notes the order in which transactions are done.
type finishing struct {
	mu    sync.Mutex
	order []string
	at    map[string]time.Time
}

func (f *finishing) as(name string) func(*Transaction, error) {
	return func(_ *Transaction, err error) {
		f.mu.Lock()
		defer f.mu.Unlock()
		if err != nil {
			name += ": " + err.Error()
		}
		f.order = append(f.order, name)
		if f.at == nil {
			f.at = make(map[string]time.Time)
		}
		f.at[name] = time.Now()
	}
}

// TestUrgentPasses checks that an urgent transaction passes all that was posted before it and has
// not begun, and what of a large transaction is not in frames yet.
func TestUrgentPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{size: 32 << 20, link: gigabit, a: Config{Window: 16}, b: Config{Window: 16}})
		defer p.close()
		if err := p.toB.Write(t.Context(), write(64, []byte("hello"), 0, 1)); err != nil {
			t.Fatal(err)
		}
		var f finishing
		began := time.Now()
		for range 20 { // of 8 ms each
			x := write(64, make([]byte, 1<<20), 0, 1)
			x.Done = f.as("bulk")
			if err := p.toB.Post(x); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Millisecond)
		for range 3 {
			x := write(0, []byte("now!"), 0, 1)
			x.Urgent, x.Done = true, f.as("urgent")
			at := time.Now()
			if err := p.toB.Post(x); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond)
			f.mu.Lock()
			if took := f.at["urgent"].Sub(at); took <= 0 || took > 500*time.Microsecond {
				t.Errorf("it took %v", took)
			}
			f.mu.Unlock()
		}
		time.Sleep(time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.order) != 23 || f.order[0] != "urgent" || f.order[22] != "bulk" {
			t.Errorf("%v", f.order)
		}
		if took := f.at["bulk"].Sub(began); took > 180*time.Millisecond {
			t.Errorf("the others took %v", took)
		}
	})
}

// TestUrgentInOrder checks that urgent transactions begin in the order in which they were posted.
func TestUrgentInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{link: gigabit})
		defer p.close()
		var f finishing
		for _, name := range []string{"1", "2", "3"} {
			x := write(0, []byte("now!"), 0, 1)
			x.Urgent, x.Done = true, f.as(name)
			if err := p.toB.Post(x); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.order) != 3 || f.order[0]+f.order[1]+f.order[2] != "123" {
			t.Errorf("%v", f.order)
		}
	})
}

// TestFlowsTakeTurns checks that flows that are always full get the same share, however large their
// transactions are, and that one that asks for little waits for one turn of each.
func TestFlowsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{size: 8 << 20, link: gigabit, a: Config{Window: 16}, b: Config{Window: 16}})
		defer p.close()
		here, there := newShelf("post", 1<<17), newShelf("post", 1<<17)
		serve(t, p.a, here)
		base := serve(t, p.b, there)
		time.Sleep(time.Second)
		ch := here.channel(0)
		var mu sync.Mutex
		moved := make(map[int]int)
		sizes := []int{1 << 10, 60_000, 7000}
		end := time.Now().Add(200 * time.Millisecond)
		for i, size := range sizes {
			flow := ch.Flow()
			for range 40 {
				x := write(base+MailSize, make([]byte, size), base+MailSize, 1)
				x.Done = func(x *Transaction, err error) {
					if err == nil && time.Now().Before(end) {
						mu.Lock()
						moved[i] += size
						mu.Unlock()
						flow.Post(x)
					}
				}
				if err := flow.Post(x); err != nil {
					t.Fatal(err)
				}
			}
		}
		little := ch.Flow()
		for time.Now().Before(end) {
			time.Sleep(3 * time.Millisecond)
			at := time.Now()
			if err := settle(t, little, write(base+MailSize, []byte("x"), base+MailSize, 1)); err != nil {
				t.Fatal(err)
			}
			// Three turns of 0.14 ms, 16 frames on the wire, and the path.
			if took := time.Since(at); took > 900*time.Microsecond {
				t.Errorf("little took %v", took)
			}
		}
		time.Sleep(time.Second)
		mu.Lock()
		defer mu.Unlock()
		most, least := max(moved[0], moved[1], moved[2]), min(moved[0], moved[1], moved[2])
		if float64(least) < 0.9*float64(most) || most == 0 {
			t.Errorf("%v", moved)
		}
	})
}

// TestFenceOfAFlow checks that a fence of a flow waits for what its own flow posted, and holds no
// other up.
func TestFenceOfAFlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{size: 8 << 20, link: simnet.Link{Latency: 10 * time.Millisecond}})
		defer p.close()
		here, there := newShelf("post", 1<<17), newShelf("post", 1<<17)
		serve(t, p.a, here)
		base := serve(t, p.b, there)
		time.Sleep(time.Second)
		one, two := here.channel(0).Flow(), here.channel(0).Flow()
		var f finishing
		began := time.Now()
		post := func(flow *Flow, name string, fence bool) {
			x := write(base+MailSize, []byte("x"), base+MailSize, 1)
			x.Fence, x.Done = fence, f.as(name)
			if err := flow.Post(x); err != nil {
				t.Fatal(err)
			}
		}
		post(one, "first", false)
		post(one, "fenced", true)
		post(one, "behind", false)
		post(two, "other", false)
		post(two, "other fenced", true)
		time.Sleep(time.Second)
		f.mu.Lock()
		defer f.mu.Unlock()
		for name, rounds := range map[string]int{"first": 1, "fenced": 2, "behind": 2, "other": 1, "other fenced": 2} {
			took := f.at[name].Sub(began)
			if least := time.Duration(rounds) * 20 * time.Millisecond; took < least || took > least+10*time.Millisecond {
				t.Errorf("%s took %v, want %d round trips", name, took, rounds)
			}
		}
	})
}

// TestOneAfterTheOther checks that peers of other kinds get one transaction after the other, also
// if what comes next is urgent.
func TestOneAfterTheOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		profile := OpenCPI(false)
		var txns []uint32
		var ends int
		p := newPair(t, pairConfig{a: Config{Profile: &profile, Trace: &Trace{FrameSent: func(_ PeerName, b []byte, again bool) {
			f, err := frame.Parse(b)
			if err != nil {
				t.Error(err)
			}
			for c := f.Cursor(); c.Next() && !again; {
				if n := len(txns); n == 0 || txns[n-1] != c.Msg.Txn {
					txns = append(txns, c.Msg.Txn)
				}
				ends++
			}
		}}}, b: Config{Profile: &profile}, size: 4 << 20, link: gigabit})
		defer p.close()
		for i := range 10 {
			x := write(0, make([]byte, 100_000), 0, 1)
			if i%2 == 1 {
				x = write(0, []byte("now!"), 0, 1)
				x.Urgent = true
			}
			if err := p.toB.Post(x); err != nil {
				t.Fatal(err)
			}
			time.Sleep(300 * time.Microsecond)
		}
		time.Sleep(time.Minute)
		if s := p.toB.Stats(); s.TransactionsDone != 10 || len(txns) != 10 {
			t.Errorf("%d are done; messages of %d runs: %v", s.TransactionsDone, len(txns), txns)
		}
	})
}

// TestQueueIsOfMemory checks that what services post does not fill the queue of what is posted to
// memory.
func TestQueueIsOfMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, pairConfig{a: Config{Queue: 2}, link: simnet.Link{Latency: time.Millisecond}})
		defer p.close()
		here, there := newShelf("post", 1<<17), newShelf("post", 1<<17)
		serve(t, p.a, here)
		base := serve(t, p.b, there)
		time.Sleep(time.Second)
		flow := here.channel(0).Flow()
		for range 10 {
			if err := flow.Post(write(base+MailSize, nil, base+MailSize, 1)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 3 {
			x := write(0, nil, 0, 1)
			x.Urgent = i == 1
			if err := p.toB.Post(x); (err == ErrQueueFull) != (i == 2) {
				t.Errorf("transaction %d: %v", i, err)
			}
		}
		time.Sleep(time.Second)
		if err := p.toB.Post(write(0, nil, 0, 1)); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Second)
	})
}
