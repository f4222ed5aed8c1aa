package foreign_test

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/endpoint/foreign"
	"github.com/dgrdma/dgrdma/frame"
)

// owes has the sender know what came, and acknowledge it with the next frame that may take it along.
func (p *peer) owes() {
	foreign.Exchange(p.now, &p.Sender, &p.Receiver)
	foreign.ScheduleAck(p.now, &p.Sender, &p.Receiver, false)
	p.DropBatch()
}

// head returns the header that write makes.
func (p *peer) head(write func(b []byte) (carried bool)) (h frame.Header, carried bool) {
	b := make([]byte, frame.HeaderSize+frame.MessageHeaderSize)
	old := frame.Header{Dst: 9, Src: 9, Seq: 9, AckStart: 9, AckCount: 9, Flags: frame.FlagMessages}
	old.Put(b)
	m := frame.Message{Count: 1, Index: 1}
	m.Put(b[frame.HeaderSize:])
	carried = write(b)
	f, err := frame.Parse(b)
	if err != nil {
		p.Fatal(err)
	}
	return f.Header, carried
}

// TestHeadTakesWhatIsDue checks that a new frame takes an acknowledgement along, and that a copy does but for peers that overlook it in a frame
// that they know (quirk D1-5).
func TestHeadTakesWhatIsDue(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		prof := foreign.OpenCPI(false)
		prof.FreshAcks = fresh
		p := newPeer(t, prof)
		p.data(7, 1, 64)
		p.owes()
		h, carried := p.head(func(b []byte) bool { return p.Head(b, 70000, 0) })
		if want := (frame.Header{Dst: 1, Src: 2, Seq: 70000 - 65536, AckStart: 7, AckCount: 1, Flags: frame.FlagMessages}); h != want || !carried {
			t.Errorf("a new frame: %+v, carried %v, want %+v", h, carried, want)
		}
		for name, again := range map[string]func(b []byte) bool{
			"made again": func(b []byte) bool { return p.Head(b, 5, 1) },
			"kept":       func(b []byte) bool { return p.HeadAgain(b) },
		} {
			p.data(p.Newest()+1, 2, 64)
			p.owes()
			if h, carried := p.head(again); carried == fresh || h.AckCount > 0 == fresh {
				t.Errorf("a copy that is %s, for a peer that overlooks it: %v: %+v, carried %v", name, fresh, h, carried)
			}
		}
	}
}

// TestDestination checks that the second driver's frames have our own id as their destination (quirk D2-1), and others that of the peer.
func TestDestination(t *testing.T) {
	for _, prof := range []foreign.Profile{foreign.FPGA(), foreign.OpenCPI(true), foreign.OpenCPI2(), foreign.Legacy(false)} {
		p, want := newPeer(t, prof), frame.EndpointID(1)
		if prof.OwnDestination {
			want = 2
		}
		h, _ := p.head(func(b []byte) bool { return p.Head(b, 3, 0) })
		run := make([]byte, 1500)
		x := p.Sender.Run(3, &frame.Message{Txn: 1, Count: 3, Index: 1, Len: 16})
		x.Next(new(frame.Message))
		x.Put(run)
		probe := make([]byte, foreign.ProbeSize)
		p.PutProbe(probe, 4)
		ofRun, _ := frame.IDsOf(run)
		ofProbe, _ := frame.IDsOf(probe)
		if h.Dst != want || ofRun != want || ofProbe != want {
			t.Errorf("%s: frames to %d, %d and %d, want %d", prof.Name, h.Dst, ofRun, ofProbe, want)
		}
	}
}

// TestStaleCard checks that of a card no more than one frame is believed to be on its way until the card says our first id, and that a card that
// goes on from an earlier connection is known by another one, after a while (observation V2).
func TestStaleCard(t *testing.T) {
	for _, says := range []frame.Seq{1, 500} {
		p := newPeer(t, foreign.FPGA())
		if p.Proven() {
			t.Error("proven from the beginning")
		}
		p.Flight().Track(p.now, 100)
		p.Alone(p.now, &frame.Frame{Header: frame.Header{Seq: 1, AckStart: says}})
		p.owes()
		at, armed := p.Sender.Deadline()
		if p.Proven() != (says == 1) || armed != (says != 1) {
			t.Fatalf("says %d: proven %v, armed %v", says, p.Proven(), armed)
		}
		if armed {
			if _, stale := p.Expire(at - 1); stale || at <= p.now {
				t.Error("known too early")
			}
			if _, stale := p.Expire(at); !stale {
				t.Error("not known when it is time")
			}
		}
	}
}

// TestMissedFrames checks that what did not come of a peer that never sends again is given up once, while others come or when none does any more, and
// nothing of one that sends again (observation V9).
func TestMissedFrames(t *testing.T) {
	for _, x := range []struct {
		prof  foreign.Profile
		comes bool
		want  int
	}{{foreign.FPGA(), false, 2}, {foreign.FPGA(), true, 2}, {foreign.OpenCPI(false), true, 0}} {
		p, missed, id := newPeer(t, x.prof), 0, frame.Seq(4)
		p.data(1, 1, 64)
		p.data(id, 2, 64)
		for range 10 {
			missed += foreign.Exchange(p.now, &p.Sender, &p.Receiver)
			p.DropBatch()
			p.now = p.now.Add(time.Second)
			if at, armed := p.Sender.Deadline(); armed && at <= p.now {
				n, _ := p.Expire(p.now)
				missed += n
			}
			if x.comes {
				id++
				p.data(id, uint32(id), 64)
			}
		}
		if missed != x.want {
			t.Errorf("%s, others come: %v: %d are missed, want %d", x.prof.Name, x.comes, missed, x.want)
		}
	}
}

