package dgrdma

import (
	"testing"

	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

// TestAcksOfABurstAreForgotten checks that what ACKs say takes no memory of a peer after the batch that they arrived in, however many
// ranges they have (attack A6, SECURITY.md).
func TestAcksOfABurstAreForgotten(t *testing.T) {
	const peers, burst, most = 64, 63, 16 << 10
	f := newFeed(t, Config{AcceptAny: true})
	begin := func(i int) *Conn {
		f.from = simnet.Addr(uint32(100 + i))
		f.introduce(1, life)
		return f.e.peers.find(peerKey{ids{2, 1}, f.from})
	}
	var frames [][]byte
	for i := range peers {
		c := begin(i)
		if c == nil {
			t.Fatal("no session")
		}
	}
	before := heapAfterGC()
	for i := range peers {
		f.from = simnet.Addr(uint32(100 + i))
		c := f.e.peers.find(peerKey{ids{2, 1}, f.from})
		theirs := uint32(c.session.tx.m.Local)
		h := frame.SessionHeader{Dst: 2, Src: 1, ID: theirs, Tag: tagOfSession(theirs, life), Ack: theirs}
		var ranges []frame.Range
		for j := range uint32(frame.MostRanges) {
			ranges = append(ranges, frame.Range{First: theirs + 2 + 2*j, Count: 1})
		}
		b := make([]byte, frame.MostSessionAck)
		b = b[:frame.PutSessionAckFrame(b, &h, false, 0, frame.LongestDelay, ranges)]
		frames = frames[:0]
		for range burst {
			frames = append(frames, b)
		}
		refused := c.Stats().RefusedBy(RefusedAckOfUnsent)
		f.more = frames
		f.give(b)
		if n := c.Stats().RefusedBy(RefusedAckOfUnsent) - refused; n == 0 {
			t.Fatal("the ACKs did not arrive")
		}
	}
	if now := heapAfterGC(); now > before && (now-before)/peers > most {
		t.Errorf("%d bytes more of each peer, want at most %d", (now-before)/peers, most)
	}
}
