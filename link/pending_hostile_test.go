package link

import (
	"testing"
	"time"
)

// TestCancels checks that a letter of an end cancels what the same peer asked for in that attempt,
// once. It cancels nothing of another peer, nor what was accepted by then under another number. A
// letter about what does not wait is not answered.
func TestCancels(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, _ <-chan *Link, s *fakePeer) {
		p, err := h.Listen("unserved", nil)
		if err != nil {
			t.Fatal(err)
		}
		liar := s.n.fakePeer(8, h)
		open := func(from uint32, attempt uint64) {
			s.letter(letter{kind: letterOpen, directions: toListener, from: from, attempt: attempt, name: "unserved"})
		}
		none := func(x *fakePeer, why string) {
			t.Helper()
			if got := x.mail(); len(got) != 0 {
				t.Errorf("%s: answered by %+v", why, got)
			}
		}
		open(1, 1)
		open(2, 2)
		liar.letter(letter{kind: letterClose, from: 1, attempt: 1})
		none(liar, "another's attempt")
		s.letter(letter{kind: letterClose, from: 1, attempt: 77})
		none(s, "an attempt that no Dial made")
		s.letter(letter{kind: letterClose, from: 1, to: 77, attempt: 1})
		none(s, "the end of a link that is not there")
		if w := p.pending.len(); w != 2 {
			t.Fatalf("%d wait, want 2", w)
		}
		open(3, 1)
		if got := s.mail(); len(got) != 1 || got[0].kind != letterRefuse || got[0].to != 3 || got[0].text != "the attempt waits already" {
			t.Errorf("an attempt that waits is made again: %+v", got)
		}
		for i := range 2 {
			s.letter(letter{kind: letterClose, from: 1, attempt: 1})
			if got := s.mail(); i == 0 && (len(got) != 1 || got[0].kind != letterRefuse || got[0].to != 1 || got[0].attempt != 1) || i > 0 && len(got) > 0 {
				t.Errorf("withdrawal %d is answered by %+v", i, got)
			}
			if w, k := p.pending.len(), h.peerOf(h.ep.Conns()[0]).countPending(); w != 1 || k != 1 {
				t.Errorf("%d wait at the port, %d of the peer's, want the other one", w, k)
			}
		}
		open(4, 1) // which is free again
		in := make(chan *Link, 2)
		for range 2 {
			l, err := p.Accept(soon(t))
			if err != nil {
				t.Fatal(err)
			}
			in <- l
		}
		if l := <-in; l.remoteNumber != 2 {
			t.Errorf("link %d was accepted first, want the oldest that waits", l.remoteNumber)
		}
		if l := <-in; l.remoteNumber != 4 {
			t.Errorf("link %d was accepted after it", l.remoteNumber)
		}
	})
}

// TestCancelsAreBounded checks that a peer that asks for links and cancels them, and takes no letter,
// has the host keep no more answers than it may have waiting, and no place at the port. What it
// cancels costs no more than what it does not.
func TestCancelsAreBounded(t *testing.T) {
	withFakePeer(t, nil, func(t *testing.T, h *Host, _ <-chan *Link, s *fakePeer) {
		port, err := h.Listen("unserved", nil)
		if err != nil {
			t.Fatal(err)
		}
		p := h.peerOf(h.ep.Conns()[0])
		s.setMute(true)
		put := func(l letter) {
			var b [boxSize]byte
			k := l.put(b[:])
			s.frame(s.mailed(b[:k], uint32(k)))
			s.wait(time.Microsecond)
		}
		for i := range uint32(backlog) { // half of them are refused
			put(letter{kind: letterOpen, directions: toListener, from: i + 1, attempt: uint64(i), name: "unserved"})
		}
		if w := port.pending.len(); w != backlog/2 {
			t.Errorf("%d wait, want half of the places", w)
		}
		for i := range uint32(3 * mostReplies) {
			put(letter{kind: letterClose, from: i + 1, attempt: uint64(i) % backlog})
			put(letter{kind: letterOpen, directions: toListener, from: i + 1, attempt: uint64(i) % backlog, name: "unserved"})
		}
		if waiting := p.channel.Waiting(); waiting == 0 || waiting > mostReplies {
			t.Errorf("%d letters wait for a peer that takes none, want at most %d", waiting, mostReplies)
		}
		for i := range uint64(backlog) {
			put(letter{kind: letterClose, from: 1, attempt: i})
		}
		if w, k := port.pending.len(), p.countPending(); w != 0 || k != 0 {
			t.Errorf("%d wait at the port, %d of the peer's: all were cancelled", w, k)
		}
	})
}
