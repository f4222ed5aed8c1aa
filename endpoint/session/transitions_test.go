package session

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
)

// Epochs of the table test.
const (
	local    Epoch = 0x1000 // of this endpoint, in the present attempt or session
	told     Epoch = 0x1100 // what it tells the peer
	next     Epoch = 0x1200 // what it tells while a session is up
	remote   Epoch = 0x2000 // of the peer, in the present session
	other    Epoch = 0x2100 // of the peer, in another process
	rejected Epoch = 0x2200 // of the peer, and rejected
	sum            = 0xCAFE // the check of all WELCOMEs
)

// fixed are Epochs that do not change, and count how often an attempt or a session ended.
type fixed struct{ ends int }

func (*fixed) Told() Epoch             { return told }
func (*fixed) Next() Epoch             { return next }
func (*fixed) IsTold(e Epoch) bool     { return e == told }
func (*fixed) IsNext(e Epoch) bool     { return e == next }
func (f *fixed) End()                  { f.ends++ }
func (*fixed) Check(_, _ Epoch) uint32 { return sum }

// in returns a machine in a state: of three frames that it sent, two left in state Confirming.
func in(s State) Machine {
	m := Machine{State: s, Connected: s != None}
	switch s {
	case Asking:
		m.Local, m.rejected = local, rejectedPairs{rejected}
	case Confirming:
		m.Local, m.Remote, m.check, m.rejected = local, remote, sum, rejectedPairs{rejected}
	case Up:
		m.Local, m.Remote, m.UpID, m.Early = local, remote, uint32(local)+3, true
	}
	return m
}

// surroundings are what a machine is told of in the table: three frames have left.
var surroundings = At{Now: ack.Instant(time.Hour), Next: uint32(local) + 4, Takes: true}

// input is a row of the table.
type input struct {
	name string
	f    Frame
}

func confirmOf(sender, receiver Epoch) Frame {
	return Frame{Kind: Confirm, Sender: sender, Receiver: receiver, Check: sum}
}

var (
	ourTag = Tag(remote, local) // of frames that this endpoint sends

	inputs = []input{
		{"HELLO of the session's epoch", Frame{Kind: Hello, Sender: remote}},
		{"HELLO of another epoch", Frame{Kind: Hello, Sender: other}},
		{"WELCOME to this attempt", Frame{Kind: Welcome, Sender: other, Receiver: local, Check: sum}},
		{"WELCOME of a rejected epoch", Frame{Kind: Welcome, Sender: rejected, Receiver: local, Check: sum}},
		{"WELCOME to another attempt", Frame{Kind: Welcome, Sender: other, Receiver: 7, Check: sum}},
		{"CONFIRM of the session", confirmOf(remote, local)},
		{"CONFIRM of another epoch to the present one", confirmOf(other, local)},
		{"CONFIRM of a rejected epoch", confirmOf(rejected, local)},
		{"CONFIRM to what is told", confirmOf(other, told)},
		{"CONFIRM to what is told next", confirmOf(other, next)},
		{"CONFIRM to something else", confirmOf(other, 7)},
		{"CONFIRM with a wrong check to the present one", Frame{Kind: Confirm, Sender: other, Receiver: local, Check: 1}},
		{"CONFIRM with a wrong check to what is told", Frame{Kind: Confirm, Sender: other, Receiver: told, Check: 1}},
		{"CONFIRM with a wrong check to what is told next", Frame{Kind: Confirm, Sender: other, Receiver: next, Check: 1}},
		{"REJECT of the session", Frame{Kind: Reject, Sender: local, Receiver: remote}},
		{"REJECT of another pair", Frame{Kind: Reject, Sender: local, Receiver: other}},
		{"REFUSED: another id", Frame{Kind: Refused, Sender: local, Receiver: local, Refusal: WrongID}},
		{"REFUSED: no room", Frame{Kind: Refused, Sender: local, Receiver: local, Refusal: NoRoom}},
		{"REFUSED to another attempt", Frame{Kind: Refused, Sender: 7, Receiver: 7, Refusal: WrongID}},
		{"RESET of a frame that left early", Frame{Kind: Reset, QuotedTag: ourTag, ID: uint32(local) + 2}},
		{"RESET of a frame that left in Up", Frame{Kind: Reset, QuotedTag: ourTag, ID: uint32(local) + 3}},
		{"RESET of a frame that never left", Frame{Kind: Reset, QuotedTag: ourTag, ID: uint32(local) + 4}},
		{"RESET of a frame before the first one", Frame{Kind: Reset, QuotedTag: ourTag, ID: uint32(local)}},
		{"RESET of another session", Frame{Kind: Reset, QuotedTag: ourTag + 1, ID: uint32(local) + 3}},
		{"BYE of the session", Frame{Kind: Bye, Sender: remote, Receiver: local}},
		{"BYE of another one", Frame{Kind: Bye, Sender: other, Receiver: local}},
	}
)

