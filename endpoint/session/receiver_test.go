package session

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

const (
	here  Epoch = 0x1000_0000 // of this side
	there Epoch = 0x2000_0000
)

// halves are the receiver and the sender of one side of a session.
type halves struct {
	r   Receiver
	s   Sender
	log AckLog
}

func newHalves(checks bool) *halves {
	h := new(halves)
	h.r.Init(&h.log, nil)
	h.s.Init(2, 1)
	h.r.Begin(here, there, checks)
	h.s.Begin(&Machine{Local: here, Remote: there})
	h.s.Number(0, ack.FlightConfig{Epoch: uint32(here), Window: 64, MinRTO: time.Second, MaxRTO: time.Second, GiveUp: time.Minute}, &ack.FixedWindow{})
	return h
}

// from returns a frame of the peer's that its bytes make.
func from(t *testing.T, b []byte) *frame.SessionFrame {
	t.Helper()
	f, err := frame.ParseSession(b)
	if err != nil {
		t.Fatal(err)
	}
	return &f
}

// data is a frame with a message of the peer's.
func data(id uint32) *frame.SessionFrame {
	return &frame.SessionFrame{SessionHeader: frame.SessionHeader{ID: id, Tag: Tag(here, there), Ack: uint32(here)}}
}

// TestJudge checks what a frame is by its tag, kind, checksum and acknowledgement, for all kinds of frames and also where both directions have
// one tag.
func TestJudge(t *testing.T) {
	const next = uint32(here) + 3
	kinds := []frame.Control{
		frame.NoControl, frame.ControlAck, frame.ControlBye, frame.ControlBell, frame.ControlProbe, frame.ControlProbed, frame.ControlReset,
	}
	local := here // a constant overflows
	swapped := local<<16 | local>>16
	for _, remote := range []Epoch{there, swapped} {
		if same := Tag(here, remote) == Tag(remote, here); same != (remote == swapped) {
			t.Fatal("the epochs have the wrong tags")
		}
		for _, begun := range []bool{false, true} {
			for _, checks := range []bool{false, true} {
				var r Receiver
				r.Init(new(AckLog), nil)
				if begun {
					r.Begin(here, remote, checks)
				}
				for _, kind := range kinds {
					for _, tag := range []uint32{Tag(here, remote), Tag(remote, here), 77} {
						for _, upTo := range []uint32{uint32(here), next - 1, next, next + 9} {
							for _, checked := range []bool{false, true} {
								f := frame.SessionFrame{SessionHeader: frame.SessionHeader{Tag: tag, Ack: upTo, Control: kind}}
								want := InSession
								switch reset := kind == frame.ControlReset; {
								case !begun:
									want = OtherTag
								case reset && tag == Tag(remote, here):
									want = Resets
								case reset || tag != Tag(here, remote):
									want = OtherTag
								case checks && !checked:
									want = NoChecksum
								case upTo >= next && kind != frame.ControlProbe:
									want = AckOfUnsent
								}
								if got := r.Judge(&f, next, checked); got != want {
									t.Errorf("remote %#x, begun %v, checks %v: %v, tag %#x, ack %#x, checked %v: %d, want %d", remote, begun, checks, kind, tag, upTo, checked, got, want)
								}
							}
						}
					}
				}
			}
		}
	}
}

// TestReceiverForgets checks that nothing of a session and of its batch is left when it has ended: neither what the peer acknowledged, nor sizes, nor
// what is to be acknowledged.
func TestReceiverForgets(t *testing.T) {
	h := newHalves(true)
	h.r.Acknowledges(uint32(here))
	f := data(uint32(there) + 2)
	h.r.Check(0, f)
	h.r.Arrived(0, f)
	b := make([]byte, 1500)
	head := frame.SessionHeader{Tag: Tag(here, there)}
	h.r.Note(from(t, b[:frame.PutSessionAckFrame(b, &head, false, 0, 0, nil)]))
	h.r.Note(from(t, b[:frame.PutProbe(b, &head, 1400)]))
	h.r.Note(from(t, b[:frame.PutProbed(b, &head, 1300)]))
	h.r.Forget()
	if h.r.HasSession() || h.r.HasAcks() || h.r.NextAck() != nil {
		t.Error("something of the session is left")
	}
	if longest, confirmed := h.r.TakeSizes(); longest != 0 || confirmed != 0 {
		t.Errorf("sizes %d and %d are left", longest, confirmed)
	}
	h.r.Begin(here+1, there+1, false)
	ScheduleAck(0, &h.s, &h.r, time.Second, 1, true)
	if _, is := h.s.AckAt(); is {
		t.Error("something is to be acknowledged in a new session")
	}
	if v := h.r.Judge(&frame.SessionFrame{SessionHeader: frame.SessionHeader{Tag: Tag(here+1, there+1), Ack: uint32(here)}}, uint32(here)+1, false); v != InSession {
		t.Errorf("a frame without checksum is %d: the new session has none", v)
	}
}

// TestSizesAreTaken checks that of several PROBEs, and of several answers, the longest one of a batch is told, and once.
func TestSizesAreTaken(t *testing.T) {
	h := newHalves(false)
	b := make([]byte, 9000)
	head := frame.SessionHeader{Tag: Tag(here, there)}
	for _, n := range []int{1400, 8900, 1200} {
		h.r.Note(from(t, b[:frame.PutProbe(b, &head, n)]))
		h.r.Note(from(t, b[:frame.PutProbed(b, &head, n-100)]))
	}
	for _, want := range [][2]int{{8900, 8800}, {0, 0}} {
		if longest, confirmed := h.r.TakeSizes(); longest != want[0] || confirmed != want[1] {
			t.Errorf("%d and %d, want %v", longest, confirmed, want)
		}
	}
}

