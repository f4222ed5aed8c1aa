package endpoint

import (
	"bytes"
	"hash"
	"math"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dgrdma/dgrdma/ack"
	"github.com/dgrdma/dgrdma/frame"
	"github.com/dgrdma/dgrdma/transport"
	"github.com/dgrdma/dgrdma/transport/simnet"
)

func udpAddr(s string) transport.Addr { return transport.UDPAddr(netip.MustParseAddrPort(s)) }

// TestCookies: only who was told a cookie can name it, for a while, and to one end.
func TestCookies(t *testing.T) {
	var k cookies
	peer := peerKey{ids{2, 1}, udpAddr("10.0.0.1:7100")}
	now := ack.Instant(1000)
	c, ok := k.offer(now, peer, 5)
	if !ok || c.life == 0 {
		t.Fatal(c, ok)
	}
	if again, _ := k.offer(now+1, peer, 5); again != c {
		t.Error("the same question, another answer")
	}
	named := func(now ack.Instant, p peerKey, life incarnation) bool {
		_, ok, _ := k.find(now, p, life, c.life)
		return ok
	}
	for name, p := range map[string]peerKey{
		"ours":   {ids{3, 1}, peer.addr},
		"theirs": {ids{2, 2}, peer.addr},
		"port":   {peer.ids, udpAddr("10.0.0.1:7101")},
		"host":   {peer.ids, udpAddr("10.0.0.2:7100")},
		"zone":   {peer.ids, udpAddr("[fe80::1%eth0]:7100")},
		"kind":   {peer.ids, simnet.Addr(1)},
		"mac":    {peer.ids, transport.EtherAddr([6]byte{2})},
	} {
		if named(now, p, 5) {
			t.Errorf("it serves another %s", name)
		}
	}
	if named(now, peer, 6) {
		t.Error("it serves another life")
	}
	var other cookies
	if d, _ := other.offer(now, peer, 5); d == c {
		t.Error("another endpoint tells the same")
	}
	if !named(now, peer, 5) || !named(now+cookieTime, peer, 5) || named(now+2*cookieTime, peer, 5) {
		t.Error("it does not hold for the rest of its time and the next")
	}
	now += 2 * cookieTime
	c, _ = k.offer(now, peer, 5)
	k.spend(introduction{peer, c.life, 5})
	for _, at := range []ack.Instant{now, now + cookieTime} {
		if _, known, fresh := k.find(at, peer, 5, c.life); !known || fresh {
			t.Error("it serves twice")
		}
	}
	if _, ok := k.offer(now+cookieTime, peer, 6); !ok {
		t.Error("another life of the same peer gets none")
	}
	full := 0
	for i := range incarnation(mostSpent + 10) {
		if k.spend(introduction{peer, i, i}) {
			full++
		}
	}
	if full != 1 {
		t.Errorf("it was full %d times, want 1", full)
	}
	if n := len(k.spent[0]) + len(k.spent[1]); n > mostSpent {
		t.Errorf("%d are remembered, want at most %d", n, mostSpent)
	}
}

// TestCookiesOfManyPeers: as many peers as an endpoint can have do not make it forget what
// it told another one, nor one of them that it was told something.
func TestCookiesOfManyPeers(t *testing.T) {
	var k cookies
	peer := peerKey{ids{2, 1}, udpAddr("10.0.0.1:7100")}
	told, _ := k.offer(1, peer, 5)
	const peers = 1<<16 - 1
	for i := range incarnation(peers) {
		k.spend(introduction{peer, i, i})
	}
	if _, known, fresh := k.find(1, peer, 5, told.life); !known || !fresh {
		t.Error("what a stranger was told does not count any more")
	}
	for i := incarnation(0); i < peers; i += 101 {
		if !k.isSpent(introduction{peer, i, i}) {
			t.Fatal("what was spent serves again")
		}
	}
}

// TestCookiesOfNobody: who names nothing was told nothing, and where nobody was told
// anything, nothing is kept.
func TestCookiesOfNobody(t *testing.T) {
	var k cookies
	peer := peerKey{ids{2, 1}, udpAddr("10.0.0.1:7100")}
	if k.spend(introduction{peer, 4, 5}); len(k.spent[0]) != 0 {
		t.Error("something is kept, and nobody was told anything")
	}
	k.offer(1, peer, 5)
	if _, known, fresh := k.find(1, peer, 5, unknown); known || fresh {
		t.Errorf("who names nothing was told that: %v, %v", known, fresh)
	}
}

// fixed is a hash of one byte, over and over.
type fixed struct {
	hash.Hash
	is byte
}

func (f fixed) Write(b []byte) (int, error) { return len(b), nil }
func (f fixed) Reset()                      {}
func (f fixed) Sum(b []byte) []byte         { return append(b, bytes.Repeat([]byte{f.is}, 32)...) }

// TestCookieIsALife: whatever the hash is, a cookie names a life, and it serves.
func TestCookieIsALife(t *testing.T) {
	peer := peerKey{ids{2, 1}, udpAddr("10.0.0.1:7100")}
	for _, is := range []byte{0, 1, 0xff} {
		k := cookies{mac: fixed{is: is}}
		c, _ := k.offer(1, peer, 5)
		if _, known, fresh := k.find(1, peer, 5, c.life); c.life == unknown || !known || !fresh {
			t.Errorf("hash %#x: life %#x, known %v, fresh %v", is, c.life, known, fresh)
		}
	}
}