// What a machine answers.
var (
	hello       = Frame{Kind: Hello, Sender: local}
	helloTold   = Frame{Kind: Hello, Sender: told}
	confirm     = confirmOf(local, remote)
	acknowledge = Frame{Kind: Ack, Sender: local, Receiver: remote}
)

func welcomes(e, to Epoch) Output {
	return Output{Reply: Frame{Kind: Welcome, Sender: e, Receiver: to, Check: sum}}
}
func rejects(f Frame) Output { return Output{Reply: f.rejection(), Foreign: true} }
func begun(e, of Epoch) Output {
	return Output{Reply: Frame{Kind: Ack, Sender: e, Receiver: of}, Begins: true, Rises: true}
}

// outcome is what a cell of the table says: what comes out, the state after it, and how many attempts and sessions ended.
type outcome struct {
	o    Output
	s    State
	ends int
}

// same is an outcome that changes nothing.
func same(s State) outcome { return outcome{s: s} }

// table has, for each row, the outcome in None, Down, Asking, Confirming and Up.
func table(row input) [states]outcome {
	cells := [states]outcome{None: same(None), Down: same(Down), Asking: same(Asking), Confirming: same(Confirming), Up: same(Up)}
	set := func(s State, o Output, after State, ends int) { cells[s] = outcome{o, after, ends} }
	rejected := func(in ...State) {
		for _, s := range in {
			set(s, rejects(row.f), s, 0)
		}
	}
	f := row.f
	switch row.name {
	case "HELLO of the session's epoch", "HELLO of another epoch":
		set(None, welcomes(told, f.Sender), None, 0)
		set(Down, welcomes(told, f.Sender), Down, 0)
		set(Asking, welcomes(local, f.Sender), Asking, 0)
		if f.Sender == remote {
			set(Confirming, Output{Reply: confirm}, Confirming, 0)
		} else {
			set(Confirming, welcomes(local, f.Sender), Confirming, 0)
			set(Up, welcomes(next, f.Sender), Up, 0)
		}
	case "WELCOME to this attempt":
		set(Asking, Output{Reply: confirmOf(local, other), Begins: true}, Confirming, 0)
	case "CONFIRM of the session":
		rejected(None, Down)
		set(Asking, begun(local, remote), Up, 0)
		set(Confirming, Output{Reply: acknowledge, Rises: true}, Up, 0)
		set(Up, Output{Reply: acknowledge}, Up, 0)
	case "CONFIRM of another epoch to the present one":
		rejected(None, Down, Up)
		set(Asking, begun(local, other), Up, 0)
	case "CONFIRM to what is told":
		rejected(Asking, Confirming, Up)
		set(None, begun(told, other), Up, 0)
		set(Down, begun(told, other), Up, 0)
	case "CONFIRM to what is told next":
		rejected(None, Down, Asking, Confirming)
		o := begun(next, other)
		o.Ended = PeerRestarted
		set(Up, o, Up, 1)
	case "CONFIRM of a rejected epoch", "CONFIRM to something else", "CONFIRM with a wrong check to the present one",
		"CONFIRM with a wrong check to what is told", "CONFIRM with a wrong check to what is told next":
		rejected(None, Down, Asking, Confirming, Up)
	case "REJECT of the session":
		set(Confirming, Output{Reply: hello, Ended: PeerRestarted}, Asking, 0)
		set(Up, Output{Reply: helloTold, Ended: PeerRestarted}, Asking, 1)
	case "REFUSED: another id":
		set(Asking, Output{Ended: OtherID}, Down, 1)
	case "RESET of a frame that left early":
		set(Confirming, Output{Reply: confirm, Untaken: true}, Confirming, 0)
		set(Up, Output{Bell: true}, Up, 0)
	case "RESET of a frame that left in Up":
		set(Confirming, Output{Reply: confirm, Untaken: true}, Confirming, 0)
		set(Up, Output{Reply: helloTold, Ended: PeerRestarted}, Asking, 1)
	case "RESET of a frame that never left", "RESET of a frame before the first one":
		// In Confirming the CONFIRM that it brings does no harm.
		set(Confirming, Output{Reply: confirm}, Confirming, 0)
		if f.ID == uint32(local) { // In Up ids may have gone round, so that it is one of those that left early.
			set(Up, Output{Bell: true}, Up, 0)
		}
	case "BYE of the session":
		set(Confirming, Output{Ended: PeerClosed}, Down, 1)
		set(Up, Output{Ended: PeerClosed}, Down, 1)
	}
	return cells
}

