package endpoint

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/sched"
	"github.com/dgrdma/dgrdma/frame"
)

// diary is an agenda that does nothing by itself: the test serves.
type diary struct {
	waits bool
	at    ack.Instant
}

func (d *diary) queue()                { d.waits = true }
func (d *diary) queued() bool          { return d.waits }
func (d *diary) arm(_, at ack.Instant) { d.at = at }
func (d *diary) disarm()               { d.at = sched.Never }

// halfRig drives the sending half of a connection by itself: the test is the scheduler,
// the peer and the time.
type halfRig struct {
	t        *testing.T
	seed     uint64
	rnd      *rand.Rand
	e        *Endpoint
	c        *Conn
	diary    diary
	now      ack.Instant
	last     string
	flows    [3]Flow
	flying   []frame.Seq // frames with messages that nobody acknowledged
	posted   []*Transaction
	heard    frame.Seq // the newest id that the peer used
	done     int
	answered func(*Transaction, error)
}

func newHalfRig(t *testing.T, seed uint64, p Profile, cfg Config) *halfRig {
	f := newFeed(t, cfg)
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &p})
	if err != nil {
		t.Fatal(err)
	}
	f.e.Progress(0)
	r := &halfRig{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 0)), e: f.e, c: c, now: f.e.now(), diary: diary{at: sched.Never}}
	r.answered = func(x *Transaction, _ error) {
		r.done++
		for i := range r.posted {
			if r.posted[i] == x {
				r.posted = append(r.posted[:i], r.posted[i+1:]...)
				return
			}
		}
	}
	for i := range r.flows {
		r.flows[i] = Flow{conn: c, name: c.plain.name}
	}
	c.tx.agenda = &r.diary
	r.diary.queue()
	return r
}

func (r *halfRig) fatalf(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("seed %d: "+format, append([]any{r.seed}, args...)...)
}

// check holds the agenda against next, and next against what it speaks of: where it
// says that there is nothing to do, neither a turn nor a look does anything.
func (r *halfRig) check() {
	r.t.Helper()
	r.e.deliverFinished()
	tx := &r.c.tx
	send, at := tx.next(r.now)
	switch {
	case r.diary.waits:
		return
	case send && r.diary.at > r.now:
		r.fatalf("after %s at %v: there is something to send, and nobody will", r.last, r.now)
	case !send && r.diary.at > at:
		r.fatalf("after %s at %v: it is to be looked at at %v, armed for %v", r.last, r.now, at, r.diary.at)
	}
	if send || at <= r.now {
		return
	}
	if r.c.pack(&r.e.batch, r.now) || len(r.e.batch.frames) > 0 || r.diary.waits || r.diary.at > at {
		r.fatalf("after %s at %v: there was nothing to send, and it was sent", r.last, r.now)
	}
	lost, down := tx.sender.Lost(), tx.err
	missed, why := tx.overdue(r.now, r.now)
	if missed > 0 || why != nil || tx.err != down || tx.probe || tx.sender.Lost() != lost {
		r.fatalf("after %s at %v: something was overdue (%v) that was to be looked at at %v", r.last, r.now, why, at)
	}
}

// serve does what who has the turn to send does.
func (r *halfRig) serve() {
	r.t.Helper()
	if !r.diary.waits {
		return
	}
	r.diary.waits = false
	b := &r.e.batch
	for more := true; more; {
		more = r.c.pack(b, r.now)
		if more && len(b.frames) == 0 {
			r.fatalf("after %s: the batch is full with no frame", r.last)
		}
		for _, o := range b.frames {
			f, err := frame.Parse(slices.Concat(o.Buf[b.headroom:], o.Rest))
			if err != nil {
				r.t.Fatal(err)
			}
			_, hello := helloOf(&f)
			if tracked := f.HasMessages() && !hello; tracked || r.c.profile.Probe && len(o.Buf) == probeLength {
				r.flying = append(r.flying, f.Seq)
			}
		}
		e := engine{r.e}
		e.Flush()
	}
	if r.diary.waits && !r.c.profile.NoAcks {
		r.fatalf("after %s at %v: all was packed, and there is more to send now: that would never end", r.last, r.now)
	}
	if send, _ := r.c.tx.next(r.now); !r.diary.waits && !send && r.diary.at <= r.now {
		r.expire()
	}
}