// TestIDsGoOn checks where ids begin after Reset: at the one that was asked for, where the profile has them begin, or where they were.
func TestIDsGoOn(t *testing.T) {
	for _, x := range []struct {
		prof  foreign.Profile
		asked frame.Seq
		want  uint32
	}{{foreign.FPGA(), 0, 1}, {foreign.FPGA(), 50, 50}, {foreign.OpenCPI(false), 50, 50}, {foreign.OpenCPI(false), 0, 0}} {
		p := newPeer(t, x.prof)
		for range 3 {
			p.Flight().Track(p.now, 100)
		}
		if x.want == 0 {
			x.want = p.Flight().Next()
		}
		if p.Resume(p.now, x.asked, &ack.FixedWindow{}); p.Flight().Next() != x.want || p.Flight().InFlight() != 0 {
			t.Errorf("%s, asked for %d: ids go on at %d, want %d; %d in flight", x.prof.Name, x.asked, p.Flight().Next(), x.want, p.Flight().InFlight())
		}
	}
}

// TestWhereIDsBegin checks that ids begin where the profile has them begin, or else at a random one that is drawn once, and go on after that.
func TestWhereIDsBegin(t *testing.T) {
	drawn := foreign.OpenCPI(false)
	chosen := foreign.OpenCPI(false)
	chosen.FirstFrame = 77
	for _, x := range []struct {
		prof  foreign.Profile
		draws bool
		want  uint32
	}{{foreign.FPGA(), false, 1}, {chosen, false, 77}, {drawn, true, 1 + 12345%255*256}} {
		var s foreign.Sender
		s.Init(&x.prof, 2, 1, foreign.Timing{MaxRTO: time.Second, GiveUp: time.Minute})
		if s.DrawsFirst() != x.draws {
			t.Errorf("%s draws a first id: %v", x.prof.Name, !x.draws)
		}
		for i := range uint32(3) {
			s.Start(0, 12345+i, &ack.FixedWindow{})
			if n := s.Flight().Next(); n != x.want+i || s.DrawsFirst() {
				t.Errorf("%s, start %d: id %d, want %d", x.prof.Name, i, n, x.want+i)
			}
			s.Flight().Track(0, 100)
			s.Forget(0, &ack.FixedWindow{})
			if s.Flight().InFlight() != 0 {
				t.Errorf("%s: a frame is in flight that was forgotten", x.prof.Name)
			}
		}
	}
}

// TestProbeIsEmpty checks that nothing stands behind the header of a probe but its own id: a card takes that for another header (quirk F3).
func TestProbeIsEmpty(t *testing.T) {
	p := newPeer(t, foreign.FPGA())
	b := make([]byte, foreign.ProbeSize)
	for i := range b {
		b[i] = 0xee // as another frame left it
	}
	p.PutProbe(b, 0xa5c3)
	want := make([]byte, foreign.ProbeSize)
	h := frame.Header{Dst: 1, Src: 2, Seq: 0xa5c3}
	h.Put(want)
	want[20], want[21] = 0xc3, 0xa5
	if string(b) != string(want) {
		t.Errorf("%x, want %x", b, want)
	}
}

// TestRunHasMessages checks the headers of a run: ids that follow, and messages in each frame.
func TestRunHasMessages(t *testing.T) {
	p := newPeer(t, foreign.OpenCPI(false))
	x := p.Sender.Run(9, &frame.Message{Txn: 1, Count: 9, Index: 1, Len: 16})
	for i := range frame.Seq(3) {
		b := make([]byte, frame.HeaderSize+frame.MessageHeaderSize+16)
		x.Next(new(frame.Message))
		x.Put(b)
		f, err := frame.Parse(b)
		if err != nil || !f.HasMessages() || f.Seq != 10+i || f.Src != 2 || f.AckCount != 0 {
			t.Errorf("frame %d: %+v, %v", i, f.Header, err)
		}
	}
}

// TestProof checks that a card is doubted only if it acknowledged something else while a frame of ours waited, that the doubt ends with the proof, and
// that only cards whose ids begin at a fixed one have to prove anything (observation V2).
func TestProof(t *testing.T) {
	says := func(p *peer, start frame.Seq) {
		p.Alone(p.now, &frame.Frame{Header: frame.Header{Seq: 1, AckStart: start}})
		p.owes()
	}
	p := newPeer(t, foreign.FPGA())
	says(p, 500)
	if _, armed := p.Sender.Deadline(); armed || p.Proven() {
		t.Error("doubted before anything was sent")
	}
	p.Flight().Track(p.now, 100)
	p.owes()
	if _, armed := p.Sender.Deadline(); armed {
		t.Error("doubted, and it said nothing")
	}
	says(p, 500)
	at, _ := p.Sender.Deadline()
	p.now = p.now.Add(50 * time.Millisecond)
	says(p, 501)
	if again, armed := p.Sender.Deadline(); !armed || again != at {
		t.Error("the doubt begins again")
	}
	says(p, 1)
	if _, stale := p.Expire(at.Add(time.Second)); stale || !p.Proven() {
		t.Error("doubted, and it said our first id")
	}
	for _, prof := range []foreign.Profile{foreign.OpenCPI(false), foreign.OpenCPI2(), foreign.Legacy(true)} {
		if p := newPeer(t, prof); !p.Proven() {
			t.Errorf("%s has to prove something", prof.Name)
		}
	}
}
