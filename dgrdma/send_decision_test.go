package dgrdma

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/foreign"
	"github.com/dgrdma/dgrdma/endpoint/run"
	"github.com/dgrdma/dgrdma/endpoint/session"
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
func (d *diary) disarm()               { d.at = run.Never }

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
	flying   []frame.Seq     // frames that wait for acknowledgement; their ids are counted from the epoch, if there is a session
	epoch    uint32          // the local one, in the session
	peer     ack.ReceivedIDs // what the peer got in the session
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
	r := &halfRig{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 0)), e: f.e, c: c, now: f.e.now(), diary: diary{at: run.Never}}
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
	r.e.deliverNotifications()
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
	if r.c.build(&r.e.batch, r.now) || len(r.e.batch.Frames()) > 0 || r.diary.waits || r.diary.at > at {
		r.fatalf("after %s at %v: there was nothing to send, and it was sent", r.last, r.now)
	}
	lost, down := tx.unacked.Lost(), tx.err
	missed, why := tx.overdue(r.now, r.now)
	if missed > 0 || why != nil || tx.err != down || tx.probe || tx.unacked.Lost() != lost {
		r.fatalf("after %s at %v: something was overdue (%v) that was to be looked at at %v", r.last, r.now, why, at)
	}
}

// serve does what the holder of the send lock does.
func (r *halfRig) serve() {
	r.t.Helper()
	if !r.diary.waits {
		return
	}
	r.diary.waits = false
	b := &r.e.batch
	for more := true; more; {
		more = r.c.build(b, r.now)
		if more && len(b.Frames()) == 0 {
			r.fatalf("after %s: the batch is full with no frame", r.last)
		}
		for _, o := range b.Frames() {
			bytes := slices.Concat(o.Buf[b.Headroom():], o.Rest)
			if frame.IsSession(bytes) {
				f, err := frame.ParseSession(bytes)
				if err != nil {
					r.t.Fatal(err)
				}
				if f.Control == frame.NoControl || f.Control == frame.ControlBell {
					r.flying = append(r.flying, frame.Seq(f.ID-r.epoch))
				}
				continue
			}
			f, err := frame.Parse(bytes)
			if err != nil {
				r.t.Fatal(err)
			}
			_, hello := handshakeIn(&f)
			if tracked := f.HasMessages() && !hello; tracked || r.c.profile.Probe && len(o.Buf) == foreign.ProbeSize {
				r.flying = append(r.flying, f.Seq)
			}
		}
		e := engine{r.e}
		e.Flush()
	}
	if r.diary.waits && !r.c.profile.NoAcks {
		r.fatalf("after %s at %v: all was built, and there is more to send now: that would never end", r.last, r.now)
	}
	if r.diary.waits { // what was sent counts as delivered, and makes room in the window
		r.serve()
		return
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
	r.diary.at = run.Never
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
	if n := r.c.session; n == nil {
		if o := r.foreign(); o != nil {
			for _, run := range runs {
				o.Refused(r.now, &frame.Frame{Header: frame.Header{Seq: o.Newest(), AckStart: run.Start, AckCount: run.Count}})
			}
		}
	} else if len(runs) > 0 && n.rx.frames.HasSession() {
		for _, run := range runs {
			for i := range uint32(run.Count) {
				if id := r.epoch + uint32(run.Start) + i; r.peer.Check(id) == ack.Fresh {
					r.peer.Arrive(r.now, id, 0)
				}
			}
		}
		r.e.acks.Clear()
		if ranges := r.peer.AppendRanges(nil); ranges == nil {
			n.rx.frames.Acknowledges(r.peer.UpTo()) // without an echo, which would say which copy arrived
		} else {
			n.rx.frames.Note(r.ackFrame(ranges))
		}
	}
	r.c.endBatch(r.now, &fin)
	fin.deliver()
}

// ackFrame returns an ACK of the peer's. It echoes the epoch, and so no frame.
func (r *halfRig) ackFrame(ranges []frame.Range) *frame.SessionFrame {
	r.t.Helper()
	b := make([]byte, frame.MostSessionAck)
	h := frame.SessionHeader{Ack: r.peer.UpTo(), ID: r.epoch}
	f, err := frame.ParseSession(b[:frame.PutSessionAckFrame(b, &h, false, 0, frame.LongestDelay, ranges)])
	if err != nil {
		r.t.Fatal(err)
	}
	return &f
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
	if _, _, err := r.c.enqueue(x, x.Done, nil, posting{to: anyEpoch, flow: r.flow()}); err == nil {
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
	r.heard++
	again := r.rnd.IntN(8) == 0
	switch n := r.c.session; {
	case n != nil && !n.rx.frames.HasSession():
		return
	case n != nil:
		f := frame.SessionFrame{SessionHeader: frame.SessionHeader{ID: uint32(n.tx.m.Remote) + uint32(r.heard), Ack: r.epoch}}
		if n.rx.frames.Check(r.now, &f) == ack.Fresh {
			n.rx.frames.Arrived(r.now, &f)
		}
		if again {
			n.rx.frames.Check(r.now, &f)
		}
	case again:
		r.comesAgain(r.heard - 1)
	default:
		r.cameNew(r.heard)
	}
	r.batch()
}

// answers has a session peer answer a HELLO under that epoch, and show that it has the session.
func (r *halfRig) answers(epoch uint32) {
	n := r.c.session
	if n == nil || n.tx.m.State != session.Asking {
		return
	}
	n.acts(r.now, &session.Frame{Kind: session.Welcome, Sender: session.Epoch(epoch), Receiver: n.tx.m.Local}, spoken{peerServices: peerServices{servesMemory(), true}})
	r.begins()
	n.rx.rises(r.now)
}

// begins notes that a session began.
func (r *halfRig) begins() {
	r.epoch, r.heard, r.flying = uint32(r.c.session.tx.m.Local), 0, nil
	r.peer.Begin(r.epoch)
	r.batch()
}

// restarts has a session peer answer that it does not have the session, and begin another one.
func (r *halfRig) restarts(epoch uint32) {
	n := r.c.session
	if n == nil || n.tx.m.State != session.Up {
		return
	}
	n.acts(r.now, &session.Frame{Kind: session.Reset, QuotedTag: n.tx.m.Tag(), ID: n.tx.sent.Next() - 1}, spoken{})
	r.answers(epoch)
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
		if r.diary.at < run.Never {
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
			if r.c.cancel(r.posted[i]) {
				r.posted = append(r.posted[:i], r.posted[i+1:]...)
			}
		}
	case n < 99:
		r.last = "an answer"
		r.answers(1<<30 + life)
	case life%5 == 0:
		r.last = "a restart of the peer"
		r.restarts(1<<30 + life)
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
	for looks := 0; r.c.tx.posted.Len() > 0 && r.c.tx.err == nil; looks++ {
		if looks > 100000 {
			r.fatalf("%d transactions are never done; there is something to send: %v, looked at at %v, now is %v", r.c.tx.posted.Len(), r.diary.waits, r.diary.at, r.now)
		}
		r.last = "the end"
		switch {
		case r.diary.waits:
			r.serve()
		case len(r.flying) > 0:
			r.acknowledge(true)
		case r.diary.at == run.Never:
			r.fatalf("%d transactions are posted, and nothing will ever happen", r.c.tx.posted.Len())
		default:
			r.now = max(r.now, r.diary.at)
			r.expire()
		}
		if !r.c.tx.ready {
			r.answers(life)
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

// TestNext checks that next agrees with the code that asks it, or should: whatever happens in
// whichever order, a connection that has something to send is queued, or armed for no later than
// next says; the goroutine that serves or looks at it never finds that there is more at the same
// moment; and everything that was posted is done in the end.
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
