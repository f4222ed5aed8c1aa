package endpoint

import (
	"testing"
	"time"

	"github.com/dgrdma/dgrdma/frame"
)

// plain opens a connection to peer 1 of a kind that never sends again.
func (f *feed) plain() (*Conn, *hostilePeer) {
	f.t.Helper()
	prof := OpenCPI2()
	c, err := f.e.Connect(Peer{ID: 1, Addr: addrA, Profile: &prof})
	if err != nil {
		f.t.Fatal(err)
	}
	return c, &hostilePeer{f: f}
}

// TestEvictionSparesWhatGoesOn: of the transactions of a peer that never sends again
// those are given up that are silent for longest, not those that began first.
func TestEvictionSparesWhatGoesOn(t *testing.T) {
	f := newFeed(t, Config{OpenIncoming: 4})
	c, h := f.plain()
	for i := range uint32(20) {
		h.give(bare(1, 20, uint16(i+1)))
		h.give(bare(2+i, 2, 1))
	}
	if st := c.Stats(); st.Completions != 1 || st.OpenEvicted != 16 || st.Open != 4 {
		t.Errorf("%d completions, %d given up, %d open", st.Completions, st.OpenEvicted, st.Open)
	}
}

// TestEvictionSparesTheFrame: nothing is given up that the frame itself goes on with,
// and nothing at all for a frame that does not fit.
func TestEvictionSparesTheFrame(t *testing.T) {
	f := newFeed(t, Config{OpenIncoming: 4})
	c, h := f.plain()
	h.give(bare(1, 4, 1), bare(2, 4, 1), bare(3, 4, 1), bare(4, 4, 1))
	h.give(bare(1, 4, 2), bare(5, 4, 1))
	if st := c.Stats(); st.Open != 4 || st.OpenEvicted != 1 {
		t.Fatalf("%d open, %d given up", st.Open, st.OpenEvicted)
	}
	h.give(bare(1, 4, 3), bare(3, 4, 2), bare(4, 4, 2), bare(5, 4, 2), bare(6, 4, 1))
	if st := c.Stats(); st.Open != 4 || st.OpenEvicted != 1 || st.RefusedBy(RefusedTooManyOpen) != 1 {
		t.Fatalf("%d open, %d given up, refused %v", st.Open, st.OpenEvicted, st.Refused)
	}
	h.give(bare(1, 4, 3), bare(1, 4, 4))
	for _, txn := range []uint32{3, 4, 5} {
		h.give(bare(txn, 4, 2), bare(txn, 4, 3), bare(txn, 4, 4))
	}
	if st := c.Stats(); st.Completions != 4 || st.Open != 0 {
		t.Errorf("%d completions, %d open", st.Completions, st.Open)
	}
}

// TestWholeInOneFrame: what begins and ends in one frame is never open, however many
// there are.
func TestWholeInOneFrame(t *testing.T) {
	f := newFeed(t, Config{OpenIncoming: 1})
	c := f.native()
	h := &hostilePeer{f: f, seq: 1}
	h.give(times(300, func(i int) frame.Message { return bare(life+uint32(i/3), 3, uint16(1+i%3)) })...)
	if st := c.Stats(); st.Completions != 100 || st.Open != 0 {
		t.Errorf("%d completions, %d open, refused %v", st.Completions, st.Open, st.Refused)
	}
}

// TestCompletionTwiceInAFrame: a transaction of no messages ends once.
func TestCompletionTwiceInAFrame(t *testing.T) {
	f := newFeed(t, Config{})
	c := f.native()
	h := &hostilePeer{f: f, seq: 1}
	h.give(bare(life, 0, 0), bare(life, 0, 1))
	if st := c.Stats(); st.Completions != 0 || st.RefusedBy(RefusedInconsistent) != 1 {
		t.Errorf("%d completions, refused %v", st.Completions, st.Refused)
	}
}

// leaving closes the connection when its peer is first asked about.
type leaving struct {
	Memory
	conn *Conn
}

func (m *leaving) Admit(src frame.EndpointID, msg *frame.Message) ([]byte, error) {
	m.conn.Close()
	return m.Memory.Admit(src, msg)
}

// TestClosedAmidAFrame: what the frame still opens is given back, too.
func TestClosedAmidAFrame(t *testing.T) {
	m := &leaving{Memory: new(Region)}
	f := newFeed(t, Config{Memory: m})
	c := f.native()
	m.conn = c
	h := &hostilePeer{f: f, seq: 1}
	open := bare(life, 2, 1)
	open.CompletionAddr, open.CompletionValue = frame.NoCompletion, frame.NoCompletion
	h.give(open)
	if n := c.rx.held.bytes; n != 0 || c.rx.open.len() != 0 {
		t.Errorf("%d bytes are kept", n)
	}
}

// TestInterleavedTransactionsOfOneFrame: messages of one transaction that are
// apart in their frame may contradict each other too.
func TestInterleavedTransactionsOfOneFrame(t *testing.T) {
	eight := []byte("12345678")
	cases := []struct {
		name  string
		third msg
	}{
		{"countGrows", data(life, 200, 150, 72, eight)},
		{"sameIndex", data(life, 2, 1, 72, eight)},
	}
	for _, x := range cases {
		t.Run(x.name, func(t *testing.T) {
			withStranger(t, Config{}, Native(), func(t *testing.T, e *Endpoint, c *Conn, s *stranger) {
				s.send(2, data(life, 2, 1, 64, eight), data(life+1, 1, 1, 128, eight), x.third)
				if acked(s.recv(10*time.Millisecond), 2) {
					t.Error("was acknowledged")
				}
				if st := c.Stats(); st.RefusedBy(RefusedInconsistent) != 1 || st.Completions != 0 || st.Open != 0 {
					t.Errorf("refused %v, %d completions, %d open", st.Refused, st.Completions, st.Open)
				}
			})
		})
	}
}
