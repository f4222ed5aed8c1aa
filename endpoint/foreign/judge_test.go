package foreign_test

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/foreign"
	"github.com/dgrdma/dgrdma/endpoint/reassembly"
	"github.com/dgrdma/dgrdma/frame"
)

// Times after which peers without sessions are judged in another way.
const (
	heldBack  = time.Second            // the network may hold a frame back for so long
	copyDelay = 100 * time.Millisecond // the network doubles a frame within that
)

// peer is what an endpoint knows of a peer without sessions.
type peer struct {
	*testing.T
	foreign.Sender
	foreign.Receiver
	open reassembly.Table
	held reassembly.Holding
	pool reassembly.Pool
	now  ack.Instant
}

func newPeer(t *testing.T, prof foreign.Profile) *peer {
	p := &peer{T: t, now: ack.Instant(time.Hour)}
	p.held.Init(&p.pool)
	p.open.Init(4096, &p.held)
	p.Sender.Init(&prof, 2, 1, foreign.Timing{MaxRTO: time.Second, GiveUp: 10 * time.Second})
	p.Receiver.Init(&prof, &p.open)
	p.Sender.Start(p.now, 12345, &ack.FixedWindow{})
	return p
}

// alone has a frame without messages come.
func (p *peer) alone(id frame.Seq) { p.Alone(p.now, &frame.Frame{Header: frame.Header{Seq: id}}) }

// data has a frame with one message come, and acts on it.
func (p *peer) data(id frame.Seq, txn, addr uint32) foreign.Verdict {
	f := &frame.Frame{Header: frame.Header{Seq: id, Flags: frame.FlagMessages}}
	v := p.Judge(p.now, f, &frame.Message{Txn: txn, Addr: addr, Len: 16, Count: 1, Index: 1}, false)
	switch v {
	case foreign.New:
		p.Applied(p.now, f)
	case foreign.Copy:
		p.Again(p.now, f)
	}
	return v
}

// acks ends the batch, and returns what the frames acknowledge that leave at this moment.
func (p *peer) acks() (all []ack.Range) {
	foreign.Exchange(p.now, &p.Sender, &p.Receiver)
	foreign.ScheduleAck(p.now, &p.Sender, &p.Receiver, false)
	p.DropBatch()
	for {
		if at, due := p.AckAt(); !due || at > p.now {
			return all
		}
		id, ok := p.AckID(p.now)
		if !ok {
			return all
		}
		b := make([]byte, frame.HeaderSize)
		p.PutAck(b, id)
		f, err := frame.Parse(b)
		if err != nil || f.Seq != id || f.Dst != 1 && f.Dst != 2 || f.Src != 2 || f.HasMessages() {
			p.Fatalf("sent %x: %v", b, err)
		}
		all = append(all, ack.Range{Start: f.AckStart, Count: f.AckCount})
	}
}

// wait returns what is acknowledged until d from now.
func (p *peer) wait(d time.Duration) (all []ack.Range) {
	over := p.now.Add(d)
	for {
		all = append(all, p.acks()...)
		at, due := p.AckAt()
		if !due || at > over {
			p.now = over
			return all
		}
		p.now = max(p.now, at)
	}
}

// acknowledges reports whether one of the runs has that id.
func acknowledges(all []ack.Range, id frame.Seq) bool {
	for _, x := range all {
		if d := id.Diff(x.Start); d >= 0 && d < int(x.Count) {
			return true
		}
	}
	return false
}

const isAlone foreign.Verdict = 100 // it has no messages

// coming is a frame that comes so long after the one before it.
type coming struct {
	after time.Duration
	id    frame.Seq
	txn   uint32
	addr  uint32
	is    foreign.Verdict
}

// comes has those frames come from such a peer and compares what becomes of them.
func comes(t *testing.T, prof foreign.Profile, frames []coming) {
	p := newPeer(t, prof)
	for i, f := range frames {
		p.wait(f.after)
		if f.is == isAlone {
			p.alone(f.id)
			p.acks()
			continue
		}
		got := p.data(f.id, f.txn, f.addr)
		answered := acknowledges(p.acks(), f.id)
		switch every := prof.Acks == foreign.AckRepeat || prof.Acks == foreign.AckOnce; {
		case got != f.is:
			t.Fatalf("frame %d, id %d: is %d, want %d", i, f.id, got, f.is)
		case got == foreign.Copy && every && !answered:
			t.Errorf("frame %d: the copy is not acknowledged", i) // the first acknowledgement may be lost (DGRDMA-028)
		case got > foreign.Copy && answered:
			t.Errorf("frame %d: is refused and acknowledged", i)
		}
	}
}

