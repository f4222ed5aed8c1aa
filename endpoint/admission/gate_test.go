package admission_test

import (
	"testing"

	"github.com/dgrdma/dgrdma/endpoint/admission"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/seal"
	"github.com/dgrdma/dgrdma/transport"
)

const local, remote = 2, 1

// shake returns a frame of the handshake, which has that length.
func shake(t *testing.T, dst, src frame.EndpointID, h frame.Handshake, size int) *frame.Frame {
	t.Helper()
	b := make([]byte, size)
	h.Put(b, dst, src)
	return parse(t, b)
}

func parse(t *testing.T, b []byte) *frame.Frame {
	t.Helper()
	f, err := frame.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	return &f
}

// message returns a frame with a message that is none of a handshake.
func message(t *testing.T, dst, src frame.EndpointID) *frame.Frame {
	t.Helper()
	b := make([]byte, frame.HandshakeSize)
	h := frame.Header{Dst: dst, Src: src, Seq: 1, Flags: frame.FlagMessages}
	h.Put(b)
	m := frame.Message{Txn: 9, CompletionValue: 1, Index: frame.NotHandshake}
	m.Put(b[frame.HeaderSize:])
	return parse(t, b)
}

// empty returns a frame without messages.
func empty(t *testing.T, dst, src frame.EndpointID, flags uint8) *frame.Frame {
	t.Helper()
	b := make([]byte, frame.HeaderSize)
	h := frame.Header{Dst: dst, Src: src, Seq: 1, Flags: flags}
	h.Put(b)
	return parse(t, b)
}

