package dgrdma

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// TestForgedFramesOfAPeerAreNotAmplified checks that what is sent to a peer because of a frame under its address is no longer than that, and
// one frame at most, in each state of the connection and of whatever kind and length it is (attack A9, SECURITY.md).
func TestForgedFramesOfAPeerAreNotAmplified(t *testing.T) {
	for _, state := range []string{"Asking", "Confirming", "Up", "Down"} {
		t.Run(state, func(t *testing.T) {
			answered := 0
			withFakePeer(t, Config{GiveUp: time.Hour}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
				switch state {
				case "Asking", "Confirming":
					c.Reset(0)
					mine := s.asked()
					if state == "Confirming" {
						s.welcome(life, mine, serviceAt("memory", 0))
					}
				case "Down":
					s.bye(life, s.theirs)
				}
				s.recv(time.Millisecond)
				for name, b := range forgedFrames(s) {
					for len(s.recv(time.Microsecond)) > 0 { // what is repeated anyway does not leave now
					}
					s.raw(b)
					time.Sleep(time.Microsecond)
					synctest.Wait()
					s.mu.Lock()
					bytes, frames := 0, len(s.raws)
					for _, r := range s.raws {
						bytes += len(r)
					}
					s.mu.Unlock()
					if frames > 1 || bytes > len(b) {
						t.Errorf("%s, of %d bytes: %d bytes in %d frames", name, len(b), bytes, frames)
					}
					answered += frames
				}
				if st := c.Stats(); st.Down != (state == "Down") {
					t.Errorf("down: %v", st.Down)
				}
			})
			if answered < 5 {
				t.Errorf("%d were answered", answered)
			}
		})
	}
}

// forgedFrames are frames under the name of a peer that are of no session of its.
func forgedFrames(s *fakePeer) map[string][]byte {
	all := map[string][]byte{}
	for kind := frame.HandshakeHello; kind <= frame.HandshakeRefused; kind++ {
		for _, receiver := range []uint32{0, s.theirs, s.theirs + 1} {
			for _, size := range []int{frame.HandshakeSize, frame.RefusedSize, frame.ListedSize} {
				b := make([]byte, size)
				h := frame.Handshake{Kind: kind, Sender: 4711, Receiver: receiver, Check: 7}
				if h.Put(b, s.dst, s.id); size == frame.ListedSize {
					list := servesMemory()
					list.Put(b[frame.HandshakeSize:])
				}
				all[fmt.Sprintf("handshake %v to %#x", kind, receiver)+fmt.Sprint(size)] = b
			}
		}
	}
	for control := frame.NoControl; control <= frame.ControlReset; control++ {
		for _, size := range []int{frame.SessionHeaderSize + 1, 46, 1000} {
			h := s.header(4711)
			h.Tag, h.Control = h.Tag+1, control
			b := make([]byte, size)
			h.Put(b)
			all[fmt.Sprintf("control %v, %d", control, size)] = b
		}
	}
	return all
}