// TestCells checks each cell of the table of the session.
func TestCells(t *testing.T) {
	for _, row := range inputs {
		for s, want := range table(row) {
			t.Run(fmt.Sprintf("%s in %v", row.name, State(s)), func(t *testing.T) {
				m, e := in(State(s)), &fixed{}
				var o Output
				if State(s) == None {
					m, o, _ = Answer(surroundings, e, &row.f, NoUnknown)
				} else {
					o = m.Receive(surroundings, e, &row.f)
				}
				if o.Foreign = want.o.Foreign; o != want.o || m.State != want.s || e.ends != want.ends {
					t.Errorf("%+v, %v, %d ended, want %+v, %v, %d", o, m.State, e.ends, want.o, want.s, want.ends)
				}
			})
		}
	}
}

// TestTableHasAllKinds checks that each kind of frame that a peer can send has a row.
func TestTableHasAllKinds(t *testing.T) {
	for k := Hello; k < Ack; k++ {
		if !slices.ContainsFunc(inputs, func(i input) bool { return i.f.Kind == k }) {
			t.Errorf("no row of %v", k)
		}
	}
}

// TestAfterCells checks what a machine has noted in addition to its state.
func TestAfterCells(t *testing.T) {
	after := func(s State, f Frame, at At) Machine {
		m := in(s)
		m.Receive(at, &fixed{}, &f)
		return m
	}
	if m := after(Asking, Frame{Kind: Welcome, Sender: other, Receiver: local, Check: 9}, surroundings); m.Local != local || m.Remote != other || m.check != 9 {
		t.Errorf("after WELCOME: %+v", m)
	}
	if m := after(Confirming, confirmOf(remote, local), surroundings); m.UpID != surroundings.Next {
		t.Errorf("after CONFIRM in Confirming: the first frame in Up is %#x, want %#x", m.UpID, surroundings.Next)
	}
	m := after(Confirming, Frame{Kind: Reject, Sender: local, Receiver: remote}, surroundings)
	if m.Local != local || !m.rejected.has(remote) || !m.rejected.has(rejected) || m.rejected.has(other) {
		t.Errorf("after REJECT in Confirming: %+v", m)
	}
	for _, s := range []State{Asking, Confirming} {
		if m := after(s, Frame{Kind: Refused, Receiver: local, Refusal: NoRoom}, surroundings); !m.Refused || m.Refusal != NoRoom || m.State != s {
			t.Errorf("after REFUSED: %+v", m)
		}
	}
	for s, f := range map[State]Frame{Asking: {Kind: Welcome, Sender: other, Receiver: local}, Confirming: confirmOf(remote, local)} {
		m := in(s)
		m.Refused = true
		if m.Receive(surroundings, &fixed{}, &f); m.Refused {
			t.Errorf("%v, after %v: the peer still refuses: %+v", s, f.Kind, m)
		}
	}
}