// TestGate checks what becomes of each frame of an unknown source, by what is accepted and which kind of peer may be learned, and that only a
// HELLO is told which id is here (attacks A4 and A9, SECURITY.md).
func TestGate(t *testing.T) {
	hello := frame.Handshake{Kind: frame.HandshakeHello, Sender: 5}
	checked := hello
	checked.Checks = true
	wrong := checked
	wrong.Receiver = 6 // which no HELLO has
	confirm := frame.Handshake{Kind: frame.HandshakeConfirm, Sender: 5, Receiver: 6, Check: 7}
	flagged := message(t, local, remote)
	flagged.Flags |= seal.Flag
	at, ethernet := udp("10.0.0.1:7"), transport.EtherAddr([6]byte{2, 0, 0, 0, 0, 1})
	refuse := func(why admission.Reason) admission.Verdict { return admission.Verdict{Why: why} }
	tell := admission.Verdict{Do: admission.TellID, Why: admission.WrongDestination, Handshake: hello}
	answer := func(h frame.Handshake) admission.Verdict {
		return admission.Verdict{Do: admission.AnswerHello, Handshake: h}
	}
	for _, x := range []struct {
		name               string
		f                  *frame.Frame
		from               transport.Addr
		checked, known     bool
		accepted, alone    admission.Verdict // where peers have sessions
		foreign, noForeign admission.Verdict // where they have none
	}{
		{"HELLO", shake(t, local, remote, hello, frame.RefusedSize), at, false, false,
			answer(hello), answer(hello), admission.Verdict{Do: admission.LearnForeign}, refuse(admission.UnknownSource)},
		{"CONFIRM", shake(t, local, remote, confirm, frame.HandshakeSize), at, false, false,
			answer(confirm), answer(confirm), admission.Verdict{Do: admission.LearnForeign}, refuse(admission.UnknownSource)},
		{"HELLO that ought to have a checksum", shake(t, local, remote, checked, frame.RefusedSize), at, false, false,
			refuse(admission.NoChecksum), refuse(admission.NoChecksum), admission.Verdict{Do: admission.LearnForeign}, refuse(admission.UnknownSource)},
		{"HELLO with a checksum", shake(t, local, remote, checked, frame.RefusedSize), at, true, false,
			answer(checked), answer(checked), admission.Verdict{Do: admission.LearnForeign}, refuse(admission.UnknownSource)},
		{"HELLO from the id 0", shake(t, local, 0, hello, frame.RefusedSize), at, false, false,
			refuse(admission.UnknownSource), refuse(admission.UnknownSource), refuse(admission.UnknownSource), refuse(admission.UnknownSource)},
		{"message", message(t, local, remote), at, false, false,
			refuse(admission.NoSession), refuse(admission.UnknownSource), admission.Verdict{Do: admission.LearnForeign}, refuse(admission.UnknownSource)},
		{"HELLO that names a receiver", shake(t, local, remote, wrong, frame.RefusedSize), at, false, false,
			refuse(admission.NoSession), refuse(admission.UnknownSource), admission.Verdict{Do: admission.LearnForeign}, refuse(admission.UnknownSource)},
		{"HELLO that names a receiver, to another id", shake(t, 3, remote, wrong, frame.RefusedSize), at, false, true,
			refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination)},
		{"message with the flag of a seal", flagged, at, false, false,
			refuse(admission.NoSession), refuse(admission.UnknownSource), admission.Verdict{Do: admission.LearnForeign}, refuse(admission.UnknownSource)},
		{"acknowledgement", empty(t, local, remote, 0), at, false, false,
			refuse(admission.UnknownSource), refuse(admission.UnknownSource), refuse(admission.UnknownSource), refuse(admission.UnknownSource)},
		{"sealed", empty(t, local, remote, seal.Flag), at, false, false,
			refuse(admission.Sealed), refuse(admission.Sealed), refuse(admission.Sealed), refuse(admission.Sealed)},
		{"sealed, to the id 0", empty(t, 0, remote, seal.Flag), at, false, false,
			refuse(admission.Sealed), refuse(admission.Sealed), refuse(admission.Sealed), refuse(admission.Sealed)},
		{"sealed, to another id", empty(t, 3, remote, seal.Flag), at, false, false,
			refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination)},
		{"HELLO to the id 0", shake(t, 0, remote, hello, frame.RefusedSize), at, false, false,
			tell, refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination)},
		{"HELLO of a known peer to another id", shake(t, 3, remote, hello, frame.RefusedSize), at, false, true,
			tell, tell, refuse(admission.WrongDestination), refuse(admission.WrongDestination)},
		{"short HELLO to another id", shake(t, 3, remote, hello, frame.RefusedSize-1), at, false, true,
			refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination)},
		{"HELLO to another id over Ethernet", shake(t, 3, remote, hello, frame.RefusedSize), ethernet, false, true,
			refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination)},
		{"HELLO from the id 0 to another id", shake(t, 3, 0, hello, frame.RefusedSize), at, false, true,
			refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination)},
		{"CONFIRM to another id", shake(t, 3, remote, confirm, frame.RefusedSize), at, false, true,
			refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination)},
		{"acknowledgement to another id", empty(t, 3, remote, 0), at, false, true,
			refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination), refuse(admission.WrongDestination)},
	} {
		for _, sessions := range []bool{true, false} {
			for _, accepts := range []bool{true, false} {
				var g admission.Gate
				g.Init(local, sessions)
				g.AcceptAny(accepts)
				want := x.accepted
				switch {
				case sessions && !accepts:
					want = x.alone
				case !sessions && accepts:
					want = x.foreign
				case !sessions:
					want = x.noForeign
				}
				if got := g.Frame(x.f, x.from, admission.Question{Size: x.f.Size(), Checked: x.checked}, x.known); got != want {
					t.Errorf("%s, sessions %v, accepts %v: %+v, want %+v", x.name, sessions, accepts, got, want)
				}
			}
		}
	}
}

// TestGateOfSessions checks that data and bells of a session that is not there are answered with RESET, and nothing else is (attack A9,
// SECURITY.md).
func TestGateOfSessions(t *testing.T) {
	var g admission.Gate
	g.Init(local, true)
	for _, c := range []frame.Control{
		frame.NoControl, frame.ControlBell, frame.ControlAck, frame.ControlBye, frame.ControlProbe, frame.ControlProbed, frame.ControlReset,
	} {
		for _, x := range []struct {
			dst, src frame.EndpointID
			want     admission.Verdict
		}{
			{3, remote, admission.Verdict{Why: admission.WrongDestination}},
			{local, 0, admission.Verdict{Why: admission.UnknownSource}},
			{local, remote, admission.Verdict{Why: admission.NoSession}},
		} {
			if x.dst == local && x.src != 0 && (c == frame.NoControl || c == frame.ControlBell) {
				x.want.Do = admission.AnswerReset
			}
			f := frame.SessionFrame{SessionHeader: frame.SessionHeader{Dst: x.dst, Src: x.src, Control: c}}
			if got := g.SessionFrame(&f); got != x.want {
				t.Errorf("control %v from %d to %d: %+v, want %+v", c, x.src, x.dst, got, x.want)
			}
		}
	}
}