// expire does what the scheduler does when the time has come.
func (r *halfRig) expire() {
	r.t.Helper()
	if r.diary.at > r.now {
		return
	}
	r.diary.at = sched.Never
	var fin finished
	r.c.expire(r.now, &fin)
	fin.deliver()
	if !r.diary.waits && r.diary.at <= r.now {
		r.fatalf("after %s at %v: it is to be looked at again at %v: that would never end", r.last, r.now, r.diary.at)
	}
}

// batch ends a batch of datagrams with what acknowledges.
func (r *halfRig) batch(runs ...ack.Range) {
	var fin finished
	r.c.rx.lastAt, r.c.rx.livedAt = r.now, r.now
	r.c.rx.acks = append(r.c.rx.acks, runs...)
	r.c.endBatch(r.now, &fin)
	fin.deliver()
}

// acknowledge has the peer acknowledge a frame that it has, or all of them.
func (r *halfRig) acknowledge(all bool) {
	for len(r.flying) > 0 {
		i := r.rnd.IntN(len(r.flying))
		if r.c.profile.Cumulative && (all || r.rnd.IntN(20) > 0) {
			i = 0
		}
		q := r.flying[i]
		r.flying = append(r.flying[:i], r.flying[i+1:]...)
		r.batch(ack.Range{Start: q, Count: 1})
		if !all {
			return
		}
	}
}

func (r *halfRig) post() {
	x := &Transaction{Completion: Word(0, 1), Fence: r.rnd.IntN(8) == 0, Urgent: r.rnd.IntN(6) == 0, Done: r.answered}
	if n := r.rnd.IntN(4); n > 0 {
		x.Segments = []Segment{{Bytes: make([]byte, 16*(1+r.rnd.IntN([]int{2, 100, 2000}[n-1])))}}
	}
	if _, _, err := r.c.enqueue(x, x.Done, nil, posting{to: whoever, flow: r.flow()}); err == nil {
		r.posted = append(r.posted, x)
	}
}

// flow returns one of a few to the peer's memory.
func (r *halfRig) flow() *Flow {
	if i := r.rnd.IntN(2 * len(r.flows)); i < len(r.flows) {
		return &r.flows[i]
	}
	return &r.c.plain
}

// hear has something come from the peer that is to be acknowledged.
func (r *halfRig) hear() {
	if r.rnd.IntN(8) == 0 {
		r.heard++ // one is lost
	}
	if r.heard++; r.rnd.IntN(8) == 0 {
		r.c.rx.recv.Again(r.heard - 1)
	} else {
		r.c.rx.recv.Accept(r.heard, 0)
	}
	if o, ok := r.c.rx.kind.(*foreignReceiving); ok && o.profile.NeverRetransmits {
		o.gaps.came(r.now, r.heard)
	}
	r.batch()
}

// believe has a peer of our own kind introduce itself, in a new life or the one it is in.
func (r *halfRig) believe(life uint32) {
	mine, theirs := r.c.tx.kind.lives()
	if mine == unknown {
		return
	}
	h := frame.Hello{Life: max(life, uint32(theirs)), Peer: uint32(mine)}
	if n := r.c.tx.kind.(*nativeSending); n.later != unknown {
		h.Peer = uint32(n.later)
	}
	fr := frame.Frame{}
	m := h.Message()
	b := encode(1, r.heard, m)
	if err := fr.Decode(b); err != nil {
		r.t.Fatal(err)
	}
	r.c.rx.receive(r.now, &fr)
	r.batch()
}

func (r *halfRig) step(life uint32) {
	switch n := r.rnd.IntN(100); {
	case n < 25:
		r.last = "a post"
		r.post()
	case n < 50:
		r.last = "a turn"
		r.serve()
	case n < 65:
		r.last = "an acknowledgement"
		r.acknowledge(false)
	case n < 75:
		r.last = "a frame"
		r.hear()
	case n < 85:
		r.last = "some time"
		r.now = r.now.Add(time.Duration(r.rnd.IntN(int([]time.Duration{time.Microsecond, time.Millisecond, 300 * time.Millisecond, 3 * time.Second}[r.rnd.IntN(4)]))))
	case n < 92:
		r.last = "the next deadline"
		if r.diary.at < sched.Never {
			r.now = max(r.now, r.diary.at)
		}
		r.expire()
	case n < 94:
		r.last = "the loss of a frame"
		if len(r.flying) > 0 {
			r.flying = r.flying[1:]
		}
	case n < 96:
		if r.last = "a transaction taken back"; len(r.posted) > 0 {
			i := r.rnd.IntN(len(r.posted))
			if r.c.withdraw(r.posted[i]) {
				r.posted = append(r.posted[:i], r.posted[i+1:]...)
			}
		}
	case n < 97:
		r.last = "something of another life"
		r.c.rx.reminds = true
		r.batch()
	case n < 99:
		r.last = "an introduction"
		r.believe(0)
	case life%5 == 0:
		r.last = "another life"
		r.believe(1<<30 + life)
	case life%5 == 1:
		r.last = "Reset"
		r.flying = nil
		if err := r.c.reset(0); err != nil {
			r.t.Fatal(err)
		}
	}
}

