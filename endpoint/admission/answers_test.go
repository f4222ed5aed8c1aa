package admission_test

import (
	"testing"

	"github.com/dgrdma/dgrdma/endpoint/admission"
	"github.com/dgrdma/dgrdma/frame"
)

var (
	own  = frame.Refusal{ID: local, Size: 4096}
	list = new(frame.Services)
)

// answersOf are one of each kind.
func answersOf() []admission.Answer {
	return []admission.Answer{
		{Handshake: frame.Handshake{Kind: frame.HandshakeWelcome, Sender: 6, Receiver: 5, Check: 7}},
		{Handshake: frame.Handshake{Kind: frame.HandshakeWelcome, Sender: 6, Receiver: 5, Check: 7}, Identifies: true},
		{Handshake: frame.Handshake{Kind: frame.HandshakeReject, Sender: 6, Receiver: 5, Check: 7}},
		{Handshake: frame.Handshake{Kind: frame.HandshakeRefused, Sender: 5, Receiver: 5}, Why: 2},
		{Reset: frame.SessionHeader{Dst: local, Src: remote, ID: 6, Tag: 7, Ack: 8}},
	}
}

// leastQuestion returns the shortest frame that such an answer answers.
func leastQuestion(a admission.Answer) int {
	if a.Handshake.Kind == frame.NoHandshake {
		return frame.SessionHeaderSize + 1
	}
	return frame.HandshakeSize
}

// TestNoAnswerIsLonger checks that no answer, of whatever kind, with a checksum or without, is longer than its question, nor than a frame may
// be; and that a WELCOME has its list where there is room for that (attack A4, SECURITY.md).
func TestNoAnswerIsLonger(t *testing.T) {
	for _, checks := range []bool{false, true} {
		for _, mtu := range []int{64, frame.ListedSize - 1, frame.ListedSize, frame.ListedSize + frame.ChecksumSize - 1, frame.ListedSize + frame.ChecksumSize, 1500} {
			for _, checked := range []bool{false, true} {
				for _, x := range answersOf() {
					for size := leastQuestion(x); size < 300; size++ {
						var a admission.Answers
						a.Init(mtu, checks)
						x.Local, x.Remote, x.To = local, remote, udp("10.0.0.1:7")
						q := admission.Question{Size: size, Checked: checked}
						switch o := a.Add(x, q); {
						case x.Handshake.Kind == frame.HandshakeRefused && size < frame.RefusedSize, x.Identifies && o == admission.TooBig:
							if has := size >= frame.ListedSize && mtu >= frame.ListedSize+frame.ChecksumSize; o != admission.TooBig || a.Len() != 0 || x.Identifies && has {
								t.Fatalf("%v to %d bytes of %d: %v", x.Handshake.Kind, size, mtu, o)
							}
							continue
						case o != admission.Added:
							t.Fatalf("to %d bytes: %v", size, o)
						}
						got := &a.All()[0]
						if want := checks && (checked || size >= frame.ListedSize+frame.ChecksumSize); got.Handshake.Checks != want {
							t.Fatalf("%v to %d bytes has a checksum: %v", x.Handshake.Kind, size, !want)
						}
						b := make([]byte, 512)
						n := got.Put(b, own, list)
						all, asked := n, size
						if got.Handshake.Checks {
							all = frame.CheckedSize(n)
						}
						if checked {
							asked = frame.CheckedSize(size)
						}
						if all > asked || all > mtu && x.Handshake.Kind != frame.NoHandshake {
							t.Fatalf("%v to %d bytes, with frames of %d: %d", x.Handshake.Kind, asked, mtu, all)
						}
						lists := n == frame.ListedSize
						if want := x.Handshake.Kind == frame.HandshakeWelcome && size >= frame.ListedSize && mtu >= frame.ListedSize+all-n; lists != want {
							t.Fatalf("%v to %d bytes, with frames of %d, has a list: %v", x.Handshake.Kind, asked, mtu, lists)
						}
					}
				}
			}
		}
	}
}

// TestAnswersSay checks what answers say, and to which ids.
func TestAnswersSay(t *testing.T) {
	for _, x := range answersOf() {
		var a admission.Answers
		a.Init(1500, false)
		x.Local, x.Remote = local, remote
		a.Add(x, admission.Question{Size: 300})
		b := make([]byte, 512)
		b = b[:a.All()[0].Put(b, own, list)]
		if x.Handshake.Kind == frame.NoHandshake {
			f, err := frame.ParseSession(b)
			if err != nil || f.Control != frame.ControlReset || f.Dst != remote || f.Src != local || f.ID != 6 || f.Tag != 7 || f.Ack != 8 {
				t.Errorf("RESET: %+v, %v", f, err)
			}
			continue
		}
		f := parse(t, b)
		if h, ok := f.Handshake(); !ok || h != x.Handshake || f.Dst != remote || f.Src != local {
			t.Errorf("%+v, want %+v", h, x.Handshake)
		}
		r, refused := f.Refusal()
		if want := (frame.Refusal{ID: local, Size: 4096, Why: 2}); refused != (x.Handshake.Kind == frame.HandshakeRefused) || refused && r != want {
			t.Errorf("%v says %+v", x.Handshake.Kind, r)
		}
	}
}

// TestAnswersAreFew checks that a burst of the same question has one answer, that as many leave as may, and that there is room again after the
// batch (attack A9, SECURITY.md).
func TestAnswersAreFew(t *testing.T) {
	var a admission.Answers
	a.Init(1500, false)
	q := admission.Question{Size: 300}
	for range 2 {
		for i := range admission.MostAnswers + 10 {
			for j := range 3 {
				x := answersOf()[0]
				x.Remote = frame.EndpointID(i + 1)
				want := admission.Added
				switch {
				case i >= admission.MostAnswers:
					want = admission.Full
				case j > 0:
					want = admission.Again
				}
				if o := a.Add(x, q); o != want {
					t.Fatalf("answer %d, time %d: %v, want %v", i, j, o, want)
				}
			}
		}
		if a.Len() != admission.MostAnswers {
			t.Errorf("%d answers leave, want %d", a.Len(), admission.MostAnswers)
		}
		a.Clear()
	}
}