// TestJudge checks what the frames are of a peer without sessions, by
// what is known of its kind (observations V3 and V4, docs/peers.md).
func TestJudge(t *testing.T) {
	with := func(prof foreign.Profile, change func(*foreign.Profile)) foreign.Profile {
		change(&prof)
		return prof
	}
	driver, legacy, card, quiet := foreign.OpenCPI(false), foreign.Legacy(false), foreign.FPGA(), foreign.OpenCPI2()
	never := with(driver, func(p *foreign.Profile) { p.Behind = 0 }) // too far behind
	sometime := with(driver, func(p *foreign.Profile) { p.CopyFor = 0 })
	history := frame.Seq(driver.History)
	for _, x := range []struct {
		name   string
		prof   foreign.Profile
		frames []coming
	}{
		{"behind", driver, []coming{
			{0, 300, 1, 64, foreign.New},
			{0, 45, 2, 64, foreign.New},
			{0, 44, 3, 64, foreign.OtherLife}, // by so many ids; others still come
			{heldBack - 1, 44, 3, 64, foreign.OtherLife},
			{1, 44, 3, 64, foreign.Restart},
			{0, 44, 3, 64, foreign.OtherLife}, // which is told once
			{0, 46, 4, 64, foreign.New},
		}},
		{"behind by one", with(driver, func(p *foreign.Profile) { p.Behind = 1 }), []coming{
			{0, 10, 1, 64, foreign.New},
			{0, 9, 2, 64, foreign.OtherLife},
			{0, 10, 1, 64, foreign.Copy},
		}},
		{"behind what had no messages", driver, []coming{
			{0, 1000, 0, 0, isAlone},
			{0, 500, 1, 64, foreign.New},
		}},
		{"behind the history", never, []coming{
			{0, 20000, 1, 64, foreign.New},
			{0, 20000 - history + 1, 2, 64, foreign.New},
			{0, 20000 - history, 3, 64, foreign.OtherLife},
		}},
		{"behind without limit", card, []coming{
			{0, 5000, 1, 64, foreign.New},
			{0, 1000, 2, 64, foreign.New},
		}},
		{"other headers of a driver", driver, []coming{
			{0, 5, 5, 64, foreign.New},
			{0, 6, 7, 64, foreign.New},
			{0, 5, 6, 80, foreign.Copy}, // posted again
			{0, 5, 5, 64, foreign.Copy}, // the network held it back
			{0, 200, 8, 64, foreign.New},
			{0, 200, 8, 80, foreign.OtherLife}, // posted again under another id
			{0, 6, 6, 64, foreign.Restart},
		}},
		{"transactions wrap", driver, []coming{
			{0, 5, 0xFFFFFFFF, 64, foreign.New},
			{0, 5, 1, 64, foreign.Copy},
			{0, 5, 0xFFFFFFFE, 64, foreign.Restart},
		}},
		{"other headers of one that keeps ids", legacy, []coming{
			{0, 5, 5, 64, foreign.New},
			{0, 5, 5, 80, foreign.Copy},
			{0, 5, 4, 64, foreign.Restart},
		}},
		{"other headers of a card", card, []coming{
			{0, 1000, 5, 64, foreign.New},
			{0, 1000, 6, 64, foreign.OtherLife},
			{0, 5, 7, 64, foreign.New},
			{0, 5, 7, 64, foreign.Copy},
			{0, 5, 8, 64, foreign.Restart},
		}},
		{"older transaction under another id", never, []coming{
			{0, 1000, 5, 64, foreign.New},
			{0, 1256, 1000000, 64, foreign.New},
			{0, 1000, 6, 80, foreign.Copy},
			{0, 1000, 5, 80, foreign.OtherLife},
		}},
		{"same transaction under another id", never, []coming{
			{0, 1000, 5, 64, foreign.New},
			{0, 1256, 6, 64, foreign.New},
			{0, 1000, 6, 80, foreign.Copy},
			{0, 1000, 6, 72, foreign.OtherLife},
		}},
		{"first ids come again", driver, []coming{
			{0, 1, 1, 64, foreign.New},
			{driver.CopyFor - 1, 1, 1, 64, foreign.Copy},
			{driver.CopyFor - 1, 1, 1, 64, foreign.Copy},
			{driver.CopyFor, 1, 1, 64, foreign.Restart},
		}},
		{"other ids come again", driver, []coming{
			{0, 200, 1, 64, foreign.New},
			{0, 100, 2, 64, foreign.New},
			{time.Minute, 200, 1, 64, foreign.Copy}, // after an outage
			{0, 100, 2, 64, foreign.Restart},
			{time.Minute, 200, 1, 64, foreign.OtherLife}, // and now that may be a life, too
			{0, 201, 3, 64, foreign.New},
		}},
		{"first ids of a card come again", card, []coming{
			{0, 5, 1, 64, foreign.New},
			{0, 261, 2, 64, foreign.New},
			{0, 5, 1, 64, foreign.Restart}, // so late that nothing is known of it
		}},
		{"nothing is known of copies", quiet, []coming{
			{0, 1, 1, 64, foreign.New},
			{time.Hour, 1, 1, 64, foreign.Copy},
			{0, 1, 2, 64, foreign.Restart},
		}},
		{"nothing is known of copies of a driver", sometime, []coming{
			{0, 1, 2, 64, foreign.New},
			{time.Hour, 1, 3, 64, foreign.Copy},
			{0, 1, 1, 64, foreign.Restart},
		}},
		{"far ahead, and younger", driver, []coming{
			{0, 10, 5, 64, foreign.New},
			{0, 267, 9, 64, foreign.OtherLife},
			{0, 266, 6, 64, foreign.New}, // as far as one frame alone can be
			{0, 1000, 9, 64, foreign.OtherLife},
			{0, 1000, 9, 64, foreign.New},
		}},
		{"far ahead, of the youngest", driver, []coming{
			{0, 10, 5, 64, foreign.New},
			{0, 1000, 5, 64, foreign.OtherLife},
			{0, 1000, 5, 64, foreign.New},
		}},
		{"far ahead, and older", driver, []coming{
			{0, 10, 5, 64, foreign.New},
			{0, 1000, 4, 64, foreign.OtherLife},
			{0, 1000, 4, 64, foreign.OtherLife},
			{heldBack - 1, 1000, 4, 64, foreign.OtherLife},
			{1, 1000, 4, 64, foreign.New}, // no data came for so long
		}},
		{"far ahead of nothing", driver, []coming{
			{0, 40000, 5, 64, foreign.New},
		}},
		{"no copies", with(card, func(p *foreign.Profile) { p.CopyFor = 1 }), []coming{
			{0, 1, 1, 64, foreign.New},
			{1, 1, 1, 64, foreign.Restart},
		}},
	} {
		t.Run(x.name, func(t *testing.T) { comes(t, x.prof, x.frames) })
	}
}