// TestRejectedBeforeAnythingLeft checks that a REJECT fails nothing of which no frame has left.
func TestRejectedBeforeAnythingLeft(t *testing.T) {
	m, e := in(Confirming), &fixed{}
	o := m.Receive(At{Next: uint32(local) + 1}, e, &Frame{Kind: Reject, Sender: local, Receiver: remote})
	if o != (Output{Reply: hello}) || m.State != Asking || e.ends != 0 {
		t.Errorf("%+v, %v, %d ended", o, m.State, e.ends)
	}
}

// TestManyRejections checks that the list of rejected epochs is bounded: when it is full the attempt takes another epoch.
func TestManyRejections(t *testing.T) {
	m, e := in(Asking), &fixed{}
	m.rejected = rejectedPairs{}
	for i := range Epoch(mostRejected + 1) {
		if o := m.Receive(surroundings, e, &Frame{Kind: Welcome, Sender: 100 + i, Receiver: local}); !o.Begins {
			t.Fatalf("attempt %d: %+v", i, o)
		}
		m.Receive(surroundings, e, &Frame{Kind: Reject, Sender: local, Receiver: 100 + i})
		want, ends := local, 0
		if i == mostRejected {
			want, ends = told, 1
		}
		if m.State != Asking || m.Local != want || e.ends != ends {
			t.Errorf("after %d rejections: %+v, %d ended", i+1, m, e.ends)
		}
	}
}

// TestLearnedPeers checks that a connection that the peer began ends in None, where one of the program's own ends in Down or asks.
func TestLearnedPeers(t *testing.T) {
	for _, f := range []Frame{
		{Kind: Bye, Sender: remote, Receiver: local},
		{Kind: Reject, Sender: local, Receiver: remote},
		{Kind: Reset, QuotedTag: ourTag, ID: uint32(local) + 3},
	} {
		m, e := in(Up), &fixed{}
		m.Connected = false
		if o := m.Receive(surroundings, e, &f); m.State != None || o.Ended == NotEnded || o.Reply.Kind != NoFrame || e.ends != 1 {
			t.Errorf("after %v: %v, %+v", f.Kind, m.State, o)
		}
	}
	m := in(Up)
	m.Connected = false
	if o := m.Connect(surroundings, &fixed{}); o != (Output{}) || m.State != Up || !m.Connected {
		t.Errorf("after Connect: %+v, %+v", m, o)
	}
}

// TestUnknownSources checks what an endpoint answers that takes no unknown source: never REJECT to what it
// may take later.
func TestUnknownSources(t *testing.T) {
	at := At{}
	for _, f := range []Frame{{Kind: Hello, Sender: other}, confirmOf(other, told)} {
		want := Output{Reply: Frame{Kind: Refused, Sender: other, Receiver: other, Refusal: NoRoom}}
		if m, o, takes := Answer(at, &fixed{}, &f, NoRoom); takes || m != (Machine{}) || o != want {
			t.Errorf("%v: %+v, %+v", f.Kind, m, o)
		}
	}
}

