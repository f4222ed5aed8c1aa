package dgrdma

import (
	"errors"
	"testing"
)

// TestPostToAnotherLife checks that what is posted to a life that is not the connection's is not
// sent, which its error says, though it is that of a peer that restarted.
func TestPostToAnotherLife(t *testing.T) {
	f := newFeed(t, Config{})
	c, err := f.e.Connect(Peer{ID: 7, Addr: addrA})
	if err != nil {
		t.Fatal(err)
	}
	for _, life := range []uint32{0, c.Life() + 1} {
		want := &PeerError{ID: 7, Addr: addrA, Op: "post", Err: errors.New("this life of the connection is over, or never began; nothing was sent")}
		if err := c.PostTo(life, &Transaction{Completion: Word(0, 1)}); !errors.Is(err, ErrPeerRestarted) || err.Error() != want.Error() {
			t.Errorf("life %d: %v, want %v", life, err, want)
		}
	}
}