// TestCookiesAreNoise: each bit of what strangers are told differs from one of them to the
// next, and from each other bit.
func TestCookiesAreNoise(t *testing.T) {
	var k cookies
	var bits [64]uint64 // of so many strangers
	for i := range 64 {
		c, _ := k.offer(1, peerKey{ids{2, 1}, simnet.Addr(uint32(i))}, 5)
		for bit, told := 0, uint64(c.life)<<32|uint64(c.first); bit < 64; bit++ {
			bits[bit] |= told >> bit & 1 << i
		}
	}
	for i, b := range bits {
		if b == 0 || b == math.MaxUint64 {
			t.Errorf("bit %d is the same for all", i)
		}
		for j, other := range bits[:i] {
			if b == other {
				t.Errorf("bits %d and %d are the same", j, i)
			}
		}
	}
}

// TestCookiesAfterAPause: what was told holds for the rest of its time and the next, and
// what was spent is known as long, however long nobody had asked before, and how often
// somebody does since.
func TestCookiesAfterAPause(t *testing.T) {
	peer := peerKey{ids{2, 1}, udpAddr("10.0.0.1:7100")}
	for _, pause := range []ack.Instant{0, 1, 2, 3, 100} {
		var k cookies
		k.offer(0, peer, 4)
		told := pause * cookieTime
		unspent, _ := k.offer(told, peer, 5)
		spent, _ := k.offer(told, peer, 6)
		k.spend(introduction{peer, spent.life, 6})
		for n, at := range []ack.Instant{told, told, told + cookieTime, told + cookieTime, told + 2*cookieTime} {
			_, known, fresh := k.find(at, peer, 5, unspent.life)
			_, knownSpent, freshSpent := k.find(at, peer, 6, spent.life)
			if valid := n < 4; known != valid || fresh != valid || knownSpent != valid || freshSpent {
				t.Errorf("told at %v: at %v it is known %v, fresh %v; the spent one known %v, fresh %v", told, at, known, fresh, knownSpent, freshSpent)
			}
		}
		if n := len(k.spent[0]) + len(k.spent[1]); n != 0 {
			t.Errorf("told at %v: %d are remembered when none is known any more", told, n)
		}
	}
}

// BenchmarkCookie is what a stranger's hello costs beside receiving and answering it.
func BenchmarkCookie(b *testing.B) {
	var k cookies
	peer := peerKey{ids{2, 1}, udpAddr("[2001:db8::1]:7100")}
	b.ReportAllocs()
	for b.Loop() {
		k.find(1, peer, 5, 6)
		k.offer(1, peer, 5)
	}
}

// TestPeerThatLeaves: a peer that shows that its address is its own, and is never heard
// again, is asked a few times whether it heard us, and not for ever; it is still there
// for it (attack A9, SECURITY.md).
func TestPeerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, w := openForgery(t, Config{})
		defer e.Close()
		ours := func(sent []sentTo) (last frame.Hello) {
			for _, s := range sent {
				if h, ok := helloOf(&s.f); ok {
					last = h
				}
			}
			return last
		}
		w.hello(addrA, 1, frame.Hello{Life: 5})
		mine := ours(w.frames(time.Millisecond)).Life
		w.hello(addrA, 1, frame.Hello{Life: 5, Peer: mine})
		if sent := w.frames(24 * time.Hour); len(sent) > 12 || len(e.Conns()) != 1 {
			t.Errorf("%d frames to a peer that left, want about %d", len(sent), helloTries)
		}
		// Whatever it says, it is asked again.
		w.message(addrA, 1, 7, frame.Message{Txn: 5, CompletionAddr: 0, CompletionValue: 1, Index: frame.NotHello})
		if h := ours(w.frames(10 * time.Second)); h != (frame.Hello{Life: mine, Peer: 5}) {
			t.Errorf("a peer that came back got %+v", h)
		}
		w.hello(addrA, 1, frame.Hello{Life: 5, Peer: mine, Tells: true})
		w.frames(time.Second)
		if sent := w.frames(time.Hour); len(sent) != 0 {
			t.Errorf("%d frames when all was said", len(sent))
		}
	})
}

// TestLearnedIsWhoItWasTold: a connection to who was a stranger is from the first in the life
// that this one was told, and not when its frame is looked at: something may leave before.
func TestLearnedIsWhoItWasTold(t *testing.T) {
	r := newHalfRig(t, 1, Native(), Config{})
	told := cookie{4711, 12345}
	c, err := r.e.newConn(Peer{ID: 3, Addr: addrA}, r.now, connectPeer(&told))
	if err != nil {
		t.Fatal(err)
	}
	if mine, _ := c.tx.kind.lives(); mine != told.life || c.tx.sender.NextWide() != told.first || c.tx.nextTxn != uint32(told.life) {
		t.Errorf("life %d, frames from %d and transactions from %d on, want %+v", mine, c.tx.sender.NextWide(), c.tx.nextTxn, told)
	}
}
