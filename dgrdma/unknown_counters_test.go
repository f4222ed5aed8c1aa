package dgrdma

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestStrayFramesAreCounted checks that what belongs to no connection is counted as received,
// whatever is refused of it, and what answers it as sent: so two ends that know nothing of each
// other count the same.
func TestStrayFramesAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := simnet.New(1)
		defer n.Close()
		mem, err := NewRegion(4096)
		if err != nil {
			t.Fatal(err)
		}
		e, err := New(n.Attach(addrB, simnet.Config{}), &Config{ID: 2, Memory: mem, AcceptAny: true})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		s := newStranger(t, n, addrA, 1, 2, addrB)
		elsewhere := newStranger(t, n, simnet.Addr(9), 1, 77, addrB)
		var frames, bytes uint64
		send := func(s *fakePeer, b []byte) {
			s.raw(b)
			frames++
			bytes += uint64(len(b))
		}
		send(s, []byte("junk"))
		shake := func(h frame.Handshake) {
			b := make([]byte, frame.ListedSize)
			h.Put(b, 2, 1)
			send(s, b)
		}
		send(s, s.encode(1, data(70, 1, 1, 64, pattern(1, 8))))                       // of no session
		shake(frame.Handshake{Kind: frame.HandshakeHello, Sender: 70})                // answered
		send(elsewhere, elsewhere.encode(1, data(70, 1, 1, 64, pattern(1, 8))))       // for another endpoint
		shake(frame.Handshake{Kind: frame.HandshakeWelcome, Sender: 70, Receiver: 5}) // the answer to nothing
		s.local, s.theirs = 70, 5
		send(s, s.encode(1, data(70, 1, 1, 64, pattern(1, 8)))) // answered: of a session that there is not
		var sent uint64
		time.Sleep(time.Millisecond)
		synctest.Wait()
		got := s.raws
		for _, b := range got {
			sent += uint64(len(b))
		}
		st := e.Stats()
		if st.FramesReceived != frames || st.BytesReceived != bytes {
			t.Errorf("received %d frames, %d bytes; want %d, %d", st.FramesReceived, st.BytesReceived, frames, bytes)
		}
		if len(got) < 2 || st.FramesSent != uint64(len(got)) || st.BytesSent != sent {
			t.Errorf("sent %d frames, %d bytes; %d came, with %d", st.FramesSent, st.BytesSent, len(got), sent)
		}
		refused := uint64(0)
		for _, k := range st.Refused {
			refused += k
		}
		if refused == 0 || refused > st.FramesReceived {
			t.Errorf("%d refused of %d", refused, st.FramesReceived)
		}
	})
}