// settle has the peer answer everything until nothing is posted any more, and for a while
// after.
func (r *halfRig) settle(life uint32) {
	for looks := 0; r.c.tx.posted.n > 0 && r.c.tx.err == nil; looks++ {
		if looks > 100000 {
			r.fatalf("%d transactions are never done; there is something to send: %v, looked at at %v, now is %v", r.c.tx.posted.n, r.diary.waits, r.diary.at, r.now)
		}
		r.last = "the end"
		switch {
		case r.diary.waits:
			r.serve()
		case len(r.flying) > 0:
			r.acknowledge(true)
		case r.diary.at == sched.Never:
			r.fatalf("%d transactions are posted, and nothing will ever happen", r.c.tx.posted.n)
		default:
			r.now = max(r.now, r.diary.at)
			r.expire()
		}
		if _, theirs := r.c.tx.kind.lives(); !r.c.tx.ready && theirs == unknown {
			r.believe(life)
		}
		r.check()
	}
	for over := r.now.Add(2 * restAfter); r.now < over && (r.diary.waits || r.diary.at <= over); r.check() {
		r.serve()
		r.now = max(r.now, min(r.diary.at, over))
		r.expire()
	}
	if r.c.tx.resting() {
		r.fatalf("nothing was posted for long, and memory for frames in flight is kept")
	}
}

// TestNext holds next against those who ask it, or should: whatever happens in whichever
// order, a connection that has something to send is queued, or armed for no later than
// next says; who serves or looks at it never finds that there is more at the same moment;
// and everything that was posted is done in the end.
func TestNext(t *testing.T) {
	small := Native()
	small.Window, small.Span, small.OpenTransactions = 4, 8, 3
	fpga, dg1, legacy := FPGA(), OpenCPI(true), Legacy(true)
	paced := OpenCPI2()
	paced.Drain = 1_000_000
	unhurried := legacy
	unhurried.Window, unhurried.Span, unhurried.AckDelay = 4, 4, 0
	for _, x := range []struct {
		name string
		p    Profile
		cfg  Config
		once []uint64 // seeds that failed once
	}{
		{"native", Native(), Config{}, []uint64{1795640846828075125}},
		{"native, narrow", small, Config{}, nil},
		{"native, in company", small, Config{Coalesce: time.Millisecond}, nil},
		{"native, asked whether it is there", Native(), Config{KeepAlive: 20 * time.Millisecond, GiveUp: time.Second}, []uint64{1795640425300119485, 1795640776298561737}},
		{"card", fpga, Config{}, nil},
		{"first driver", dg1, Config{Coalesce: 50 * time.Microsecond}, nil},
		{"old driver, without delay", unhurried, Config{}, nil},
		{"second driver", paced, Config{}, nil},
		{"old driver", legacy, Config{}, nil},
	} {
		t.Run(x.name, func(t *testing.T) {
			done, rigs := 0, fewer(60, 12)
			for n := range rigs {
				seed := uint64(time.Now().UnixNano())
				if n < len(x.once) {
					seed = x.once[n]
				}
				cfg := x.cfg
				cfg.Queue = 20
				r := newHalfRig(t, seed, x.p, cfg)
				for i := range uint32(400) {
					if r.c.tx.err != nil {
						r.flying = nil
						r.last = "Reset of a peer that was given up"
						r.c.reset(0)
					}
					r.step(i)
					r.check()
				}
				r.settle(1 << 29)
				done += r.done
			}
			if done < 500*rigs/60 {
				t.Errorf("%d transactions were done: not much happened", done)
			}
		})
	}
}