// TestMayHaveSaid checks which acknowledgements a RESET may quote: those that left, as far back as a window reaches, also where ids wrap.
func TestMayHaveSaid(t *testing.T) {
	for _, remote := range []Epoch{there, ^Epoch(0) - 2, 5} {
		var r Receiver
		r.Init(new(AckLog), nil)
		r.Begin(here, remote, false)
		r.ArrivedRun(0, 10)
		upTo := uint32(remote) + 10
		for d, want := range map[uint32]bool{0: true, 1: true, ack.MostAhead: true, ack.MostAhead + 1: false, 1 << 31: false, ^uint32(0): false} {
			if got := r.MayHaveSaid(upTo - d); got != want {
				t.Errorf("epoch %#x: %d before the last: %v, want %v", remote, int32(d), got, want)
			}
		}
	}
}

// TestArrivedRun checks that a run of frames is noted as its frames one by one are.
func TestArrivedRun(t *testing.T) {
	a, b := newHalves(false), newHalves(false)
	for _, n := range []int{1, 7, 100} {
		first := a.r.arrived.UpTo()
		a.r.ArrivedRun(5, n)
		for i := range uint32(n) {
			b.r.Arrived(5, data(first+1+i))
		}
		if a.r.arrived != b.r.arrived || a.r.fresh != b.r.fresh || a.r.urgent != b.r.urgent {
			t.Fatalf("%d frames: %+v, want %+v", n, a.r, b.r)
		}
		if !a.r.IsNewest(first+uint32(n)) || a.r.IsNewest(first) {
			t.Errorf("%d frames: the last one is not the newest", n)
		}
	}
	a.r.Arrived(5, data(a.r.arrived.UpTo()+2))
	if a.r.IsNewest(a.r.arrived.UpTo()) {
		t.Error("a frame is missing before the newest")
	}
}

// TestAcksInOrder checks that the ACKs of several peers in one batch come back to each as it sent them, in order and once, and after them the newest
// acknowledgement that was piggybacked on data.
func TestAcksInOrder(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		var log AckLog
		peers := make([]Receiver, 1+rnd.IntN(4))
		want := make([][]ack.Acknowledgement, len(peers))
		newest := make([]uint32, len(peers))
		for i := range peers {
			peers[i].Init(&log, nil)
			peers[i].Begin(here, there, false)
		}
		for range rnd.IntN(30) {
			i := rnd.IntN(len(peers))
			if rnd.IntN(3) == 0 {
				upTo := uint32(here) + uint32(rnd.IntN(100))
				peers[i].Acknowledges(upTo)
				newest[i] = max(newest[i], upTo)
				continue
			}
			a := ack.Acknowledgement{UpTo: rnd.Uint32(), HasEcho: true}
			a.Echo = ack.Echo{ID: rnd.Uint32(), Copy: uint8(rnd.IntN(3)), Again: rnd.IntN(2) == 0, Delay: time.Duration(rnd.IntN(frame.LongestDelay)) * time.Microsecond}
			for j := range rnd.IntN(4) {
				a.Ranges = append(a.Ranges, frame.Range{First: a.UpTo + 2 + 10*uint32(j), Count: 1 + rnd.IntN(8)})
			}
			b := make([]byte, frame.MostSessionAck)
			head := frame.SessionHeader{Ack: a.UpTo, ID: a.Echo.ID}
			peers[i].Note(from(t, b[:frame.PutSessionAckFrame(b, &head, a.Echo.Again, a.Echo.Copy, int(a.Echo.Delay/time.Microsecond), a.Ranges)]))
			want[i] = append(want[i], a)
		}
		for i := range peers {
			if newest[i] > 0 {
				want[i] = append(want[i], ack.Acknowledgement{UpTo: newest[i]})
			}
			if got := peers[i].HasAcks(); got != (len(want[i]) > 0) {
				t.Fatalf("seed %d: peer %d has acknowledged: %v", seed, i, got)
			}
			for _, w := range want[i] {
				a := peers[i].NextAck()
				if a == nil || a.UpTo != w.UpTo || a.HasEcho != w.HasEcho || a.Echo != w.Echo || !slices.Equal(a.Ranges, w.Ranges) {
					t.Fatalf("seed %d: peer %d: %+v, want %+v", seed, i, a, w)
				}
			}
			if a := peers[i].NextAck(); a != nil || peers[i].HasAcks() {
				t.Fatalf("seed %d: peer %d: %+v is left", seed, i, a)
			}
		}
	}
}

// TestLongestDelayIsNoMeasure checks that the longest delay that an ACK can tell stands for any that is longer.
func TestLongestDelayIsNoMeasure(t *testing.T) {
	h := newHalves(false)
	b := make([]byte, frame.MostSessionAck)
	for told, want := range map[int]time.Duration{7: 7 * time.Microsecond, frame.LongestDelay - 1: (frame.LongestDelay - 1) * time.Microsecond, frame.LongestDelay: time.Hour} {
		head := frame.SessionHeader{Tag: Tag(here, there)}
		h.r.Note(from(t, b[:frame.PutSessionAckFrame(b, &head, false, 0, told, nil)]))
		if a := h.r.NextAck(); a == nil || a.Echo.Delay != want {
			t.Errorf("%d: %+v, want %v", told, a, want)
		}
	}
}