// TestKeepRemote checks a machine that stays with the process of the peer that it knows.
func TestKeepRemote(t *testing.T) {
	for _, f := range []Frame{{Kind: Hello, Sender: other}, confirmOf(other, next)} {
		m := in(Up)
		m.KeepRemote = true
		m.Receive(surroundings, &fixed{}, &f)
		if m.State != Up || m.Remote != remote {
			t.Errorf("after %v: %+v", f.Kind, m)
		}
	}
	for _, end := range []struct {
		name string
		does func(m *Machine, e Epochs) Output
		why  Why
	}{
		{"RESET", func(m *Machine, e Epochs) Output {
			return m.Receive(surroundings, e, &Frame{Kind: Reset, QuotedTag: ourTag, ID: uint32(local) + 3})
		}, PeerRestarted},
		{"BYE", func(m *Machine, e Epochs) Output {
			return m.Receive(surroundings, e, &Frame{Kind: Bye, Sender: remote, Receiver: local})
		}, PeerClosed},
		{"GiveUp", func(m *Machine, e Epochs) Output { return m.GiveUp(e) }, PeerSilent},
	} {
		for _, connected := range []bool{true, false} {
			m, e := in(Up), &fixed{}
			m.KeepRemote, m.Connected = true, connected
			if o := end.does(&m, e); m.State != Down || o != (Output{Ended: end.why}) || e.ends != 1 {
				t.Errorf("%s: %+v, %+v", end.name, m, o)
			}
			for _, f := range []Frame{{Kind: Hello, Sender: other}, confirmOf(other, told)} {
				if o := m.Receive(surroundings, e, &f); m.State != Down || o != (Output{Foreign: true}) {
					t.Errorf("%v after %s: %+v, %+v", f.Kind, end.name, m, o)
				}
			}
			f := confirmOf(other, 7)
			if o := m.Receive(surroundings, e, &f); o != rejects(f) {
				t.Errorf("after %s: %+v", end.name, o)
			}
			m.Connect(surroundings, e)
			f = confirmOf(other, told)
			if o := m.Receive(surroundings, e, &f); m.State != Up || o != begun(told, other) {
				t.Errorf("after %s and Connect: %+v, %+v", end.name, m, o)
			}
		}
	}
	m := Machine{State: Asking, Local: local, Connected: true, KeepRemote: true}
	m.GiveUp(&fixed{})
	f := confirmOf(other, told)
	if m.Receive(surroundings, &fixed{}, &f); m.State != Up {
		t.Errorf("the first process that comes is not taken: %+v", m)
	}
}

// TestResetInLongSession checks that a RESET ends a session however many frames it has carried: what left in state Confirming has long been
// acknowledged then, and no bell is sent in place of that.
func TestResetInLongSession(t *testing.T) {
	for _, frames := range []uint32{3, 1 << 31, 1<<31 + 10, 1<<32 - 3, 1<<32 - 2} { // the last ones have the ids of the first again
		m := in(Up)
		at := surroundings
		at.Next = uint32(local) + 1 + frames
		m.Acknowledged(m.UpID)
		o := m.Receive(at, &fixed{}, &Frame{Kind: Reset, QuotedTag: ourTag, ID: at.Next - 1})
		if o.Ended != PeerRestarted || o.Bell || m.State != Asking {
			t.Errorf("%d frames: %+v, state %v", frames, o, m.State)
		}
	}
}

// TestEarlyFrames checks that a RESET of a frame that left in state Confirming asks for a bell until all of those are acknowledged.
func TestEarlyFrames(t *testing.T) {
	for _, x := range []struct {
		oldest uint32 // that waits for its acknowledgement
		bell   bool
	}{{uint32(local) + 1, true}, {uint32(local) + 2, true}, {uint32(local) + 3, false}, {uint32(local) + 4, false}} {
		m := in(Up)
		m.Acknowledged(x.oldest)
		o := m.Receive(surroundings, &fixed{}, &Frame{Kind: Reset, QuotedTag: ourTag, ID: uint32(local) + 2})
		if o.Bell != x.bell || (o.Ended == NotEnded) != x.bell {
			t.Errorf("from %#x on: %+v", x.oldest, o)
		}
	}
}