// TestWhichCopiesAreWaitedFor checks that a peer that need not wait for acknowledgements gets one if it
// sends again: the network makes copies sooner (quirk D2-4).
func TestWhichCopiesAreWaitedFor(t *testing.T) {
	p := newPeer(t, foreign.OpenCPI2())
	one := func(after time.Duration, id frame.Seq) (frames int) {
		p.wait(after)
		p.data(id, uint32(id), 64)
		return len(p.acks())
	}
	if one(0, 1)+one(copyDelay-1, 1)+one(copyDelay-1, 1) != 0 {
		t.Error("the copies of the network are acknowledged")
	}
	if one(copyDelay, 1) != 1 {
		t.Error("what was sent again is not acknowledged")
	}
	if p.wait(time.Second); one(0, 2) != 0 || len(p.wait(time.Second)) != 1 || one(0, 3) != 0 || one(0, 3) != 0 || len(p.wait(time.Second)) != 1 {
		t.Error("not one acknowledgement for each frame from then on")
	}
	p = newPeer(t, foreign.OpenCPI2())
	for _, id := range []frame.Seq{1, 257, 1} { // so late that nothing is known of it
		p.data(id, uint32(id), 64)
	}
	if !acknowledges(p.acks(), 1) {
		t.Error("what comes so late is not acknowledged")
	}
}

// TestJudgeOfAPeerThatIsDown checks that nothing is taken of a peer that was given up, and that a frame of it that comes then is new later.
func TestJudgeOfAPeerThatIsDown(t *testing.T) {
	p := newPeer(t, foreign.OpenCPI(false))
	f := &frame.Frame{Header: frame.Header{Seq: 7, Flags: frame.FlagMessages}}
	if v := p.Judge(p.now, f, &frame.Message{Txn: 1, Count: 1, Index: 1}, true); v != foreign.Down {
		t.Errorf("is %d", v)
	}
	if v := p.data(7, 1, 64); v != foreign.New {
		t.Errorf("and later %d", v)
	}
}
