package endpoint

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
)

// TestForgedBeforeData: one forged frame without data, under an id far ahead of those of a peer
// that has sent no data yet, does not have what it sends then acknowledged under ids that it
// never had (attack A12, SECURITY.md).
func TestForgedBeforeData(t *testing.T) {
	const far = 1 << 17
	for name, forge := range map[string]func(s *stranger){
		"nothing": func(*stranger) {},
		"stamp":   func(s *stranger) { s.alone(stamp(s.theirs, far, 0), 0) },
		"hello": func(s *stranger) {
			b := s.encode(0, msg{Message: frame.Hello{Life: life, Peer: s.theirs}.Message()})
			h := frame.Header{Dst: s.dst, Src: s.id, Flags: frame.FlagMessages}
			h.SetHelloID(far)
			h.Put(b)
			s.raw(b)
		},
	} {
		withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
			s.alone(stamp(s.theirs, 2, 0), 0)
			forge(s)
			s.recv(10 * time.Millisecond)
			s.send(3, data(life, 1, 1, 64, []byte("12345678")))
			acked := false
			for _, f := range s.recv(50 * time.Millisecond) {
				st, ok := f.Stamp()
				if !ok || f.AckCount == 0 {
					continue
				}
				acked = true
				if ack.Wide(st.Start) != 3 {
					t.Errorf("%s forged: frame 3 is acknowledged as %d", name, st.Start)
				}
			}
			if !acked {
				t.Errorf("%s forged: frame 3 is not acknowledged", name)
			}
		})
	}
}
