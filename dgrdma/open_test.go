package dgrdma

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

// TestEvictionSparesWhatGoesOn checks that those transactions of a peer that never sends again are
// evicted that are silent for longest, not those that began first.
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

// TestEvictionSparesTheFrame checks that nothing is evicted that the frame itself goes on with, and
// nothing at all for a frame that does not fit.
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

// TestWholeInOneFrame checks that what begins and ends in one frame is never open, however many
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

// leaving closes the connection when its peer is first asked about.
type leaving struct {
	Memory
	conn *Conn
}

func (m *leaving) Admit(src frame.EndpointID, msg *frame.Message) ([]byte, error) {
	m.conn.Close()
	return m.Memory.Admit(src, msg)
}

// TestClosedDuringAFrame checks that what the frame still opens is given back, too, when the peer is
// closed while it is applied.
func TestClosedDuringAFrame(t *testing.T) {
	m := &leaving{Memory: new(Region)}
	f := newFeed(t, Config{Memory: m})
	c := f.native()
	m.conn = c
	h := &hostilePeer{f: f, seq: 1}
	open := bare(life, 2, 1)
	open.CompletionAddr, open.CompletionValue = frame.NoCompletion, frame.NoCompletion
	h.give(open)
	if n := c.rx.held.Bytes(); n != 0 || c.rx.open.Len() != 0 {
		t.Errorf("%d bytes are kept", n)
	}
}

// TestInterleavedTransactionsOfOneFrame checks that messages of one transaction that are apart in
// their frame may contradict each other too. It is lost then, and nothing of it is kept.
func TestInterleavedTransactionsOfOneFrame(t *testing.T) {
	eight := []byte("12345678")
	with := func(change func(*frame.Message)) msg {
		m := data(life, 2, 2, 72, eight)
		change(&m.Message)
		return m
	}
	for name, third := range map[string]msg{
		"count grows":      with(func(m *frame.Message) { m.Count = 200 }),
		"another address":  with(func(m *frame.Message) { m.CompletionAddr += 8 }),
		"another value":    with(func(m *frame.Message) { m.CompletionValue++ }),
		"no contradiction": with(func(*frame.Message) {}),
	} {
		for _, profile := range []Profile{Native(), OpenCPI(false)} {
			t.Run(profile.Name+", "+name, func(t *testing.T) {
				var lost []uint32
				cfg := Config{OnEvent: func(e Event) {
					if e.Kind == TransactionLost {
						lost = append(lost, e.Txn)
					}
				}}
				withFakePeer(t, cfg, profile, func(t *testing.T, e *Endpoint, c *Conn, s *fakePeer) {
					s.send(2, data(life, 2, 1, 64, eight), data(life+1, 1, 1, 128, eight), third)
					if !acked(s.recv(10*time.Millisecond), 2) {
						t.Error("was not acknowledged")
					}
					done := uint64(1)
					if name == "no contradiction" {
						done = 2
					}
					if st := c.Stats(); st.Completions != done || st.Open != 0 || len(lost) != 2-int(done) {
						t.Errorf("%d completions, %d open, lost %v", st.Completions, st.Open, lost)
					}
				})
			})
		}
	}
}
